"""The parameters of a problem itself; those of its data law, start and target, and of observables, stand with these."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation
from pydantic.dataclasses import dataclass

from sweeplib.problem.parameters import DEFAULTS, PARAMETERS, PROBLEM, declare, parameter

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Width = Annotated[int, Field(ge=1, lt=2**63)]
SecondLayer = Finite | tuple[Finite, ...]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Core:
    """The parameters that all problems have; `of_parts` are those of their parts, as pairs."""

    gamma: Positive = parameter(..., "learning rate γ > 0.", label="learning rate", symbol=r"\gamma", example=0.1)
    p: Width = parameter(
        ..., "student width, the number of its hidden units.", label="student width", symbol="p", example=4
    )
    k: Annotated[int, Field(ge=0, lt=2**63)] = parameter(
        ..., "teacher width; 0 for data without a teacher.", label="teacher width", symbol="k", example=1
    )
    d: Width = parameter(
        ...,
        "input dimension; inputs are x ~ N(0, I_d/d) unless `data` is another law.",
        label="input dimension",
        symbol="d",
        example=1000,
    )
    Delta: NotNegative = parameter(
        ..., "label-noise variance Δ ≥ 0.", label="label-noise variance", symbol=r"\Delta", example=0.5
    )
    activation: str = parameter(
        ...,
        "the student's activation function, by name, as a Hermite series `hermite(c_0, c_1, ...)`, that is "
        "σ = Σ c_n He_n/√n!, or by its knots, `piecewise(x_1, y_1, x_2, y_2, ...)`: linear between, constant outside.",
        label="activation of the student",
        symbol=r"\sigma",
        example="erf",
    )
    teacher_activation: str | None = parameter(
        None,
        "the teacher's activation function; the student's unless given.",
        label="activation of the teacher",
        symbol=r"\sigma^*",
        example="square",
    )
    spherical: bool = parameter(
        False,
        "project each student row onto the sphere ‖w‖² = d after every step.",
        label="student rows projected on the sphere",
        example=True,
    )
    a: SecondLayer = parameter(
        1.0,
        "second layer of the student at the start; one number for all units, or one per unit.",
        label="second layer of the student",
        symbol="a",
        example=[1, -1],
    )
    a_star: SecondLayer = parameter(
        1.0,
        "second layer of the teacher; one number for all units, or one per unit.",
        label="second layer of the teacher",
        symbol="a^*",
        example=2.0,
    )
    second_layer_rate: NotNegative = parameter(
        0.0,
        "ε ≥ 0: a step trains the second layer by a_i += ε (γ/pd) σ(λ_i) E; 0 freezes it.",
        label="learning rate of the second layer over that of the first",
        symbol=r"\varepsilon",
        example=1.0,
    )
    offset_scale: NotNegative = parameter(
        0.0,
        "s_b ≥ 0: units σ(λ_i + b_i) have offsets, which start as N(0, s_b²) numbers.",
        label="standard deviation of the first offsets",
        symbol="s_b",
        example=1.0,
    )
    offset_rate: NotNegative = parameter(
        0.0,
        "β ≥ 0: a step trains the offsets by b_i += β (γ/pd) a_i σ'(λ_i + b_i) E; 0 freezes them. Without either field "
        "units have no offsets.",
        label="learning rate of the offsets over that of the weights",
        symbol=r"\beta",
        example=1.0,
    )
    target: str = parameter(
        "committee",
        "what the student learns: `committee` is f* = (1/k) Σ a*_r σ*(λ*_r). A formula of the teacher's fields, such "
        "as `lam1 + lam1*lam2 + he3(lam3)`, has + - * / ** and activations, and functions of numbers as in "
        "`sqrt(2)*lam1`; k is the number of its highest field.",
        label="target",
        symbol="f^*",
        example="lam1*lam2",
    )
    data: str = parameter(
        "teacher_student",
        "law of the data. `teacher_student` has Gaussian inputs and the labels of the target. `two_gaussians` has "
        "labels y = ±1 + √Δ z of two classes of equal odds, whose inputs are x ~ N(0, (1 ± c)² I_d/d), c the "
        "`contrast`, and no teacher: k = 0.",
        label="law of the data",
        example="two_gaussians",
    )
    start: str | None = parameter(
        None,
        "law of the student's initial weights, by name: `gaussian` has N(0, s²) entries, s the `start_scale`, `sphere` "
        "rows uniform on the sphere of radius √d, `warm` rows that have the cosine m0 with teacher rows; by default "
        "`sphere` for spherical students and where m0 is given, otherwise `gaussian`.",
        label="law of the student's first weights",
        example="sphere",
    )
    teacher_start: Literal["orthogonal", "gaussian", "sphere"] = parameter(
        "orthogonal",
        "law of the teacher's weights; by default `orthogonal` rows of norm √d.",
        label="law of the teacher's weights",
        example="gaussian",
    )
    batch_size: Width = parameter(
        1,
        "number n_b of samples over whose gradients a step averages. With n_b and γ proportional to d, `overlap_map` "
        "is the limit d → ∞ of fresh batches.",
        label="samples of a step",
        symbol="n_b",
        example=10,
    )
    repeats: Width = parameter(
        1,
        "number r of steps in a row, each of the time γ/(pd), that use a batch before the next is drawn; exits are "
        "found at the end of such a round.",
        label="steps that use a batch",
        symbol="r",
        example=3,
    )
    samples: Width | None = parameter(
        None,
        "number n of samples of a finite training set, labels with noise, from which all batches are taken; by default "
        "every batch is of fresh samples. With n = `batch_size`, every step takes the full batch; with n also "
        "proportional to d, as γ, `dmft` is its limit d → ∞.",
        label="size of the training set",
        symbol="n",
        example=10000,
    )
    sampling: Literal["random", "epochs"] = parameter(
        "random",
        "how a batch is chosen from the training set: `random` takes distinct samples uniformly at random, "
        "independently at every step; `epochs` passes through the set in a new random order each time. The last batch "
        "of a pass has the samples that are left, over which the step averages.",
        label="choice of batches from the training set",
        example="epochs",
    )
    schedule: str | None = parameter(
        None,
        "the factor ξ(t) ≥ 0 of the learning rate, γ(t) = γ ξ(t), an expression of t, such as `1/(1 + t)`, "
        "`min(1, t/5)` or `1 if t < 2 else 0.1`; t is the ODE time ν γ/(pd), at the rate γ itself. Steps take ξ at the "
        "middle of their time. By default the rate is constant.",
        label="schedule of the learning rate",
        symbol=r"\xi(t)",
        example="1/(1 + t)",
    )
    of_parts: Annotated[tuple[tuple[str, Any], ...], SkipValidation] = ()


declare(PROBLEM, {name: field for name, field in Core.__pydantic_fields__.items() if name != "of_parts"})  # type: ignore[attr-defined]
CORE = tuple(PARAMETERS)
"""The names of the parameters of a problem itself."""
CORE_DEFAULTS = {name: DEFAULTS.get(name) for name in CORE}
"""Their defaults, None for those that every problem needs."""
