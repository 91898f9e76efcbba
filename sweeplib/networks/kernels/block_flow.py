"""The right-hand side of the overlaps' ODE for inputs with several eigenvalues, on a flat state, compiled.

Inputs have L blocks of d_b coordinates with the eigenvalue λ_b; block b has the overlaps Q_b, M_b, P_b and Ω_b of the
rows within it. Fields have the covariances Q = Σ_b λ_b Q_b, M, P; their drifts give all Q̇_b and Ṁ_b by the mean slopes
D (p, p), D* (p, k) of `fill_gradients`.

The state is, for each block of inputs, the upper triangle of Q_b row by row and M_b; then a where the second layer is
trained; with a schedule the last variable is the time. Spherical students have their diagonals in it too. `systems` are
the constants of n systems, i the number of one, `work` its work arrays.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.overlap_flow import (
    ROUNDING,
    Systems,
    Work,
    factors_now,
    finish_slope,
    needs_variance,
    network_risk,
    pack,
    unpacked,
    work_space,
)
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import inlined, pointer


class BlockSystems(NamedTuple):
    """The constants of n systems with L blocks of inputs.

    fields : `Systems` of the fields, whose overlaps are their covariances.
    eigenvalues, parts (n, L) : λ_b, and τ_b = λ_b d_b/d.
    P (n, L, k, k), inverse (n, k, k) : P_b of the blocks, and P⁺, the pseudo-inverse of P of the fields.
    resolution (n,) : relative error of drifts; a direction with less variance has no slope.
    gradients : address of `fill_gradients`.
    """

    fields: Systems
    eigenvalues: Array
    parts: Array
    P: Array
    inverse: Array
    resolution: Array
    gradients: Any


class BlockWork(NamedTuple):
    """Work arrays: of the fields, Q_b (L, p, p), M_b (L, p, k), D (p, p), D* (p, k), and Q̇_b as `flow` (L, p, p)."""

    fields: Work
    Q: Array
    M: Array
    D: Array
    D_star: Array
    flow: Array


def block_work_space(L: int, p: int, k: int) -> BlockWork:
    """Empty work arrays for systems of L blocks, p student units and k teacher units."""
    blocks = np.empty((L, p, p)), np.empty((L, p, k))
    return BlockWork(work_space(p, k), *blocks, np.empty((p, p)), np.empty((p, k)), np.empty((L, p, p)))


@cache
def gradients_address() -> Any:
    """`fill_gradients` as an argument of compiled code."""
    matrix, number = numba.types.Array(numba.types.float64, 2, "C"), numba.types.float64
    return pointer(fill_gradients, numba.void(*[matrix] * 5, number, matrix, matrix))


def fill_gradients(Q, M, drift_GF, drift_M, inverse, least, D, D_star):  # type: ignore[no-untyped-def]
    """Fill the mean slopes D (p, p) and D* (p, k) of steps: E[c_i x] = Σ_j D_ij w_j/d + Σ_r D*_ir w*_r/d.

    Q (p, p), M (p, k), drift_GF (p, p), drift_M (p, k), inverse (k, k) : covariances of fields, their drifts, and P⁺.
    least : the sum of the variances of two directions, relative to the largest Q_ii, below which their drift is a
        rounding error, and their slope goes to zero with the sum.
    `mean_gradients` has the same in numpy, with no slope there: a step of the map is no integral.
    """
    outside, along = Q - M @ inverse @ M.T, drift_M @ inverse @ M.T
    # numba's eigh raises an exception for NaN
    if not np.isfinite(outside).all():
        D[:], D_star[:] = np.nan, np.nan
        return
    # beyond the teacher the drift is D outside + outside Dᵀ: solved for the symmetric D along the axes of `outside`
    variances, axes = np.linalg.eigh(outside)
    moments = axes.T @ (drift_GF - along - along.T) @ axes
    floor = max(least * np.diag(Q).max(), np.finfo(np.float64).tiny)
    for i in range(len(variances)):
        for j in range(len(variances)):
            total = variances[i] + variances[j]
            # continuous, and below zero too: integrators stall at jumps, and errors must draw back to zero
            moments[i, j] = moments[i, j] / total if abs(total) > floor else moments[i, j] / floor * (total / floor)
    D[:] = axes @ moments @ axes.T
    D_star[:] = (drift_M - D @ M) @ inverse


def pack_blocks(Q: Array, M: Array, a: Array, trained: bool, scheduled: bool) -> Array:
    """The flat states (n, size) at time zero of Q_b (n, L, p, p), M_b (n, L, p, k) and a (n, p).

    trained, scheduled : whether states have a, and whether they have the time.
    """
    n, (p, k) = len(Q), M.shape[2:]
    of_blocks = pack(Q.reshape(-1, p, p), M.reshape(-1, p, k), a, False, False).reshape(n, -1)
    return np.concatenate([of_blocks, *([a] if trained else []), *([np.zeros((n, 1))] if scheduled else [])], axis=1)


@inlined
def project(Q: Array, M: Array, shrink: Array) -> None:
    """Divide rows of all blocks by their norms: otherwise errors of these grow like e^{−∫Φ_ii dt}.

    Q (L, p, p), M (L, p, k) : overlaps of the blocks. shrink (p,) : a work array.
    """
    blocks, p, k = M.shape
    for j in range(p):
        square = 0.0
        for b in range(blocks):
            square += Q[b, j, j]
        shrink[j] = 1.0 / np.sqrt(square)
    for b in range(blocks):
        for j in range(p):
            for l in range(p):  # noqa: E741
                Q[b, j, l] *= shrink[j] * shrink[l]
            for r in range(k):
                M[b, j, r] *= shrink[j]


@inlined
def unpack_fields(i: int, state: Array, systems: BlockSystems, work: BlockWork) -> None:
    """Fill `work` from the flat state of system i: the overlaps of blocks, then Q, M and a of the fields.

    Spherical rows are divided by their norms first.
    """
    fields, (blocks, p, k) = work.fields, work.M.shape
    for j in range(p):
        # what stays if the second layer is not trained: then the state has none
        fields.a[j] = systems.fields.a[i, j]
    fields.Q[:], fields.M[:] = 0.0, 0.0
    for b in range(blocks):
        first = b * (p * (p + 1) // 2 + p * k)
        unpacked(state[first:], False, systems.fields.trained and b == blocks - 1, work.Q[b], work.M[b], fields.a)
    if systems.fields.spherical:
        project(work.Q, work.M, work.D[0])
    for b in range(blocks):
        for j in range(p):
            for l in range(p):  # noqa: E741
                fields.Q[j, l] += systems.eigenvalues[i, b] * work.Q[b, j, l]
            for r in range(k):
                fields.M[j, r] += systems.eigenvalues[i, b] * work.M[b, j, r]
    if len(systems.fields.L_star) > 0:
        systems.fields.inside(fields.Q, fields.M, systems.fields.L_star[i], False)


def fill_block_slope(i: int, state: Array, systems: BlockSystems, work: BlockWork, slope: Array) -> None:
    """Fill the time derivative: Ṁ_b = λ_b (DΩ_b)_* − λM_b, Q̇_b = λ_b [DΩ_b + transpose] + (γ/p) τ_b Ψ^Var − 2λQ_b.

    λ is the weight decay; (DΩ_b)_* are the columns of the teacher. Noise of the weights adds 2T d_b/d to the diagonal
    of Q̇_b, T the temperature. All drifts are those of the covariance of fields. A schedule and the sphere act as in
    `overlap_flow.fill_slope`; Φ is the sum of all Q̇_b, so that rows of all blocks are divided by the same norm.
    """
    unpack_fields(i, state, systems, work)
    fields, D, D_star, flow = systems.fields, work.D, work.D_star, work.flow
    Q, M, a, drifts, _, clock = work.fields
    numbers, (L, p, k) = fields.numbers, work.M.shape
    rate, chi = factors_now(i, state, fields, clock)
    Delta, with_variance = numbers.Delta[i] * chi, needs_variance(numbers.noise[i], False, M)
    stretch = 1.0 if with_variance else 0.0
    fields.drifts(System(Q, M, fields.P[i], a, fields.a_star[i], Delta, stretch, fields.pair, None), drifts)
    if not with_variance:
        drifts.Var[:] = 0.0
    for j in range(p):
        for r in range(k):
            # a student that knows nothing of this unit: the drift is a rounding error, which would start an escape
            if M[j, r] == 0.0 and abs(drifts.M[j, r]) <= ROUNDING * np.sqrt(drifts.Var[j, j] * fields.P[i, r, r]):
                drifts.M[j, r] = 0.0
    systems.gradients(Q, M, drifts.GF, drifts.M, systems.inverse[i], systems.resolution[i], D, D_star)
    # ½ Φ_jj on the sphere
    pull = np.zeros(p)
    for b in range(L):
        for j in range(p):
            for l in range(p):  # noqa: E741
                total = 0.0
                for m in range(p):
                    total += D[j, m] * work.Q[b, m, l] + D[l, m] * work.Q[b, m, j]
                for r in range(k):
                    total += D_star[j, r] * work.M[b, l, r] + D_star[l, r] * work.M[b, j, r]
                noise = rate * numbers.noise[i] * systems.parts[i, b] * drifts.Var[j, l]
                flow[b, j, l] = (
                    systems.eigenvalues[i, b] * total + noise - 2.0 * numbers.weight_decay[i] * work.Q[b, j, l]
                )
            # the part of the inputs in the block, of which λ_b are the weights
            flow[b, j, j] += 2.0 * numbers.temperature[i] * systems.parts[i, b] / systems.eigenvalues[i, b]
            if fields.spherical:
                pull[j] += 0.5 * flow[b, j, j]
    at = 0
    for b in range(L):
        for j in range(p):
            for l in range(j, p):  # noqa: E741
                slope[at] = flow[b, j, l] - work.Q[b, j, l] * (pull[j] + pull[l])
                at += 1
        for j in range(p):
            for r in range(k):
                total = 0.0
                for m in range(p):
                    total += D[j, m] * work.M[b, m, r]
                for s in range(k):
                    total += D_star[j, s] * systems.P[i, b, s, r]
                decay = numbers.weight_decay[i] + pull[j]
                slope[at] = systems.eigenvalues[i, b] * total - decay * work.M[b, j, r]
                at += 1
    finish_slope(i, at, rate, fields, work.fields, slope)


def block_risk(i: int, state: Array, systems: BlockSystems, work: BlockWork) -> float:
    """The population risk of the flat state (size,) of system i."""
    unpack_fields(i, state, systems, work)
    return float(network_risk(i, systems.fields, work.fields))
