"""Case: one run, and its identity, which is equal for equal runs.

The dynamics of a case is the class that `DYNAMICS` has under the name of its run; `kind` below. Features are properties
of problems with words for errors (`combinations`). All refusals of a case before any work are made here.
"""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pydantic

from sweeplib.engine import cases as engine
from sweeplib.engine.base.budget import STEPS as MOST_STEPS
from sweeplib.engine.base.validation import refusal
from sweeplib.engine.language import schedule
from sweeplib.engine.seeds import checked_seed
from sweeplib.engine.simulator import Simulator, networks
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.dynamics.dynamics import NOISE, Dynamics, NumericalOptions
from sweeplib.networks.dynamics.dynamics import OFFSETS as OFFSET_PARAMETERS
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.observables import OBSERVABLES, Observable
from sweeplib.networks.problem import (
    AVERAGES,
    CORE,
    DATA,
    DEFAULTS,
    PARAMETERS,
    Feature,
    Limit,
    Problem,
    parameters_of,
    refuse_unread,
)
from sweeplib.networks.problem.combinations import (
    DISTURBED,
    LOSS,
    NO_TEACHER,
    OFFSETS,
    SPECTRUM,
    TASKS,
    UNRESOLVED,
)
from sweeplib.networks.simulation.numerics_version import names_of, numerics_version
from sweeplib.networks.simulation.recording import Recording
from sweeplib.networks.simulation.variables import observable_of, stored_variables
from sweeplib.networks.views import ExitLevel, OverlapView, View

WITHOUT_EXITS: tuple[tuple[Feature, str, Callable[[type[Dynamics]], bool]], ...] = (
    (NO_TEACHER, "of {problem.data}", lambda kind: False),
    (TASKS, "of tasks in turn", lambda kind: False),
    (
        OFFSETS,
        "of units with offsets",
        lambda kind: kind.reads > OFFSET_PARAMETERS and not issubclass(kind.view, OverlapView),
    ),
    (SPECTRUM, "with inputs of {problem.data}", lambda kind: kind.takes_spectra),
)
"""Features of problems without exits, words for an error, and functions that say which dynamics find them nevertheless.
"""
WITHOUT_DRIFTS = (
    (OFFSETS, "units with offsets have no drifts of overlaps"),
    (SPECTRUM, "no drifts of overlaps alone with inputs of {problem.data}"),
    (LOSS, "no drifts of the loss {problem.loss} of {problem.labels} labels"),
    (DISTURBED, "no drifts of a student with dropout or noise of inputs"),
    (UNRESOLVED, "kinks off zero have no drifts"),
)
"""Features of problems with which no observable by drifts is recorded, and why."""
WITHOUT_RATES = Limit(
    " ".join(["data", *sorted(NOISE - {"temperature"})]),
    "no derivatives by the rate",
    "{default}, or a schedule that is given",
)
"""What the gradient of an optimal schedule does not take of what the ODE does."""


