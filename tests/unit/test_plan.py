"""The plan: what there is to do, what is done, what it costs."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from sweeplib.storage.run_store import RunStore
from sweeplib.sweep.calibration import Calibration, block_size, even
from sweeplib.sweep.plan import write_plan
from sweeplib.sweep.run import run_sweep
from sweeplib.sweep.sweep import Run, Sweep
from tests.faults.sweeps import troubled_sweep
from tests.faults.troubled import KILLS
from tests.in_process import InProcess


@pytest.mark.parametrize(
    ("seconds", "nbytes", "expected"),
    [(1e-6, 100, 2048), (0.01, 100, 200), (0.5, 100, 16), (10.0, 100, 6), (1000.0, 100, 1), (1e-6, 2**20, 64)],
)
def test_block_takes_two_seconds_within_limits(seconds: float, nbytes: int, expected: int) -> None:
    assert block_size(seconds, nbytes) == expected


@pytest.mark.parametrize(("size", "cases", "expected"), [(189, 192, 96), (200, 100, 100), (16, 160, 16), (16, 0, 16)])
def test_blocks_are_even(size: int, cases: int, expected: int) -> None:
    assert even(size, cases) == expected


@pytest.fixture
def calm() -> Sweep:
    sweep = troubled_sweep(seeds=4)
    return replace(sweep, runs={"calm": Run("calm")}, cluster=InProcess())


def test_plan_counts_what_is_left(calm: Sweep, tmp_path: Path) -> None:
    plan = write_plan(calm, tmp_path)
    part = plan.dynamics["calm"]
    assert (part.points, part.cases, part.done, part.todo) == (3, 12, 0, 12)
    assert part.bytes > 12 * 8 * 8
    assert 0 < plan.cpu_seconds < 60
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["dynamics"]["calm"]["todo"] == 12

    sizes = {name: layout.block_size for name, layout in part.layouts.items()}
    run_sweep(calm, tmp_path, progress=False)
    assert {name: layout.block_size for name, layout in RunStore(tmp_path, "calm").layouts.items()} == sizes
    grown = write_plan(replace(calm, seeds=tuple(range(6))), tmp_path).dynamics["calm"]
    assert (grown.cases, grown.done, grown.todo) == (18, 12, 6)
    assert write_plan(calm, tmp_path).dynamics["calm"].blocks == 0


def test_pilot_outlives_a_case_that_kills(tmp_path: Path) -> None:
    sweep = replace(troubled_sweep(gammas=(0.1, KILLS), seeds=4), cluster=InProcess())
    plan = write_plan(sweep, tmp_path)
    assert len(plan.dynamics["troubled"].layouts) == 2
    assert all(math.isfinite(layout.seconds) for layout in plan.dynamics["troubled"].layouts.values())


def test_a_calibration_may_end_without_anything_to_measure() -> None:
    with Calibration() as calibration:
        assert calibration.seconds([]) == {}
    assert calibration.process.returncode is not None
