"""The driver: starts replicas, advances them between recording times, records the observables.

Cases of one shape are run together, n at a time, as the replicas of one `Dynamics`. Arrays of results have n as their
first axis; a place is the number of a recording time, or of a case in a table. `begun` are earlier runs of the same
cases to earlier last times, from whose ends they go on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.records import Begun, Records
from sweeplib.engine.status import Excess, Status
from sweeplib.engine.variable import END_STATE, Variable
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics import DYNAMICS, Dynamics, Replicas
from sweeplib.networks.dynamics.lessons import Lessons
from sweeplib.networks.kernels.numbers import REAL
from sweeplib.networks.numerics.random import stream_key
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import DATA
from sweeplib.networks.problem.weights import drawn_second_layer
from sweeplib.networks.simulation.all_rates import at_all_rates
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.initial import CaseStarts, Initial
from sweeplib.networks.simulation.optima import schedule_of
from sweeplib.networks.simulation.recording import EXIT_ERRORS, Recording
from sweeplib.networks.simulation.sample_keys import samples_keys
from sweeplib.networks.simulation.variables import error_of, stored_variables
from sweeplib.networks.views import Lazy, View, evaluated

States = Sequence[tuple[Array, View]]
"""Pairs of weights (n,) and a view, as `Dynamics.look` returns them: a recorded value is the weighted sum over them."""
OwnParameters = Mapping[str, NDArray[Any]]
"""The values (n,) of an observable's own parameters, by name."""

EXITS = "exit_steps", "exit_time", *EXIT_ERRORS
"""The variables of exits; those after the last accurate record of a run are not known."""
ROUNDING = 1e-12
"""The relative difference up to which a recording time is that of a switch of tasks."""
BYTES_AT_ONCE = 2**26
"""The largest memory of the large arrays of cases that are run together."""


def run_cases(
    cases: Sequence[Case], *, timeout: float | None = None, initial: Initial = None, begun: Begun | None = None
) -> Records:
    """The records of cases that have one `shape` in common.

    The result of a case does not depend on the others. `timeout`, if any, is the mean time in seconds that a case may
    take. `initial`, overlaps or weights (W, W*), replaces the random starts of the problems. Where runs of all cases
    have `begun`, they go on from there, with the same result. Exceptions of the simulation are passed on.
    """
    if len(set((cases := Cases.of(cases)).shapes()[0])) != 1:
        raise SweeplibError("cases of different shapes cannot be run together")
    cases.check()
    return run_checked(cases, timeout, initial) if begun is None else _completed(cases, timeout, begun)


def _completed(cases: Cases, timeout: float | None, begun: Begun) -> Records:
    """The records of cases whose runs have begun: those that stopped at their last exit as they are, others run on."""
    names, places = stored_variables(cases[0]), unfinished(begun, cases[0].recording)
    records = Records({name: begun.data[name].copy() for name in names}, np.full(len(cases), Status.ok, np.uint8))
    if not places.size:
        return records
    longer = run_checked(cases.at(places), timeout, None, begun.at(places))
    for name, values in longer.data.items():
        records.data[name][places] = values
    records.status[places] = longer.status
    return replace(records, excess={int(places[at]): reason for at, reason in longer.excess.items()})


def unfinished(begun: Begun, recording: Recording) -> NDArray[np.intp]:
    """The places of the runs that go on beyond their end: all but those that stopped at their last exit."""
    if recording.stop != "exit":
        return np.arange(len(begun.data["end_steps"]))
    return np.flatnonzero(np.isnan(begun.data["exit_steps"]).any(axis=1))


def run_checked(cases: Cases, timeout: float | None, initial: Initial, begun: Begun | None = None) -> Records:
    """The records of cases that are valid and have one shape, as `run_cases` returns them; those of one solution once.

    What has begun goes on one by one: ends may be of different processors, whose last bits differ.
    """
    if begun is not None:
        return _in_batches(cases, timeout, initial, begun)
    first, places = np.unique(cases.solutions(), return_inverse=True)
    solved = _in_batches(cases.at(first), timeout, initial, None)
    return solved if len(first) == len(cases) else at_all_rates(cases, solved, places)


