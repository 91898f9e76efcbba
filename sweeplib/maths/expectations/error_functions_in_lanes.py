"""The drifts of mixtures of error functions, of many systems side by side: the formulas of `error_functions`.

That module binds the mixtures' constants. Terms are numbered as there: S_mq (terms, terms, lanes) are the covariances
of their fields, `norm` is 1 + S_mm, `weight` is b. The last axis of all arrays is the lane.
"""

import math
from typing import Any

import numpy as np

from sweeplib.numerics.arc_sine import arc_sine, near_arc_sine
from sweeplib.numerics.compiled import inlined

Array = np.ndarray[Any, np.dtype[np.float64]]

WIDTH = 128
"""Lanes at a time in Ψ^Var: those of one pair of terms, or of as many pairs as there is room for."""

student_offset = teacher_offset = 0.0
student_weights = student_slopes = teacher_weights = teacher_slopes = (1.0,)


@inlined
def fill_unit(first: int, weights: Any, slopes: Any, factor: float, layer: Array, slope: Array, weight: Array) -> None:
    """Fill the slopes and b of a unit's terms, from number `first` on."""
    for t in range(len(slopes)):
        slope[first + t], scaled = slopes[t], factor * weights[t]
        for lane in range(len(layer)):
            weight[first + t, lane] = scaled * layer[lane]


