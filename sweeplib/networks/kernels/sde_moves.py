"""What a step of the SDE adds to the overlaps, and its projection, in vector lanes."""

import math
from typing import NamedTuple

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.lanes import kernel

LEAST_SQUARE = 0.25
"""The least Q_ii by which a projection divides; a step of the SDE, unlike one of SGD, can make Q_ii negative."""
LEAST_TIME = 1e-300
"""In place of T = 0, the time of a step at the rate zero of a schedule."""


class Step(NamedTuple):
    """The increments of a step: M (p, k), the lower triangle of Q (p, p), and a (p,)."""

    M: Array
    Q: Array
    a: Array


@kernel
def add_drifts(time, factor, drifts, step):  # type: ignore[no-untyped-def]
    """Add factor · time · drifts to a step; time (lanes,) is of each lane, `factor` a number."""
    p, k, lanes = drifts.M.shape
    for i in range(p):
        for lane in range(lanes):
            step.a[i, lane] += factor * time[lane] * drifts.a[i, lane]
        for r in range(k):
            for lane in range(lanes):
                step.M[i, r, lane] += factor * time[lane] * drifts.M[i, r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                step.Q[i, j, lane] += factor * time[lane] * drifts.GF[i, j, lane]


@kernel
def move(Q, M, step):  # type: ignore[no-untyped-def]
    """Add a step to Q (p, p, lanes) and M (p, k, lanes); Q stays symmetric."""
    p, k, lanes = M.shape
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                M[i, r, lane] += step.M[i, r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                Q[i, j, lane] += step.Q[i, j, lane]
                Q[j, i, lane] = Q[i, j, lane]


@kernel
def project_drifts(system, T, drifts, step, inverse):  # type: ignore[no-untyped-def]
    """Replace the drifts of (Q, M), Q_ii = 1, by drifts of a projected mean SGD step; divide the noise by its norms.

    With n_i = √(1 + T Φ_ii), Ψ_ir becomes ((M_ir + T Ψ_ir)/n_i − M_ir)/T, and Φ_ij becomes
    ((Q_ij + T Φ_ij)/(n_i n_j) − Q_ij)/T, so Φ_ii vanishes. T (lanes,) : the ODE time of an SGD step. inverse (p, lanes)
    : filled with 1/n_i.
    """
    Q, M, drift_Q, drift_M, step_Q, step_M = system.Q, system.M, drifts.GF, drifts.M, step.Q, step.M
    p, k, lanes = M.shape
    for i in range(p):
        for lane in range(lanes):
            square = max(1.0 + T[lane] * drift_Q[i, i, lane], LEAST_SQUARE)
            inverse[i, lane] = 1.0 / math.sqrt(square)
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                mean = (M[i, r, lane] + T[lane] * drift_M[i, r, lane]) * inverse[i, lane]
                drift_M[i, r, lane] = (mean - M[i, r, lane]) / max(T[lane], LEAST_TIME)
                step_M[i, r, lane] *= inverse[i, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                mean = (Q[i, j, lane] + T[lane] * drift_Q[i, j, lane]) * inverse[i, lane] * inverse[j, lane]
                drift_Q[i, j, lane] = (mean - Q[i, j, lane]) / max(T[lane], LEAST_TIME)
                step_Q[i, j, lane] *= inverse[i, lane] * inverse[j, lane]
        for lane in range(lanes):
            drift_Q[i, i, lane] = 0.0


@kernel
def project(Q, M, inverse):  # type: ignore[no-untyped-def]
    """Divide rows of M, and rows and columns of Q, by the norms √Q_ii, with Q_ii at least LEAST_SQUARE.

    inverse (lanes,) : a work array.
    """
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
