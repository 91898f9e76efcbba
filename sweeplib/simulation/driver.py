"""The driver: starts replicas, advances them between recording times, records the observables."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics import DYNAMICS, Replicas
from sweeplib.dynamics.second_layers import Regression
from sweeplib.errors import SweeplibError
from sweeplib.numerics.random import stream_key
from sweeplib.observables import OBSERVABLES, Observable
from sweeplib.problem import OBSERVED_FIELDS, Problem
from sweeplib.simulation.cases import Case
from sweeplib.simulation.initial import CaseStarts, Initial
from sweeplib.simulation.recording import Status
from sweeplib.simulation.variables import Variable, recorded_variables
from sweeplib.views import View

Array = NDArray[np.float64]
States = Sequence[tuple[Array, View]]

BYTES_AT_ONCE = 2**26
"""Of the large arrays of cases that are run together."""


@dataclass(frozen=True, eq=False)
class Records:
    """The results of n cases: arrays (n, ...) by name of the variable, and the status (n,)."""

    data: dict[str, Array]
    status: NDArray[np.uint8]


def run_cases(cases: Sequence[Case], *, timeout: float | None = None, initial: Initial = None) -> Records:
    """The records of cases that have one `shape` in common.

    The result of a case does not depend on the others. `timeout` is the mean time in seconds that a case of a batch may
    take. `initial`, overlaps or weights (W, W*), replaces the random starts of the problems. Exceptions of the
    simulation are passed on.
    """
    if len({case.shape for case in cases}) != 1:
        raise SweeplibError("cases of different shapes cannot be run together")
    for case in cases:
        case.check()
    size = _cases_at_once(cases)
    parts = [_run(cases[first : first + size], timeout, initial) for first in range(0, len(cases), size)]
    data = {name: np.concatenate([part.data[name] for part in parts]) for name in parts[0].data}
    return Records(data, np.concatenate([part.status for part in parts]))


def case_work(case: Case) -> float:
    """Nominal floating-point operations of a case that runs to its last recording time."""
    kind = DYNAMICS[case.dynamics]
    last = case.clock * case.recording.times[-1]
    return kind.work(case.problem, last) / kind.step_length(case.problem, case.numerical_options())


def case_steps(case: Case) -> float:
    """The number of SGD steps to the last recording time of a case."""
    return case.clock * case.recording.times[-1] / case.problem.step_time()


def case_memory(case: Case) -> int:
    """The bytes of the large arrays that a case has in memory while it runs."""
    return DYNAMICS[case.dynamics].memory(case.problem, case.numerical_options())


def _cases_at_once(cases: Sequence[Case]) -> int:
    """The number of cases to run together: what the dynamics asks for, or fewer if these take too much memory."""
    most = max(map(case_memory, cases))
    return max(1, min(DYNAMICS[cases[0].dynamics].replicas_at_once, BYTES_AT_ONCE // max(1, most)))


def _run(cases: Sequence[Case], timeout: float | None, initial: Initial) -> Records:
    first = cases[0]
    replicas = replicas_of(cases, initial)
    run = DYNAMICS[first.dynamics](replicas, first.numerical_options())
    deadline = np.inf if timeout is None else run.clock() + timeout * len(cases)
    variables = recorded_variables(first)
    data = {name: np.full((len(cases), *variable.shape), np.nan) for name, variable in variables.items()}
    for place in range(len(first.recording.times)):
        run.advance(place, deadline)
        reached = run.reached(place)
        _take(data, first.recording.observables, place, reached, run.look())
        _keep(data, variables, place, reached, run.diagnosed())
        if not run.running.any():
            break
    data["end_steps"], data["end_time"] = run.end_steps, run.end_time
    if replicas.thresholds.size:
        data["exit_steps"], data["exit_time"] = run.exit_steps, run.exit_time
    for name, variable in variables.items():
        _check_shape(name, data[name], (len(cases), *variable.shape))
    status = np.full(len(cases), Status.ok, dtype=np.uint8)
    status[run.timed_out] = Status.timeout
    status[run.diverged] = Status.diverged
    return Records(data, status)


def _take(data: dict[str, Array], names: Sequence[str], place: int, reached: NDArray[np.bool_], states: States) -> None:
    """Write the observables, averaged over the states, for the replicas that reached a recording time."""
    for name in names:
        observable, values = OBSERVABLES[name], data[name]
        if observable.over_time and reached.any():
            mean = _mean(observable, states)
            _check_shape(name, mean, values[:, place].shape)
            values[reached, place] = mean[reached]
        elif not observable.over_time and place == 0:
            view = states[0][1]
            found = observable.function_of(type(view))(view)
            _check_shape(name, found, values.shape)
            values[:] = found


def _keep(
    data: dict[str, Array],
    variables: Mapping[str, Variable],
    place: int,
    reached: NDArray[np.bool_],
    diagnosed: Mapping[str, Array],
) -> None:
    """Write the recorded diagnostics; those over time for the replicas that reached the recording time."""
    for name in variables.keys() & diagnosed.keys():
        found, values = diagnosed[name], data[name]
        if variables[name].dims[:1] == ("time",):
            _check_shape(name, found, values[:, place].shape)
            values[reached, place] = found[reached]
        else:
            _check_shape(name, found, values.shape)
            values[:] = found


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    found = np.asarray(values)
    if found.shape != shape or found.dtype.kind not in "biuf":
        was = f"{found.dtype} of shape {found.shape}"
        raise SweeplibError(f"{name} is {was}; expected real numbers of shape {shape}, of one run after the other")


def _mean(observable: Observable, states: States) -> Array:
    """The weighted mean (n, *dims) of an observable over some states of n replicas; weights (n,)."""
    values = [(weight, observable.function_of(type(now))(now)) for weight, now in states]
    terms = [value * weight.reshape(-1, *[1] * (value.ndim - 1)) for weight, value in values]
    return np.asarray(sum(terms[1:], start=terms[0]))


def replicas_of(cases: Sequence[Case], initial: Initial = None) -> Replicas:
    """The replicas of cases of one shape."""
    problem, recording = cases[0].problem, cases[0].recording
    return Replicas(
        activation=problem.activation,
        teacher_activation=problem.teacher,
        target=problem.target,
        spherical=problem.spherical,
        gamma=np.array([case.problem.gamma for case in cases]),
        Delta=np.array([case.problem.Delta for case in cases]),
        d=np.array([case.problem.d for case in cases], dtype=np.int64),
        batch_size=problem.batch_size,
        repeats=problem.repeats,
        schedule=problem.rates,
        samples=np.array([case.problem.samples or 0 for case in cases], dtype=np.int64),
        epochs=np.array([case.problem.sampling == "epochs" for case in cases]),
        data=problem.data,
        contrast=np.array([case.problem.contrast or 0.0 for case in cases]),
        regression=Regression(
            np.array([case.problem.second_layer_samples or 0 for case in cases], dtype=np.int64),
            np.array([case.problem.ridge for case in cases]),
            np.array([stream_key(case.root_seed, "second layer") for case in cases], dtype=np.uint64),
        ),
        a=np.array([np.broadcast_to(case.problem.a, problem.p) for case in cases], dtype=float),
        a_star=np.array([np.broadcast_to(case.problem.a_star, problem.k) for case in cases], dtype=float),
        second_layer_rate=np.array([case.problem.second_layer_rate for case in cases]),
        starts=CaseStarts(cases, initial),
        keys=np.array([samples_key(case) for case in cases], dtype=np.uint64),
        seeds=np.array([case.seed for case in cases], dtype=np.uint64),
        times=np.multiply.outer([case.clock for case in cases], recording.times),
        thresholds=np.array(recording.thresholds, dtype=float),
        stop_at_exit=recording.stop == "exit",
    )


def samples_key(case: Case) -> int:
    """The key of the random numbers of a case's samples, shared by cases that agree in the fields `pair_by`."""
    return _samples_key(case.problem, case.dynamics, case.root_seed, case.pair_by)


@lru_cache(maxsize=4096)
def _samples_key(problem: Problem, dynamics: str, root_seed: int, pair_by: tuple[str, ...] | None) -> int:
    if pair_by is None:
        own = hashlib.blake2b(_text_of_dynamics(problem).encode(), digest_size=16).hexdigest()
        return stream_key(root_seed, "samples", dynamics, own)
    shared = {name: getattr(problem, name) for name in pair_by if name != "seed"}
    return stream_key(root_seed, "samples", dynamics, shared)


def _text_of_dynamics(problem: Problem) -> str:
    """The text of a problem without the fields that only observables read."""
    values = json.loads(problem.text)
    return json.dumps({name: value for name, value in values.items() if name not in OBSERVED_FIELDS})
