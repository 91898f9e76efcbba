"""Runs go on from their ends: every dynamics with such a state, on the problems of its contract and on special ones."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sweeplib.contracts.dynamics import recordable, suited
from sweeplib.contracts.observables import quick
from sweeplib.engine.records import Begun
from sweeplib.engine.status import Status
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording, run_cases, stored_variables
from sweeplib.networks.simulation.cases import WITHOUT_DRIFTS, numerical_options
from sweeplib.networks.simulation.driver import unfinished
from tests.tiers import slow_but

TIMES = (0.0, 0.5, 1.0, 1.5, 2.0)
SHORT = Recording(TIMES[:3], (0.01, 0.02), (), "exit", keep_ends=True)
TO_END = replace(SHORT, stop="end")
OTHER = replace(TO_END, times=(1.0, 1.25, 2.0), thresholds=(0.02,), keep_ends=False)
HORIZONS = ((SHORT, replace(SHORT, times=TIMES)), (TO_END, replace(TO_END, times=TIMES)), (TO_END, OTHER))
"""Recordings, with a longer one each; the last has fewer times and thresholds, and keeps no ends."""
PLAIN = Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf")
SPECIAL: list[tuple[str, Problem, dict[str, Any]]] = [
    ("sgd_chain", replace(PLAIN, batch_size=2, repeats=3), {}),
    ("sgd_chain", replace(PLAIN, schedule="1/(1 + t)", weight_decay=0.1), {}),
    ("sgd_chain", replace(PLAIN, second_layer_rate=0.5, batch_size=4), {}),
    ("sgd_chain", replace(PLAIN, update="heavy_ball", momentum=0.6, second_layer_rate=0.5), {}),
    ("sgd_chain", replace(PLAIN, update="adagrad_norm", adagrad_start=0.3), {}),
    ("sgd_chain", replace(PLAIN, keep_probability=0.6, input_noise=0.4, noise_schedule="exp(-t)"), {}),
    ("sgd_chain", replace(PLAIN, temperature=0.2), {}),
    ("sgd_chain", replace(PLAIN, temperature=0.2, averaging_order=1.0, noise_tail=0.3), {}),
    ("sde", PLAIN, {"step": 2.5}),
    ("sde", replace(PLAIN, temperature=0.2), {"step": 2.5}),
    ("sde", PLAIN, {"step": 0.4}),
    ("overlap_map", replace(PLAIN, batch_size=8, second_layer_rate=0.5), {}),
    ("overlap_map", replace(PLAIN, p=1, k=1, activation="tanh"), {}),
    ("overlap_map", replace(PLAIN, p=1, k=1, activation="tanh", update="heavy_ball", batch_size=8), {}),
    ("overlap_map", replace(PLAIN, update="adagrad_norm", batch_size=8), {}),
    ("sgd_chain", replace(PLAIN, update="adagrad_norm", batch_size=8), {}),
    ("sgd_chain", replace(PLAIN, update="muon", momentum=0.6, batch_size=8), {}),
    ("overlap_map", replace(PLAIN, update="spectral_momentum", momentum=0.6, batch_size=16), {}),
]


KEEPING = [name for name, kind in DYNAMICS.items() if kind.state_size(PLAIN, kind.Options())]


def goes_on(name: str, problem: Problem, options: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield how many runs had not stopped, and how many had, of those that are compared with whole runs."""
    pairs = tuple(sorted(options.items()))
    has_drifts = not any(feature.is_of(problem) for feature, _ in WITHOUT_DRIFTS)
    recorded = [each for each in quick(recordable(name), problem) if has_drifts or not OBSERVABLES[each].uses_drifts]
    for pair in HORIZONS:
        observed = tuple(recorded[:2])
        known, wanted = (replace(recording, observables=observed) for recording in pair)
        cases = [Case(problem, name, seed, known, options=pairs) for seed in range(8)]
        longer = [replace(case, recording=wanted) for case in cases]
        short, whole, dims = run_cases(cases), run_cases(longer), stored_variables(cases[0])
        assert (short.status == Status.ok).all()
        data = {each: known.values_at(short.data[each], dims[each].dims, wanted) for each in dims}
        begun = Begun(data, known.reached(wanted))
        continued = run_cases(longer, begun=begun)
        assert continued.status.tobytes() == whole.status.tobytes()
        for each in stored_variables(longer[0]).keys() - ({"drift_error"} if wanted.thresholds == (0.02,) else set()):
            assert continued.data[each].tobytes() == whole.data[each].tobytes(), each
        left = len(unfinished(begun, wanted))
        yield left, len(cases) - left


@pytest.mark.parametrize("name", slow_but(KEEPING, "sgd_chain"))
def test_it_goes_on_to_the_bit(name: str) -> None:
    counts = np.concatenate([list(goes_on(name, problem, {})) for problem in suited(name)])
    assert (counts.sum(axis=0) > 0).all(), "some runs have stopped at their exits, others have not"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem", "options"), SPECIAL)
def test_special_problems_go_on_to_the_bit(name: str, problem: Problem, options: dict[str, Any]) -> None:
    assert DYNAMICS[name].state_size(problem, numerical_options(name, tuple(options.items()))) > 0
    assert sum(left for left, _ in goes_on(name, problem, options)) > 0
