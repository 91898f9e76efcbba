"""The fields of students and target under one index: z ~ N(0, Ω), E = Σ_m b_m σ_m(z_m) + √Δ ζ.

With z = (λ, λ*) and b = (−a/p, a*/k) for a committee, z = (λ, Vλ*, λ*) and b = (−a/p, c) for Σ_e c_e τ_e(v_e·λ*).
omega (fields, fields) is Ω, weight (functions,) is b; `pair` is what rules know of the activations and of the target.
"""

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.numerics.compiled import inlined, without_references


@inlined
def counts(weights: Array, p: int, k: int) -> tuple[int, int]:
    """The numbers of functions and of fields, of p students and of a target of k fields.

    weights (ridges,) : c, none for a committee. The last k fields are λ*: additional ones if the target is a sum of
    ridge functions, else those of the committee.
    """
    ridges = len(weights)
    return (p + ridges, p + ridges + k) if ridges > 0 else (p + k, p + k)


@inlined
def function_number(which: NDArray[np.int64], p: int, m: int) -> int:
    """The number of the function of field m: zero for a student, else one more than its number in the target.

    which : the target's number for each ridge, or one number for all.
    """
    if m < p:
        return 0
    return 1 + which[m - p if len(which) > 1 else 0]


@without_references
def fill_fields(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, omega: Array, weight: Array) -> None:
    """Fill Ω of all fields and b of the functions of one system: students, ridges, λ* (`counts`).

    Q (p, p), M (p, k), P (k, k), a (p,), a_star (k,). With v_e, a ridge has Ω_em = Σ_r v_er Ω_m(λ*_r).
    """
    p, k = M.shape
    n, at = len(weight), len(omega) - k
    for i in range(p):
        weight[i] = -a[i] / p
        for j in range(p):
            omega[i, j] = Q[i, j]
    for r in range(k):
        for i in range(p):
            omega[i, at + r] = omega[at + r, i] = M[i, r]
        for s in range(k):
            omega[at + r, at + s] = P[r, s]
    for m in range(p, n):
        weight[m] = pair.weights[m - p] if n == at else a_star[m - p] / k
    # ridges: with λ* first, then with students and earlier ridges
    for m in range(p, at):
        for place in range(k + m + 1):
            q = at + place if place < k else place - k
            total = 0.0
            for r in range(k):
                total += pair.directions[m - p, r] * omega[q, at + r]
            omega[m, q] = omega[q, m] = total


@without_references
def copy_block(block: Array, row: int, column: int, omega: Array) -> None:
    """Copy a block (rows, columns, lanes) to Ω from this row and column on."""
    rows, columns, lanes = block.shape
    for i in range(rows):
        for j in range(columns):
            for lane in range(lanes):
                omega[row + i, column + j, lane] = block[i, j, lane]


@without_references
def fill_fields_in_lanes(
    pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, omega: Array, weight: Array
) -> None:
    """Fill Ω (fields, fields, lanes) and b (functions, lanes) of many systems: first above the diagonal, then below.

    Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes), a_star (k, lanes).
    """
    p, k, lanes = M.shape
    size = len(omega)
    at = size - k
    copy_block(Q, 0, 0, omega)
    copy_block(M, 0, at, omega)
    copy_block(P, at, at, omega)
    # ridges: with λ* first, then with students and earlier ridges
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
