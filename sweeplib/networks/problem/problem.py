"""Problem: one point of a sweep, with all parameters of a learning problem that determine its result.

A field is a parameter of the problem itself (`Core`) or of one of its parts. Its value may mean the same as another:
then it is resolved to one of them, so that equivalent problems have one text and one identity.
"""

import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pydantic

from sweeplib.engine.base.registry import Registry
from sweeplib.engine.base.validation import refusal
from sweeplib.engine.language import OptimalSchedule, canonical_schedule, schedule
from sweeplib.errors import InputError, errors_at
from sweeplib.networks.maths.activations.named import canonical_name
from sweeplib.networks.problem.base_parameters import CORE, CORE_DEFAULTS, Core
from sweeplib.networks.problem.combinations import COMBINATIONS, WIDTHS
from sweeplib.networks.problem.data import DATA, Blocks
from sweeplib.networks.problem.losses import LOSSES, Criterion
from sweeplib.networks.problem.parameters import DEFAULTS, PARAMETERS, RESERVED, synonyms
from sweeplib.networks.problem.parts import parts_of, refuse_of_parts
from sweeplib.networks.problem.starts import STARTS
from sweeplib.networks.problem.targets import canonical_target, target, with_numbers
from sweeplib.networks.problem.tasks import TASKS, Course
from sweeplib.networks.problem.teacher_layers import canonical_layer, teacher_layer
from sweeplib.networks.problem.updates import UPDATES, Rule

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations

CONSTANT_RATE = "1"
"""The formula of a schedule that is constant: none."""


