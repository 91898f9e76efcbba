"""The compiled Euler-Maruyama steps of the overlaps' SDE, for one replica."""

import math

import numba
import numpy as np

from sweeplib.dynamics.step_dynamics import OVERFLOW
from sweeplib.random import fill_normals

_kernel = numba.njit(error_model="numpy", fastmath={"contract"})

ROUNDING = 1e-12
"""Pivots of Ω below minus this part of Q_ii are taken for an Ω that is no covariance, others for rounding."""


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_value = student_derivative = teacher_value = population_risk = drifts = _unbound


@_kernel
def factorise(Q, M, L_star, A, B):  # type: ignore[no-untyped-def]
    """Fill A = M L*^{-T} and the lower B with B Bᵀ = Q − A Aᵀ, pivots below zero cut; false if one is beyond rounding.

    Columns of no length, of a singular Ω, are zero.
    """
    p, k = M.shape
    for i in range(p):
        for r in range(k):
            rest = M[i, r]
            for s in range(r):
                rest -= A[i, s] * L_star[r, s]
            A[i, r] = rest / L_star[r, r] if L_star[r, r] > 0.0 else 0.0
    covariance = True
    for j in range(p):
        for i in range(j, p):
            rest = Q[i, j]
            for s in range(k):
                rest -= A[i, s] * A[j, s]
            for s in range(j):
                rest -= B[i, s] * B[j, s]
            if i == j:
                covariance &= rest >= -ROUNDING * Q[j, j]
                B[j, j] = math.sqrt(max(rest, 0.0))
            else:
                B[i, j] = rest / B[j, j] if B[j, j] > 0.0 else 0.0
    return covariance


@_kernel
def pull_back(Q, M, A, spherical):  # type: ignore[no-untyped-def]
    """Replace Q by the nearest one for which Ω ≥ 0 at the same M: the positive part of Q − A Aᵀ, plus A Aᵀ."""
    p, k = M.shape
    values, vectors = np.linalg.eigh(Q - A @ A.T)
    across = (vectors * np.maximum(values, 0.0)) @ vectors.T + A @ A.T
    for i in range(p):
        for j in range(p):
            Q[i, j] = 0.5 * (across[i, j] + across[j, i])
    if spherical:
        for i in range(p):
            norm = math.sqrt(across[i, i])
            for j in range(p):
                Q[i, j] /= norm
                Q[j, i] /= norm
            for r in range(k):
                M[i, r] /= norm


@_kernel
def keep_on_sphere(Q, M, step_Q, step_M):  # type: ignore[no-untyped-def]
    """Take from a step of (Q, M) what would change the norms: −Q_ij (ΔQ_ii + ΔQ_jj)/2 and −M_ir ΔQ_ii/2."""
    p, k = M.shape
    for i in range(p):
        for r in range(k):
            step_M[i, r] -= 0.5 * M[i, r] * step_Q[i, i]
        for j in range(p):
            if j != i:
                step_Q[i, j] -= 0.5 * Q[i, j] * (step_Q[i, i] + step_Q[j, j])
    for i in range(p):
        step_Q[i, i] = 0.0


