"""The driver: starts replicas, advances them from record to record, takes the observables."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics import DYNAMICS, Replicas
from sweeplib.errors import InputError, SweeplibError
from sweeplib.maths.expectations import expectations
from sweeplib.maths.initial import initial_weights, turned_to, weights_of_overlaps
from sweeplib.maths.overlaps import Overlaps
from sweeplib.numerics.random import stream_key
from sweeplib.observables import OBSERVABLES, Observable, Snapshot
from sweeplib.problem import Problem
from sweeplib.simulation.cases import Case
from sweeplib.simulation.recording import Status
from sweeplib.simulation.variables import recorded_variables

Array = NDArray[np.float64]
Weights = tuple[Sequence[Sequence[float]] | Array, Sequence[Sequence[float]] | Array]
Initial = Overlaps | Weights | None
States = Sequence[tuple[Array, Snapshot]]


@dataclass(frozen=True, eq=False)
class Records:
    """What n cases gave: arrays (n, ...) by the name of the variable, and the status (n,) of each."""

    data: dict[str, Array]
    status: NDArray[np.uint8]


def run_cases(cases: Sequence[Case], *, timeout: float | None = None, initial: Initial = None) -> Records:
    """The records of cases that have one `shape` in common.

    The bits of a case do not depend on the others. `timeout` is the seconds a case may take on average over those that
    are run together. `initial`, overlaps or weights (W, W*), replaces the problems' own random starts. Whatever the
    simulation raises is passed on.
    """
    if len({case.shape for case in cases}) != 1:
        raise SweeplibError("cases of different shapes cannot be run together")
    for case in cases:
        case.check()
    size = DYNAMICS[cases[0].dynamics].together
    parts = [_run(cases[first : first + size], timeout, initial) for first in range(0, len(cases), size)]
    data = {name: np.concatenate([part.data[name] for part in parts]) for name in parts[0].data}
    return Records(data, np.concatenate([part.status for part in parts]))


def case_work(case: Case) -> float:
    """Nominal floating-point operations of a case that runs to its last recording time."""
    kind = DYNAMICS[case.dynamics]
    last = case.clock * case.recording.times[-1]
    return kind.work(case.problem, last) / kind.step_length(case.numerical_options())


def _run(cases: Sequence[Case], timeout: float | None, initial: Initial) -> Records:
    first = cases[0]
    replicas = replicas_of(cases, initial)
    run = DYNAMICS[first.dynamics](replicas, first.numerical_options())
    deadline = np.inf if timeout is None else run.clock() + timeout * len(cases)
    needed = expectations(replicas.activation, replicas.teacher_activation)
    data = {
        name: np.full((len(cases), *variable.shape), np.nan) for name, variable in recorded_variables(first).items()
    }
    for place in range(len(first.recording.times)):
        run.advance(place, deadline)
        reached = run.reached(place)
        constants = replicas.a_star, replicas.Delta, needed
        states = [(state.weight, Snapshot(state.Q, state.M, replicas.P, state.a, *constants)) for state in run.states()]
        _take(data, first.recording.observables, place, reached, states)
        if "risk_error" in data:
            data["risk_error"][reached, place] = run.risk_error[reached]
        if "drift_error" in data:
            state = (run.Q, run.M, replicas.P, run.a, replicas.a_star, run.replicas.Delta)
            data["drift_error"] = np.fmax(data["drift_error"], needed.drift_errors(*state))
        if not run.running.any():
            break
    data["end_steps"], data["end_time"] = run.end_steps, run.end_time
    if replicas.thresholds.size:
        data["exit_steps"], data["exit_time"] = run.exit_steps, run.exit_time
    _check_shapes(data, cases)
    status = np.full(len(cases), Status.ok, dtype=np.uint8)
    status[run.timed_out] = Status.timeout
    status[run.diverged] = Status.diverged
    return Records(data, status)


def _take(data: dict[str, Array], names: Sequence[str], place: int, reached: NDArray[np.bool_], states: States) -> None:
    """Write the observables at one recording time, means over the states, for the replicas that reached it."""
    for name in names:
        observable, values = OBSERVABLES[name], data[name]
        if observable.over_time and reached.any():
            mean = _mean(observable, states)
            _check_shape(name, mean, values[:, place].shape)
            values[reached, place] = mean[reached]
        elif not observable.over_time and place == 0:
            found = observable.function(states[0][1])
            _check_shape(name, found, values.shape)
            values[:] = found


def _check_shapes(data: dict[str, Array], cases: Sequence[Case]) -> None:
    """SweeplibError where something of another shape than its description, or no real numbers, was recorded."""
    for name, variable in recorded_variables(cases[0]).items():
        _check_shape(name, data[name], (len(cases), *variable.shape))


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    found = np.asarray(values)
    if found.shape != shape or found.dtype.kind not in "biuf":
        was = f"{found.dtype} of shape {found.shape}"
        raise SweeplibError(f"{name} is {was}; expected real numbers of shape {shape}, of one run after the other")


def _mean(observable: Observable, states: States) -> Array:
    """The weighted mean (n, *dims) of an observable over some states of n replicas; weights (n,)."""
    values = [(weight, observable.function(now)) for weight, now in states]
    terms = [value * weight.reshape(-1, *[1] * (value.ndim - 1)) for weight, value in values]
    return np.asarray(sum(terms[1:], start=terms[0]))


def replicas_of(cases: Sequence[Case], initial: Initial = None) -> Replicas:
    """The runs of some cases of one shape, at their start."""
    problem, recording = cases[0].problem, cases[0].recording
    starts = [_start(case, initial) for case in cases]
    return Replicas(
        activation=problem.activation,
        teacher_activation=problem.teacher,
        spherical=problem.spherical,
        gamma=np.array([case.problem.gamma for case in cases]),
        Delta=np.array([case.problem.Delta for case in cases]),
        d=np.array([case.problem.d for case in cases], dtype=np.int64),
        a=np.array([np.broadcast_to(case.problem.a, problem.p) for case in cases], dtype=float),
        a_star=np.array([np.broadcast_to(case.problem.a_star, problem.k) for case in cases], dtype=float),
        second_layer_rate=np.array([case.problem.second_layer_rate for case in cases]),
        Q=np.array([start.Q for start in starts]),
        M=np.array([start.M for start in starts]),
        P=np.array([start.P for start in starts]),
        weights=_weights_of(cases, initial),
        keys=np.array([samples_key(case) for case in cases], dtype=np.uint64),
        seeds=np.array([case.seed for case in cases], dtype=np.uint64),
        times=np.multiply.outer([case.clock for case in cases], recording.times),
        thresholds=np.array(recording.thresholds, dtype=float),
        stop_at_exit=recording.stop == "exit",
    )


def samples_key(case: Case) -> int:
    """The key of the random numbers of a case's samples, its own or that of all that agree in the fields `pair_by`."""
    return _samples_key(case.problem, case.dynamics, case.root_seed, case.pair_by)