@inlined
def fill_covariances(Q: Array, M: Array, P: Array, own: int, others: int, slope: Array, S: Array) -> None:
    """Fill S of the first lanes, as many as Q has."""
    p, _, lanes = M.shape
    students, terms = p * own, len(slope)
    for m in range(terms):
        for q in range(m + 1):
            both = slope[m] * slope[q]
            if m < students:
                overlap = Q[m // own, q // own]
            elif q < students:
                overlap = M[q // own, (m - students) // others]
            else:
                overlap = P[(m - students) // others, (q - students) // others]
            for lane in range(lanes):
                S[m, q, lane] = both * overlap[lane]
            for lane in range(lanes):
                S[q, m, lane] = S[m, q, lane]


@inlined
def fill_norms(S: Array, lanes: int, norm: Array) -> None:
    """Fill 1 + S_mm of the first lanes."""
    for m in range(len(norm)):
        for lane in range(lanes):
            norm[m, lane] = 1.0 + S[m, m, lane]


@inlined
def add_second_layer(u: int, factor: float, S: Array, norm: Array, weight: Array, cosine: Array, out: Array) -> None:
    """Add factor Σ_m b_m asin S_um/√((1 + S_uu)(1 + S_mm)), I2's, to out (lanes,)."""
    lanes = len(out)
    for m in range(len(norm)):
        for lane in range(lanes):
            cosine[lane] = S[u, m, lane] / math.sqrt(norm[u, lane] * norm[m, lane])
        for lane in range(lanes):
            out[lane] += factor * weight[m, lane] * arc_sine(cosine[lane])


@inlined
def fill_towards(u: int, S: Array, norm: Array, weight: Array, along: Array, towards: Array) -> None:
    """Fill Σ_m b_m S_mf/√((1 + S_uu)(1 + S_mm) − S_um²) (terms f, lanes), of I3."""
    terms, lanes = towards.shape
    towards[:] = 0.0
    for m in range(terms):
        for lane in range(lanes):
            along[lane] = norm[u, lane] * norm[m, lane] - S[u, m, lane] * S[u, m, lane]
        for lane in range(lanes):
            along[lane] = weight[m, lane] / math.sqrt(along[lane])
        for f in range(terms):
            for lane in range(lanes):
                towards[f, lane] += along[lane] * S[m, f, lane]


@inlined
def fill_tilts(u: int, v: int, tile: int, S: Array, norm: Array, roots: Array, tilts: Array) -> None:
    """Fill α_m, β_m and 1/√(1 + S_mm − α_m² − β_m²) (3, terms, tile, lanes) of a pair of terms, in one tile.

    `roots` (3, tile, lanes) gets 1/√(1 + S_uu), α_v and 1/√(1 + S_vv − α_v²).
    """
    lanes = roots.shape[2]
    for lane in range(lanes):
        roots[0, tile, lane] = 1.0 / math.sqrt(norm[u, lane])
    for lane in range(lanes):
        roots[1, tile, lane] = S[u, v, lane] * roots[0, tile, lane]
    for lane in range(lanes):
        roots[2, tile, lane] = 1.0 / math.sqrt(norm[v, lane] - roots[1, tile, lane] * roots[1, tile, lane])
    for m in range(len(norm)):
        for lane in range(lanes):
            tilts[0, m, tile, lane] = S[u, m, lane] * roots[0, tile, lane]
        for lane in range(lanes):
            rest = S[v, m, lane] - roots[1, tile, lane] * tilts[0, m, tile, lane]
            tilts[1, m, tile, lane] = rest * roots[2, tile, lane]
        for lane in range(lanes):
            alpha, beta = tilts[0, m, tile, lane], tilts[1, m, tile, lane]
            tilts[2, m, tile, lane] = 1.0 / math.sqrt(max(norm[m, lane] - alpha * alpha - beta * beta, 1.0))


@inlined
def add_moment(used: int, S: Array, tilts: Array, weight: Array, cosine: Array, out: Array) -> None:
    """Add E[(Σ_m b_m erf z_m)²] at the tilted covariances, in the first lanes, to out."""
    for m in range(len(weight)):
        for q in range(m + 1):
            near = True
            for lane in range(used):
                alphas, betas = tilts[0, m, lane] * tilts[0, q, lane], tilts[1, m, lane] * tilts[1, q, lane]
                cosine[lane] = (S[m, q, lane] - alphas - betas) * tilts[2, m, lane] * tilts[2, q, lane]
            for lane in range(used):
                near &= abs(cosine[lane]) <= 0.5
            factor = (2.0 if m == q else 4.0) / math.pi
            if near:
                for lane in range(used):
                    out[lane] += factor * weight[m, lane] * weight[q, lane] * near_arc_sine(cosine[lane])
            else:
                for lane in range(used):
                    out[lane] += factor * weight[m, lane] * weight[q, lane] * arc_sine(cosine[lane])


@inlined
def repeat(lanes: int, rows: Array) -> None:
    """Fill all lanes with copies of the first ones."""
    for row in range(rows.shape[0]):
        for lane in range(lanes, rows.shape[1]):
            rows[row, lane] = rows[row, lane - lanes]


def drifts_in_lanes(
    filled: int,
    Q: Array,
    M: Array,
    P: Array,
    a: Array,
    a_star: Array,
    Delta: Array,
    stretch: Array,
    drift_M: Array,
    drift_GF: Array,
    drift_Var: Array,
    drift_a: Array,
) -> None:
    """Ψ^a from I2, Ψ^M and Ψ^GF from I3, Ψ^Var from I4 at Ω times `stretch`."""
    p, k, lanes = M.shape
    own, others = len(student_slopes), len(teacher_slopes)
    students, terms = p * own, p * own + k * others
    pairs = students * (students + 1) // 2
    tiles = max(1, min(pairs, WIDTH // lanes))
    width = tiles * lanes
    slope, S = np.empty(terms), np.empty((terms, terms, width))
    norm, weight, tilts = np.empty((terms, width)), np.empty((terms, width)), np.empty((3, terms, tiles, lanes))
    roots, sums, cosine = np.empty((3, tiles, lanes)), np.empty((tiles, lanes)), np.empty(width)
    flow, towards, offset = np.zeros((p, p + k, lanes)), np.empty((terms, lanes)), np.zeros(lanes)
    for i in range(p):
        fill_unit(i * own, student_weights, student_slopes, -1.0 / p, a[i], slope, weight)
        for lane in range(lanes):
            offset[lane] -= student_offset * a[i, lane] / p
    for r in range(k):
        fill_unit(students + r * others, teacher_weights, teacher_slopes, 1.0 / k, a_star[r], slope, weight)
        for lane in range(lanes):
            offset[lane] += teacher_offset * a_star[r, lane] / k
    fill_covariances(Q, M, P, own, others, slope, S)
    fill_norms(S, lanes, norm)

    for i in range(p):
        for lane in range(lanes):
            drift_a[i, lane] = student_offset * offset[lane]
        for t in range(own):
            u = i * own + t
            add_second_layer(u, 2.0 / math.pi * student_weights[t], S, norm, weight, cosine, drift_a[i])
            fill_towards(u, S, norm, weight, cosine, towards)
            tilt = 2.0 / math.pi * student_weights[t] * slope[u]
            for j in range(p + k):
                f = j * own if j < p else students + (j - p) * others
                factor = tilt / slope[f]
                for lane in range(lanes):
                    inner = towards[u, lane] * S[u, f, lane] / norm[u, lane]
                    flow[i, j, lane] += factor * (towards[f, lane] - inner)
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                drift_M[i, r, lane] = a[i, lane] * flow[i, p + r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                both = a[i, lane] * flow[i, j, lane] + a[j, lane] * flow[j, i, lane]
                drift_GF[i, j, lane] = drift_GF[j, i, lane] = both
                drift_Var[i, j, lane] = 0.0

    for m in range(terms):
        for q in range(terms):
            for lane in range(lanes):
                S[m, q, lane] *= stretch[lane]
        repeat(lanes, S[m])
    repeat(lanes, weight)
    fill_norms(S, width, norm)
    u = v = 0
    for start in range(0, pairs, tiles):
        x, y, used = u, v, min(tiles, pairs - start)
        for tile in range(used):
            fill_tilts(u, v, tile, S, norm, roots, tilts)
            v += 1
            if v > u:
                u, v = u + 1, 0
        sums[:] = 0.0
        add_moment(used * lanes, S, tilts.reshape((3, terms, width)), weight, cosine, sums.reshape(width))
        u, v = x, y
        for tile in range(used):
            i, j = u // own, v // own
            factor = (2.0 if i == j and u != v else 1.0) * 2.0 / math.pi * slope[u] * slope[v]
            factor *= student_weights[u % own] * student_weights[v % own]
            for lane in range(lanes):
                moment = sums[tile, lane] + offset[lane] * offset[lane] + Delta[lane]
                moment *= factor * roots[0, tile, lane] * roots[2, tile, lane]
                drift_Var[i, j, lane] += a[i, lane] * a[j, lane] * moment
            v += 1
            if v > u:
                u, v = u + 1, 0
    for i in range(p):
        for j in range(i):
            for lane in range(lanes):
                drift_Var[j, i, lane] = drift_Var[i, j, lane]
