"""What workers are granted: by the machine, its control groups, and limits of a process."""

import errno
import multiprocessing
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import psutil
import pytest

from sweeplib import InputError
from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.process import granted
from sweeplib.engine.process.granted import granted_memory, granted_processors
from sweeplib.engine.process.troubles import in_one_line

LOCAL = CLUSTERS["local"]
GB = 10**9
SWEEP = """\
problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, gamma: 0.1}
seeds: 2
dynamics: [sgd_chain]
times: [0, 1]
"""


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the control groups, in which this process is in `job/step` of both versions."""
    (tmp_path / "own").write_text("5:cpu,memory:/job/step\n1:name=systemd:/\n0::/job/step\n")
    monkeypatch.setattr(granted, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(granted, "GROUPS", tmp_path)
    (tmp_path / "memory" / "job" / "step").mkdir(parents=True)
    (tmp_path / "job" / "step").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    "limit",
    [
        "memory/job/step/memory.limit_in_bytes",
        "memory/job/memory.limit_in_bytes",
        "memory/memory.limit_in_bytes",
        "job/step/memory.max",
        "job/memory.high",
        "memory.max",
    ],
)
def test_the_smallest_limit_above_a_process_counts(limit: str, groups: Path) -> None:
    (groups / "memory" / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    (groups / "job" / "memory.max").write_text("max\n")
    assert granted_memory() == psutil.virtual_memory().total
    (groups / limit).write_text(f"{GB}\n")
    assert granted_memory() == GB


@pytest.mark.parametrize(
    ("group", "files", "processors"),
    [
        ("job/step", {"cpu.max": "200000 100000"}, 2),
        ("job", {"cpu.max": "150000 100000"}, 2),
        ("job", {"cpu.max": "max 100000"}, 64),
        ("cpu/job", {"cpu.cfs_quota_us": "300000", "cpu.cfs_period_us": "100000"}, 3),
        ("cpu/job/step", {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, 64),
        ("cpu/job/step", {"cpu.cfs_quota_us": "300000"}, 64),
    ],
)
def test_the_smallest_quota_above_a_process_counts(
    group: str, files: dict[str, str], processors: int, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    (groups / "cpu" / "job" / "step").mkdir(parents=True)
    (groups / "job" / "cpu.max").write_text("6400000 100000\n")
    for name, text in files.items():
        (groups / group / name).write_text(f"{text}\n")
    assert granted_processors() == processors


def test_workers_share_what_is_granted(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeplib.engine.execution.clusters.local.granted_processors", lambda: 64)
    (groups / "memory.max").write_text(f"{2 * GB}\n")
    assert (LOCAL().expected_workers(), LOCAL().memory_here()) == (5, 2 * GB // 5)
    assert LOCAL(workers=2).memory_here() == 2 * GB // 5
    assert LOCAL(workers=8).memory_here() == 2 * GB // 8
    assert LOCAL(memory_limit="0.5").memory_here() == GB
    assert LOCAL(memory_limit="8GB").memory_here() == 2 * GB
    monkeypatch.setattr(granted, "memory_of_a_process", lambda: GB)
    monkeypatch.setattr("sweeplib.engine.execution.clusters.local.memory_of_a_process", lambda: GB)
    assert LOCAL(memory_limit="8GB").memory_here() == GB


class _Plugin(ClusterSettings):
    """A kind of cluster as a plugin may have it, which says only how many workers it has."""

    kind: Literal["plugin"] = "plugin"

    def expected_workers(self, workers: int | None = None) -> int | None:
        """Return the number of workers, by default unknown."""
        return workers

    def client(self, workers: int | None = None) -> AbstractContextManager[Any]:
        """Return nothing of use."""
        return nullcontext()


def test_processes_of_this_machine_share_its_memory(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a plugin's cluster with many workers here, and as `ulimit` allows."""
    (groups / "memory.max").write_text(f"{2 * GB}\n")

    class Here(_Plugin):
        def workers_here(self) -> int | None:
            return 4

    assert [Here().memory_here(workers) for workers in (None, 1, 8)] == [GB, GB, 2 * GB // 8]
    monkeypatch.setattr("sweeplib.engine.design.cluster.memory_of_a_process", lambda: GB // 3)
    assert _Plugin().memory_here() == GB // 3


@pytest.mark.rest
def test_workers_without_the_memory_for_any_case_are_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SWEEP)
    program = Path(sys.executable).with_name("sweeplib")
    command = ["sh", "-c", f"ulimit -d 300000; exec {program} plan small.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "cluster: each worker would have 307 MB of memory; expected at least 400 MB" in done.stderr.splitlines()[-1]


def test_no_semaphores_are_refused_before_the_workers_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    LOCAL().check()
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: SimpleNamespace(Lock=refused))
    with pytest.raises(InputError, match=r"/dev/shm: .*semaphores.*Read-only"):
        LOCAL().check()


def test_an_error_of_dask_says_its_cause() -> None:
    """Dask fails again in cleaning up, and gives that as the cause."""
    cause, error = AssertionError("Status.init"), RuntimeError("Nanny failed to start.")
    cause.__context__, error.__cause__ = RuntimeError("can't start new thread"), cause
    assert "RuntimeError: Nanny failed to start, because of RuntimeError: can't start new thread;" in in_one_line(error)
