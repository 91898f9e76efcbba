"""The cases that a sweep needs of a run store; the time per case does not depend on the case."""

import time
from pathlib import Path

import numpy as np
import pytest

from sweeplib.design.grid import Axis, Grid
from sweeplib.design.sweep import Run, Sweep
from sweeplib.language import Expression
from sweeplib.simulation import Recording, case_work
from sweeplib.storage.inventory import Inventory, inventory
from sweeplib.storage.run_store import RunStore

FIXED = {"p": 1, "k": 1, "d": 1000, "activation": "square", "spherical": True}


def sweep_of(points: int = 1, seeds: int = 1, times: int = 10, dynamics: str = "sgd_chain") -> Sweep:
    """Return a sweep over points that differ in γ, which is derived, and in Δ."""
    axes = (
        Axis("ratio", tuple(np.linspace(0.3, 1.7, -(-points // 5)).tolist())),
        Axis("Delta", tuple(np.linspace(0.0, 1.0, min(points, 5)).tolist())),
    )
    grid = Grid(axes, FIXED, {"gamma": Expression("ratio / (12 + Delta)")})
    recording = Recording(tuple(np.linspace(0.0, 1.0, times).tolist()))
    return Sweep("many", grid, tuple(range(seeds)), {dynamics: Run(dynamics)}, recording, source="name: many\n")


def wanted(sweep: Sweep, directory: Path) -> Inventory:
    [dynamics] = sweep.runs
    return inventory(sweep, dynamics, RunStore(directory, dynamics))


@pytest.mark.parametrize("sweep", [sweep_of(35, 3), sweep_of(1, 7), sweep_of(35, 3, dynamics="gradient_flow")])
def test_it_is_that_of_the_cases_one_by_one(sweep: Sweep, tmp_path: Path) -> None:
    found, [dynamics] = wanted(sweep, tmp_path), sweep.runs
    cases = dict(sweep.cases(dynamics))
    flat = np.ravel_multi_index(np.array(list(cases)).T, sweep.shape)
    assert found.flat.tolist() == flat.tolist()
    assert found.ids.tolist() == np.array([case.identity() for case in cases.values()], "S16").tolist()
    different = {case.identity(): case for case in cases.values()}
    rows = [(case.problem.text, case.seed, case.clock) for new in found.new.values() for case in found.cases(new)]
    assert len(rows) == len(different) == found.counts()["missing"]
    assert set(rows) <= {(case.problem.text, case.seed, case.clock) for case in cases.values()}
    for new in found.new.values():
        assert (np.diff([case_work(case) for case in found.cases(new)]) <= 0).all()


def seconds(sweep: Sweep, directory: Path) -> float:
    """Return the processor time of an inventory, the best of three."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        wanted(sweep, directory)
        taken.append(time.process_time() - began)
    return min(taken)


def test_a_case_takes_no_longer_for_more_recording_times(tmp_path: Path) -> None:
    few, many = (seconds(sweep_of(2000, times=times), tmp_path) for times in (10, 1000))
    assert many < 3 * few


def test_a_case_takes_no_longer_among_more_seeds(tmp_path: Path) -> None:
    few, many = (seconds(sweep_of(1, seeds=seeds), tmp_path) for seeds in (4_000, 32_000))
    assert many < 24 * few
