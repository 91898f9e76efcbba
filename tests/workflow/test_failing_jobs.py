"""Results that cannot be written are reported in one line, and afterwards the same command continues."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import xarray as xr

from tests.faults.sweeps import files
from tests.workflow.project import Project

BIN = Path(sys.executable).parent
SWEEP = f"""\
name: full
problem: {{p: 2, k: 1, d: 50, Delta: 0, activation: square}}
grid: {{gamma: [0.1, 0.2, 0.4]}}
seeds: 24
dynamics: [calm]
times: {{linspace: [1, 2, 21]}}
thresholds: [0.1]
observables: [overlap_M]
plugins: [{Path(__file__).parents[1] / "faults" / "troubled.py"}]
cluster: {{kind: local, workers: 1, block_size: 16, dashboard_address: ":0"}}
"""
SIZES = (4, 60, 200, 300)
"""Kilobytes: too little for the config, for the run store, for the results, for the dataset."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with very little space."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("needs a file system of its own, which only root can mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def sweeplib(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / "sweeplib", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    return done.stderr.splitlines()[-1]


def datasets(folder: Path, results: Path) -> dict[str, bytes]:
    assert sweeplib(folder, "finalise", "full.yaml", "--results", str(results)).returncode == 0
    return files(results / "full" / "dataset.zarr")


@pytest.mark.long
def test_a_full_disk_and_more_room(tmp_path: Path, small: Path) -> None:
    """At four sizes the command reports it in one line; with space it continues, to the same bytes."""
    (tmp_path / "full.yaml").write_text(SWEEP)
    for kilobytes in SIZES:
        remount(small, f"size={kilobytes}k")
        done = sweeplib(tmp_path, "run", "full.yaml", "--results", str(small))
        if done.returncode == 0:
            done = sweeplib(tmp_path, "finalise", "full.yaml", "--results", str(small))
        assert os.strerror(errno.ENOSPC) in last_line(done)
        assert str(small) in last_line(done) and "free some space" in last_line(done)
        assert not list(small.rglob(".*.json.*")) and not list(small.rglob(".config*"))
    remount(small, "size=20m")
    assert sweeplib(tmp_path, "run", "full.yaml", "--results", str(small)).returncode == 0
    assert sweeplib(tmp_path, "run", "full.yaml").returncode == 0
    assert datasets(tmp_path, small) == datasets(tmp_path, tmp_path / "results")


@pytest.mark.long
def test_results_that_cannot_be_written(tmp_path: Path, small: Path) -> None:
    (tmp_path / "full.yaml").write_text(SWEEP)
    remount(small, "size=20m,ro")
    for command in ("plan", "run"):
        said = last_line(sweeplib(tmp_path, command, "full.yaml", "--results", str(small)))
        assert str(small) in said and os.strerror(errno.EROFS) in said and "--results" in said
    remount(small, "size=20m,rw")
    assert sweeplib(tmp_path, "run", "full.yaml", "--results", str(small)).returncode == 0
    remount(small, "size=20m,ro")
    assert os.strerror(errno.EROFS) in last_line(sweeplib(tmp_path, "finalise", "full.yaml", "--results", str(small)))


@pytest.mark.rest
def test_a_file_where_the_results_should_be(tmp_path: Path) -> None:
    (tmp_path / "full.yaml").write_text(SWEEP)
    (tmp_path / "results").write_text("")
    done = sweeplib(tmp_path, "run", "full.yaml")
    assert done.returncode == 2
    assert done.stderr == "results: a file; expected a folder of results, or a name that is free for one\n"


@pytest.mark.long
def test_a_full_disk_under_snakemake(project: Project, small: Path) -> None:
    """Two lines after the title of the job: the problem, and the path of Snakemake's log."""
    for kilobytes in (4, 60):
        remount(small, f"size={kilobytes}k")
        done = project.snakemake("--config", "sweep=tiny.yaml", f"results={small}")
        assert done.returncode == 1
        said = [line for line in done.stderr.splitlines() if line]
        assert "free some space" in said[-2] and said[-1].startswith("Complete log(s): ")
        assert not [line for line in said if "Traceback" in line or "Exception" in line or "Error" in line]
    remount(small, "size=20m")
    assert project.snakemake("--config", "sweep=tiny.yaml", f"results={small}").returncode == 0
    assert xr.open_zarr(small / "tiny" / "dataset.zarr").sizes["seed"] == 2