@lru_cache(maxsize=4096)
def _samples_key(problem: Problem, dynamics: str, root_seed: int, pair_by: tuple[str, ...] | None) -> int:
    if pair_by is None:
        own = hashlib.blake2b(problem.text.encode(), digest_size=16).hexdigest()
        return stream_key(root_seed, "samples", dynamics, own)
    shared = {name: getattr(problem, name) for name in pair_by if name != "seed"}
    return stream_key(root_seed, "samples", dynamics, shared)


def _weights_of(cases: Sequence[Case], initial: Initial) -> Callable[[int], tuple[Array, Array]]:
    def weights(i: int) -> tuple[Array, Array]:
        case = cases[i]
        if initial is None:
            return _random_weights(*_draw(case))
        if isinstance(initial, Overlaps):
            return weights_of_overlaps(initial, case.problem.d, root_seed=case.root_seed, seed=case.seed)
        W, W_star = initial
        return np.array(W, dtype=float), np.array(W_star, dtype=float)

    return weights


def _start(case: Case, initial: Initial) -> Overlaps:
    problem = case.problem
    if initial is None:
        return _random_overlaps(*_draw(case))
    start = initial if isinstance(initial, Overlaps) else _overlaps_of(initial, problem)
    if (start.p, start.k) != (problem.p, problem.k):
        found, expected = (start.p, start.k), f"(p, k) = {(problem.p, problem.k)}"
        raise InputError("the start does not fit the problem", key="initial", value=found, expected=expected)
    if problem.spherical and not np.allclose(np.diag(start.Q), 1.0, rtol=0, atol=1e-9):
        raise InputError("spherical students start on the sphere", key="initial", expected="Q_ii = 1")
    return start


def _overlaps_of(weights: Weights, problem: Problem) -> Overlaps:
    shape = np.shape(weights[0])
    if shape != (problem.p, problem.d):
        expected = f"W of shape (p, d) = {(problem.p, problem.d)}"
        raise InputError("the start does not fit the problem", key="initial", value=shape, expected=expected)
    return Overlaps.from_weights(*weights)


def _draw(case: Case) -> tuple[str, str, float | None, int, int, int, int, int]:
    """What the case's random start is a function of, and other cases' with it."""
    problem = case.problem
    laws = (problem.student_start, problem.teacher_start, problem.m0)
    return (*laws, problem.p, problem.k, problem.d, case.root_seed, case.seed)


def _random_weights(
    start: str, teacher_start: str, m0: float | None, p: int, k: int, d: int, root_seed: int, seed: int
) -> tuple[Array, Array]:
    W = initial_weights("student", start, p, d, root_seed=root_seed, seed=seed)
    W_star = initial_weights("teacher", teacher_start, k, d, root_seed=root_seed, seed=seed)
    return (W if m0 is None else turned_to(W, W_star[0], m0)), W_star


@lru_cache(maxsize=8192)
def _random_overlaps(*draw: Any) -> Overlaps:
    return Overlaps.from_weights(*_random_weights(*draw))