@dataclass(frozen=True)
class Case(engine.Case):
    """One run of one problem by one dynamics with one seed; a row of the run store.

    dynamics : the name of the run, such as `ode` or `ode-corrected`.
    clock : ODE time of a unit of the recording times.
    options : numerical options of the dynamics, as pairs of name and value.
    root_seed, pair_by : random numbers depend on the root seed, the seed and the problem, or only on its fields in
        `pair_by`, if given: cases that agree in these share their samples. Cases with equal root seed, seed, p, k, d
        and laws of start always share their initial conditions.
    """

    problem: Problem
    dynamics: str
    seed: int
    recording: Recording
    clock: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()
    root_seed: int = 0
    pair_by: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        unknown = next((name for name in self.pair_by or () if name not in (*PARAMETERS, "seed")), None)
        if unknown is not None:
            raise InputError("unknown problem field", key="pair_by", value=unknown, choices=PARAMETERS)

    @property
    def simulator(self) -> Simulator:
        """What the engine asks about cases of networks: the one `Simulator` of all of them."""
        return networks()

    def check(self) -> None:
        """Raise InputError if the dynamics, its options or its expectations do not apply to the problem.

        Also if the problem sets a field that the dynamics does not read, if an observable does not support the view of
        the dynamics or needs a field that the problem does not set, if it takes no step, or too many, or if the
        schedule is negative or not finite at a time of the run.
        """
        for check in CHECKS:
            check(self)
        length = DYNAMICS[self.dynamics].step_length(self.problem, self.numerical_options())
        self._check_steps(length)
        if self.problem.optimal is not None:
            self._check_ode()
        elif self.problem.rates is not None:
            self._check_schedule("schedule", self.problem.rates, length)
        if self.problem.noise_factor is not None:
            self._check_schedule("noise_schedule", self.problem.noise_factor, length)

    def _check_observables(self) -> None:
        """Raise InputError for an observable that refuses the problem, or that the dynamics has no view for."""
        for name in self.recording.measured:
            observable_of(name, self.dynamics).refuse(self.problem)

    def _check_dynamics(self) -> None:
        """Raise InputError if the problem is beyond a limit of the dynamics with these options."""
        DYNAMICS[self.dynamics].check(self.problem, self.numerical_options())

    def _check_reads(self) -> None:
        """Raise InputError for a value that neither the dynamics nor, of their own parameters, an observable reads."""
        problem, observed = self.problem, parameters_of("observables")
        recorded = {name: OBSERVABLES[name].acts_on for name in self.recording.measured}
        refuse_unread(problem, observed, "observables", recorded)
        # the order in which they are refused: the data law, what a problem itself has, what its parts have
        others = sorted(DEFAULTS.keys() - observed, key=lambda name: (name != "data", name not in CORE, name))
        kind = DYNAMICS[self.dynamics]
        reads = kind.reads_of(problem, self.numerical_options())
        refuse_unread(problem, others, "dynamics", {self.dynamics: reads}, kind.meaningless())

    def _check_needs(self) -> None:
        """Raise InputError for an observable that needs a field of the problem that is not set."""
        for name in self.recording.observables:
            for field in sorted(OBSERVABLES[name].needs):
                if field not in self.problem.differing_names:
                    expected = f"`{field}` in the problem, or an observable without a training set"
                    raise InputError(f"{name} needs {field}", key="observables", value=name, expected=expected)

    def _check_teacher(self) -> None:
        """Raise InputError if an observable needs a teacher that the data law does not have."""
        law, view = DATA[self.problem.data], DYNAMICS[self.dynamics].view
        if law.teacher:
            return
        for name in self.recording.observables:
            if needs_teacher(OBSERVABLES[name], view):
                suited = (other for other, observable in OBSERVABLES.items() if observable.is_of(view))
                expected = "one of " + ", ".join(
                    other for other in suited if not needs_teacher(OBSERVABLES[other], view)
                )
                raise InputError(f"{law.name} has no teacher", key="observables", value=name, expected=expected)

    def _check_exits(self) -> None:
        """Raise InputError for exits, if the problem has a feature with which the dynamics finds none."""
        thresholds = list(self.recording.thresholds)
        for feature, condition, finds in WITHOUT_EXITS if thresholds else ():
            if feature.is_of(self.problem) and not finds(DYNAMICS[self.dynamics]):
                others = ", ".join(name for name, kind in DYNAMICS.items() if finds(kind))
                template = f"no exits {condition}" if not others else f"{self.dynamics} finds no exits {condition}"
                expected = "[], no exits" + (f"; or a dynamics that finds them: {others}" if others else "")
                text = template.format(problem=self.problem)
                raise InputError(text, key="thresholds", value=thresholds, expected=expected)

    def _check_drifts(self) -> None:
        """Raise InputError for an observable that uses drifts, if a feature of the problem leaves it without them."""
        names = [name for name in self.recording.observables if OBSERVABLES[name].uses_drifts]
        for feature, why in WITHOUT_DRIFTS if names else ():
            if feature.is_of(self.problem):
                expected = "an observable that does not use the drifts of the overlaps"
                raise InputError(why.format(problem=self.problem), key="observables", value=names[0], expected=expected)

    def _check_level(self) -> None:
        """Raise InputError for exits on another observable than the risk, unless dynamics and problem allow them."""
        name = self.recording.exit_on
        if name == "risk":
            return
        if not DYNAMICS[self.dynamics].finds_levels(self.numerical_options()):
            others = ", ".join(other for other, kind in DYNAMICS.items() if kind.finds_levels(kind.Options()))
            text, expected = f"{self.dynamics} finds exits of the risk alone", f"risk; or with other options: {others}"
            raise InputError(text, key="exit_on", value=name, expected=expected)
        level_of(self)  # raises for the problem

    def _check_steps(self, length: float) -> None:
        """Raise InputError if there are no steps, of `length` SGD steps each, or too many for an integer or a float."""
        last, step = self.clock * self.recording.times[-1], length * self.problem.step_time()
        steps = last / step if step > 0.0 else math.inf
        takes_steps = issubclass(DYNAMICS[self.dynamics], StepDynamics)
        most, limit_text = (MOST_STEPS, "2^62") if takes_steps else (1e308, "1e308")
        if not steps <= most:
            expected = f"at most {limit_text}: a smaller last time, or a larger gamma/(p d)"
            raise InputError("more steps than can be counted", key="times", value=steps, expected=expected)
        least = min(length, 1.0) * self.problem.step_time()
        if takes_steps and last > 0.0 and not round(last / least):
            expected = f"a last time above {0.5 * least / self.clock:.6g}, half of a step, or a smaller gamma/(p d)"
            raise InputError("no step until then", key="times", value=self.recording.times[-1], expected=expected)
        largest = DYNAMICS[self.dynamics].most_steps(self.problem, self.numerical_options())
        if steps >= largest + 0.5:
            expected = (
                f"at most {largest:g} of {self.dynamics} with its options: a smaller last time, or a larger gamma/(p d)"
            )
            raise InputError("too many steps", key="times", value=round(steps), expected=expected)

    def _check_schedule(self, key: str, text: str, length: float) -> None:
        """Raise InputError if the formula `text` of a schedule is negative or not finite at a time of the run.

        key : its parameter. Dynamics that take steps, of `length` SGD steps, read it in the middle of each.
        """
        in_steps = issubclass(DYNAMICS[self.dynamics], StepDynamics)
        first = 0.5 * length * self.problem.step_time() if in_steps else 0.0
        last = max(first, self.clock * self.recording.times[-1])
        refused = _refused_time(text, first, last)
        if refused is None:
            return
        expected = "zero or more, and finite, at all times of the run"
        if refused == 0.0 and _refused_time(later := schedule(text).at_later_times, first, last) is None:
            or_sde = " or sde" if key == "schedule" else ""
            expected = f"a schedule that is finite at time zero, such as `{later}`; or sgd, sgd_chain{or_sde}"
        rate = "learning rate" if key == "schedule" else "label noise"
        raise InputError(f"no {rate} at t = {refused:.6g}", key=key, value=text, expected=expected)

    def of_ode(self) -> "Case":
        """The case whose risk at the end an optimal schedule minimises: of the ODE at a constant rate."""
        # the optimum does not depend on averages and observables, on which steps do not depend
        left_out = {*parameters_of("observables"), *AVERAGES, "schedule"}
        values = {name: value for name, value in self.problem.differing().items() if name not in left_out}
        last = self.clock * self.recording.times[-1]
        return Case(Problem.unchecked(values), "ode", 0, Recording((last,)), root_seed=self.root_seed)

    def _check_ode(self) -> None:
        """Raise InputError if there is no ODE, whose risk an optimal schedule minimises, or no time passes."""
        case = self.of_ode()
        try:
            case.check()
            WITHOUT_RATES.refuse(case.problem)
            if case.recording.times[-1] == 0.0:
                raise InputError("no time passes", key="times", value=[0.0], expected="a last time above zero")
        except InputError as error:
            error.problem = f"{self.problem.schedule} minimises the risk of the ODE: {error.problem}"
            raise

    def numerical_options(self) -> NumericalOptions:
        """The options of the dynamics as an object of its `Options`; InputError for unknown or invalid ones."""
        return numerical_options(self.dynamics, self.options)

    @property
    def shape(self) -> Hashable:
        """What cases must have in common to be run together: all that `Replicas` has once, and lengths of arrays."""
        problem = self.problem
        functions = problem.activation, problem.teacher, problem.learned, problem.criterion, problem.data, problem.rates
        sample = (problem.batch_size, problem.repeats, problem.samples is not None, problem.rule, problem.noise_factor)
        kind = (problem.p, problem.k, problem.spherical, problem.trains_second_layer, problem.has_offsets)
        sizes = DYNAMICS[self.dynamics].sizes(problem, self.numerical_options())
        # the chain factors larger blocks, whose arrays then have one size
        blocks = tuple(min(size, problem.rows + problem.k + 1) for size in problem.blocks[1])
        course = problem.course
        tasks = (*course.order, course.own_heads, course.replay > 0.0) if problem.in_turn else ()
        steps = (*sample, problem.has_weight_noise, problem.has_averages, problem.decays_velocities)
        return (self.dynamics, self.options, self.recording, *kind, *steps, *functions, *sizes.items(), blocks, tasks)

    def identity(self) -> bytes:
        """16 bytes that are equal for two cases exactly if they have the same results (see `shared_digest`)."""
        from sweeplib.networks.simulation.columns import Cases

        return bytes(Cases.with_seeds(self, [self.seed]).identities().tobytes())


