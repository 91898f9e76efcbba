"""The drifts of mixtures of error functions for many systems in lanes, by the formulas of `error_functions`.

That module binds the mixtures' constants. Terms are numbered as there, those of students first: S (terms, terms, lanes)
are the covariances of their fields, norm (terms, lanes) is 1 + S_mm, weight (terms, lanes) is b; u, v are numbers of
student terms. The last axis of all arrays is the lane; there may be more lanes than systems, which are the first ones.
A tile is one of several pairs of terms that share the lanes. n_student and n_teacher are numbers of terms of a unit,
`system` has many systems in lanes, `out` their drifts.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.system import Drifts, System
from sweeplib.networks.numerics.arc_sine import arc_sine, near_arc_sine
from sweeplib.networks.numerics.compiled import inlined, without_references

WIDTH = 128
"""Number of lanes in Ψ^Var: for one pair of terms, or for several pairs if they fit."""

student_offset = teacher_offset = 0.0
student_weights = student_slopes = teacher_weights = teacher_slopes = (1.0,)
"""The mixtures of σ and σ*, which `error_functions` binds."""


@without_references
def fill_unit(first: int, weights: Any, slopes: Any, factor: float, layer: Array, slope: Array, weight: Array) -> None:
    """Fill slope (terms,) and weight b of a unit's terms, from term number `first` on.

    weights, slopes : of the mixture. factor : −1/p of a student, 1/k of a teacher. layer (lanes,) : its second layer.
    """
    for t in range(len(slopes)):
        slope[first + t], scaled = slopes[t], factor * weights[t]
        for lane in range(len(layer)):
            weight[first + t, lane] = scaled * layer[lane]


@without_references
def fill_covariances(system: System, n_student: int, n_teacher: int, slope: Array, S: Array) -> None:
    """Fill S in the first lanes, as many as Q has; slope (terms,)."""
    Q, M, P = system.Q, system.M, system.P
    p, _, lanes = M.shape
    students, terms = p * n_student, len(slope)
    for m in range(terms):
        for q in range(m + 1):
            both = slope[m] * slope[q]
            if m < students:
                overlap = Q[m // n_student, q // n_student]
            elif q < students:
                overlap = M[q // n_student, (m - students) // n_teacher]
            else:
                overlap = P[(m - students) // n_teacher, (q - students) // n_teacher]
            for lane in range(lanes):
                S[m, q, lane] = both * overlap[lane]
            for lane in range(lanes):
                S[q, m, lane] = S[m, q, lane]


@without_references
def fill_norms(S: Array, lanes: int, norm: Array) -> None:
    """Fill `norm` with 1 + S_mm in the first `lanes`."""
    for m in range(len(norm)):
        for lane in range(lanes):
            norm[m, lane] = 1.0 + S[m, m, lane]


@without_references
def add_second_layer(u: int, factor: float, S: Array, norm: Array, weight: Array, cosine: Array, out: Array) -> None:
    """Add factor · Σ_m b_m asin S_um/√((1 + S_uu)(1 + S_mm)), of I2, to out (lanes,).

    cosine (lanes,) : a work array.
    """
    lanes = len(out)
    for m in range(len(norm)):
        for lane in range(lanes):
            cosine[lane] = S[u, m, lane] / math.sqrt(norm[u, lane] * norm[m, lane])
        for lane in range(lanes):
            out[lane] += factor * weight[m, lane] * arc_sine(cosine[lane])


@without_references
def fill_towards(u: int, S: Array, norm: Array, weight: Array, along: Array, towards: Array) -> None:
    """Fill `towards` (terms f, lanes) with Σ_m b_m S_mf/√((1 + S_uu)(1 + S_mm) − S_um²), of I3.

    along (lanes,) : a work array.
    """
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


@without_references
def fill_tilts(u: int, v: int, tile: int, S: Array, norm: Array, roots: Array, tilts: Array) -> None:
    """Fill `tilts` (3, terms, tiles, lanes) in one tile with α_m, β_m and 1/√(1 + S_mm − α_m² − β_m²) of terms u and v.

    roots (3, tiles, lanes) gets 1/√(1 + S_uu), α_v and 1/√(1 + S_vv − α_v²).
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
            remainder = S[v, m, lane] - roots[1, tile, lane] * tilts[0, m, tile, lane]
            tilts[1, m, tile, lane] = remainder * roots[2, tile, lane]
        for lane in range(lanes):
            alpha, beta = tilts[0, m, tile, lane], tilts[1, m, tile, lane]
            tilts[2, m, tile, lane] = 1.0 / math.sqrt(max(norm[m, lane] - alpha * alpha - beta * beta, 1.0))


