"""Replicas side by side in vector lanes: what the compiled steps of the chain and of the SDE share.

Arrays have the lane as last axis: A (p, k, lanes), B (p, p, lanes), fields (p, lanes). Lanes never mix, and groups are
filled up to whole vectors with copies of their last replica, so that no bit of a replica depends on its neighbours.
"""

import numba
import numpy as np

from sweeplib.numerics.random import make_fours, two_draws, words

MOST_LANES = 128
"""So many that starting a loop over them costs next to nothing; of more, the state of wide networks fills the cache."""

FEWEST_LANES = 16
"""Four vectors of four numbers, which is what the compiler takes at a time: no replica is left to scalar code."""

LANES = (FEWEST_LANES, MOST_LANES)

OVERFLOW = 1e100
"""A displacement beyond this, or none at all, is called a divergence."""

kernel = numba.njit(error_model="numpy", fastmath={"contract"})


@kernel
def group_width(left):  # type: ignore[no-untyped-def]
    """The lanes of the next group of replicas, with so many left."""
    return min(MOST_LANES, FEWEST_LANES * ((left + FEWEST_LANES - 1) // FEWEST_LANES))


@kernel
def gather(source, order, first, lanes):  # type: ignore[no-untyped-def]
    """Copy the columns order[first], order[first + 1], ... of source (rows, n) to lanes (rows, width of the group)."""
    last = order.shape[0] - 1
    for row in range(source.shape[0]):
        for lane in range(lanes.shape[1]):
            lanes[row, lane] = source[row, order[min(first + lane, last)]]


@kernel
def scatter(lanes, order, first, target):  # type: ignore[no-untyped-def]
    """Copy the lanes back to the columns they came from."""
    filled = min(lanes.shape[1], order.shape[0] - first)
    for row in range(target.shape[0]):
        for lane in range(filled):
            target[row, order[first + lane]] = lanes[row, lane]


@kernel
def draw_normals(step, seed, key, z):  # type: ignore[no-untyped-def]
    """Fill z (a multiple of 4, lanes) with the normals of each lane's step."""
    rows, lanes = z.shape
    bits = z.view(np.uint64)
    for row in range(0, rows - 4, 8):
        b0, b1, b2, b3 = bits[row], bits[row + 1], bits[row + 2], bits[row + 3]
        c0, c1, c2, c3 = bits[row + 4], bits[row + 5], bits[row + 6], bits[row + 7]
        draw = np.uint64(row // 4)
        for lane in range(lanes):
            w0, w1, w2, w3, v0, v1, v2, v3 = two_draws(draw, draw + np.uint64(1), step[lane], seed[lane], key[lane])
            b0[lane], b1[lane], b2[lane], b3[lane] = w0, w1, w2, w3
            c0[lane], c1[lane], c2[lane], c3[lane] = v0, v1, v2, v3
    if rows % 8:
        b0, b1, b2, b3 = bits[rows - 4], bits[rows - 3], bits[rows - 2], bits[rows - 1]
        draw = np.uint64(rows // 4 - 1)
        for lane in range(lanes):
            b0[lane], b1[lane], b2[lane], b3[lane] = words(draw, step[lane], seed[lane], key[lane])
    for row in range(0, rows, 4):
        make_fours(z[row], z[row + 1], z[row + 2], z[row + 3])


@kernel
def fields(A, B, L_star, z, lam, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* = L* u* and λ = A u* + B w, with (u*, w) the first k + p rows of z."""
    p, k, lanes = A.shape
    for r in range(k):
        for lane in range(lanes):
            lam_star[r, lane] = L_star[r, 0, lane] * z[0, lane]
        for s in range(1, r + 1):
            for lane in range(lanes):
                lam_star[r, lane] += L_star[r, s, lane] * z[s, lane]
    for i in range(p):
        for lane in range(lanes):
            lam[i, lane] = B[i, 0, lane] * z[k, lane]
        for s in range(k):
            for lane in range(lanes):
                lam[i, lane] += A[i, s, lane] * z[s, lane]
        for j in range(1, i + 1):
            for lane in range(lanes):
                lam[i, lane] += B[i, j, lane] * z[k + j, lane]


@kernel
def add_mean(factor, weights, values, out):  # type: ignore[no-untyped-def]
    """Add factor Σ_i weights_i values_i, over the rows of both, to out."""
    rows, lanes = values.shape
    for i in range(rows):
        for lane in range(lanes):
            out[lane] += factor * weights[i, lane] * values[i, lane]


@kernel
def fill_teacher_overlaps(L_star, P):  # type: ignore[no-untyped-def]
    """Fill P = L* L*ᵀ."""
    k, _, lanes = P.shape
    for r in range(k):
        for s in range(k):
            for lane in range(lanes):
                P[r, s, lane] = L_star[r, 0, lane] * L_star[s, 0, lane]
            for q in range(1, min(r, s) + 1):
                for lane in range(lanes):
                    P[r, s, lane] += L_star[r, q, lane] * L_star[s, q, lane]


@kernel
def next_targets(order, first, targets, exits, out):  # type: ignore[no-untyped-def]
    """Fill out (lanes,) with the highest target not yet reached, or -inf; say whether there is one."""
    lanes = out.shape[0]
    pending = False
    last = order.shape[0] - 1
    for lane in range(lanes):
        replica = order[min(first + lane, last)]
        out[lane] = -np.inf
        for t in range(targets.shape[1]):
            if exits[replica, t] < 0:
                out[lane] = max(out[lane], targets[replica, t])
                pending = True
    return pending


@kernel
def note_exits(order, first, risk, targets, step, exits):  # type: ignore[no-untyped-def]
    """Note the step as exit of each threshold that a lane's risk now reaches for the first time."""
    for lane in range(min(risk.shape[0], order.shape[0] - first)):
        replica = order[first + lane]
        for t in range(targets.shape[1]):
            if exits[replica, t] < 0 and risk[lane] <= targets[replica, t]:
                exits[replica, t] = step[lane]


@kernel
def note_divergences(order, first, broken, step, failed):  # type: ignore[no-untyped-def]
    """Note the steps taken so far as the end of each lane that is `broken`."""
    for lane in range(min(broken.shape[0], order.shape[0] - first)):
        replica = order[first + lane]
        if failed[replica] < 0 and broken[lane]:
            failed[replica] = step[lane]
