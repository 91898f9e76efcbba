"""The parameters of a problem itself; those of its data law, start and target, and of observables, stand with these."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation
from pydantic.dataclasses import dataclass

from sweeplib.engine.parameters import FIRST
from sweeplib.networks.problem.parameters import DEFAULTS, PARAMETERS, PROBLEM, declare, parameter

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Width = Annotated[int, Field(ge=1, lt=2**63)]
SecondLayer = Finite | tuple[Finite, ...]
SecondLayerLaw = Literal["normal", "signs"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Core:
    """The parameters that all problems have; `of_parts` are those of their parts, as pairs."""

    gamma: Positive = parameter(..., "learning rate", r"\gamma", 0.1)
    """learning rate γ > 0."""
    p: Width = parameter(..., "student width", "p", 4)
    """student width, the number of its hidden units."""
    k: Annotated[int, Field(ge=0, lt=2**63)] = parameter(..., "teacher width", "k", 1)
    """teacher width; 0 for data without a teacher."""
    d: Width = parameter(..., "input dimension", "d", 1000)
    """input dimension; inputs are x ~ N(0, I_d/d) unless `data` is another law."""
    Delta: NotNegative = parameter(..., "label-noise variance", r"\Delta", 0.5)
    """label-noise variance Δ ≥ 0."""
    activation: str = parameter(..., "activation of the student", r"\sigma", "erf")
    """the student's activation function, by name, as a Hermite series `hermite(c_0, c_1, ...)`, that is σ = Σ c_n
    He_n/√n!, or by its knots, `piecewise(x_1, y_1, x_2, y_2, ...)`: linear between, constant outside."""
    teacher_activation: str | None = parameter(None, "activation of the teacher", r"\sigma^*", "square")
    """the teacher's activation function; the student's unless given."""
    spherical: bool = parameter(False, "student rows projected on the sphere", "", True)
    """project each student row onto the sphere ‖w‖² = d after every step."""
    a: SecondLayer | SecondLayerLaw = parameter(1.0, "second layer of the student", "a", [1, -1])
    """second layer of the student at the start; one number for all units, one per unit, or a law by which each seed
    draws its own: `normal` has N(0, 1) numbers, `signs` ±1 of equal odds."""
    a_star: SecondLayer | str = parameter(1.0, "second layer of the teacher", "a^*", 2.0)
    """second layer of the teacher; one number for all units, one per unit, or `power(beta)`: a*_r = k r^−β/√(Σ_s
    s^−2β), a power law in the unit r, so that f* = Σ α_r σ*(λ*_r) with Σ α_r² = 1."""
    second_layer_rate: NotNegative = parameter(
        0.0, "learning rate of the second layer over that of the first", r"\varepsilon", 1.0
    )
    """ε ≥ 0: a step trains the second layer by a_i += ε (γ/pd) σ(λ_i) E; 0 freezes it."""
    offset_scale: NotNegative = parameter(0.0, "standard deviation of the first offsets", "s_b", 1.0)
    """s_b ≥ 0: units σ(λ_i + b_i) have offsets, which start as N(0, s_b²) numbers."""
    offset_rate: NotNegative = parameter(0.0, "learning rate of the offsets over that of the weights", r"\beta", 1.0)
    """β ≥ 0: a step trains the offsets by b_i += β (γ/pd) a_i σ'(λ_i + b_i) E; 0 freezes them. Without either field
    units have no offsets."""
    weight_decay: NotNegative = parameter(0.0, "weight decay", r"\lambda", 0.1)
    """λ ≥ 0: with (λ/2pd) Σ ‖w_i‖² added to the loss, a step of the time δt = γ/(pd) is w_i ← (1 − λ δt) w_i + (γ/p)
    a_i σ'(λ_i) E x. Risks are without this term. It is neither clipped nor divided by an `update`; with `heavy_ball`
    −λ δt w_i enters the velocity."""
    second_layer_decay: NotNegative = parameter(0.0, "decay of the second layer", r"\lambda_a", 0.1)
    """λ_a ≥ 0: with (λ_a/2p) Σ a_i² added to the loss, a step trains the second layer by a_i += ε δt [σ(λ_i) E − λ_a
    a_i]."""
    target: str = parameter("committee", "target", "f^*", "lam1*lam2")
    """what the student learns: `committee` is f* = (1/k) Σ a*_r σ*(λ*_r). A formula of the teacher's fields, such as
    `lam1 + lam1*lam2 + he3(lam3)`, has + - * / ** and activations, and functions of numbers as in `sqrt(2)*lam1`; k is
    the number of its highest field."""
    loss: str = parameter("square", "loss", r"\ell", "correlation")
    """loss L(f, y) whose gradient SGD follows, by name: the force g = −∂L/∂f takes the place of E = y − f in all steps.
    `square` is E²/2, `correlation` −y f, `logistic` log(1 + e^{−y f}), `absolute` |E|, `huber` E²/2 with a force of at
    most `huber_delta`. Risks are those of the square loss; `test_loss` is the mean of this one."""
    update: str = parameter("plain", "rule of the steps", "", "normalised")
    """what a step of the weights makes of their gradient g, by name; second layer and offsets have plain steps.
    `normalised` is −γ g/‖g‖, `clipped` has a gradient of at most the norm `clip_norm`, `adagrad_norm` is −γ g/√B with
    the sum B of all squared norms and `adagrad_start`, `heavy_ball` keeps the part `momentum` of a velocity, `tangent`
    is along the sphere, `sign` has the signs of all entries of the gradient, over √d, and `spectral`,
    `spectral_momentum`, `muon` and `newton_schulz` change its singular values."""
    labels: Literal["real", "sign"] = parameter("real", "labels", "", "sign")
    """`sign`: the label is the sign of y = f* + √Δ z, not y itself. Risks, also with a refitted second layer, are those
    of real labels."""
    data: str = parameter("teacher_student", "law of the data", "", "two_gaussians")
    """law of the data. `teacher_student` has Gaussian inputs and the labels of the target. `two_gaussians` has labels y
    = ±1 + √Δ z of two classes of equal odds, whose inputs are x ~ N(0, (1 ± c)² I_d/d), c the `contrast`, and no
    teacher: k = 0. `spectrum`, `two_level` and `power_law` have x ~ N(0, Σ/d) with given eigenvalues, of the sum d, and
    the labels of the target."""
    tasks: str = parameter("single", "tasks", "", "in_turn")
    """course of tasks, by name: `single` is the target all along; `in_turn` has tasks of some rows of the teacher each,
    learned one after the other."""
    start: str | None = parameter(None, "law of the student's first weights", "", "sphere")
    """law of the student's initial weights, by name: `gaussian` has N(0, s²) entries, s the `start_scale`, `sphere`
    rows uniform on the sphere of radius √d, `warm` rows that have the cosine m0 with teacher rows; by default `sphere`
    for spherical students and where m0 is given, otherwise `gaussian`."""
    teacher_start: Literal["orthogonal", "gaussian", "sphere"] = parameter(
        "orthogonal", "law of the teacher's weights", "", "gaussian"
    )
    """law of the teacher's weights; by default `orthogonal` rows of norm √d."""
    batch_size: Width = parameter(1, "samples of a step", "n_b", 10)
    """number n_b of samples over whose gradients a step averages. With n_b and γ proportional to d, `overlap_map` is
    the limit d → ∞ of fresh batches."""
    repeats: Width = parameter(1, "steps that use a batch", "r", 3)
    """number r of steps in a row, each of the time γ/(pd), that use a batch before the next is drawn; exits are found
    at the end of such a round, and schedules taken in its middle."""
    samples: Width | None = parameter(None, "size of the training set", "n", 10000)
    """number n of samples of a finite training set, labels with noise, from which all batches are taken; by default
    every batch is of fresh samples. With n = `batch_size`, every step takes the full batch; with n also proportional to
    d, as γ, `dmft` is its limit d → ∞."""
    sampling: Literal["random", "epochs"] = parameter("random", "choice of batches from the training set", "", "epochs")
    """how a batch is chosen from the training set: `random` takes distinct samples uniformly at random, independently
    at every step; `epochs` passes through the set in a new random order each time. The last batch of a pass has the
    samples that are left, over which the step averages."""
    schedule: str | None = parameter(None, "schedule of the learning rate", r"\xi(t)", "1/(1 + t)")
    """the factor ξ(t) ≥ 0 of the learning rate, γ(t) = γ ξ(t), an expression of t, such as `1/(1 + t)`, `min(1, t/5)`
    or `1 if t < 2 else 0.1`; t is the ODE time ν γ/(pd), at the rate γ itself. Steps take ξ at the middle of their
    time. By default the rate is constant. `optimal(6)` is the schedule, linear between 6 equally spaced knots, that
    minimises the risk of `ode` at the last time, averaged over the starts of the seeds 0 to 3, or of as many as a
    second number says; `optimal(1)` is the best constant rate."""
    noise_schedule: str | None = parameter(None, "schedule of the label noise", r"\chi(t)", "exp(-2*t)")
    """the factor χ(t) ≥ 0 of the variance of the label noise, Δ(t) = Δ χ(t), an expression of t as in `schedule`.
    Steps take χ at the middle of their time. By default the noise is constant. Observables with noisy labels, such as
    `test_error`, have the variance Δ itself."""
    keep_probability: Annotated[float, Field(gt=0, le=1)] = parameter(1.0, "keep probability", r"\pi", 0.5)
    """0 < π ≤ 1, dropout: for each use of a sample, a step keeps each unit with the probability π, with a_i/π in place
    of a_i, and leaves out the others. Risks are those of all units with a_i."""
    input_noise: NotNegative = parameter(0.0, "variance of the noise of the student's inputs", r"\varrho", 0.4)
    """ϱ ≥ 0: for each use of a sample, a step has x + √ϱ ξ, ξ ~ N(0, I_d/d), as the student's input, and the label of
    x. Risks are those of inputs without noise."""
    temperature: NotNegative = parameter(0.0, "temperature of the noise of the weights", r"T_{\mathrm{w}}", 0.1)
    """T ≥ 0: after its gradient, a step of the time δt = γ/(pd) adds √(2 T δt) ξ, ξ ~ N(0, I_d), to each row of the
    weights, as Langevin dynamics and SGD with differential privacy do; the second layer has no such noise."""
    noise_tail: Annotated[float, Field(ge=0, lt=0.5)] = parameter(0.0, "tail of the label noise", r"\tau", 0.25)
    """0 ≤ τ < 1/2: the noise of labels is Student's t with ν = 1/τ degrees of freedom, scaled to the variance Δ, whose
    density falls as |z|^{−ν−1}; 0 is Gaussian noise."""
    outlier_share: Annotated[float, Field(ge=0, lt=1)] = parameter(0.0, "share of outliers among labels", "e", 0.05)
    """0 ≤ e < 1: labels are outliers with this probability, whose noise is `outlier_scale` times as large as that of
    others; together they have the variance Δ."""
    outlier_scale: Positive = parameter(10.0, "scale of the noise of outliers", "r", 5.0)
    """r > 0 of outliers: the scale of their noise over that of other labels; 1 is noise without outliers."""
    averaging_rate: NotNegative = parameter(0.0, "rate of the average of the iterates", r"\kappa", 3.0)
    """κ ≥ 0: beside the weights w a run has their average w̄, which starts as w; after step n, w̄ ← (1 − b) w̄ + b w with
    b = min(1, κ γ/(pd) + η/n), η the `averaging_order`. κ alone is an exponential average over the ODE time 1/κ. Steps
    do not depend on w̄. Observables of it are `risk_of_average`, `average_Q` and `average_M`."""
    averaging_order: NotNegative = parameter(0.0, "order of the average of the iterates", r"\eta", 1.0)
    """η ≥ 0: 1 is the mean of all iterates (Polyak and Ruppert), and η > 1 gives iterate n a weight ∝ n^{η−1}; `ode`
    takes 0, and 1 or more."""
    of_parts: Annotated[tuple[tuple[str, Any], ...], SkipValidation] = ()


TAILS = frozenset({"noise_tail", "outlier_share", "outlier_scale"})
"""The parameters of noise of labels that is not Gaussian."""
AVERAGES = frozenset({"averaging_rate", "averaging_order"})
"""The parameters of averages of the iterates."""
declare(PROBLEM, {name: field for name, field in Core.__pydantic_fields__.items() if name != "of_parts"})  # type: ignore[attr-defined]
CORE = tuple(PARAMETERS)
"""The names of the parameters of a problem itself."""
CORE_DEFAULTS = {name: DEFAULTS.get(name) for name in CORE}
"""Their defaults, None for those that every problem needs."""
FIRST.extend(("gamma", "p", "d", "Delta"))
