"""The fields of students and target under one index: z ~ N(0, Ω), E = Σ_m b_m σ_m(z_m) + √Δ ζ.

With z = (λ, λ*) and b = (−a/p, a*/k) for a committee, z = (λ, Vλ*, λ*) and b = (−a/p, c) for Σ_e c_e τ_e(v_e·λ*).
"""

from typing import Any

import numpy as np

from sweeplib.maths.expectations.system import Pair
from sweeplib.numerics.compiled import inlined, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]


@inlined
def counts(pair: Pair, p: int, k: int) -> tuple[int, int]:
    """The number of functions, of students and ridges, and that of fields.

    The last k fields are λ*: additional ones if the target is a sum of ridge functions, else those of the committee.
    """
    ridges = len(pair.weights)
    return (p + ridges, p + ridges + k) if ridges > 0 else (p + k, p + k)


@inlined
def function_number(pair: Pair, p: int, m: int) -> int:
    """Zero for a student, else one more than the number of the target's function of field m."""
    if m < p:
        return 0
    return 1 + pair.which[m - p if len(pair.weights) > 0 else 0]


@without_references
def fill_ridge_fields(
    pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, omega: Array, weight: Array
) -> None:
    """Fill Ω of all fields and b of the functions, lanes last: students, ridges, λ* (`counts`)."""
    p, k, lanes = M.shape
    ridges, at = len(pair.weights), len(omega) - k
    for i in range(p):
        for lane in range(lanes):
            weight[i, lane] = -a[i, lane] / p
        for j in range(p):
            for lane in range(lanes):
                omega[i, j, lane] = Q[i, j, lane]
        for r in range(k):
            for lane in range(lanes):
                omega[i, at + r, lane] = M[i, r, lane]
                omega[at + r, i, lane] = M[i, r, lane]
    for r in range(k):
        for s in range(k):
            for lane in range(lanes):
                omega[at + r, at + s, lane] = P[r, s, lane]
        if ridges == 0:
            for lane in range(lanes):
                weight[p + r, lane] = a_star[r, lane] / k
    for e in range(ridges):
        for lane in range(lanes):
            weight[p + e, lane] = pair.weights[e]
        for m in range(len(omega)):
            if m < p or m >= at:
                for lane in range(lanes):
                    omega[p + e, m, lane] = 0.0
                for r in range(k):
                    for lane in range(lanes):
                        omega[p + e, m, lane] += pair.directions[e, r] * omega[at + r, m, lane]
                for lane in range(lanes):
                    omega[m, p + e, lane] = omega[p + e, m, lane]
    for e in range(ridges):
        for f in range(ridges):
            for lane in range(lanes):
                omega[p + e, p + f, lane] = 0.0
            for r in range(k):
                for lane in range(lanes):
                    omega[p + e, p + f, lane] += pair.directions[f, r] * omega[p + e, at + r, lane]
