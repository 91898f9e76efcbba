"""The time that a new process needs before it works."""

import subprocess
import sys
import time

from benchmarks.timing import Benchmark, Work

FIRST_CALL = """
import time
import dask.array, numba, xarray
from sweeplib import Problem, simulate
problem = Problem(gamma=.1, p=1, k=1, d=100, Delta=0, activation="square", spherical=True)
started = time.perf_counter()
simulate(problem, "sgd_chain", times=[0, .01])
print(time.perf_counter() - started)
"""


def process(*arguments: str) -> Work:
    """Return work that starts a new Python."""

    def work() -> float:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return 1.0

    return work


def first_call() -> float:
    """Return the number of processes whose time equals that of the first call in a new process, imports left out."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], check=True, stdout=subprocess.PIPE, text=True)
    return (time.perf_counter() - started) / float(done.stdout)


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
    Benchmark("first cached kernel call", "a process", first_call, reach=0.5),
]
