"""The compiled Euler-Maruyama steps of the overlaps' SDE, for groups of replicas side by side in vector lanes."""

import math

import numpy as np

from sweeplib.kernels.lanes import (
    OVERFLOW,
    add_mean,
    draw_normals,
    fields,
    gather,
    group_width,
    kernel,
    next_targets,
    note_divergences,
    note_exits,
    scatter,
)

ROUNDING = 1e-12
"""Pivots of Ω below minus this part of Q_ii are taken for an Ω that is no covariance, others for rounding."""

LEAST_SQUARE = 0.25
"""Steps that take Q_ii from 1 to less, to negative even, which SGD's cannot, are divided by the root of this."""


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_values = student_slopes = teacher_values = population_risk = lane_drifts = _unbound


@kernel
def factorise(Q, M, L_star, A, B, indefinite):  # type: ignore[no-untyped-def]
    """Fill A = M L*^{-T} and the lower B with B Bᵀ = Q − A Aᵀ, pivots below zero cut; tell if one is beyond rounding.

    Columns of no length, of a singular Ω, are zero. `indefinite` (lanes,) says of which lanes Ω is no covariance.
    """
    p, k, lanes = M.shape
    for lane in range(lanes):
        indefinite[lane] = False
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                A[i, r, lane] = M[i, r, lane]
            for s in range(r):
                for lane in range(lanes):
                    A[i, r, lane] -= A[i, s, lane] * L_star[r, s, lane]
            for lane in range(lanes):
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
                rest = B[i, j, lane]
                if i == j:
                    indefinite[lane] |= rest < -ROUNDING * Q[j, j, lane]
                    B[i, j, lane] = math.sqrt(max(rest, 0.0))
                else:
                    B[i, j, lane] = rest / B[j, j, lane] if B[j, j, lane] > 0.0 else 0.0
    found = False
    for lane in range(lanes):
        found |= indefinite[lane]
    return found


@kernel
def reflect(Q, M, A, lane, spherical):  # type: ignore[no-untyped-def]
    """Make Ω ≥ 0 in a lane, at the same M: negative eigenvalues of Q − A Aᵀ change their sign.

    Cut to zero, they would stay there where the noise vanishes with them, in a state that SGD does not reach.
    """
    p, k, _ = M.shape
    inside, across = np.zeros((p, p)), np.zeros((p, p))
    for i in range(p):
        for j in range(p):
            for s in range(k):
                inside[i, j] += A[i, s, lane] * A[j, s, lane]
            across[i, j] = Q[i, j, lane] - inside[i, j]
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


@kernel
def factorise_within(Q, M, L_star, A, B, spherical, broken, indefinite):  # type: ignore[no-untyped-def]
    """Fill A and B as `factorise` does, after reflecting at Ω ≥ 0 the lanes that left it and are not `broken`."""
    lanes = Q.shape[2]
    if factorise(Q, M, L_star, A, B, indefinite):
        for lane in range(lanes):
            if indefinite[lane] and not broken[lane]:
                reflect(Q, M, A, lane, spherical)
        factorise(Q, M, L_star, A, B, indefinite)


