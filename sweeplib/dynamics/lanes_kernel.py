"""Replicas side by side in vector lanes: what the compiled steps of the chain and of the SDE share.

Arrays have the lane as last axis: A (p, k, LANES), B (p, p, LANES), fields (p, LANES). Lanes never mix, and short
groups are filled up with copies of their last replica, so that no bit of a replica depends on its neighbours.
"""

import numba
import numpy as np

from sweeplib.random import normal_pair, words

LANES = 64
"""Enough for loops over them to stay loops: of 32 the compiler makes straight code, which is slower."""

kernel = numba.njit(error_model="numpy", fastmath={"contract"})


@kernel
def gather(source, order, first, lanes):  # type: ignore[no-untyped-def]
    """Copy the columns order[first], order[first + 1], ... of source (rows, n) to lanes (rows, LANES)."""
    last = order.shape[0] - 1
    for row in range(source.shape[0]):
        for lane in range(LANES):
            lanes[row, lane] = source[row, order[min(first + lane, last)]]


@kernel
def scatter(lanes, order, first, target):  # type: ignore[no-untyped-def]
    """Copy the lanes back to the columns they came from."""
    filled = min(LANES, order.shape[0] - first)
    for row in range(target.shape[0]):
        for lane in range(filled):
            target[row, order[first + lane]] = lanes[row, lane]


@kernel
def draw_words(step, seed, key, drawn):  # type: ignore[no-untyped-def]
    """Fill drawn (a multiple of 4, LANES) with the random words of each lane's step."""
    for block in range(drawn.shape[0] // 4):
        for lane in range(LANES):
            w0, w1, w2, w3 = words(np.uint64(block), step[lane], seed[lane], key[lane])
            drawn[4 * block, lane], drawn[4 * block + 1, lane] = w0, w1
            drawn[4 * block + 2, lane], drawn[4 * block + 3, lane] = w2, w3


@kernel
def fill_pairs(drawn, z):  # type: ignore[no-untyped-def]
    """Fill z (a multiple of 4, LANES) with the normals made of the words, two rows of two."""
    for row in range(0, z.shape[0], 2):
        for lane in range(LANES):
            z[row, lane], z[row + 1, lane] = normal_pair(drawn[row, lane], drawn[row + 1, lane])


@kernel
def fields(A, B, L_star, z, lam, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* = L* u* and λ = A u* + B w, with (u*, w) the first k + p rows of z."""
    p, k, _ = A.shape
    for r in range(k):
        for lane in range(LANES):
            lam_star[r, lane] = L_star[r, 0, lane] * z[0, lane]
        for s in range(1, r + 1):
            for lane in range(LANES):
                lam_star[r, lane] += L_star[r, s, lane] * z[s, lane]
    for i in range(p):
        for lane in range(LANES):
            lam[i, lane] = B[i, 0, lane] * z[k, lane]
        for s in range(k):
            for lane in range(LANES):
                lam[i, lane] += A[i, s, lane] * z[s, lane]
        for j in range(1, i + 1):
            for lane in range(LANES):
                lam[i, lane] += B[i, j, lane] * z[k + j, lane]


@kernel
def add_mean(factor, weights, values, out):  # type: ignore[no-untyped-def]
    """Add factor Σ_i weights_i values_i, over the rows of both, to out."""
    for i in range(values.shape[0]):
        for lane in range(LANES):
            out[lane] += factor * weights[i, lane] * values[i, lane]


@kernel
def fill_teacher_overlaps(L_star, P):  # type: ignore[no-untyped-def]
    """Fill P = L* L*ᵀ."""
    k = L_star.shape[0]
    for r in range(k):
        for s in range(k):
            for lane in range(LANES):
                P[r, s, lane] = L_star[r, 0, lane] * L_star[s, 0, lane]
            for q in range(1, min(r, s) + 1):
                for lane in range(LANES):
                    P[r, s, lane] += L_star[r, q, lane] * L_star[s, q, lane]


@kernel
def next_targets(order, first, targets, exits, out):  # type: ignore[no-untyped-def]
    """Fill out (LANES,) with the highest target not yet reached, or -inf; say whether there is one."""
    pending = False
    last = order.shape[0] - 1
    for lane in range(LANES):
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
    for lane in range(min(LANES, order.shape[0] - first)):
        replica = order[first + lane]
        for t in range(targets.shape[1]):
            if exits[replica, t] < 0 and risk[lane] <= targets[replica, t]:
                exits[replica, t] = step[lane]


@kernel
def note_divergences(order, first, broken, step, failed):  # type: ignore[no-untyped-def]
    """Note the steps taken so far as the end of each lane that is `broken`."""
    for lane in range(min(LANES, order.shape[0] - first)):
        replica = order[first + lane]
        if failed[replica] < 0 and broken[lane]:
            failed[replica] = step[lane]
