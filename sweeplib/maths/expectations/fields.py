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
def copy_block(block: Array, row: int, column: int, omega: Array) -> None:
    """Copy a block (rows, columns, lanes) to Ω from this row and column on."""
    rows, columns, lanes = block.shape
    for i in range(rows):
        for j in range(columns):
            for lane in range(lanes):
                omega[row + i, column + j, lane] = block[i, j, lane]


@without_references
def fill_ridge_fields(
    pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, omega: Array, weight: Array
) -> None:
    """Fill Ω of all fields and b of the functions, lanes last: students, ridges, λ* (`counts`).

    The entries right of the diagonal are filled first. With v_e, a ridge has Ω_em = Σ_r v_er Ω_m(λ*_r).
    """
    p, k, lanes = M.shape
    size = len(omega)
    at = size - k
    copy_block(Q, 0, 0, omega)
    copy_block(M, 0, at, omega)
    copy_block(P, at, at, omega)
    for e in range(len(pair.weights)):
        for place in range(k + p + e + 1):
            m = at + place if place < k else place - k
            row, column = (p + e, m) if place < k else (m, p + e)
            for lane in range(lanes):
                total = 0.0
                for r in range(k):
                    total += pair.directions[e, r] * omega[m, at + r, lane]
                omega[row, column, lane] = total
    for m in range(size):
        for q in range(m):
            for lane in range(lanes):
                omega[m, q, lane] = omega[q, m, lane]
    for m in range(len(weight)):
        for lane in range(lanes):
            if m < p:
                weight[m, lane] = -a[m, lane] / p
            else:
                weight[m, lane] = pair.weights[m - p] if len(pair.weights) > 0 else a_star[m - p, lane] / k
