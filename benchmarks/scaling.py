"""Two minutes of the quick start's cases on one worker and on two, compared to two processes that share nothing.

The processes compute the cases of the same blocks, which they read from a finished store: without a scheduler, without
a driver, and without writing. Each turn starts its own processes, as each sweep starts its workers.
"""

import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

import sweeplib.config
from benchmarks.timing import Benchmark, Work
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.estimates import Plan
from sweeplib.engine.execution.plan import write_plan
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.networks.simulation.driver import run_cases

SEEDS = 896
"""About two minutes of kernels on a core, with exits at 1 %."""


@cache
def _sweep() -> Design:
    return sweeplib.config.load("config/quickstart.yaml", [f"seeds={SEEDS}", "thresholds=[0.01]"])


@cache
def _plan() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_plan(_sweep(), Path(folder))
        return Path(folder, "plan.json").read_bytes()


def _run(folder: str, workers: int) -> Path:
    """Run the sweep in a folder of results of its own, so that it takes no case of another run; return its folder."""
    directory = Path(folder) / "results" / _sweep().name
    directory.mkdir(parents=True)
    (directory / "plan.json").write_bytes(_plan())
    run_sweep(_sweep(), directory, workers=workers, progress=False)
    return directory


def swept_by(workers: int) -> Work:
    """Return work that runs all cases of the sweep, for which only the plan exists."""

    def work() -> float:
        with tempfile.TemporaryDirectory() as folder:
            _run(folder, workers)
        return 1.0

    return work


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""The folder of the finished sweep, deleted when the process ends."""


@cache
def _finished() -> str:
    _kept.append(tempfile.TemporaryDirectory())
    return str(_run(_kept[0].name, 2))


def _blocks(directory: Path) -> Iterator[tuple[Segment, slice]]:
    """Yield rows of the segments, as many as were planned for a block; small segments may have been merged."""
    written = Plan.read(directory)
    assert written is not None
    for name in _sweep().runs:
        plans = written.dynamics[name].layouts
        for segment in RunStore(directory, name).segments:
            size = plans[segment.layout].block_size
            yield from ((segment, slice(first, first + size)) for first in range(0, len(segment), size))


def computed(folder: str, share: int, of: int) -> None:
    """Compute the cases of each block, or of every `of`-th one from number `share`."""
    for segment, rows in [*_blocks(Path(folder))][share::of]:
        cases = segment.cases(rows)
        shapes, places = cases.shapes()
        for shape in range(len(shapes)):
            run_cases(cases.at(np.flatnonzero(places == shape)))


def apart(processes: int) -> Work:
    """Return work that computes all blocks in processes that share nothing."""

    def work() -> float:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            done = [pool.submit(computed, _finished(), share, processes) for share in range(processes)]
        for one in done:
            one.result()
        return 1.0

    return work


BENCHMARKS = [
    Benchmark("the quick start with 896 seeds, two workers", "a run", swept_by(2), swept_by(1), "one worker"),
    Benchmark("its blocks, two processes apart", "a run", apart(2), apart(1), "one process"),
]
