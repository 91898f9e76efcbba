"""The factor of the overlaps Ω = [[Q, M], [Mᵀ, P]] in vector lanes, and the reflection of an indefinite Ω, for the SDE.

A factor is [A, B] for the student and [L*, 0] for the teacher, P = L* L*ᵀ.
"""

import math
from typing import Any

import numpy as np
from numba import types

from sweeplib.networks.kernels.lanes import kernel
from sweeplib.networks.numerics.compiled import pointer

ROUNDING = 1e-12
"""A pivot of Ω below minus this fraction of Q_ii shows that Ω is indefinite; smaller ones are rounding errors."""


@kernel
def fill_teacher_overlaps(L_star, P):  # type: ignore[no-untyped-def]
    """Fill P (k, k, lanes) with L* L*ᵀ, for a lower triangular L* (k, k, lanes)."""
    k, _, lanes = P.shape
    for r in range(k):
        for s in range(k):
            for lane in range(lanes):
                P[r, s, lane] = L_star[r, 0, lane] * L_star[s, 0, lane]
            for q in range(1, min(r, s) + 1):
                for lane in range(lanes):
                    P[r, s, lane] += L_star[r, q, lane] * L_star[s, q, lane]


@kernel
def factorise(Q, M, L_star, A, B, indefinite):  # type: ignore[no-untyped-def]
    """Fill A = M L*^{-T} and the lower triangular B with B Bᵀ = Q − A Aᵀ; return whether an Ω is indefinite.

    Q (p, p, lanes), M (p, k, lanes), L_star (k, k, lanes) : overlaps, and the lower triangular factor of P.
    Pivots below zero are set to zero; for singular Ω, columns without length are zero. `indefinite` (lanes,) marks the
    lanes in which a pivot is negative beyond rounding.
    """
    p, k, lanes = M.shape
    for lane in range(lanes):
        indefinite[lane] = False
    # A by forward substitution, B by Cholesky's method
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                A[i, r, lane] = M[i, r, lane]
            for s in range(r):
                for lane in range(lanes):
                    A[i, r, lane] -= A[i, s, lane] * L_star[r, s, lane]
            for lane in range(lanes):
                # a teacher of fewer dimensions than units has pivots zero
                pivot = L_star[r, r, lane]
                A[i, r, lane] = A[i, r, lane] / pivot if pivot > 0.0 else 0.0
    for j in range(p):
        for i in range(j, p):
            for lane in range(lanes):
                B[i, j, lane] = Q[i, j, lane]
            for s in range(k):
                for lane in range(lanes):
                    B[i, j, lane] -= A[i, s, lane] * A[j, s, lane]
            for s in range(j):
                for lane in range(lanes):
                    B[i, j, lane] -= B[i, s, lane] * B[j, s, lane]
            for lane in range(lanes):
                remainder = B[i, j, lane]
                if i == j:
                    indefinite[lane] |= remainder < -ROUNDING * Q[j, j, lane]
                    B[i, j, lane] = math.sqrt(max(remainder, 0.0))
                else:
                    B[i, j, lane] = remainder / B[j, j, lane] if B[j, j, lane] > 0.0 else 0.0
    some = False
    for lane in range(lanes):
        some |= indefinite[lane]
    return some


def reflect(Q, M, A, lane, spherical):  # type: ignore[no-untyped-def]
    """Make Ω ≥ 0 in one lane at the same M, by changing the sign of negative eigenvalues of Q − A Aᵀ.

    Q (p, p, lanes), M (p, k, lanes) : changed in this lane. A (p, k, lanes) : M L*^{-T}. spherical : whether rows are
    divided by their norms then. Eigenvalues set to zero would stay zero if the noise vanishes with them, a state that
    SGD does not reach.
    """
    p, k, _ = M.shape
    inside, across = np.zeros((p, p)), np.zeros((p, p))
    for i in range(p):
        for j in range(p):
            for s in range(k):
                inside[i, j] += A[i, s, lane] * A[j, s, lane]
            across[i, j] = Q[i, j, lane] - inside[i, j]
    if not np.isfinite(across).all():  # a divergence, which the next step notes
        return
    values, vectors = np.linalg.eigh(across)
    for i in range(p):
        for j in range(i + 1):
            total = inside[i, j]
            for m in range(p):
                total += abs(values[m]) * vectors[i, m] * vectors[j, m]
            Q[i, j, lane] = Q[j, i, lane] = total
    if spherical:
        for i in range(p):
            norm = math.sqrt(Q[i, i, lane])
            for j in range(p):
                Q[i, j, lane] /= norm
                Q[j, i, lane] /= norm
            for r in range(k):
                M[i, r, lane] /= norm


def reflection() -> Any:
    """The address of `reflect`, which allocates: kernels, which must not, call it by its address."""
    # Q, M or A, in lanes
    matrix = types.Array(types.float64, 3, "C")
    return pointer(reflect, types.void(matrix, matrix, matrix, types.int64, types.boolean))
