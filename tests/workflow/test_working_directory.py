"""Modules in the working directory are never imported, whatever their name."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SWEEP = """\
name: tiny
problem: {p: 1, k: 1, d: 50, Delta: 0, spherical: true, activation: square}
grid: {gamma: [0.05, 0.08]}
seeds: 2
dynamics: [sgd_chain]
times: [0, 2]
thresholds: [0.01]
analyses: [exit_times]
figures: [exited_fraction]
plugins: [plugins/mine.py, by_name]
cluster: {kind: local, workers: 1, dashboard_address: ":0"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder: `here` has a sweep, and for every library a file that leaves a mark in `marks` when imported."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "marks").mkdir()
    libraries = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
    for name in libraries.union(sys.stdlib_module_names):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'marks' / name)!r}, 'w').close()\n")
    (here / "tiny.yaml").write_text(SWEEP)
    (here / "plugins").mkdir()
    (here / "plugins" / "mine.py").write_text("import beside\n")
    (here / "plugins" / "beside.py").write_text("")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "by_name.py").write_text("")
    return tmp_path


def run(folder: Path, *command: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(folder / "path")}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(command, cwd=folder / "here", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "extrapolated" not in done.stderr
    assert not list((folder / "marks").iterdir())


@pytest.mark.slow
def test_plan_and_run(folder: Path) -> None:
    """The commands start processes: the one that measures, and Dask's."""
    run(folder, str(BIN / "sweeplib"), "run", "tiny.yaml")


@pytest.mark.long
def test_all_commands(folder: Path) -> None:
    for command in ("plan", "run", "status", "finalise", "analyse", "figures", "report", "summary"):
        run(folder, str(BIN / "sweeplib"), command, "tiny.yaml")


@pytest.mark.long
def test_snakemake_and_make(folder: Path) -> None:
    workflow = ("--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "workflow/profiles/local"))
    run(folder, str(BIN / "snakemake"), *workflow, "--config", "sweep=tiny.yaml")
    there = (f"CONFIG={folder}/here/tiny.yaml", f"RESULTS={folder}/here/results")
    run(folder, "make", "-C", str(ROOT), "sweep", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.run", *there)
