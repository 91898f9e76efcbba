"""The ODE for inputs with several eigenvalues: equations of the overlaps of blocks, and the error of the limit.

With fields of the covariance Ω = Σ λ_b Ω_b, D = (G | Ψ^M) Ω⁺ and τ_b = λ_b d_b/d,

    Ṁ_b = λ_b (DΩ_b)_*,    Q̇_b = λ_b [DΩ_b + transpose] + (γ/p) τ_b Ψ^Var.

A step moves the mode of the eigenvalue λ_b by γ λ_b/(pd) of itself. The limit needs d → ∞ with small γ λ_max/(pd); a
power law of trace d has λ_max ∝ d, and no limit at a fixed rate. The relative error is of this order, and recorded.

There are L blocks; block b has d_b of the d inputs. A flat state has Q_b (upper triangle) and M_b of each block in
turn, then a (p,) if it is trained, and the time with a schedule.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import Diagnostic
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.block_flow import (
    BlockSystems,
    block_risk,
    block_work_space,
    fill_block_slope,
    gradients_address,
    pack_blocks,
)
from sweeplib.networks.kernels.overlap_flow import Systems, overlaps_of
from sweeplib.networks.maths.mean_gradients import resolution_of
from sweeplib.networks.maths.overlaps import blocks_on_sphere, nearest_covariances
from sweeplib.networks.numerics.integrators.dop853 import Equations

LIMIT_ERROR = Diagnostic(
    (),
    {
        "long_name": "order of the error of the limit of many dimensions",
        "units": "1",
        "symbol": r"\gamma\lambda_{\max}/(pd)",
        "comment": "part of itself by which a step moves the mode of the largest eigenvalue; a relative error",
    },
    over_time=False,
)
"""The labels of `limit_errors`."""
MOMENTUM_ERROR = replace(
    LIMIT_ERROR,
    attrs={
        **LIMIT_ERROR.attrs,
        "symbol": r"\gamma/((1 - \beta)^2 p d)",
        "comment": "time over which momentum keeps a gradient; a relative error",
    },
)
"""The labels of the error of the limit where steps have momentum β: `limit_errors` over (1 − β)²."""


def limit_errors(replicas: Replicas) -> Array:
    """The relative error γ λ_max/(pd) (n,) of the limit d → ∞."""
    return replicas.step_time * replicas.eigenvalues.max(axis=1)


def block_equations(replicas: Replicas, fields: Systems) -> Equations:
    """The equations of blocks of inputs for all replicas; `fields` are the systems of the fields, with their P.

    D is found by P⁺ and by divisions by sums of eigenvalues, where these are above `resolution`, the error of drifts.
    """
    start, P = replicas.blocks, replicas.fields[2]
    tau = replicas.eigenvalues * replicas.multiplicities / replicas.d[:, None]
    resolution = resolution_of(replicas.equations, *replicas.fields, replicas.a, replicas.a_star, replicas.Delta)
    values, tau, P_b = (np.ascontiguousarray(array) for array in (start.eigenvalues, tau, start.P))
    inverse: Any = np.linalg.pinv(P, hermitian=True)
    systems = BlockSystems(fields, values, tau, P_b, inverse, resolution, gradients_address())
    return Equations(fill_block_slope, systems, block_work_space(tau.shape[1], replicas.p, replicas.k), block_risk)


def block_starts(replicas: Replicas) -> Array:
    """The flat states (n, size) at time zero; rows of spherical students are normalised first."""
    Q, M = replicas.blocks.Q, replicas.blocks.M
    if replicas.spherical:
        Q, M = blocks_on_sphere(Q, M)
    return pack_blocks(Q, M, replicas.a, replicas.trains_second_layer, replicas.scheduled)


def blocks_of(replicas: Replicas, states: Array) -> tuple[Array, Array, Array]:
    """Q (n, L, p, p), M (n, L, p, k) and a (n, p) of flat states (n, size), each Q_b the nearest with Ω_b ≥ 0."""
    start, (n, L, p, k) = replicas.blocks, replicas.blocks.M.shape
    end = L * (p * (p + 1) // 2 + p * k)
    Q, M, _ = overlaps_of(states[:, :end].reshape(n * L, -1), p, k, False)
    Q, M = Q.reshape(start.Q.shape), M.reshape(start.M.shape)
    a = (states[:, end : end + p] if replicas.trains_second_layer else replicas.a).copy()
    for b in range(L):
        Q[:, b] = nearest_covariances(Q[:, b], M[:, b], start.P[:, b])
    return (*blocks_on_sphere(Q, M), a) if replicas.spherical else (Q, M, a)
