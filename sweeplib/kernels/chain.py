"""The compiled step of the overlap chain, for groups of replicas side by side in vector lanes."""

import math

import numpy as np

from sweeplib.kernels.lanes import (
    OVERFLOW,
    add_mean,
    draw_normals,
    fields,
    fill_teacher_overlaps,
    gather,
    group_width,
    kernel,
    next_targets,
    note_divergences,
    note_exits,
    scatter,
)
from sweeplib.numerics.random import attempt_words, chi_square, chi_square_proposal, gamma_constants


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_values = student_slopes = teacher_values = population_risk = _unbound


@kernel
def draw_outside(degrees, scale, width, normal, step, seed, key, sure, out):  # type: ignore[no-untyped-def]
    """Fill out (lanes,) with the length s of each sample out of the span of the weights, s² ~ χ²(degrees)."""
    lanes = out.shape[0]
    certain = True
    for lane in range(lanes):
        word, _, _, _ = attempt_words(step[lane], seed[lane], key[lane])
        square, accepted = chi_square_proposal(scale[lane], width[lane], normal[lane], word)
        sure[lane] = accepted & (degrees[lane] >= 2.0)
        out[lane] = math.sqrt(square)
    for lane in range(lanes):
        certain &= sure[lane]
    if not certain:
        for lane in range(lanes):
            if not sure[lane]:
                out[lane] = math.sqrt(chi_square(degrees[lane], normal[lane], step[lane], seed[lane], key[lane]))


@kernel
def rotation(x, y):  # type: ignore[no-untyped-def]
    """(cosine, sine, length): the rotation of (x, y) to (length, 0); the identity where both are zero."""
    length = math.sqrt(x * x + y * y)
    inverse = 1.0 / length if length > 0.0 else 0.0
    return (x * inverse if length > 0.0 else 1.0), y * inverse, length


@kernel
def rotate_columns(B, j, spill, cosine, sine):  # type: ignore[no-untyped-def]
    """Rotate columns j and j + 1 of B, from row j on; the column beyond the last is `spill`."""
    p, _, lanes = B.shape
    for i in range(j, p):
        if j + 1 < p:
            for lane in range(lanes):
                left, right = B[i, j, lane], B[i, j + 1, lane]
                B[i, j, lane] = cosine[lane] * left + sine[lane] * right
                B[i, j + 1, lane] = cosine[lane] * right - sine[lane] * left
        else:
            for lane in range(lanes):
                left, right = B[i, j, lane], spill[lane]
                B[i, j, lane] = cosine[lane] * left + sine[lane] * right
                spill[lane] = cosine[lane] * right - sine[lane] * left


@kernel
def refactor(B, c, z, k, outside, tail, spill, cosine, sine):  # type: ignore[no-untyped-def]
    """Replace B by a lower triangular factor of [B + c wᵀ, s c], by rotations of columns; w is z from row k on.

    From the last column on, rotate (w, s) into its first axis: B turns Hessenberg, its column beyond the last, `spill`,
    being zero but in the last row. Then c times the length of (w, s) goes into the first column, and rotations from the
    first column on make B triangular again. A single row needs none of it: its factor is its length.
    """
    p, _, lanes = B.shape
    if p == 1:
        for lane in range(lanes):
            along = B[0, 0, lane] + c[0, lane] * z[k, lane]
            across = c[0, lane] * outside[lane]
            B[0, 0, lane] = math.sqrt(along * along + across * across)
        return
    for lane in range(lanes):
        tail[lane] = outside[lane]
        spill[lane] = 0.0
    for j in range(p - 1, -1, -1):
        for lane in range(lanes):
            cosine[lane], sine[lane], tail[lane] = rotation(z[k + j, lane], tail[lane])
        rotate_columns(B, j, spill, cosine, sine)
    for i in range(p):
        for lane in range(lanes):
            B[i, 0, lane] += c[i, lane] * tail[lane]
    for j in range(p):
        for lane in range(lanes):
            right = B[j, j + 1, lane] if j + 1 < p else spill[lane]
            cosine[lane], sine[lane], tail[lane] = rotation(B[j, j, lane], right)
        rotate_columns(B, j, spill, cosine, sine)


@kernel
def project(A, B, norm):  # type: ignore[no-untyped-def]
    """Divide each student row of (A, B) by its norm."""
    p, k, lanes = A.shape
    for i in range(p):
        for lane in range(lanes):
            norm[lane] = B[i, 0, lane] * B[i, 0, lane]
        for j in range(1, i + 1):
            for lane in range(lanes):
                norm[lane] += B[i, j, lane] * B[i, j, lane]
        for s in range(k):
            for lane in range(lanes):
                norm[lane] += A[i, s, lane] * A[i, s, lane]
        for lane in range(lanes):
            norm[lane] = 1.0 / math.sqrt(norm[lane])
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] *= norm[lane]
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] *= norm[lane]


@kernel
def add_products(x, y, count, out):  # type: ignore[no-untyped-def]
    """Add Σ_s x_s y_s, over the first rows of both, to out."""
    lanes = out.shape[0]
    for s in range(0, count - 1, 2):
        for lane in range(lanes):
            out[lane] += x[s, lane] * y[s, lane] + x[s + 1, lane] * y[s + 1, lane]
    if count % 2:
        for lane in range(lanes):
            out[lane] += x[count - 1, lane] * y[count - 1, lane]


@kernel
def fill_overlaps(A, B, L_star, Q, M):  # type: ignore[no-untyped-def]
    """Fill Q = A Aᵀ + B Bᵀ and M = A L*ᵀ."""
    p, k, lanes = A.shape
    Q[:], M[:] = 0.0, 0.0
    for i in range(p):
        for j in range(i + 1):
            add_products(B[i], B[j], j + 1, Q[i, j])
            add_products(A[i], A[j], k, Q[i, j])
            for lane in range(lanes):
                Q[j, i, lane] = Q[i, j, lane]
        for r in range(k):
            add_products(A[i], L_star[r], r + 1, M[i, r])