@kernel
def project_drifts(Q, M, temperature, drift_Q, drift_M, step_Q, step_M, inverse):  # type: ignore[no-untyped-def]
    """Replace drifts of (Q, M), Q_ii = 1, by those of a mean SGD step divided by its norms; divide the noise by these.

    With T = γ/(pd) the `temperature`, n_i = √(1 + T Φ_ii) and `inverse` (p, lanes) to hold 1/n_i: Ψ_ir becomes
    ((M_ir + T Ψ_ir)/n_i − M_ir)/T, and Φ_ij ((Q_ij + T Φ_ij)/(n_i n_j) − Q_ij)/T, which leaves nothing of Φ_ii.
    """
    p, k, lanes = M.shape
    for i in range(p):
        for lane in range(lanes):
            square = max(1.0 + temperature[lane] * drift_Q[i, i, lane], LEAST_SQUARE)
            inverse[i, lane] = 1.0 / math.sqrt(square)
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                mean = (M[i, r, lane] + temperature[lane] * drift_M[i, r, lane]) * inverse[i, lane]
                drift_M[i, r, lane] = (mean - M[i, r, lane]) / temperature[lane]
                step_M[i, r, lane] *= inverse[i, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                mean = (Q[i, j, lane] + temperature[lane] * drift_Q[i, j, lane]) * inverse[i, lane] * inverse[j, lane]
                drift_Q[i, j, lane] = (mean - Q[i, j, lane]) / temperature[lane]
                step_Q[i, j, lane] *= inverse[i, lane] * inverse[j, lane]
        for lane in range(lanes):
            drift_Q[i, i, lane] = 0.0


@kernel
def project(Q, M, inverse):  # type: ignore[no-untyped-def]
    """Divide rows of M, rows and columns of Q by the norms √Q_ii; squares of norms below LEAST_SQUARE count as that."""
    p, k, lanes = M.shape
    for i in range(p):
        for lane in range(lanes):
            inverse[lane] = 1.0 / math.sqrt(max(Q[i, i, lane], LEAST_SQUARE))
        for r in range(k):
            for lane in range(lanes):
                M[i, r, lane] *= inverse[lane]
        for j in range(p):
            for lane in range(lanes):
                Q[i, j, lane] *= inverse[lane]
                Q[j, i, lane] = Q[i, j, lane]
        for lane in range(lanes):
            Q[i, i, lane] = 1.0


@kernel
def add_drifts(time, drift_Q, drift_M, drift_a, step_Q, step_M, step_a):  # type: ignore[no-untyped-def]
    """Add the drifts over a time (lanes,) to a step, of Q the lower triangle."""
    p, k, lanes = drift_M.shape
    for i in range(p):
        for lane in range(lanes):
            step_a[i, lane] += time[lane] * drift_a[i, lane]
        for r in range(k):
            for lane in range(lanes):
                step_M[i, r, lane] += time[lane] * drift_M[i, r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                step_Q[i, j, lane] += time[lane] * drift_Q[i, j, lane]


@kernel
def move(Q, M, step_Q, step_M):  # type: ignore[no-untyped-def]
    """Add a step to (Q, M), of Q the lower triangle, and keep Q symmetric."""
    p, k, lanes = M.shape
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                M[i, r, lane] += step_M[i, r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                Q[i, j, lane] += step_Q[i, j, lane]
                Q[j, i, lane] = Q[i, j, lane]


def sde_round(  # type: ignore[no-untyped-def]
    order,
    chunk,
    spherical,
    samples,
    share,
    spread,
    Q_all,
    M_all,
    P_all,
    L_star_all,
    a_all,
    a_star_all,
    noise_all,
    Delta_all,
    rate_all,
    length_all,
    temperature_all,
    d_all,
    keys,
    seeds,
    until,
    targets,
    steps,
    exits,
    failed,
):
    """Take up to `chunk` steps, not beyond `until`, with each replica in `order`; the state is changed in place.

    Q_all (p, p, n), M_all (p, k, n), P_all and L_star_all (k, k, n), a_all (p, n), a_star_all (k, n); of shape (n,):
    noise γ/p, Δ, rate ε (all positive, or all zero: frozen), length, the time of a step, temperature T = γ/(pd), d,
    keys, seeds, until, steps, failed; targets and exits (n, thresholds). The noise of a step is T Σ_s η_s (X_s − E X)
    with X_s the mean increment of an SGD step over T given the fields of a fresh sample, and η_s = share + spread ξ_s,
    ξ_s ~ N(0, 1).
    """
    p, k, n = M_all.shape
    last = order.shape[0] - 1
    trained = rate_all[0] > 0.0
    first = 0
    while first < order.shape[0]:
        lanes = group_width(order.shape[0] - first)
        Q, M, P = np.empty((p, p, lanes)), np.empty((p, k, lanes)), np.empty((k, k, lanes))
        A, B, L_star = np.empty((p, k, lanes)), np.zeros((p, p, lanes)), np.empty((k, k, lanes))
        a, a_star, constants = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((8, lanes))
        noise, Delta, rate, length = constants[0], constants[1], constants[2], constants[3]
        temperature, per_dimension, stretch, deviation = constants[4], constants[5], constants[6], constants[7]
        width = p + k + 2
        z = np.empty((4 * ((samples * width + 3) // 4), lanes))
        lam, lam_star, c = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((p, lanes))
        value, value_star = np.empty((p, lanes)), np.empty((k, lanes))
        step_Q, step_M, step_a = np.empty((p, p, lanes)), np.empty((p, k, lanes)), np.empty((p, lanes))
        drift_M, drift_a = np.zeros((p, k, lanes)), np.zeros((p, lanes))
        drift_Q, drift_Var = np.zeros((p, p, lanes)), np.zeros((p, p, lanes))
        eta, total, displacement, square = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
        risk, target = np.empty(lanes), np.empty(lanes)
        broken, indefinite = np.zeros(lanes, np.bool_), np.empty(lanes, np.bool_)
        key, seed, step = np.empty(lanes, np.uint64), np.empty(lanes, np.uint64), np.empty(lanes, np.uint64)
        lams, values, slopes = lam.reshape(p * lanes), value.reshape(p * lanes), c.reshape(p * lanes)
        lams_star, values_star = lam_star.reshape(k * lanes), value_star.reshape(k * lanes)
        gather(Q_all.reshape((p * p, n)), order, first, Q.reshape((p * p, lanes)))
        gather(M_all.reshape((p * k, n)), order, first, M.reshape((p * k, lanes)))
        gather(P_all.reshape((k * k, n)), order, first, P.reshape((k * k, lanes)))
        gather(L_star_all.reshape((k * k, n)), order, first, L_star.reshape((k * k, lanes)))
        gather(a_all, order, first, a)
        gather(a_star_all, order, first, a_star)
        count, filled = chunk, min(lanes, order.shape[0] - first)
        for lane in range(lanes):
            replica = order[min(first + lane, last)]
            noise[lane], rate[lane] = noise_all[replica], rate_all[replica]
            Delta[lane], deviation[lane] = Delta_all[replica], math.sqrt(Delta_all[replica])
            length[lane], temperature[lane] = length_all[replica], temperature_all[replica]
            per_dimension[lane], stretch[lane] = 1.0 / d_all[replica], 1.0 + 2.0 / d_all[replica]
            key[lane], seed[lane], step[lane] = keys[replica], seeds[replica], steps[replica]
            count = min(count, until[replica] - steps[replica])
            broken[lane] = lane >= filled
        pending = next_targets(order, first, targets, exits, target)
        factorise_within(Q, M, L_star, A, B, spherical, broken, indefinite)
        for _ in range(count):
            draw_normals(step, seed, key, z)
            step_Q[:], step_M[:], step_a[:], total[:] = 0.0, 0.0, 0.0, 0.0
            for sample in range(samples):
                u = z[sample * width : (sample + 1) * width]
                fields(A, B, L_star, u, lam, lam_star)
                for lane in range(lanes):
                    displacement[lane] = deviation[lane] * u[k + p, lane]
                    eta[lane] = temperature[lane] * (share + spread * u[k + p + 1, lane])
                    total[lane] += eta[lane]
                    square[lane] = 0.0
                for row in range(k + p):
                    for lane in range(lanes):
                        square[lane] += u[row, lane] * u[row, lane]
                for lane in range(lanes):
                    square[lane] = noise[lane] * (1.0 + per_dimension[lane] * (square[lane] - (k + p)))
                teacher_values(lams_star, values_star)
                add_mean(1.0 / k, a_star, value_star, displacement)
                student_values(lams, values)
                add_mean(-1.0 / p, a, value, displacement)
                student_slopes(lams, slopes)
                for i in range(p):
                    for lane in range(lanes):
                        c[i, lane] *= a[i, lane] * displacement[lane]
                    for r in range(k):
                        for lane in range(lanes):
                            step_M[i, r, lane] += eta[lane] * c[i, lane] * lam_star[r, lane]
                    for j in range(i + 1):
                        for lane in range(lanes):
                            linear = c[i, lane] * lam[j, lane] + c[j, lane] * lam[i, lane]
                            step_Q[i, j, lane] += eta[lane] * (linear + square[lane] * c[i, lane] * c[j, lane])
                if trained:
                    for i in range(p):
                        for lane in range(lanes):
                            step_a[i, lane] += eta[lane] * value[i, lane] * displacement[lane]
            lane_drifts(filled, Q, M, P, a, a_star, Delta, stretch, drift_M, drift_Q, drift_Var, drift_a)
            for i in range(p):
                for j in range(i + 1):
                    for lane in range(lanes):
                        drift_Q[i, j, lane] += noise[lane] * drift_Var[i, j, lane]
            for lane in range(lanes):
                total[lane] *= -1.0
            add_drifts(total, drift_Q, drift_M, drift_a, step_Q, step_M, step_a)
            if spherical:
                project_drifts(Q, M, temperature, drift_Q, drift_M, step_Q, step_M, c)
            add_drifts(length, drift_Q, drift_M, drift_a, step_Q, step_M, step_a)
            move(Q, M, step_Q, step_M)
            if trained:
                for i in range(p):
                    for lane in range(lanes):
                        a[i, lane] += rate[lane] * step_a[i, lane]
            diverged = False
            for i in range(p):
                for lane in range(lanes):
                    broken[lane] |= not ((abs(Q[i, i, lane]) < OVERFLOW) & (abs(a[i, lane]) < OVERFLOW))
                    diverged |= broken[lane]
            if diverged:
                note_divergences(order, first, broken, step, failed)
            if spherical:
                project(Q, M, square)
            factorise_within(Q, M, L_star, A, B, spherical, broken, indefinite)
            for lane in range(lanes):
                step[lane] += np.uint64(1)
            if pending:
                population_risk(Q, M, P, a, a_star, risk)
                hit = False
                for lane in range(lanes):
                    hit |= risk[lane] <= target[lane]
                if hit:
                    note_exits(order, first, risk, targets, step, exits)
                    pending = next_targets(order, first, targets, exits, target)
        scatter(Q.reshape((p * p, lanes)), order, first, Q_all.reshape((p * p, n)))
        scatter(M.reshape((p * k, lanes)), order, first, M_all.reshape((p * k, n)))
        if trained:
            scatter(a, order, first, a_all)
        for lane in range(filled):
            steps[order[first + lane]] = step[lane]
        first += lanes
