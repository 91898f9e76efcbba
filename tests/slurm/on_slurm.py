"""A sweep by `make sweep` on a real SLURM: jobs come, end, are cancelled and replaced, and the dataset is the same.

`make test-slurm` starts a SLURM on this machine; it takes ten minutes, root, and Debian's slurm-wlm and munge.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from tests.faults.sweeps import computed_twice, files, tasks
from tests.in_process import InProcess

ROOT = Path(__file__).parents[2]
START = Path(__file__).with_name("one_machine.sh")
MOST_JOBS, CASES = 4, 40_000
SWEEP = f"""\
name: on_slurm
problem: {{p: 2, k: 1, d: 50, Delta: 0, activation: square}}
grid: {{gamma: [0.1, 0.2]}}
seeds: {CASES // 2}
dynamics: [troubled, sgd_chain]
times: [1, 2]
thresholds: [0.1]
plugins: [{ROOT / "tests/faults/troubled.py"}]
cluster:
  kind: slurm
  jobs: {{min: 0, max: {MOST_JOBS}}}
  memory: 1GB
  walltime: 00:01:00
  interface: lo
  dashboard_address: ":0"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if shutil.which("slurmctld") is None:
        pytest.fail("SLURM is not installed: apt-get install slurm-wlm munge")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm/slurm.conf"))
    subprocess.run([START, "start", tmp_path / "slurm"], check=True)
    yield
    subprocess.run(["scancel", "--user=root"], check=True)
    subprocess.run([START, "stop", tmp_path / "slurm"], check=True)


def running() -> list[str]:
    """Return the numbers of the jobs that run."""
    return subprocess.check_output(["squeue", "--noheader", "--states=R", "--format=%A"], text=True).split()


def test_a_sweep_whose_jobs_end_twice_and_one_of_which_is_cancelled(
    slurm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, results = tmp_path / "on_slurm.yaml", tmp_path / "results"
    config.write_text(SWEEP)
    make = ["make", "-C", str(ROOT), "sweep", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.run"]
    arguments = [f"CONFIG={config}", f"RESULTS={results}", "PROFILE=workflow/profiles/slurm"]
    sweep = subprocess.Popen([*make, *arguments])
    most, seen, cancelled = 0, set[str](), ""
    while sweep.poll() is None:
        now = running()
        most, seen = max(most, len(now)), seen | set(now)
        if not cancelled and len(now) == MOST_JOBS and len(tasks(results / "on_slurm")) > 5:
            cancelled = now[0]
            subprocess.run(["scancel", cancelled], check=True)
        time.sleep(1)
    assert sweep.returncode == 0
    assert cancelled and most == MOST_JOBS
    assert len(seen) >= 2 * MOST_JOBS + 1
    assert not computed_twice(results / "on_slurm")
    assert not running()

    monkeypatch.setenv("TROUBLED_SECONDS", "0")  # read as the plugin is loaded, here and in processes for cases
    plain = replace(load(config), cluster=InProcess())
    run_sweep(plain, tmp_path / "serial", progress=False)
    assert files(finalise(plain, tmp_path / "serial")) == files(results / "on_slurm/dataset.zarr")
