"""What a new process takes before it works."""

import subprocess
import sys

from benchmarks.timing import Benchmark, Work

KERNEL = (
    "from sweeplib import Problem, simulate;"
    "problem = Problem(gamma=.1, p=1, k=1, d=100, Delta=0, activation='square', spherical=True);"
    "simulate(problem, 'sgd_chain', times=[0, .01])"
)


def process(*arguments: str) -> Work:
    """Work that runs Python anew."""

    def work() -> float:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return 1.0

    return work


BENCHMARKS = [
    Benchmark(
        "import sweeplib",
        "a process",
        process("-c", "import sweeplib"),
        process("-c", "import xarray, numba"),
        "import xarray, numba",
        process("-c", "pass"),
        "an empty process",
        0.6,
    ),
    Benchmark("sweeplib --help", "a process", process("-m", "sweeplib", "--help"), reach=0.4),
    Benchmark(
        "first cached kernel call",
        "a process",
        process("-c", KERNEL),
        floor=process("-c", "import sweeplib, numba, xarray"),
        floor_is="its imports",
        reach=0.5,
    ),
]
