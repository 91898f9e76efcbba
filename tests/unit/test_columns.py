"""Cases as columns are the cases one by one, to the bit."""

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.problem import Problem
from sweeplib.networks.rows import cases_of, index_of, shared_fields
from sweeplib.networks.simulation import Case, Cases, Recording, case_memory, case_steps, case_work
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key

RECORDING = Recording((0.0, 0.3, 1.0), (0.1,))
SHARED: dict[str, Any] = {"p": 2, "k": 1, "d": 30}
PROBLEMS = [
    Problem(gamma=0.1, Delta=0.5, activation="square", **SHARED),
    Problem(gamma=1 / 3, Delta=0.5, activation="square", **SHARED),
    Problem(gamma=1e-7, Delta=-0.0, activation="square", **SHARED),
    Problem(gamma=1e-7, Delta=0.0, activation="square", **SHARED),
    Problem(gamma=2e16, Delta=0.0, activation="square", a=(1.0, -1.0), m0=0.2, **SHARED),
    Problem(gamma=0.1, Delta=0.5, activation="erf", teacher_activation="he2", start_scale=0.3, **SHARED),
    Problem(gamma=0.1, Delta=0.5, activation="square", samples=40, batch_size=4, ridge=0.1, **SHARED),
]


def some_cases(dynamics: str = "sgd_chain", **fields: Any) -> list[Case]:
    """Return cases of all kinds, with two seeds each, and clocks."""
    clocks = (1.0, 1 / 7)
    made = [Case(problem, dynamics, seed, RECORDING, **fields) for problem in PROBLEMS for seed in (0, 2**32 - 1)]
    return [replace(case, clock=clocks[at % 3 == 0]) for at, case in enumerate(made)]


def as_columns(cases: list[Case]) -> Cases:
    """Return cases as a worker reads them."""
    return cases_of(shared_fields(cases[0]), index_of(Cases.of(cases)))


@pytest.mark.parametrize("dynamics", ["sgd_chain", "gradient_flow"])
@pytest.mark.parametrize("made", [Cases.of, as_columns])
def test_identities(dynamics: str, made: Callable[[list[Case]], Cases]) -> None:
    """Gradient flow reads neither γ nor the batches."""
    cases = some_cases(dynamics, root_seed=3, pair_by=("d",))
    assert made(cases).identities().tolist() == np.array([case.identity() for case in cases], "S16").tolist()


@pytest.mark.parametrize("made", [Cases.of, as_columns])
def test_cases_come_back(made: Callable[[list[Case]], Cases]) -> None:
    cases = some_cases()
    columns = made(cases)
    assert list(columns) == cases
    assert [case.problem.text for case in columns] == [case.problem.text for case in cases]
    assert list(pickle.loads(pickle.dumps(columns[3:7]))) == cases[3:7]
    assert list(columns.at(np.array([5, 1]))) == [cases[5], cases[1]]


@pytest.mark.parametrize("pair_by", [None, ("d",), ("gamma", "d", "seed")])
def test_replicas(pair_by: tuple[str, ...] | None) -> None:
    """All arrays of the replicas have the bits that they have for each case alone."""
    cases = [case for case in some_cases(pair_by=pair_by) if case.shape == some_cases()[0].shape]
    together, alone = replicas_of(as_columns(some_cases(pair_by=pair_by))[: len(cases)]), map(replicas_of, _each(cases))
    for at, one in enumerate(alone):
        assert together.keys[at] == samples_key(cases[at])
        for field in dataclasses.fields(one):
            own, other = getattr(together, field.name), getattr(one, field.name)
            if isinstance(other, np.ndarray) and field.name != "thresholds":
                assert own.dtype == other.dtype and own[at : at + 1].tobytes() == other.tobytes(), field.name
        np.testing.assert_array_equal(together.overlaps(at).Q, one.overlaps(0).Q)


def _each(cases: list[Case]) -> list[list[Case]]:
    return [[case] for case in cases]


def _handled(case: Case) -> float:
    try:
        return 2.0 * case.problem.gamma
    except Exception:
        return -1.0


FUNCTIONS: dict[str, Callable[[Case], float]] = {
    "of the kind": lambda case: case.problem.p + len(case.recording.times),
    "formula of the clock": case_steps,
    "work": case_work,
    "branch": lambda case: 1.0 if case.problem.gamma > 0.2 else case.clock,
    "of Python": lambda case: float(round(case.problem.Delta + case.clock, 1)),
    "of a maximum": lambda case: float(np.max([case.problem.gamma, case.clock])),
    "of the text": lambda case: float(len(case.problem.text)),
    "that handles everything": _handled,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name: str) -> None:
    cases = some_cases()
    found = as_columns(cases).numbers(FUNCTIONS[name])
    assert found.tolist() == [FUNCTIONS[name](case) for case in cases]


@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_every_dynamics_gives_for_columns_what_it_gives_for_each_case(dynamics: str) -> None:
    """Also where its functions make other problems from the given one."""
    varied: list[dict[str, Any]] = [{}, {"gamma": 0.3}, {"d": 41}, {"p": 3}, {"second_layer_rate": 0.2}, {"Delta": 0.0}]
    problems = [Problem(**{"gamma": 0.1, "Delta": 0.5, "activation": "erf", **SHARED, **other}) for other in varied]
    cases = [Case(problem, dynamics, 3, RECORDING) for problem in problems]
    columns = as_columns(cases)
    for number in (case_work, case_memory, case_steps):
        assert columns.numbers(number).tolist() == [number(case) for case in cases]
    assert columns.shapes().items() == [case.shape for case in cases]


def test_a_function_is_called_once_for_what_it_reads() -> None:
    calls: list[int] = []
    as_columns(some_cases()).column_of(lambda case: calls.append(case.problem.samples))
    assert calls == [None, None, 40]  # the first shows what it reads


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"gamma": 1e-300}, "too many steps|more steps"),
        ({"gamma": 1e4}, "no step until then; got 3.0; expected a last time above 83.3333"),
        ({"gamma": 0.1, "schedule": "1 - t"}, "no learning rate"),
    ],
)
def test_a_case_that_is_refused_alone_is_refused_among_others(fields: dict[str, Any], problem: str) -> None:
    refused = Problem(**{"Delta": 0.5, "activation": "square", **SHARED, **fields})
    cases = [Case(PROBLEMS[0], "sgd_chain", 0, RECORDING), Case(refused, "sgd_chain", 0, Recording((0.0, 3.0)))]
    with pytest.raises(InputError, match=problem) as alone:
        cases[1].check()
    with pytest.raises(InputError, match=problem) as together:
        Cases.of(cases).check()
    assert str(alone.value) == str(together.value)