def _in_batches(cases: Cases, timeout: float | None, initial: Initial, begun: Begun | None) -> Records:
    """The records of cases of one shape, computed in batches of as many as are run together."""
    size = _cases_at_once(cases)
    batches = [group[at : at + size] for group in _groups(cases) for at in range(0, len(group), size)]
    ends = np.cumsum([len(batch) for batch in batches]).tolist()
    earlier = [begun and begun.at(slice(end - len(batch), end)) for batch, end in zip(batches, ends, strict=True)]
    records = [_run(batch, timeout, initial, before) for batch, before in zip(batches, earlier, strict=True)]
    return records[0] if len(records) == 1 else Records.joined(records)


def case_work(case: Case) -> float:
    """The nominal number of floating-point operations of a case that runs to its last recording time."""
    kind = DYNAMICS[case.dynamics]
    last = case.clock * case.recording.times[-1]
    return kind.work(case.problem, last) / kind.step_length(case.problem, case.numerical_options())


def case_steps(case: Case) -> float:
    """The number of SGD steps to the last recording time of a case."""
    return case.clock * case.recording.times[-1] / case.problem.step_time()


def case_memory(case: Case) -> int:
    """The bytes of the large arrays, such as a training set, that a case has in memory while it runs."""
    return DYNAMICS[case.dynamics].memory(case.problem, case.numerical_options())