class Problem(Core):
    """A student f = (1/p) Σ a_i σ(w_i·x) that learns y = f* + √Δ z by SGD; f* is a function of the fields w*_r·x.

    Other laws of the data have inputs of another law, or other labels. Its parameters are those in `PARAMETERS`: its
    own (`Core`), and those of its parts and of observables, by their names. Those that are not given have their
    defaults. Raises InputError, which names the parameter, for invalid values.
    """

    def __init__(self, of_parts: tuple[tuple[str, Any], ...] = (), **values: Any) -> None:
        for name in values.keys() - PARAMETERS.keys():
            # observables have parameters too, and import this module
            importlib.import_module("sweeplib.networks.observables")
            if name not in PARAMETERS:
                raise InputError("unknown problem field", value=name, choices=PARAMETERS, synonyms=synonyms())
        core = {name: value for name, value in values.items() if name in CORE_DEFAULTS}
        others = dict(of_parts) | {name: value for name, value in values.items() if name not in CORE_DEFAULTS}
        try:
            checked = {name: _checked(name, value) for name, value in others.items()}
            super().__init__(of_parts=changed_parameters(checked), **core)
        except pydantic.ValidationError as error:
            raise _problem_error(error) from None
        self.__dict__.update(self.of_parts)
        for key in NAMED_FIELDS:
            name = getattr(self, key)
            if name is not None:
                object.__setattr__(self, key, checked_name(key, name, key))
        self.check()

    @classmethod
    def unchecked(cls, values: Mapping[str, Any]) -> "Problem":
        """The problem with values that are known to be valid, and consistent. Takes a tenth of the time of a check."""
        problem = object.__new__(cls)
        others = {name: value for name, value in values.items() if name not in CORE_DEFAULTS}
        problem.__dict__.update(CORE_DEFAULTS)
        problem.__dict__.update(values)
        problem.__dict__["of_parts"] = changed_parameters(others)
        return problem

    def __getattr__(self, name: str) -> Any:
        """The default of a parameter of a part that is not given; Python asks for missing attributes alone."""
        if name not in PARAMETERS or name in CORE_DEFAULTS:
            raise AttributeError(f"a problem has no {name!r}")
        return DEFAULTS[name]

    def check(self) -> None:
        """Raise InputError if the values of the fields, which are valid one by one, are not consistent."""
        for check in CHECKS:
            check(self)

    def _check_parts(self) -> None:
        """Raise InputError for values that no part reads, and for parts that refuse the problem."""
        parts = parts_of(self)
        refuse_of_parts(self, parts)
        for part in parts.values():
            part.refuse(self)

    @property
    def teacher(self) -> str:
        """The teacher's activation."""
        return self.teacher_activation or self.activation

    @property
    def rates(self) -> str | None:
        """The schedule of the learning rate, a formula or `optimal(...)`; None for a constant rate."""
        return None if self.schedule == CONSTANT_RATE else self.schedule

    @property
    def noise_factor(self) -> str | None:
        """The schedule of the label noise, None for constant noise."""
        return None if self.noise_schedule == CONSTANT_RATE else self.noise_schedule

    @property
    def optimal(self) -> OptimalSchedule | None:
        """The `optimal(...)` that the schedule is, with its number of knots and starts; None for a formula."""
        return None if self.rates is None else OptimalSchedule.of(self.rates)

    @property
    def is_disturbed(self) -> bool:
        """Whether steps leave out units, or inputs have noise."""
        return self.keep_probability < 1.0 or self.input_noise > 0.0

    @property
    def has_weight_noise(self) -> bool:
        """Whether steps add noise to the weights."""
        return self.temperature > 0.0

    @property
    def has_averages(self) -> bool:
        """Whether runs have averages of the weights."""
        return self.averaging_rate > 0.0 or self.averaging_order > 0.0

    @property
    def decays_velocities(self) -> bool:
        """Whether velocities take in the decay of the weights: those of momentum of plain steps."""
        update = UPDATES[self.update]
        return update.has_velocities and update.spectrum is None and self.weight_decay > 0.0

    @property
    def rows(self) -> int:
        """The number of rows that a step keeps: p of the weights, and p each of velocities and averages, if any."""
        return self.p * (1 + UPDATES[self.update].has_velocities + self.has_averages)

    @property
    def student_start(self) -> str:
        """The name of the law of the student's initial weights, given or by default."""
        return self.start or self._default_start

    @property
    def _default_start(self) -> str:
        """The name of the law of the student's initial weights where none is given."""
        return "sphere" if self.spherical or self.m0 is not None else "gaussian"

    @property
    def has_spectrum(self) -> bool:
        """Whether inputs have several eigenvalues."""
        return DATA[self.data].has_spectrum

    @property
    def has_offsets(self) -> bool:
        """Whether units have offsets b_i, at the start or later."""
        return self.offset_scale > 0.0 or self.offset_rate > 0.0

    @property
    def learned(self) -> str:
        """The target with the values of its parameters, as `target` takes it."""
        return with_numbers(self.target, self)

    @property
    def criterion(self) -> Criterion:
        """The loss with the values of its parameters, and what labels and their noise are."""
        numbers = tuple(float(getattr(self, name)) for name in LOSSES[self.loss].parameter_names)
        tails = self.noise_tail, self.outlier_share, self.outlier_scale
        return Criterion(self.loss, numbers, self.labels == "sign", tails if self.has_tails else ())

    @property
    def has_tails(self) -> bool:
        """Whether the noise of labels is not Gaussian."""
        return self.noise_tail > 0.0 or self.outlier_share > 0.0

    @property
    def rule(self) -> Rule:
        """The rule of the steps with the values of its parameters."""
        return Rule(self.update, tuple(float(getattr(self, name)) for name in UPDATES[self.update].parameter_names))

    @property
    def has_closed_drifts(self) -> bool:
        """Whether drifts have a closed form if those of the square loss and plain steps have one."""
        return self.criterion.is_closed and UPDATES[self.update].loss is None

    @property
    def course(self) -> Course:
        """The tasks that it learns, and when."""
        return TASKS[self.tasks].course(self)

    @property
    def in_turn(self) -> bool:
        """Whether it learns several tasks."""
        return TASKS[self.tasks].in_turn

    @cached_property
    def blocks(self) -> Blocks:
        """The eigenvalues of the inputs and their multiplicities, as two tuples; 1 and d for a law without any."""
        blocks = DATA[self.data].blocks
        return ((1.0,), (self.d,)) if blocks is None else blocks(self)

    def step_time(self) -> float:
        """The ODE time γ/(p d) that one SGD step takes."""
        return self.gamma / (self.p * self.d)

    @property
    def trains_second_layer(self) -> bool:
        """Whether steps train the second layer."""
        return self.second_layer_rate > 0.0

    def canonical(self) -> dict[str, Any]:
        """The fields that differ from their defaults, resolved, by name: equal for equivalent problems."""
        return dict(self._canonical)

    @property
    def differing_names(self) -> frozenset[str]:
        """The names of the fields that differ from their defaults."""
        return frozenset(self._canonical)

    @cached_property
    def _canonical(self) -> dict[str, Any]:
        """What `canonical` returns a copy of."""
        return {name: value for name in self.differing() if differs(name, value := self.resolved(name))}

    def differing(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name, as they are given."""
        others = dict(self.of_parts)
        names = in_order([*CORE, *others]) if others else IN_ORDER
        return {name: value for name in names if differs(name, value := getattr(self, name))}

    def resolved(self, name: str) -> Any:
        """The value of a field, or the one value that stands for all that mean the same: often the default."""
        value = getattr(self, name)
        if name == "a_star" and isinstance(value, str):
            value = teacher_layer(value, self.k)
        if name in ("a", "a_star"):
            return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
        same = EQUIVALENT.get(name)
        return DEFAULTS[name] if same is not None and same(self, value) else value

    @cached_property
    def text(self) -> str:
        """The canonical problem as JSON with ordered fields; floats are written as shortest round-trip decimals."""
        return json.dumps(self.canonical())


# parameters of parts become attributes of problems, so they cannot have the name of another attribute
RESERVED.update(dir(Problem), ("of_parts",))
RESERVED.difference_update(CORE)


def checked_name(field: str, name: Any, key: str) -> Any:
    """The canonical spelling of `name`, a value of a field in `NAMED_FIELDS`; InputError at `key` for unknown names."""
    with errors_at(key):
        return NAMED_FIELDS[field](name)


def _registered_name(registry: Registry[Any]) -> Callable[[str], str]:
    """A function for `NAMED_FIELDS`: a registered name is its own canonical spelling."""

    def name_of(name: str) -> str:
        """Return a name as it is; UnknownNameError unless it is registered."""
        registry[name]  # raises for an unknown name
        return name

    return name_of


NAMED_FIELDS: dict[str, Callable[[Any], Any]] = {
    "activation": canonical_name,
    "teacher_activation": canonical_name,
    "target": canonical_target,
    "loss": _registered_name(LOSSES),
    "data": _registered_name(DATA),
    "tasks": _registered_name(TASKS),
    "start": _registered_name(STARTS),
    "update": _registered_name(UPDATES),
    "schedule": canonical_schedule,
    "noise_schedule": lambda text: schedule(text).text,
    "a_star": canonical_layer,
}
"""The fields whose values are names or formulas; functions that return the canonical spelling, or raise InputError."""
FORMULA_FIELDS = ("activation", "teacher_activation", "target", "schedule", "noise_schedule", "a_star")
"""The fields of `NAMED_FIELDS` whose values may have numbers in them: a config may write names for these."""

CHECKS: tuple[Callable[[Problem], None], ...] = (
    *(limit.refuse for limit in WIDTHS),
    Problem._check_parts,
    *(limit.refuse for limit in COMBINATIONS),
)
"""The checks of a problem, in their order. Each reads few fields: a table checks once for many problems."""
EQUIVALENT: dict[str, Callable[[Problem, Any], bool]] = {
    "teacher_activation": lambda problem, name: name == problem.activation,
    "start": lambda problem, law: law == problem._default_start,
    "sampling": lambda problem, _: problem.samples == problem.batch_size,
    "schedule": lambda _, rates: rates == CONSTANT_RATE,
    "noise_schedule": lambda _, factor: factor == CONSTANT_RATE,
}
"""Fields, and functions (problem, value) that return whether a value means the same as the default."""
RESOLVED = ("a", "a_star", *EQUIVALENT)
"""The fields that have different values that mean the same."""


def differs(name: str, value: Any) -> bool:
    """Whether a value of a field is not its default."""
    return name not in DEFAULTS or bool(value != DEFAULTS[name])


def in_order(names: Iterable[str]) -> list[str]:
    """The names of fields in the order of a problem's text: Δ first, then alphabetically."""
    return sorted(names, key=lambda name: (name != "Delta", name))


IN_ORDER = in_order(CORE)
"""The fields of a problem itself in the order of its text."""


def _checked(name: str, value: Any) -> Any:
    """The value of a parameter of a part as its type has it, InputError if it has not; None for one not given."""
    try:
        return None if value is None is DEFAULTS[name] else PARAMETERS[name].adapter.validate_python(value)
    except pydantic.ValidationError as error:
        raise _problem_error(error, name) from None


def changed_parameters(of_parts: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The parameters of parts that differ from their defaults, with their values, in alphabetical order."""
    return tuple(sorted((name, value) for name, value in of_parts.items() if value != DEFAULTS.get(name)))


def _problem_error(error: pydantic.ValidationError, name: str | None = None) -> InputError:
    """The InputError of values that pydantic refuses; `name` is the parameter, if pydantic does not know it."""
    missing = "a problem needs this field"
    return refusal(error, wrong="not a valid problem", missing=missing, named=lambda place: name or str(place[0]))


def problem_expectations(problem: "Problem") -> "Expectations":
    """The expectations of the problem's target for its activations; InputError where the target has none for them."""
    return target(problem.learned).expectations(problem.activation, problem.teacher)
