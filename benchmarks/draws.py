"""Gaussian draws."""

import numpy as np

from benchmarks.timing import Benchmark
from sweeplib.random import fill_normals

COUNT, ROUNDS = 1000, 2000


def _ours() -> float:
    out = np.empty(COUNT)
    key, seed = np.uint64(1), np.uint64(2)
    for step in range(ROUNDS):
        fill_normals(key, seed, np.uint64(step), out)
    return COUNT * ROUNDS


def _numpy() -> float:
    stream = np.random.Generator(np.random.Philox(1))
    out = np.empty(COUNT)
    for _ in range(ROUNDS):
        stream.standard_normal(out=out)
    return COUNT * ROUNDS


BENCHMARKS = [
    Benchmark("Gaussian draw, float64", "a draw", _ours, _numpy, "NumPy, Philox, ziggurat", reach=1.7e-9),
]