def sde_steps(  # type: ignore[no-untyped-def]
    Q,
    M,
    a,
    P,
    a_star,
    L_star,
    spherical,
    trained,
    noise,
    Delta,
    rate,
    length,
    temperature,
    samples,
    key,
    seed,
    step,
    count,
    targets,
    exits,
    stop_at_exit,
):
    """Take up to `count` steps from `step` on; return the steps taken and whether the run diverged.

    Q (p, p), M (p, k), a (p,) and exits (thresholds,) are changed in place. `noise` is γ/p, `rate` ε, `length` the time
    of a step, `temperature` γ/(pd). The noise of a step is √(length · temperature) G, G = S^(−1/2) Σ_s ξ_s (X_s − E X)
    with X the increment of an SGD step over γ/(pd) for each of S fresh samples, and ξ_s ~ N(0, 1).
    """
    p, k = M.shape
    drift_M, drift_Q, drift_Var, drift_a = np.empty((p, k)), np.empty((p, p)), np.empty((p, p)), np.empty(p)
    step_M, step_Q, step_a = np.empty((p, k)), np.empty((p, p)), np.empty(p)
    A, B = np.empty((p, k)), np.zeros((p, p))
    lam, lam_star, c = np.empty(p), np.empty(k), np.empty(p)
    width = p + k + 2
    z = np.empty(4 * ((samples * width + 3) // 4))
    amplitude = math.sqrt(length * temperature / samples)
    risk = np.empty(1)
    shapes = (p, p, 1), (p, k, 1), (k, k, 1), (p, 1), (k, 1)
    taken, diverged, pending = 0, False, True
    if not factorise(Q, M, L_star, A, B):
        pull_back(Q, M, A, spherical)
        factorise(Q, M, L_star, A, B)
    while taken < count and (pending or not stop_at_exit):
        drifts(Q, M, P, a, a_star, Delta, drift_M, drift_Q, drift_Var, drift_a)
        fill_normals(key, seed, np.uint64(step + taken), z)
        weight = 0.0
        for i in range(p):
            step_a[i] = 0.0
            for r in range(k):
                step_M[i, r] = 0.0
            for j in range(p):
                step_Q[i, j] = 0.0
        for sample in range(samples):
            u = z[sample * width : (sample + 1) * width]
            displacement = math.sqrt(Delta) * u[k + p]
            xi = amplitude * u[k + p + 1]
            weight += xi
            for r in range(k):
                lam_star[r] = 0.0
                for s in range(r + 1):
                    lam_star[r] += L_star[r, s] * u[s]
                displacement += a_star[r] * teacher_value(lam_star[r]) / k
            for i in range(p):
                lam[i] = 0.0
                for s in range(k):
                    lam[i] += A[i, s] * u[s]
                for s in range(i + 1):
                    lam[i] += B[i, s] * u[k + s]
                displacement -= a[i] * student_value(lam[i]) / p
            for i in range(p):
                c[i] = a[i] * student_derivative(lam[i]) * displacement
                if trained:
                    step_a[i] += xi * student_value(lam[i]) * displacement
                for r in range(k):
                    step_M[i, r] += xi * c[i] * lam_star[r]
            for i in range(p):
                for j in range(p):
                    step_Q[i, j] += xi * (c[i] * lam[j] + c[j] * lam[i] + noise * c[i] * c[j])
        for i in range(p):
            for r in range(k):
                step_M[i, r] += (length - weight) * drift_M[i, r]
            for j in range(p):
                step_Q[i, j] += (length - weight) * (drift_Q[i, j] + noise * drift_Var[i, j])
        if spherical:
            keep_on_sphere(Q, M, step_Q, step_M)
        finite = True
        for i in range(p):
            if trained:
                a[i] += rate * (step_a[i] + (length - weight) * drift_a[i])
            for r in range(k):
                M[i, r] += step_M[i, r]
            for j in range(p):
                Q[i, j] += step_Q[i, j]
            finite &= (abs(Q[i, i]) < OVERFLOW) & (abs(a[i]) < OVERFLOW)
        if not finite:
            diverged = True
            break
        if not factorise(Q, M, L_star, A, B):
            pull_back(Q, M, A, spherical)
            factorise(Q, M, L_star, A, B)
        taken += 1
        if targets.shape[0] > 0:
            population_risk(
                Q.reshape(shapes[0]),
                M.reshape(shapes[1]),
                P.reshape(shapes[2]),
                a.reshape(shapes[3]),
                a_star.reshape(shapes[4]),
                risk,
            )
            pending = False
            for t in range(targets.shape[0]):
                if exits[t] < 0 and risk[0] <= targets[t]:
                    exits[t] = step + taken
                pending |= exits[t] < 0
    return taken, diverged