def _cases_at_once(cases: Cases) -> int:
    """The number of cases to run together: `replicas_at_once` of the dynamics, or fewer if they take much memory."""
    most = max(cases.column_of(case_memory)[0])
    return max(1, min(DYNAMICS[cases[0].dynamics].replicas_at_once, BYTES_AT_ONCE // max(1, most)))


def _groups(cases: Cases) -> list[Cases]:
    """The cases in groups that can be advanced together, in their order; all in one, in general.

    Where schedules are optimal a group has one problem, whose schedule all follow; where tasks are in turn, one clock
    and the same times at which tasks change.
    """
    codes: NDArray[Any]
    if cases[0].problem.optimal is not None:
        _, codes = cases.distinct(cases.columns.keys() - {"seed"})
    elif cases[0].problem.in_turn:
        _, codes = cases.column_of(lambda case: (case.clock, case.problem.course.switches))
    else:
        return [cases]
    ends = [*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(cases)]
    return [cases[start:end] for start, end in pairwise(ends)]


def _run(cases: Cases, timeout: float | None, initial: Initial, begun: Begun | None) -> Records:
    """Return the records of cases of one of `_groups`, computed together from the start or on from `begun`.

    timeout : seconds a case, on average. A run that is inaccurate at a recording time has no records from there on.
    """
    first = cases[0]
    replicas, optimal = replicas_of(cases, initial), schedule_of(first, initial)
    if optimal is not None:
        replicas = replace(replicas, schedule=optimal.formula)
    run = DYNAMICS[first.dynamics](replicas, first.numerical_options())
    deadline = np.inf if timeout is None else run.clock() + timeout * len(cases)
    variables = stored_variables(first)
    data = {name: np.full((len(cases), *variable.shape), np.nan) for name, variable in variables.items()}
    observed: dict[str, OwnParameters] = {
        name: {key: cases.field(key, None) for key in OBSERVABLES[name].parameter_names}
        for name in first.recording.observables
    }
    # the steps and the ODE times up to which runs went, without what is inaccurate
    ends, excess = np.zeros((2, len(cases))), dict[int, Excess]()
    if begun is not None:
        data = {name: begun.data[name].copy() for name in variables}
        run.go_on(begun.data)
    # the first instants are those that runs which have begun reached
    for at, instant in list(enumerate(_instants(first)))[begun.times if begun else 0 :]:
        run.advance(at, deadline)
        if instant.phase is not None:
            run.begin_phase(instant.phase)
            continue
        reached, states, place = run.reached(at), run.look(), instant.place
        diagnosed = run.diagnosed()
        # first: bounds are those of the errors that were read last
        _record_diagnostics(data, variables, place, reached, diagnosed)
        beyond = _beyond(run, at, reached, excess)
        run.inaccurate |= beyond
        run.running &= ~beyond
        ends = np.where(run.inaccurate, ends, (run.end_steps, run.end_time))
        _record_observables(data, observed, place, reached & ~beyond, states, diagnosed)
        if not run.running.any():
            break
    if END_STATE in variables:
        data[END_STATE][:] = np.where(run.running[:, None], run.end_state(), np.nan)
    data |= {"end_steps": ends[0], "end_time": ends[1]}
    if optimal is not None:
        data |= {name: np.repeat(values[None], len(cases), axis=0) for name, values in optimal.recorded.items()}
    if replicas.thresholds.size:
        data |= {name: getattr(run, name) for name in EXITS if name in variables}
    for name, variable in variables.items():
        _check_shape(name, data[name], (len(cases), *variable.shape))
    _leave_out_unknown(data, run.inaccurate, ends[1])
    status = np.full(len(cases), Status.ok, dtype=np.uint8)
    status[run.inaccurate] = Status.inaccurate
    status[run.timed_out] = Status.timeout
    status[run.diverged] = Status.diverged
    return Records(data, status, excess)


def _leave_out_unknown(data: dict[str, Array], inaccurate: NDArray[np.bool_], ends: Array) -> None:
    """Replace exits in `data` by NaN in `inaccurate` (n,) runs if they are after the last accurate time `ends` (n,)."""
    if "exit_time" in data:
        unknown = inaccurate[:, None] & (data["exit_time"] > ends[:, None])
        data |= {name: np.where(unknown, np.nan, data[name]) for name in EXITS if name in data}


def _beyond(run: Dynamics, place: int, reached: NDArray[np.bool_], excess: dict[int, Excess]) -> NDArray[np.bool_]:
    """Return which replicas (n,) are beyond a bound of the dynamics `run`.

    place : number of the instant; bounds of states count for those that `reached` (n,) it, those of exits for all.
    excess : the first excess of each replica, to which new ones are added.
    """
    beyond = np.zeros(len(reached), dtype=bool)
    times = np.minimum(run.replicas.times[:, place], run.end_time)
    of_exits = [(bound, np.ones(len(reached), dtype=bool)) for bound in run.exit_bounds()]
    for (quantity, value, largest), decided in [*((bound, reached) for bound in run.bounds()), *of_exits]:
        above = decided & (value > largest)
        for at in np.flatnonzero(above).tolist():
            first_excess = float(times[at]), quantity, float(value[at]), float(largest[at])
            excess.setdefault(at, Excess(*first_excess))
        beyond |= above
    return beyond


def _record_observables(
    data: dict[str, Array], observed: Mapping[str, OwnParameters], place: int, reached: NDArray[np.bool_],
    states: States, diagnosed: Collection[str],
) -> None:  # fmt: skip
    """Write the observables, averaged over the states, for the replicas that `reached` (n,) a recording time.

    data : by variable, the arrays (n, times, ...), or (n, ...) of what is constant, that are filled.
    observed : the names of the observables, with their parameters. place : number of the recording time.
    diagnosed : names of errors that the dynamics itself records; all other errors are written here.
    """
    for name, parameters in observed.items():
        observable = OBSERVABLES[name]
        if observable.over_time and reached.any():
            mean, error = observable.mean(states, parameters)
            mean = np.maximum(mean, observable.least)
            for recorded, values in ((name, mean), (error_of(name), error)):
                if recorded in data and values is not None and recorded not in diagnosed:
                    _check_shape(recorded, values, data[recorded][:, place].shape)
                    data[recorded][reached, place] = values[reached]
        elif not observable.over_time and place == 0:
            view = states[0][1]  # all states have the same constants
            constant = observable.function_of(type(view))(view, **parameters)
            _check_shape(name, constant, data[name].shape)
            data[name][:] = constant


def _record_diagnostics(
    data: dict[str, Array],
    variables: Mapping[str, Variable],
    place: int,
    reached: NDArray[np.bool_],
    diagnosed: Mapping[str, Lazy],
) -> None:
    """Write what the dynamics has `diagnosed`, if it is recorded, for replicas that `reached` (n,) time number `place`.

    data, variables : by name, the arrays (n, ...) that are filled, and what they are. Without times the last stays.
    """
    for name in variables.keys() & diagnosed.keys():
        diagnostic, values = evaluated(diagnosed[name]), data[name]
        instants = values[:, place] if variables[name].dims[:1] == ("time",) else values
        _check_shape(name, diagnostic, instants.shape)
        instants[reached] = diagnostic[reached]


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Raise SweeplibError unless values of a variable are real numbers of the shape (n, ...): plugins may err."""
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "biuf":
        was = f"{array.dtype} of shape {array.shape}"
        raise SweeplibError(f"{name} is {was}; expected real numbers of shape {shape}, of one run after the other")


def replicas_of(cases: Sequence[Case], initial: Initial = None) -> Replicas:
    """The replicas of cases of one shape, at their start."""
    cases = Cases.of(cases)
    problem, recording, instants = cases[0].problem, cases[0].recording, _instants(cases[0])
    # recording times are in units of a case's clock; with tasks in turn the times of switches are among them
    plain = np.multiply.outer(cases.field("clock"), recording.times)
    times = np.tile([instant.time for instant in instants], (len(cases), 1)) if problem.in_turn else plain
    return Replicas(
        activation=problem.activation,
        teacher_activation=problem.teacher,
        target=problem.learned,
        criterion=problem.criterion,
        rule=problem.rule,
        spherical=problem.spherical,
        parameters={name: cases.field(name) for name in REAL},
        d=cases.field("d", np.int64),
        batch_size=problem.batch_size,
        repeats=problem.repeats,
        schedule=problem.rates,
        noise_schedule=problem.noise_factor,
        samples=cases.field("samples", np.int64),
        epochs=cases.field("sampling", object) == "epochs",
        data=problem.data,
        law={name: cases.field(name) for name in DATA[problem.data].numbers},
        eigenvalues=cases.arrays(lambda case: case.problem.blocks[0]),
        multiplicities=cases.arrays(lambda case: case.problem.blocks[1]),
        refit_keys=cases.numbers(lambda case: stream_key(case.root_seed, "second layer"), np.uint64),
        a=cases.arrays(_second_layer),
        a_star=cases.arrays(_first_a_star),
        has_offsets=problem.has_offsets,
        starts=CaseStarts(cases, initial),
        keys=samples_keys(cases),
        seeds=cases.field("seed", np.uint64),
        times=times,
        thresholds=np.array(recording.thresholds, dtype=float),
        stop_at_exit=recording.stop == "exit",
        levels=cases.levels(),
        lessons=_lessons(cases),
    )


def _second_layer(case: Case) -> Array:
    """The student's second layer (p,) at the start."""
    return drawn_second_layer(case.problem, root_seed=case.root_seed, seed=case.seed)


class _Instant(NamedTuple):
    """An ODE time to which replicas are advanced: for a record, or to begin a phase of their tasks.

    phase : the number of the phase, None for a record. place : the number of the recording time, −1 for a phase.
    """

    time: float
    phase: int | None = None
    place: int = -1


def _instants(case: Case) -> list[_Instant]:
    """The recording times, and the times at which phases of tasks begin, in order; a record comes before a phase."""
    records = [_Instant(case.clock * time, place=place) for place, time in enumerate(case.recording.times)]
    phases = []
    for phase, switch in enumerate(case.problem.course.switches, 1):
        # a time that is counted in steps is at the switch to rounding
        at_switch = [record.time for record in records if abs(record.time - switch) <= ROUNDING * switch]
        phases.append(_Instant(max([switch, *at_switch]), phase))
    begun = [phase for phase in phases if phase.time < records[-1].time]
    return sorted(records + begun, key=lambda instant: (instant.time, instant.phase is not None))


def _first_a_star(case: Case) -> Sequence[float]:
    """The second layer (k,) of the teacher at the start: that of the first task."""
    return case.problem.course.a_star[case.problem.course.order[0]]


def _lessons(cases: Cases) -> Lessons | None:
    """The tasks of cases of one shape; None if there is one task."""
    problem = cases[0].problem
    if not problem.in_turn:
        return None
    course, a_star = problem.course, cases.arrays(lambda case: case.problem.course.a_star)
    heads = cases.arrays(lambda case: _second_layer(case)[None])
    heads = np.repeat(heads, a_star.shape[1] if course.own_heads else 1, axis=1)
    shares = cases.arrays(lambda case: [case.problem.course.shares(phase) for phase in range(len(course.order))])
    return Lessons(a_star, course.order, heads, shares, replays=course.replay > 0.0)
