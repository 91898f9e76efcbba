"""A case that ends badly has its own status and a description that reproduces it; all other cases are computed."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

from sweeplib.commands.upkeep.reproduce import reproduces
from sweeplib.commands.upkeep.retry import retry
from sweeplib.engine.execution.run import DynamicsSummary, run_sweep
from sweeplib.engine.status import FAILURES, Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.store.inventory import counts_of_cases
from sweeplib.engine.storage.store.outcomes import reasons
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
    "block_size": 2,
    "gammas": (0.1, *TROUBLES),
    "seeds": SEEDS,
    "timeout": 0.3,
    "memory_limit": "1GB",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("troubles")


@pytest.fixture(scope="module")
def summary(directory: Path) -> DynamicsSummary:
    return run_sweep(troubled_sweep(**SWEEP), directory, progress=False)[DYNAMICS]


@pytest.fixture(scope="module")
def ended(directory: Path, summary: DynamicsSummary) -> pd.DataFrame:
    """Return the table of the cases that ended otherwise than ok, by γ."""
    found = pd.read_csv(directory / "outcomes" / f"{DYNAMICS}.csv").set_index("gamma", drop=False)
    assert set(found.index) == set(TROUBLES) and len(found) == len(TROUBLES)
    return found


def test_every_case_has_its_status(directory: Path, summary: DynamicsSummary) -> None:
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
def test_the_table_says_what_happened(directory: Path, ended: pd.DataFrame, gamma: float) -> None:
    line = ended.loc[gamma]
    assert line.status == TROUBLES[gamma].name
    assert line.seed == TROUBLED_SEED
    assert SAID.get(gamma, "") in ("" if pd.isna(line.exception) else line.exception)
    known = reasons(directory, DYNAMICS).get((bytes.fromhex(line.identity), TROUBLES[gamma]), {})
    assert bool(known) == (TROUBLES[gamma] in FAILURES)
    if gamma != HUNGERS:  # ended by whichever limit it meets first
        assert ("in advance" in known.get("traceback", "")) == (gamma in {RAISES, WEDGES, LEAVES, SHOUTS})
    assert len(json.dumps(known)) < 100_000


def test_a_case_is_reproduced_by_its_line(directory: Path, ended: pd.DataFrame) -> None:
    said: list[str] = []
    assert reproduces(troubled_sweep(**SWEEP), directory, ended.loc[RAISES].identity, say=said.append)
    assert said[-1] == "here: failed, ArithmeticError: a case that raises"


@pytest.mark.slow
def test_retried_cases_are_missing_again(directory: Path, summary: DynamicsSummary) -> None:
    sweep = troubled_sweep(**SWEEP)
    assert retry(sweep, directory, ["failed", "diverged"]) == {DYNAMICS: 5}
    counts = counts_of_cases(sweep, directory)[DYNAMICS]
    assert (counts["missing"], counts["failed"], counts["diverged"], counts["killed"]) == (5, 0, 0, 3)
    assert run_sweep(sweep, directory, progress=False)[DYNAMICS].computed == 5
    assert counts_of_cases(sweep, directory)[DYNAMICS] == summary.cases


@pytest.mark.long
def test_workers_that_die_as_they_start_end_the_run(tmp_path: Path) -> None:
    """The same through the command, with a plugin that was never tried in a worker."""
    (tmp_path / "deadly_import.py").write_text(
        "import multiprocessing, os\n"
        "if multiprocessing.current_process().name.startswith('Dask Worker'):\n"
        "    os._exit(9)\n"
    )
    (tmp_path / "dying.yaml").write_text(
        "problem: {p: 1, k: 1, d: 1000, Delta: 0, activation: square, gamma: 0.1}\n"
        "seeds: 2000\ndynamics: [sgd_chain]\ntimes: [0, 50]\nplugins: [deadly_import.py]\n"
        "cluster: {kind: local, workers: 2, wait_for_workers: 10, dashboard_address: ':0'}\n"
    )
    command = [Path(sys.executable).parent / "sweeplib", "run", "dying.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "die as" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
