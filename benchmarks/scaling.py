"""The quick start's chain on one worker and on two, beside two processes that share nothing but the machine."""

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import sweeplib.config
from benchmarks.chain import retrieval, steps_of
from benchmarks.timing import Benchmark, Work
from sweeplib.sweep.run import run_sweep

STEPS = 20_000


def chain_on(workers: int) -> Work:
    """Work that runs the quick start's overlap chain from nothing."""

    def work() -> float:
        sweep = sweeplib.config.load("config/quickstart.yaml")
        with tempfile.TemporaryDirectory() as folder:
            run_sweep(sweep, "sgd_chain", Path(folder), workers=workers, progress=False)
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
    """Two halves of the chain's work in one process or in two, which are there from the first turn on."""

    def work() -> float:
        list(_pool(processes).map(_half, range(2)))
        return 1.0

    return work


BENCHMARKS = [
    Benchmark("quick start's chain, two workers", "a run", chain_on(2), chain_on(1), "one worker"),
    Benchmark("the same kernel, two processes apart", "a run", apart(2), apart(1), "one process"),
]
