"""Problem: one point of a sweep, with all parameters of a learning problem that determine its result."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field
from pydantic.dataclasses import dataclass

from sweeplib.errors import InputError
from sweeplib.language import canonical_schedule
from sweeplib.maths.activations.named import canonical_name
from sweeplib.problem.data import DATA
from sweeplib.problem.data.data import DATA_FIELDS, TEACHER_FIELDS
from sweeplib.problem.starts import STARTS
from sweeplib.problem.targets import canonical_target
from sweeplib.problem.targets import target as target_of
from sweeplib.problem.targets.target import TARGET_FIELDS
from sweeplib.registry import Registry
from sweeplib.validation import refusal

PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Width = Annotated[int, Field(ge=1, lt=2**63)]
CONSTANT_RATE = "1"
"""The schedule that is none."""
SecondLayer = Annotated[float, Field(allow_inf_nan=False)] | tuple[Annotated[float, Field(allow_inf_nan=False)], ...]


@dataclass(frozen=True, config=pydantic.ConfigDict(extra="forbid"))
class _Fields:
    gamma: PositiveFloat
    p: Width
    k: Annotated[int, Field(ge=0, lt=2**63)]
    d: Width
    Delta: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    activation: str
    teacher_activation: str | None = None
    spherical: bool = False
    a: SecondLayer = 1.0
    a_star: SecondLayer = 1.0
    second_layer_rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    offset_scale: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    offset_rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    target: str = "committee"
    data: str = "teacher_student"
    contrast: Annotated[float, Field(gt=0, lt=1)] | None = None
    start: str | None = None
    start_scale: PositiveFloat = 1.0
    m0: Annotated[float, Field(gt=-1, lt=1)] | None = None
    teacher_start: Literal["orthogonal", "gaussian", "sphere"] = "orthogonal"
    batch_size: Width = 1
    repeats: Width = 1
    samples: Width | None = None
    sampling: Literal["random", "epochs"] = "random"
    second_layer_samples: Annotated[int, Field(ge=1, le=10**8)] | None = None
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    schedule: str | None = None


class Problem(_Fields):
    """A student f = (1/p) Σ a_i σ(w_i·x) that learns y = f* + √Δ z by SGD; f* is a function of the fields w*_r·x.

    Other laws of the data have inputs of another law, or other labels.

    Parameters
    ----------
    gamma : learning rate γ > 0.
    p : student width, the number of its hidden units.
    k : teacher width; 0 for data without a teacher.
    d : input dimension; inputs are x ~ N(0, I_d/d) unless `data` is another law.
    Delta : label-noise variance Δ ≥ 0.
    activation : the student's activation function, by name, as a Hermite series `hermite(c_0, c_1, ...)`, that is
        σ = Σ c_n He_n/√n!, or by its knots, `piecewise(x_1, y_1, x_2, y_2, ...)`: linear between, constant outside.
    teacher_activation : the teacher's activation function; the student's unless given.
    spherical : project each student row onto the sphere ‖w‖² = d after every step.
    a : second layer of the student at the start; one number for all units, or one per unit.
    a_star : second layer of the teacher; one number for all units, or one per unit.
    second_layer_rate : ε ≥ 0: a step trains the second layer by a_i += ε (γ/pd) σ(λ_i) E; 0 freezes it.
    offset_scale : s_b ≥ 0: units σ(λ_i + b_i) have offsets, which start as N(0, s_b²) numbers.
    offset_rate : β ≥ 0: a step trains the offsets by b_i += β (γ/pd) a_i σ'(λ_i + b_i) E; 0 freezes them. Without
        either field units have no offsets.
    target : what the student learns: `committee` is f* = (1/k) Σ a*_r σ*(λ*_r). A formula of the teacher's fields, such
        as `lam1 + lam1*lam2 + he3(lam3)`, has + - * / ** and activations, and functions of numbers as in
        `sqrt(2)*lam1`; k is the number of its highest field.
    data : law of the data. `teacher_student` has Gaussian inputs and the labels of the target. `two_gaussians` has
        labels y = ±1 + √Δ z of two classes of equal odds, whose inputs are x ~ N(0, (1 ± c)² I_d/d), c the `contrast`,
        and no teacher: k = 0.
    contrast : c in (0, 1) of `two_gaussians`.
    start : law of the student's initial weights, by name: `gaussian` has N(0, s²) entries, s the `start_scale`,
        `sphere` rows uniform on the sphere of radius √d, `warm` rows that have the cosine m0 with teacher rows; by
        default `sphere` for spherical students and where m0 is given, otherwise `gaussian`.
    start_scale : s > 0 of a `gaussian` start.
    m0 : the cosine in (−1, 1) of every student row with the single teacher row (k = 1) or, in a warm start, of row i
        with teacher row i mod k; the directions are otherwise uniform. By default the cosine is random.
    teacher_start : law of the teacher's weights; by default `orthogonal` rows of norm √d.
    batch_size : number n_b of samples over whose gradients a step averages. With n_b and γ proportional to d,
        `overlap_map` is the limit d → ∞ of fresh batches.
    repeats : number r of steps in a row, each of the time γ/(pd), that use a batch before the next is drawn; exits
        are found at the end of such a round.
    samples : number n of samples of a finite training set, labels with noise, from which all batches are taken; by
        default every batch is of fresh samples. With n = `batch_size`, every step takes the full batch; with n also
        proportional to d, as γ, `dmft` is its limit d → ∞.
    sampling : how a batch is chosen from the training set: `random` takes distinct samples uniformly at random,
        independently at every step; `epochs` passes through the set in a new random order each time. The last batch of
        a pass has the samples that are left, over which the step averages.
    second_layer_samples : number m of fresh samples, labels with noise, for the ridge regression of `refitted_risk`; by
        default infinitely many. Only observables read it, and `ridge`.
    ridge : λ ≥ 0 of this regression: (λ/2p) Σ a_i² is added to half the mean squared error.
    schedule : the factor ξ(t) ≥ 0 of the learning rate, γ(t) = γ ξ(t), an expression of t, such as `1/(1 + t)`,
        `min(1, t/5)` or `1 if t < 2 else 0.1`; t is the ODE time ν γ/(pd), at the rate γ itself. Steps take ξ at the
        middle of their time. By default the rate is constant.

    Raises InputError, which names the field, for invalid values.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unknown = next((key for key in kwargs if key not in PROBLEM_FIELDS), None)
        if unknown is not None:
            raise InputError("unknown problem field", value=unknown, choices=PROBLEM_FIELDS)
        try:
            super().__init__(*args, **kwargs)
        except pydantic.ValidationError as error:
            raise _explained(error) from None
        for key in NAMED_FIELDS:
            name = getattr(self, key)
            if name is not None:
                object.__setattr__(self, key, checked_name(key, name, key))
        self.check()

    @classmethod
    def of_valid(cls, values: Mapping[str, Any]) -> "Problem":
        """The problem with values that are known to be valid one by one; InputError where they are not consistent.

        Takes a tenth of the time of a full check. Grids use it, as they have checked the values of their axes.
        """
        problem = object.__new__(cls)
        problem.__dict__.update(_BLANK)
        problem.__dict__.update(values)
        problem.check()
        return problem

    def check(self) -> None:
        """Raise InputError if the values of the fields, which are valid one by one, are not consistent."""
        if self.p * self.d >= 2**63 or self.k * self.d >= 2**63:
            raise InputError("too many weights", key="d", value=self.d, expected="p d and k d less than 2^63")
        for key, width in (("a", self.p), ("a_star", self.k)):
            layer = getattr(self, key)
            if isinstance(layer, tuple) and len(layer) != width:
                raise InputError("wrong length", key=key, value=layer, expected=f"{width} numbers, one a unit")
        self._check_data()
        self._check_start()
        self._check_target()
        self._check_samples()
        if self.teacher_start == "orthogonal" and self.k > self.d:
            raise InputError("no orthogonal teacher", key="k", value=self.k, expected=f"at most d = {self.d}")

    def _check_data(self) -> None:
        law = DATA[self.data]
        for name in sorted(DATA_FIELDS):
            value = getattr(self, name)
            if name in law.reads and value is None:
                raise InputError(f"{self.data} needs it", key=name, value=value, expected="a number in (0, 1)")
            if name not in law.reads and value is not None:
                reading = ", ".join(other for other in DATA if name in DATA[other].reads)
                problem, expected = f"{self.data} does not act on {name}", f"null, its default; or `data`: {reading}"
                raise InputError(problem, key=name, value=value, expected=expected)
        if law.teacher:
            if self.k == 0:
                without = ", ".join(other for other in DATA if not DATA[other].teacher)
                expected = f"1 or more; or `data` without a teacher: {without}"
                raise InputError("a teacher without units", key="k", value=0, expected=expected)
            return
        if self.k != 0:
            raise InputError(f"{self.data} has no teacher", key="k", value=self.k, expected="0")
        given = self.canonical()
        for name in TEACHER_FIELDS:
            if name in given:
                expected = f"{json.dumps(DEFAULTS[name])}, its default"
                raise InputError(f"{self.data} has no teacher", key=name, value=given[name], expected=expected)

    def _check_start(self) -> None:
        if self.start_scale != 1.0 and "start_scale" not in STARTS[self.student_start].reads:
            scaled = ", ".join(name for name in STARTS if "start_scale" in STARTS[name].reads)
            expected = f"1, its default; or `start`: {scaled}"
            problem = f"the start {self.student_start} does not act on start_scale"
            raise InputError(problem, key="start_scale", value=self.start_scale, expected=expected)
        if self.start is None and self.m0 is None:
            return
        start = STARTS[self.student_start]
        if self.spherical and not start.on_sphere:
            raise InputError("spherical students start on the sphere", key="start", value=self.start)
        if self.m0 is not None and "m0" not in start.reads:
            raise InputError("students of given overlap start on the sphere", key="start", value=self.start)
        start.check(self)

    def _check_target(self) -> None:
        if self.target == DEFAULTS["target"]:
            return
        target = target_of(self.target)
        if target.k is not None and self.k != target.k:
            expected = f"{target.k}, for the target {self.target}"
            raise InputError("the target needs another teacher width", key="k", value=self.k, expected=expected)
        if unread := TARGET_FIELDS - target.reads:
            given = self.canonical()
            for name in sorted(unread):
                if name in given:
                    expected = f"{json.dumps(DEFAULTS[name])}, its default; or `target: committee`"
                    problem = f"the target {self.target} does not act on {name}"
                    raise InputError(problem, key=name, value=given[name], expected=expected)

    def _check_samples(self) -> None:
        if self.samples is None:
            if self.sampling != DEFAULTS["sampling"]:
                expected = "`samples` beside it, the size of the training set"
                raise InputError("no training set to sample", key="sampling", value=self.sampling, expected=expected)
        elif self.batch_size > self.samples:
            size, expected = self.batch_size, f"at most {self.samples}, its `samples`"
            raise InputError("a batch larger than the training set", key="batch_size", value=size, expected=expected)

    @property
    def teacher(self) -> str:
        """The teacher's activation."""
        return self.teacher_activation or self.activation

    @property
    def rates(self) -> str | None:
        """The schedule, None for a constant rate."""
        return None if self.schedule == CONSTANT_RATE else self.schedule

    @property
    def student_start(self) -> str:
        """The law of the student's initial weights, with the default resolved."""
        return self.start or self._default_start

    @property
    def _default_start(self) -> str:
        return "sphere" if self.spherical or self.m0 is not None else "gaussian"

    @property
    def has_offsets(self) -> bool:
        """Whether units have offsets b_i, at the start or later."""
        return self.offset_scale > 0.0 or self.offset_rate > 0.0

    def step_time(self) -> float:
        """The ODE time γ/(p d) that one SGD step takes."""
        return self.gamma / (self.p * self.d)

    def canonical(self) -> dict[str, Any]:
        """The fields that differ from their defaults, resolved: equal for equivalent problems."""
        return dict(self._canonical)

    @cached_property
    def _canonical(self) -> dict[str, Any]:
        own = vars(self)
        values = {name: value for name, default in _IN_ORDER if (value := own[name]) != default}
        for name in ("a", "a_star"):
            layer = values.get(name)
            if isinstance(layer, tuple) and len(set(layer)) == 1:
                values[name] = layer[0]
                if layer[0] == DEFAULTS[name]:
                    del values[name]
        if values.get("teacher_activation") == self.activation:
            del values["teacher_activation"]
        if values.get("start") == self._default_start:
            del values["start"]
        if self.samples == self.batch_size:
            values.pop("sampling", None)
        if values.get("schedule") == CONSTANT_RATE:
            del values["schedule"]
        return values

    @cached_property
    def text(self) -> str:
        """The canonical problem as JSON with ordered fields; floats are written as shortest round-trip decimals."""
        return json.dumps(self.canonical())


