"""The quick start's simulations on one worker and on two."""

import tempfile
from pathlib import Path

import sweeplib.config
from benchmarks.timing import Benchmark, Work
from sweeplib.sweep.run import run_sweep


def chain_on(workers: int) -> Work:
    """Work that runs the quick start's overlap chain from nothing."""

    def work() -> float:
        sweep = sweeplib.config.load("config/quickstart.yaml")
        with tempfile.TemporaryDirectory() as folder:
            run_sweep(sweep, "sgd_chain", Path(folder), workers=workers, progress=False)
        return 1.0

    return work


BENCHMARKS = [Benchmark("quick start's chain, two workers", "a run", chain_on(2), chain_on(1), "one worker")]