CHECKS = (
    Case._check_observables,
    Case._check_reads,
    Case._check_needs,
    Case._check_teacher,
    Case._check_exits,
    Case._check_drifts,
    Case._check_level,
    Case._check_dynamics,
)
"""The checks of a case but for its steps and schedules. Each reads few fields: tables check once for many cases."""


def fields_read(case: Case) -> frozenset[str]:
    """The fields of its problem that the dynamics, or an observable, or an optimal schedule of a case reads."""
    problem = case.problem
    reads = DYNAMICS[case.dynamics].reads_of(problem, case.numerical_options())
    reads = reads.union(*(OBSERVABLES[name].acts_on for name in case.recording.measured))
    return reads if problem.optimal is None else reads | DYNAMICS["ode"].reads_of(problem, numerical_options("ode", ()))


def shared_digest(case: Case) -> tuple[bytes, frozenset[str]]:
    """A digest (32 bytes) of what identities contain beside the numbers of a problem; and the fields that are unread.

    An identity contains the values that the driver takes from a case: the fields of its problem that the dynamics and
    the observables read, with defaults for omitted ones, times, options, recorded variables, seeds. It also contains a
    digest of the code that computes the results. It does not contain threads, blocks, paths or other cases. Cases share
    the digest whose problems have the same names (of activations, parts and the like), fields that are read, and
    variables. Fields without a default may be unread; others have their default if they are not read.
    """
    problem, reads = case.problem, fields_read(case)
    variables = {name: variable.dims for name, variable in stored_variables(case).items()}
    values, digests = shared_values(case.dynamics, case.recording, case.options, case.root_seed, case.pair_by)
    # what the digest contains and no name tells, such as errors that are recorded with offsets alone, is in the key
    key = *names_of(problem), str(problem.optimal), reads, *variables.items()
    if key not in digests:
        forms = map(activation, (problem.activation, problem.teacher))
        of_names = {
            "defaults": {name: default for name, default in DEFAULTS.items() if name in reads},
            "numerics": numerics_version(problem, case.dynamics, case.recording.measured),
            "variables": variables,
            "series": [(form.hermite, form.error_functions, form.hinges) for form in forms],
        }
        text = json.dumps(values | of_names, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=32).digest()
        digests[key] = digest, frozenset(PARAMETERS).difference(reads, DEFAULTS)
    return digests[key]


