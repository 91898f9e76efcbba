"""A case that ends badly has its own status and a description that reproduces it; all other cases are computed."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from sweeplib.execution.run import Summary, run_sweep
from sweeplib.execution.status import retry, sweep_status
from sweeplib.simulation import Status
from sweeplib.storage.finalise import finalise
from tests.faults.sweeps import DYNAMICS, troubled_sweep
from tests.faults.troubled import (
    DIVERGES,
    HANGS,
    HUNGERS,
    KILLS,
    LEAVES,
    MISSHAPES,
    RAISES,
    SHOUTS,
    TROUBLED_SEED,
    WEDGES,
)

SEEDS = 4
TROUBLES = {
    RAISES: Status.failed,
    KILLS: Status.killed,
    HANGS: Status.timeout,
    DIVERGES: Status.diverged,
    WEDGES: Status.killed,
    HUNGERS: Status.killed,
    LEAVES: Status.failed,
    SHOUTS: Status.failed,
    MISSHAPES: Status.failed,
}
SAID = {
    RAISES: "ArithmeticError: a case that raises",
    KILLS: "its process died (SIGKILL)",
    WEDGES: "not finished after",
    LEAVES: "SystemExit: a case that leaves",
    SHOUTS: "characters left out",
    MISSHAPES: "expected real numbers of shape (1, 1)",
}
SWEEP = {
    "workers": 2,
    "block_size": 4,
    "gammas": (0.1, *TROUBLES),
    "seeds": SEEDS,
    "timeout": 0.3,
    "memory_limit": "1GB",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("troubles")


@pytest.fixture(scope="module")
def summary(directory: Path) -> Summary:
    return run_sweep(troubled_sweep(**SWEEP), directory, progress=False)[DYNAMICS]


@pytest.fixture(scope="module")
def failures(directory: Path, summary: Summary) -> dict[float, dict]:
    records = [json.loads(path.read_text()) for path in (directory / "failures").iterdir()]
    assert len(records) == len(TROUBLES)
    return {record["problem"]["gamma"]: record for record in records}


def test_every_case_has_its_status(directory: Path, summary: Summary) -> None:
    others = SEEDS * (1 + len(TROUBLES)) - len(TROUBLES)
    assert summary.cases == {
        "missing": 0,
        "ok": others,
        "diverged": 1,
        "failed": 4,
        "killed": 3,
        "timeout": 1,
        "inaccurate": 0,
    }
    dataset = xr.open_zarr(finalise(troubled_sweep(**SWEEP), directory), chunks=None)
    for gamma in dataset.gamma.values:
        bad = TROUBLES.get(gamma, Status.ok)
        for seed in dataset.seed.values:
            expected_status = bad if seed == TROUBLED_SEED else Status.ok
            case = dataset.sel(gamma=gamma, seed=seed, dynamics=DYNAMICS)
            assert case.status == expected_status
            assert bool(case.exit_steps.notnull().all()) == (expected_status == Status.ok)


@pytest.mark.parametrize("gamma", TROUBLES)
def test_failure_says_what_reproduces_it(failures: dict[float, dict], gamma: float) -> None:
    record = failures[gamma]
    assert record["status"] == TROUBLES[gamma].name
    assert record["seed"] == TROUBLED_SEED
    assert SAID.get(gamma, "") in record.get("exception", "")
    if gamma != HUNGERS:  # ended by whichever limit it meets first
        assert ("in advance" in record.get("traceback", "")) == (gamma in {RAISES, WEDGES, LEAVES, SHOUTS})
    assert len(json.dumps(record)) < 100_000


@pytest.mark.parametrize("gamma", [RAISES, KILLS])
def test_snippet_reproduces_the_failure(failures: dict[float, dict], gamma: float) -> None:
    done = subprocess.run([sys.executable, "-c", failures[gamma]["reproduce"]], check=False, capture_output=True)
    if gamma == KILLS:
        assert done.returncode == -signal.SIGKILL
    else:
        assert b"ArithmeticError: a case that raises" in done.stderr


@pytest.mark.slow
def test_retried_cases_are_missing_again(directory: Path, summary: Summary) -> None:
    sweep = troubled_sweep(**SWEEP)
    assert retry(sweep, directory, ["failed", "diverged"]) == {DYNAMICS: 5}
    counts = sweep_status(sweep, directory)[DYNAMICS]
    assert (counts["missing"], counts["failed"], counts["diverged"], counts["killed"]) == (5, 0, 0, 3)
    assert run_sweep(sweep, directory, progress=False)[DYNAMICS].computed == 5
    assert sweep_status(sweep, directory)[DYNAMICS] == summary.cases


@pytest.mark.long
def test_workers_that_die_as_they_start_end_the_run(tmp_path: Path) -> None:
    """The same through the command, with a plugin that was never tried in a worker."""
    (tmp_path / "deadly_import.py").write_text(
        "import multiprocessing, os\n"
        "if multiprocessing.current_process().name.startswith('Dask Worker'):\n"
        "    os._exit(9)\n"
    )
    (tmp_path / "dying.yaml").write_text(
        "problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, gamma: 0.1}\n"
        "seeds: 2\ndynamics: [sgd_chain]\ntimes: [0, 1]\nplugins: [deadly_import.py]\n"
        "cluster: {kind: local, workers: 2, wait_for_workers: 10, dashboard_address: ':0'}\n"
    )
    command = [Path(sys.executable).parent / "sweeplib", "run", "dying.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "die as" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
