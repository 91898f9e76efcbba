"""Gaussian draws."""

import numba
import numpy as np

from benchmarks.timing import Benchmark
from sweeplib.networks.numerics.random import fill_normals, random_words

COUNT, ROUNDS = 1000, 2000


@numba.njit
def _fill(rounds, key, seed, out):  # type: ignore[no-untyped-def]
    for step in range(rounds):
        fill_normals(key, seed, np.uint64(step), out)


def _ours() -> float:
    out = np.empty(COUNT)
    _fill(ROUNDS, np.uint64(1), np.uint64(2), out)
    return COUNT * ROUNDS


def _numpy() -> float:
    stream = np.random.Generator(np.random.Philox(1))
    out = np.empty(COUNT)
    for _ in range(ROUNDS):
        stream.standard_normal(out=out)
    return COUNT * ROUNDS


@numba.njit(error_model="numpy", fastmath={"contract"})
def _floor_loops(rounds, bits, roots):  # type: ignore[no-untyped-def]
    quarter = bits.shape[1]
    for step in range(rounds):
        for j in range(quarter):
            bits[0, j], bits[1, j], bits[2, j], bits[3, j] = random_words(
                np.uint64(j), np.uint64(step), np.uint64(2), np.uint64(1)
            )
        for row in range(2):
            for j in range(quarter):
                roots[row, j] = np.sqrt(roots[row, j] + 1.0)


def _floor() -> float:
    _floor_loops(ROUNDS, np.empty((4, COUNT // 4), np.uint64), np.ones((2, COUNT // 4)))
    return COUNT * ROUNDS


BENCHMARKS = [
    Benchmark(
        "Gaussian draw, float64", "a draw", _ours, _numpy, "NumPy, Philox, ziggurat", _floor, "Philox, roots", 1.7e-9
    ),
]