@lru_cache(maxsize=64)
def shared_values(
    dynamics: str,
    recording: Recording,
    options: tuple[tuple[str, Any], ...],
    root_seed: int,
    pair_by: tuple[str, ...] | None,
) -> tuple[dict[str, Any], dict[tuple[Any, ...], tuple[bytes, frozenset[str]]]]:
    """What the digests of cases contain that agree in the arguments; and the memory of `shared_digest`, empty at first.

    The memory has digests and unread fields by the names of problems.
    """
    stochastic = DYNAMICS[dynamics].stochastic
    values = {
        "dynamics": dynamics,
        "options": numerical_options(dynamics, options).model_dump(),
        "recording": recording.of_results,
        "root_seed": root_seed,
        "pair_by": sorted(set(pair_by) - {"seed"}) if pair_by is not None and stochastic else None,
    }
    return values, {}


def level_of(case: Case) -> ExitLevel:
    """The `ExitLevel` of the observable that the case exits on; InputError if the problem has none of it."""
    level = OBSERVABLES[case.recording.exit_on].level
    assert level is not None  # by `Recording`
    return level(case.problem)


def needs_teacher(observable: Observable, view: type[View]) -> bool:
    """Whether an observable of a view needs a teacher, by itself or for a dimension that counts teacher units."""
    return observable.needs_teacher or not {"teacher", "teacher_2"}.isdisjoint(observable.dims_of(view))


@lru_cache(maxsize=4096)
def _refused_time(text: str, first: float, last: float) -> float | None:
    """The first ODE time from `first` to `last`, of those tried, at which a schedule is refused; None without one."""
    return schedule(text).first_refused(first, last)


def option_pairs(dynamics: str, options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options of a dynamics as pairs in alphabetical order; InputError for values that are no numbers or names."""
    pairs = tuple(sorted(options.items()))
    try:
        hash(pairs)
    except TypeError:  # a list or a dict, of which the uncached function raises InputError
        numerical_options.__wrapped__(dynamics, pairs)
        raise
    return pairs


@lru_cache(maxsize=64)
def numerical_options(dynamics: str, options: tuple[tuple[str, Any], ...]) -> NumericalOptions:
    """The options of a dynamics, with defaults; InputError for unknown or invalid ones."""
    kind = DYNAMICS[dynamics].Options
    try:
        return kind(**dict(options))
    except pydantic.ValidationError as error:
        options_known, unknown = kind.model_fields or ("none at all",), f"{dynamics} has no such option"
        refused = refusal(error, wrong="not a valid option", unknown=unknown, choices=lambda _: options_known)
        raise refused.within(prefix=dynamics) from None