def checked_name(field: str, name: str, key: str) -> str:
    """The canonical spelling of `name`, a value of a field in `NAMED_FIELDS`; InputError at `key` for unknown names."""
    try:
        return NAMED_FIELDS[field](name)
    except InputError as error:
        error.key = key
        raise


def _registered(registry: Registry[Any]) -> Callable[[str], str]:
    def name_of(name: str) -> str:
        registry[name]
        return name

    return name_of


NAMED_FIELDS: dict[str, Callable[[str], str]] = {
    "activation": canonical_name,
    "teacher_activation": canonical_name,
    "target": canonical_target,
    "data": _registered(DATA),
    "start": _registered(STARTS),
    "schedule": canonical_schedule,
}
"""The fields whose values are names, and functions that return the canonical spelling or raise InputError."""
FORMULA_FIELDS = ("activation", "teacher_activation", "target", "schedule")
"""The named fields whose values may have numbers in them."""

PROBLEM_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(_Fields))
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(_Fields) if field.default is not MISSING}
"""The optional fields of a problem and their default values."""
OFFSET_FIELDS = frozenset({"offset_scale", "offset_rate"})
"""The fields that give units offsets."""
OBSERVED_FIELDS = frozenset({"second_layer_samples", "ridge"})
"""The fields that only observables read. They are refused where no recorded observable reads them."""

_NO_DEFAULT = object()
_IN_ORDER = [(name, DEFAULTS.get(name, _NO_DEFAULT)) for name in sorted(PROBLEM_FIELDS)]
_BLANK = {name: DEFAULTS.get(name) for name in PROBLEM_FIELDS}


def _explained(error: pydantic.ValidationError) -> InputError:
    missing = "a problem needs this field"
    return refusal(error, wrong="not a valid problem", missing=missing, named=lambda location: str(location[0]))
