"""Long cases of a function that are killed at random times go on from their last states, to the same bits."""

import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from tests.faults.killed_functions import Process, run_with_kills, sleep_until

FUNCTION = """
import os
import time
import numpy as np
from sweeplib import Result, simulator

@simulator(m=Result("1", dims={"time": "times"}), last="1")
def spins(rng, times, T: float = 2.0, state=None):
    spins, done = (rng.choice(np.array([-1, 1], np.int8), 20), 0) if state is None else state
    for now in times:
        while done < now:
            at = rng.integers(20)
            cost = 2.0 * spins[at] * (int(spins[at - 1]) + int(spins[(at + 1) % 20]))
            if rng.random() < np.exp(-cost / T):
                spins[at] = -spins[at]
            done += 1
            time.sleep(0.004)
            with open(os.environ["STEPS"], "a") as steps:
                steps.write(".")
        yield {"m": spins.mean(), "last": done}, (spins, done)
"""
CONFIG = """
simulator: spins.py
grid: {T: [1.0, 2.0, 3.0]}
seeds: 2
times: {linspace: [0, 500, 51]}
checkpoint: 0.2 s
figures: []
"""
STEPS = 3 * 2 * 500


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_bits_of_a_killed_sweep_of_long_cases_are_those_of_one_that_ran_through(
    workers: int, tmp_path: Path
) -> None:
    """After each kill a case goes on from its last state: each loses at most what it did since then."""
    (tmp_path / "spins.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "spins.yaml").write_text(f"{CONFIG}cluster: {{workers: {workers}}}\n", encoding="utf-8")
    rng, kept = np.random.default_rng(workers), tmp_path / "killed" / "spins" / "checkpoints"

    def wait(process: Process) -> None:
        sleep_until(lambda: kept.exists() and any(kept.iterdir()), process)
        until = time.monotonic() + rng.uniform(0.0, 2.0)
        sleep_until(lambda: time.monotonic() >= until, process)

    run_with_kills("spins.yaml", "whole", tmp_path, 0, wait, STEPS=str(tmp_path / "steps_whole"))
    kills = run_with_kills("spins.yaml", "killed", tmp_path, 4, wait, STEPS=str(tmp_path / "steps_killed"))
    whole, again = (sweeplib.open(tmp_path / folder / "spins").load() for folder in ("whole", "killed"))
    xr.testing.assert_identical(whole.drop_attrs(), again.drop_attrs())
    assert whole.m.values.tobytes() == again.m.values.tobytes()
    assert kills == 4
    assert not (tmp_path / "killed" / "spins" / "checkpoints").exists(), "removed when a case is stored"
    pilots = (tmp_path / "steps_whole").stat().st_size - STEPS
    lost = (tmp_path / "steps_killed").stat().st_size - STEPS
    assert lost <= 5 * pilots + kills * workers * 200, "the steps of less than a second after each kill"
