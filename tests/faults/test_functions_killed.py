"""A sweep of a function that is killed goes on to the same bits; calls that end their process harm no other."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.outcomes import first_outcomes
from tests.faults.killed_functions import Process, run_with_kills, sleep_until
from tests.tiers import slow_but

FUNCTION = """
import os
import time
from sweeplib import Result, simulator

@simulator(y="1", course=Result("1", dims={"step": "n"}))
def slow(rng, x: float = 0.0, n: int = 2):
    time.sleep(0.005)
    with open(os.environ["CALLS"], "a") as calls:
        calls.write("x")
    course = rng.standard_normal(n) + x
    return {"y": course.sum(), "course": course}
"""
CONFIG = """
simulator: slow.py
grid: {x: [0, 1, 2], n: [2, 5]}
seeds: 50
figures: []
cluster: {workers: 2, block_size: 16}
"""
CASES = 300


@pytest.mark.parametrize(("root_seed", "most"), slow_but([(0, 2), (1, 3)], (0, 2)))
def test_the_bits_of_a_killed_sweep_of_a_function_are_those_of_one_that_ran_through(
    root_seed: int, most: int, tmp_path: Path
) -> None:
    """No more than a block of each worker is computed again after each kill."""
    (tmp_path / "slow.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "slow.yaml").write_text(f"{CONFIG}root_seed: {root_seed}\n", encoding="utf-8")
    rng, calls, calls_of_whole = np.random.default_rng(root_seed), tmp_path / "calls_killed", tmp_path / "calls_whole"

    def wait(process: Process) -> None:
        until = (calls.stat().st_size if calls.exists() else 0) + int(rng.integers(20, 80))
        sleep_until(lambda: calls.exists() and calls.stat().st_size >= until, process)

    kills = run_with_kills("slow.yaml", "killed", tmp_path, most, wait, CALLS=str(calls))
    # by the command too, which measures pilots
    run_with_kills("slow.yaml", "whole", tmp_path, 0, wait, CALLS=str(calls_of_whole))
    whole, again = (sweeplib.open(tmp_path / folder / "slow").load() for folder in ("whole", "killed"))
    xr.testing.assert_identical(whole.drop_attrs(), again.drop_attrs())
    assert whole.attrs["digest"] == again.attrs["digest"]
    assert kills == most
    pilots = calls_of_whole.stat().st_size - CASES
    assert calls.stat().st_size <= CASES + (kills + 1) * pilots + kills * 2 * 16


DEADLY = """
import os
import time
from sweeplib import simulator

@simulator(y="1")
def deadly(rng, what: str = "fine"):
    match what:
        case "aborts":
            os.abort()
        case "hangs":
            time.sleep(1000)
        case "takes all memory":
            taken = bytearray(2**36)
            taken[::4096] = b"1" * len(taken[::4096])
    return 1.0
"""


def test_a_call_that_aborts_hangs_or_takes_all_memory_harms_no_other(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY, encoding="utf-8")
    config = tmp_path / "own.yaml"
    config.write_text(
        "simulator: deadly.py\ngrid: {what: [fine, aborts, hangs, takes all memory]}\nseeds: 2\nfigures: []\n"
        "timeout: 1\ncluster: {memory_limit: 1GB, workers: 1}\n"
    )
    ds = sweeplib.Sweep.from_yaml(config, results=tmp_path / "results").run(progress=False)
    ended = {
        what: {Status(int(code)).name for code in ds.status.sel(what=what).values.ravel()} for what in ds.what.values
    }
    assert ended["fine"] == {"ok"} and (ds.y.sel(what="fine") == 1.0).all()
    assert ended["aborts"] == ended["hangs"] == {"killed"}
    assert ended["takes all memory"] <= {"failed", "killed"}
    reasons = {line["what"]: line["exception"] for line in first_outcomes(tmp_path / "results" / "own", "deadly", 9)}
    assert "SIGABRT" in reasons["aborts"] and "not finished" in reasons["hangs"]
