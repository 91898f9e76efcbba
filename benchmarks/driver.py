"""The cost of a sweep in addition to its simulations: processor time per case of plan, run, status and finalise.

Simulations are replaced: the results of workers are written between the timed stages.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.timing import Benchmark, Work
from sweeplib.engine.cases import Cases
from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution import blocks, run, work
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.queue import Queue
from sweeplib.engine.language import Expression
from sweeplib.engine.records import Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.store.inventory import counts_of_cases, inventory
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import empty_values
from sweeplib.networks.simulation import Recording

CASES = 20_000
DYNAMICS = "sgd_chain"

_uncounted = 0.0


class Nowhere(ClusterSettings):
    """A cluster without workers."""

    def expected_workers(self, workers: int | None = None) -> int:
        """Return 0."""
        return 0

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator[Any]:
        """Return a context without a client."""
        yield SimpleNamespace(dashboard_link="")


def nothing(block: Block, cases: Cases, *_others: Any, **_named: Any) -> Records:
    """Return records in which every case is done and all numbers are missing."""
    variables = cases[0].simulator.variables(cases[0])
    data = {name: empty_values(variable, len(cases)) for name, variable in variables.items()}
    return Records(data, np.full(len(cases), Status.ok, np.uint8))


def written(_: Any, queue: Queue, *_others: Any, **_named: Any) -> Iterator[tuple[Block, BlockReport]]:
    """Store the blocks as a worker does, without computing."""
    global _uncounted  # noqa: PLW0603 - the one number that the timing of a stage is lessened by
    while queue:
        block = queue.block(1)
        began = time.process_time()
        report = blocks.run_block(block)
        _uncounted += time.process_time() - began
        queue.learn(block, report)
        yield block, report


def grid_of(points: int) -> Grid:
    """Return a grid of `points` points, whose learning rate is derived from two axes."""
    side = int(points**0.5)
    axes = {"ratio": np.linspace(0.3, 1.7, side), "Delta": np.linspace(0.0, 1.0, points // side)}
    return Grid(
        tuple(Axis(name, tuple(values.tolist())) for name, values in axes.items()),
        {"p": 1, "k": 1, "d": 1000, "activation": "square", "spherical": True},
        {"gamma": Expression("ratio / (12 + Delta)")},
    )


def sweep_of(points: int, seeds: int, times: int) -> Design:
    """Return a sweep over `points` points and over seeds."""
    grid = grid_of(points)
    recording = Recording(tuple(np.linspace(0.0, 1.0, times).tolist()), (0.01,), ("risk",), "exit")
    runs, cluster = {DYNAMICS: Run(DYNAMICS)}, Nowhere(block_size=2000)
    return Design("many", grid, tuple(range(seeds)), runs, recording, cluster=cluster, source="name: many\n")


def planned(sweep: Design, directory: Path) -> None:
    """Do the part of the plan that comes before the measurements."""
    inventory(sweep, DYNAMICS, RunStore(directory, DYNAMICS))


def ran(sweep: Design, directory: Path) -> None:
    """Do the work of the run's driver."""
    with patch.object(work, "dispatched", written), patch.object(blocks, "_computed", nothing):
        run.run_sweep(sweep, directory, progress=False)


STAGES: dict[str, Callable[[Design, Path], Any]] = {
    "plan": planned,
    "run": ran,
    "status": counts_of_cases,
    "finalise": finalise,
}
AFTER_A_RUN = ("status", "finalise")


def stages(points: int, seeds: int, times: int, *counted: str) -> Work:
    """Return work that goes through all stages, in units of cases; only some of the stages are timed."""

    def work() -> float:
        began = time.perf_counter()
        sweep, seconds = sweep_of(points, seeds, times), 0.0
        with tempfile.TemporaryDirectory() as folder:
            for name, stage in STAGES.items():
                if name in counted or (name == "run" and counted[0] in AFTER_A_RUN):
                    before = time.process_time() - _uncounted
                    stage(sweep, Path(folder))
                    seconds += (time.process_time() - _uncounted - before) * (name in counted)
        return sweep.size * (time.perf_counter() - began) / seconds

    return work


BENCHMARKS = [
    Benchmark(
        "driver: plan, run, status, finalise, a point a case",
        "a case",
        stages(CASES, 1, 10, *STAGES),
        reach=100e-6,
    ),
    *(Benchmark(f"driver: {name}, a point a case", "a case", stages(CASES, 1, 10, name)) for name in STAGES),
    Benchmark(
        "driver: plan, a point a case, 1000 recording times",
        "a case",
        stages(CASES, 1, 1000, "plan"),
        stages(CASES, 1, 10, "plan"),
        "10 recording times",
        reach=15e-6,
    ),
    Benchmark(
        "driver: plan, run, status, finalise, 20,000 seeds",
        "a case",
        stages(1, CASES, 10, *STAGES),
        reach=17e-6,
    ),
]
