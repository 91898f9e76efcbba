"""A run killed at any point is finished by the same call: nothing twice, nothing lost, the same bytes."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.store.inventory import counts_of_cases
from sweeplib.errors import BusyError
from tests.faults.sweeps import (
    DYNAMICS,
    GAMMAS,
    SEEDS,
    computed,
    computed_twice,
    files,
    is_alive,
    segment_files,
    started_driver,
    tasks,
    troubled_sweep,
    wait_until,
    worker_of,
)
from tests.in_process import InProcess

CASES = len(GAMMAS) * SEEDS
SMALL = {"workers": 1, "block_size": 3}


@pytest.mark.slow
def test_driver_then_worker_killed(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    sweep = troubled_sweep(**SMALL)
    driver = started_driver(tmp_path, **SMALL)
    wait_until(lambda: len(tasks(tmp_path)) >= 3)
    with pytest.raises(BusyError, match=rf"process {driver.pid} of \w+ on"):
        run_sweep(sweep, tmp_path, progress=False)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_until(lambda: not any(is_alive(worker_of(task)) for task in tasks(tmp_path)), 15)
    written = segment_files(tmp_path)
    done = counts_of_cases(sweep, tmp_path)[DYNAMICS]["ok"]
    assert 0 < done == SMALL["block_size"] * len(written) < CASES

    driver = started_driver(tmp_path, **SMALL)
    wait_until(lambda: len(tasks(tmp_path)) >= len(written) + 2)
    os.kill(worker_of(tasks(tmp_path)[-1]), signal.SIGKILL)
    assert driver.wait(60) == 0

    assert segment_files(tmp_path).items() >= written.items()
    assert len(tasks(tmp_path)) == CASES / SMALL["block_size"]
    assert computed(tmp_path) == CASES and not computed_twice(tmp_path)
    assert counts_of_cases(sweep, tmp_path)[DYNAMICS]["ok"] == CASES
    assert files(finalise(sweep, tmp_path)) == undisturbed


@pytest.mark.slow
def test_grown_in_seeds_and_between_values(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """With 16 more seeds and a γ between two, exactly the new cases run, and the dataset is that of one run of all."""
    small = troubled_sweep(gammas=(GAMMAS[0], GAMMAS[2]), seeds=SEEDS - 16)
    small = replace(small, cluster=InProcess(block_size=64))
    assert run_sweep(small, tmp_path, progress=False)[DYNAMICS].computed == 2 * (SEEDS - 16)
    whole = troubled_sweep(block_size=64, workers=2)
    summary = run_sweep(whole, tmp_path, progress=False)[DYNAMICS]
    assert summary.computed == CASES - 2 * (SEEDS - 16)
    assert computed(tmp_path) == CASES
    assert files(finalise(whole, tmp_path)) == undisturbed
    assert run_sweep(whole, tmp_path, progress=False)[DYNAMICS].computed == 0
    assert computed(tmp_path) == CASES
