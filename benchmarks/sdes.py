"""The SDE, a replica and step."""

from benchmarks.chain import steps_of
from benchmarks.timing import Benchmark
from sweeplib import Problem


def _retrieval(p: int) -> Problem:
    return Problem(gamma=0.05 * p, p=p, k=1, d=3000, Delta=0.1, activation="square", spherical=True, m0=0.1)


BENCHMARKS = [
    Benchmark("SDE, projected square, p = 1", "a step", steps_of(_retrieval(1), "sde", 256, 200), reach=60e-9),
    Benchmark("SDE, projected square, p = 4", "a step", steps_of(_retrieval(4), "sde", 256, 40), reach=600e-9),
]