@without_references
def add_moment(used: int, S: Array, tilts: Array, weight: Array, cosine: Array, out: Array) -> None:
    """Add E[(Σ_m b_m erf z_m)²] at the tilted covariances to out (lanes,), in the first `used` lanes.

    tilts (3, terms, lanes), cosine (lanes,) : a work array.
    """
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


@without_references
def repeat(lanes: int, rows: Array) -> None:
    """Fill all lanes of rows (rows, width) with copies of the first ones, again and again."""
    for row in range(rows.shape[0]):
        for lane in range(lanes, rows.shape[1]):
            rows[row, lane] = rows[row, lane - lanes]


class Terms(NamedTuple):
    """The terms of all units.

    slope (terms,), tilt (student terms,) : s, and the factors of erf'.
    S (terms, terms, width), norm, weight (terms, width) : as in the module. cosine (width,) : a work array.
    """

    slope: Array
    tilt: Array
    S: Array
    norm: Array
    weight: Array
    cosine: Array


class Tiles(NamedTuple):
    """Work arrays for pairs of terms in tiles: `roots` (3, tiles, lanes), `tilts` (3, terms, tiles, lanes), `sums`."""

    roots: Array
    tilts: Array
    sums: Array


@without_references
def fill_variance(a: Array, n_student: int, terms: Terms, constant: Array, tiles: Tiles, out: Array) -> None:
    """Fill Ψ^Var, out (p, p, lanes), with as many pairs of student terms at a time as there are tiles.

    constant (lanes,) : the part of E[E²] without error functions.
    """
    p, lanes = a.shape
    n_tiles, students = len(tiles.sums), p * n_student
    count, width = terms.weight.shape
    pairs = students * (students + 1) // 2
    out[:] = 0.0
    u = v = 0 * pairs  # functions would be compiled for the literal zero too
    for start in range(0, pairs, n_tiles):
        first_u, first_v, used = u, v, min(n_tiles, pairs - start)
        # pairs (u, v), v ≤ u, row by row
        for tile in range(used):
            fill_tilts(u, v, tile, terms.S, terms.norm, tiles.roots, tiles.tilts)
            v += 1
            if v > u:
                u, v = u + 1, 0
        tiles.sums[:] = 0.0
        tilts, sums = tiles.tilts.reshape((3, count, width)), tiles.sums.reshape(width)
        add_moment(used * lanes, terms.S, tilts, terms.weight, terms.cosine, sums)
        u, v = first_u, first_v
        for tile in range(used):
            # units of the two terms; within a unit (u, v) stands for (v, u) too
            i, j = u // n_student, v // n_student
            factor = (2.0 if i == j and u != v else 1.0) * terms.tilt[u] * terms.tilt[v] * 0.5 * math.pi
            for lane in range(lanes):
                moment = tiles.sums[tile, lane] + constant[lane]
                moment *= factor * tiles.roots[0, tile, lane] * tiles.roots[2, tile, lane]
                out[i, j, lane] += a[i, lane] * a[j, lane] * moment
            v += 1
            if v > u:
                u, v = u + 1, 0
    for i in range(p):
        for j in range(i):
            for lane in range(lanes):
                out[j, i, lane] = out[i, j, lane]