def chain_round(  # type: ignore[no-untyped-def]
    order,
    chunk,
    spherical,
    A_all,
    B_all,
    L_star_all,
    a_all,
    a_star_all,
    rate_all,
    second_rate_all,
    noise_all,
    degrees_all,
    keys,
    seeds,
    until,
    targets,
    steps,
    exits,
    failed,
):
    """Take up to `chunk` steps, not beyond `until`, with each replica in `order`; the state is changed in place.

    A_all (p, k, n), B_all (p, p, n), L_star_all (k, k, n), a_all (p, n), a_star_all (k, n); of shape (n,): rate γ/(pd),
    second_rate ε times that (all positive, or all zero: frozen), noise √Δ, degrees d−p−k, keys, seeds, until, steps,
    failed; targets and exits (n, thresholds).
    """
    p, k, n = A_all.shape
    last = order.shape[0] - 1
    trained = second_rate_all[0] > 0.0
    first = 0
    while first < order.shape[0]:
        lanes = group_width(order.shape[0] - first)
        A, B, L_star = np.empty((p, k, lanes)), np.zeros((p, p, lanes)), np.empty((k, k, lanes))
        Q, M, P = np.empty((p, p, lanes)), np.empty((p, k, lanes)), np.empty((k, k, lanes))
        a, a_star, constants = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((4, lanes))
        z, lam, lam_star = np.empty((4 * ((p + k + 5) // 4), lanes)), np.empty((p, lanes)), np.empty((k, lanes))
        value, value_star = np.empty((p, lanes)), np.empty((k, lanes))
        c, spill, outside, displacement = np.empty((p, lanes)), np.empty(lanes), np.empty(lanes), np.empty(lanes)
        scale, width = np.empty(lanes), np.empty(lanes)
        sure, broken = np.empty(lanes, np.bool_), np.empty(lanes, np.bool_)
        cosine, sine, tail = np.empty(lanes), np.empty(lanes), np.empty(lanes)
        risk, target = np.empty(lanes), np.empty(lanes)
        key, seed, step = np.empty(lanes, np.uint64), np.empty(lanes, np.uint64), np.empty(lanes, np.uint64)
        lams, values, slopes = lam.reshape(p * lanes), value.reshape(p * lanes), c.reshape(p * lanes)
        lams_star, values_star = lam_star.reshape(k * lanes), value_star.reshape(k * lanes)
        gather(A_all.reshape((p * k, n)), order, first, A.reshape((p * k, lanes)))
        gather(B_all.reshape((p * p, n)), order, first, B.reshape((p * p, lanes)))
        gather(L_star_all.reshape((k * k, n)), order, first, L_star.reshape((k * k, lanes)))
        gather(a_all, order, first, a)
        gather(a_star_all, order, first, a_star)
        count = chunk
        for lane in range(lanes):
            replica = order[min(first + lane, last)]
            constants[0, lane] = rate_all[replica]
            constants[1, lane] = noise_all[replica]
            constants[2, lane] = degrees_all[replica]
            constants[3, lane] = second_rate_all[replica]
            scale[lane], width[lane] = gamma_constants(degrees_all[replica])
            key[lane], seed[lane], step[lane] = keys[replica], seeds[replica], steps[replica]
            count = min(count, until[replica] - steps[replica])
        fill_teacher_overlaps(L_star, P)
        pending = next_targets(order, first, targets, exits, target)
        for _ in range(count):
            draw_normals(step, seed, key, z)
            draw_outside(constants[2], scale, width, z[k + p + 1], step, seed, key, sure, outside)
            fields(A, B, L_star, z, lam, lam_star)
            for lane in range(lanes):
                displacement[lane] = constants[1, lane] * z[k + p, lane]
            teacher_values(lams_star, values_star)
            add_mean(1.0 / k, a_star, value_star, displacement)
            student_values(lams, values)
            add_mean(-1.0 / p, a, value, displacement)
            diverged = False
            for lane in range(lanes):
                broken[lane] = not abs(displacement[lane]) < OVERFLOW
                diverged |= broken[lane]
            if diverged:
                note_divergences(order, first, broken, step, failed)
            student_slopes(lams, slopes)
            for i in range(p):
                for lane in range(lanes):
                    c[i, lane] *= constants[0, lane] * a[i, lane] * displacement[lane]
                for s in range(k):
                    for lane in range(lanes):
                        A[i, s, lane] += c[i, lane] * z[s, lane]
            if trained:
                for i in range(p):
                    for lane in range(lanes):
                        a[i, lane] += constants[3, lane] * value[i, lane] * displacement[lane]
            refactor(B, c, z, k, outside, tail, spill, cosine, sine)
            if spherical:
                project(A, B, risk)
            for lane in range(lanes):
                step[lane] += np.uint64(1)
            if pending:
                fill_overlaps(A, B, L_star, Q, M)
                population_risk(Q, M, P, a, a_star, risk)
                hit = False
                for lane in range(lanes):
                    hit |= risk[lane] <= target[lane]
                if hit:
                    note_exits(order, first, risk, targets, step, exits)
                    pending = next_targets(order, first, targets, exits, target)
        scatter(A.reshape((p * k, lanes)), order, first, A_all.reshape((p * k, n)))
        scatter(B.reshape((p * p, lanes)), order, first, B_all.reshape((p * p, n)))
        if trained:
            scatter(a, order, first, a_all)
        for lane in range(min(lanes, order.shape[0] - first)):
            steps[order[first + lane]] = step[lane]
        first += lanes
