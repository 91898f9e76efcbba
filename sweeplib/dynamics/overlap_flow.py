"""The compiled right-hand side of the overlaps' ODE, on a flat state.

The state is the upper triangle of Q row by row, then M; for spherical students the triangle is strict, as Q_ii = 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _unbound(*_: Any) -> None:
    raise NotImplementedError("bound by `specialised`")


drifts = population_risk = unpacked = _unbound


def unpack(state: Array, spherical: bool, Q: Array, M: Array) -> None:
    """Fill Q (p, p) and M (p, k) from the flat state."""
    p, k = M.shape
    first = 1 if spherical else 0
    at = 0
    for i in range(p):
        Q[i, i] = 1.0
        for j in range(i + first, p):
            Q[i, j] = Q[j, i] = state[at]
            at += 1
    for i in range(p):
        for r in range(k):
            M[i, r] = state[at]
            at += 1


def pack(Q: Array, M: Array, spherical: bool) -> Array:
    """The flat state of overlaps; rows of spherical students are normalised first."""
    if spherical:
        norm = np.sqrt(np.diagonal(Q))
        Q, M = Q / np.outer(norm, norm), M / norm[:, None]
    return np.concatenate([Q[np.triu_indices(len(Q), 1 if spherical else 0)], M.ravel()])


def flow(
    state: Array,
    spherical: bool,
    noise: float,
    Delta: float,
    P: Array,
    a: Array,
    a_star: Array,
) -> Array:
    """The time derivative of the state: Ṁ = Ψ^M, Q̇ = Ψ^GF + (γ/p) Ψ^Var with `noise` = γ/p (arXiv 2302.05882, eq. 7).

    With Φ that drift of Q, spherical students have Ṁ_ir −= M_ir Φ_ii/2 and Q̇_ij −= Q_ij (Φ_ii + Φ_jj)/2.
    """
    p, k = a.shape[0], a_star.shape[0]
    Q, M = np.empty((p, p)), np.empty((p, k))
    unpacked(state, spherical, Q, M)
    drift_M, drift_Q, drift_Var = np.empty((p, k)), np.empty((p, p)), np.empty((p, p))
    drifts(Q, M, P, a, a_star, Delta, drift_M, drift_Q, drift_Var, np.empty(p))
    derivative = np.empty_like(state)
    at = 0
    for i in range(p):
        for j in range(p):
            drift_Q[i, j] += noise * drift_Var[i, j]
    first, pull = (1, 0.5) if spherical else (0, 0.0)
    for i in range(p):
        for j in range(i + first, p):
            derivative[at] = drift_Q[i, j] - pull * Q[i, j] * (drift_Q[i, i] + drift_Q[j, j])
            at += 1
    for i in range(p):
        for r in range(k):
            derivative[at] = drift_M[i, r] - pull * M[i, r] * drift_Q[i, i]
            at += 1
    return derivative


def state_risk(state: Array, spherical: bool, P: Array, a: Array, a_star: Array) -> float:
    """The population risk of the state."""
    p, k = a.shape[0], a_star.shape[0]
    Q, M, out = np.empty((p, p)), np.empty((p, k)), np.empty(1)
    unpacked(state, spherical, Q, M)
    population_risk(
        Q.reshape((p, p, 1)),
        M.reshape((p, k, 1)),
        P.reshape((k, k, 1)),
        a.reshape((p, 1)),
        a_star.reshape((k, 1)),
        out,
    )
    return float(out[0])
