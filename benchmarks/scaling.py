"""The quick start on one worker and on two, compared to two independent processes."""

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import sweeplib.config
from benchmarks.chain import retrieval, steps_of
from benchmarks.timing import Benchmark, Work
from sweeplib.execution.plan import write_plan
from sweeplib.execution.run import run_sweep

STEPS = 20_000


@cache
def _plan() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_plan(sweeplib.config.load("config/quickstart.yaml"), Path(folder))
        return Path(folder, "plan.json").read_bytes()


def quick_start_on(workers: int) -> Work:
    """Return work that runs all cases of the quick start, for which only the plan exists."""

    def work() -> float:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "plan.json").write_bytes(_plan())
            run_sweep(sweeplib.config.load("config/quickstart.yaml"), Path(folder), workers=workers, progress=False)
        return 1.0

    return work


@cache
def _kernel() -> Work:
    return steps_of(retrieval(1000), "sgd_chain", 256, STEPS)


def _half(_: int) -> float:
    return _kernel()() / 2


@cache
def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))


def apart(processes: int) -> Work:
    """Return the chain's work in one process or split between two, which are started before the first turn."""

    def work() -> float:
        list(_pool(processes).map(_half, range(2)))
        return 1.0

    return work


BENCHMARKS = [
    Benchmark("the quick start, two workers", "a run", quick_start_on(2), quick_start_on(1), "one worker"),
    Benchmark("its chain's kernel, two processes apart", "a run", apart(2), apart(1), "one process"),
]