@inlined
def fill_flow(system: System, n_student: int, n_teacher: int, terms: Terms, out: Drifts) -> None:
    """Add the part of I2 to Ψ^a, and fill Ψ^M and Ψ^GF from I3."""
    a = system.a
    p, k, lanes = system.M.shape
    students = p * n_student
    flow, towards = np.zeros((p, p + k, lanes)), np.empty((len(terms.slope), lanes))
    for u in range(students):
        i, S, norm = u // n_student, terms.S, terms.norm
        add_second_layer(u, terms.tilt[u] / terms.slope[u], S, norm, terms.weight, terms.cosine, out.a[i])
        fill_towards(u, S, norm, terms.weight, terms.cosine, towards)
        for j in range(p + k):
            # the first term of unit j, whose field is z_j times its slope
            f = j * n_student if j < p else students + (j - p) * n_teacher
            factor = terms.tilt[u] / terms.slope[f]
            for lane in range(lanes):
                inner = towards[u, lane] * S[u, f, lane] / norm[u, lane]
                flow[i, j, lane] += factor * (towards[f, lane] - inner)
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                out.M[i, r, lane] = a[i, lane] * flow[i, p + r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                both = a[i, lane] * flow[i, j, lane] + a[j, lane] * flow[j, i, lane]
                out.GF[i, j, lane] = out.GF[j, i, lane] = both


def drifts_in_lanes(filled: int, system: System, out: Drifts) -> None:
    """Fill the drifts of many systems: Ψ^a from I2, Ψ^M and Ψ^GF from I3, Ψ^Var from I4 at Ω times `stretch`.

    Constants of σ and σ* add an `offset` to y − f: in Ψ^Var its square stands beside the noise Δ. `filled`, with which
    all rules in lanes are called, is not read: all lanes are computed together.
    """
    a, a_star = system.a, system.a_star
    p, k, lanes = system.M.shape
    n_student, n_teacher = len(student_slopes), len(teacher_slopes)
    students, count = p * n_student, p * n_student + k * n_teacher
    n_tiles = max(1, min(students * (students + 1) // 2, WIDTH // lanes))
    width = n_tiles * lanes
    matrices, offset = np.empty((3, count, width)), np.zeros(lanes)
    rows = np.empty(count), np.empty(students), np.empty((count, count, width))
    # slope, tilt, S, norm, weight, and a work array
    terms = Terms(*rows, matrices[0], matrices[1], matrices[2, 0])
    for i in range(p):
        fill_unit(i * n_student, student_weights, student_slopes, -1.0 / p, a[i], terms.slope, terms.weight)
        for t in range(n_student):
            terms.tilt[i * n_student + t] = 2.0 / math.pi * student_weights[t] * student_slopes[t]
        for lane in range(lanes):
            offset[lane] -= student_offset * a[i, lane] / p
    for r in range(k):
        first = students + r * n_teacher
        fill_unit(first, teacher_weights, teacher_slopes, 1.0 / k, a_star[r], terms.slope, terms.weight)
        for lane in range(lanes):
            offset[lane] += teacher_offset * a_star[r, lane] / k
    fill_covariances(system, n_student, n_teacher, terms.slope, terms.S)
    fill_norms(terms.S, lanes, terms.norm)
    # Ψ^a begins with the constants of σ and of y − f; `fill_flow` adds the rest
    for i in range(p):
        for lane in range(lanes):
            out.a[i, lane] = student_offset * offset[lane]
    fill_flow(system, n_student, n_teacher, terms, out)

    # Ψ^Var: Ω times `stretch`, and lanes for all tiles
    for m in range(count):
        for q in range(count):
            for lane in range(lanes):
                terms.S[m, q, lane] *= system.stretch[lane]
        repeat(lanes, terms.S[m])
    repeat(lanes, terms.weight)
    fill_norms(terms.S, width, terms.norm)
    for lane in range(lanes):
        offset[lane] = offset[lane] * offset[lane] + system.Delta[lane]
    tiles = Tiles(np.empty((3, n_tiles, lanes)), np.empty((3, count, n_tiles, lanes)), np.empty((n_tiles, lanes)))
    fill_variance(a, n_student, terms, offset, tiles, out.Var)
