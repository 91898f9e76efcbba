"""Sweeps of the troubled dynamics, their drivers as processes, and the files they leave."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.store.run_store import RunStore, segment_paths
from sweeplib.networks.simulation import Recording

PLUGIN = "tests.faults.troubled"
DYNAMICS = "troubled"
GAMMAS = (0.1, 0.2, 0.4)
SEEDS = 24


def troubled_sweep(
    *,
    workers: int = 1,
    block_size: int = 16,
    gammas: Sequence[float] = GAMMAS,
    seeds: int = SEEDS,
    timeout: float | None = None,
    memory_limit: str = "auto",
) -> Design:
    """Return a sweep over γ and seeds; workers and block size must not change a bit of its result."""
    load_plugins([PLUGIN])
    return Design(
        "troubled",
        Grid((Axis("gamma", tuple(gammas)),), {"p": 2, "k": 1, "d": 50, "Delta": 0.0, "activation": "square"}),
        tuple(range(seeds)),
        {DYNAMICS: Run(DYNAMICS)},
        Recording(times=(1.0, 2.0), thresholds=(0.1,), observables=("overlap_M",)),
        cluster=CLUSTERS["local"](
            workers=workers, block_size=block_size, dashboard_address=":0", memory_limit=memory_limit
        ),
        timeout=timeout,
        plugins=(PLUGIN,),
        source="name: troubled\n",
    )


def started_driver(directory: Path, **options: object) -> subprocess.Popen[bytes]:
    """Return a process that runs the sweep."""
    return subprocess.Popen([sys.executable, "-m", "tests.faults.sweeps", str(directory), json.dumps(options)])


def tasks(directory: Path, dynamics: str = DYNAMICS) -> list[dict[str, Any]]:
    """Return what the segments of a sweep say of their tasks, in the order in which they were written."""
    segments = RunStore(directory, dynamics).segments
    return [segment.header for segment in sorted(segments, key=lambda segment: segment.path.stat().st_mtime_ns)]


def computed(directory: Path) -> int:
    """Return the number of cases that the workers report as computed."""
    return sum(sum(task["computed"].values()) for task in tasks(directory))


def computed_twice(directory: Path, dynamics: str = DYNAMICS) -> int:
    """Return how many rows of a store are of cases that it has already."""
    store = RunStore(directory, dynamics)
    return sum(map(len, store.segments)) - len(store.ids)


def worker_of(task: dict[str, Any]) -> int:
    """Return the process that computed a task."""
    [worker] = task["workers"]
    return int(worker.rpartition(":")[2])


def is_alive(process: int) -> bool:
    """Return whether a process is alive and not a zombie."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until the condition holds; AssertionError if it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def files(directory: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a directory."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def segment_files(directory: Path) -> dict[Path, tuple[int, int]]:
    """Return the segments of a sweep, and when they were written."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in segment_paths(directory, DYNAMICS)}


if __name__ == "__main__":
    run_sweep(troubled_sweep(**json.loads(sys.argv[2])), Path(sys.argv[1]), progress=False)
