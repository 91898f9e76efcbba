"""The Ising model of a ferromagnet on a square lattice, by Wolff's algorithm, compiled by numba."""

from typing import Annotated

import numpy as np
from numba import njit
from pydantic import Field

from sweeplib import Result, simulator


@njit(cache=True)
def measured(rng, T, L, clusters):
    """Return the mean of |m|, of its square and of the energy of a spin, while clusters are turned one by one."""
    spins, stack = np.ones((L, L), dtype=np.int64), np.empty(L * L, dtype=np.int64)
    chance, m, e, sums = -np.expm1(-2 / T), L * L, -2 * L * L, np.zeros(3)
    for cluster in range(-clusters // 5, clusters):
        stack[0], size = int(rng.random() * L * L), 1
        old = spins[stack[0] // L, stack[0] % L]
        spins[stack[0] // L, stack[0] % L] = -old
        while size:
            size -= 1
            i, j = stack[size] // L, stack[size] % L
            m -= 2 * old
            for x, y in (((i + 1) % L, j), ((i - 1) % L, j), (i, (j + 1) % L), (i, (j - 1) % L)):
                if spins[x, y] == old and rng.random() < chance:
                    spins[x, y], stack[size] = -old, x * L + y
                    size += 1
        if cluster >= 0:
            e = 0
            for i in range(L):
                for j in range(L):
                    e -= spins[i, j] * (spins[i, (j + 1) % L] + spins[(i + 1) % L, j])
            sums += np.array([abs(m), m * m / (L * L), e])
    return sums[0] / (L * L * clusters), sums[1] / clusters, sums[2] / (L * L * clusters)


@simulator(
    susceptibility=Result("1/J", label="susceptibility", symbol=r"\chi"),
    magnetisation=Result("1", label="magnetisation of a spin", symbol="|m|"),
    energy=Result("J", label="energy of a spin", symbol="e"),
)
def ising(rng, T: Annotated[float, Field(gt=0, description="temperature"), "J"], L: int = 16, clusters: int = 1000):
    m, square, e = measured(rng, T, L, clusters)
    return {"susceptibility": (square - m * m * L * L) / T, "magnetisation": m, "energy": e}
