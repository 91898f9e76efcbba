"""Students' and teacher's fields under one index: z = (λ, λ*) ~ N(0, Ω), E = Σ_m b_m σ_m(z_m) + √Δ ζ.

With b = (−a/p, a*/k).
"""

from typing import Any

import numpy as np

from sweeplib.maths.expectations.system import System
from sweeplib.numerics.compiled import without_references

Array = np.ndarray[Any, np.dtype[np.float64]]


@without_references
def fill_fields(system: System, omega: Array, weight: Array) -> None:
    """Fill Ω (n, n) and b (n,), n = p + k."""
    Q, M, P, a, a_star = system.Q, system.M, system.P, system.a, system.a_star
    p, k = M.shape
    for i in range(p):
        weight[i] = -a[i] / p
        for j in range(p):
            omega[i, j] = Q[i, j]
        for r in range(k):
            omega[i, p + r] = M[i, r]
            omega[p + r, i] = M[i, r]
    for r in range(k):
        weight[p + r] = a_star[r] / k
        for s in range(k):
            omega[p + r, p + s] = P[r, s]


@without_references
def fill_fields_in_lanes(system: System, omega: Array, weight: Array) -> None:
    """Fill Ω (n, n, lanes) and b (n, lanes) of many systems, the last axis of all arrays."""
    Q, M, P, a, a_star = system.Q, system.M, system.P, system.a, system.a_star
    p, k, lanes = M.shape
    for i in range(p):
        for lane in range(lanes):
            weight[i, lane] = -a[i, lane] / p
        for j in range(p):
            for lane in range(lanes):
                omega[i, j, lane] = Q[i, j, lane]
        for r in range(k):
            for lane in range(lanes):
                omega[i, p + r, lane] = M[i, r, lane]
                omega[p + r, i, lane] = M[i, r, lane]
    for r in range(k):
        for lane in range(lanes):
            weight[p + r, lane] = a_star[r, lane] / k
        for s in range(k):
            for lane in range(lanes):
                omega[p + r, p + s, lane] = P[r, s, lane]
