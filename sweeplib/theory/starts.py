"""The law of the random start of phase retrieval, as nodes and weights."""

import functools

import numpy as np

from sweeplib.arrays import Array
from sweeplib.late_modules import scipy

_NODES = 64


def starts_and_exits(p: float, d: float, T: float) -> tuple[Array, Array, Array]:
    """Nodes μ0 of the start, the levels μ at which their exit is in the linear regime, and their weights.

    μ = d Σ_j m_j². μ0 ~ χ²_p and τ0 = 2d Σ_{j<l} Q_jl² ~ 2 χ²_{p(p−1)/2}, independent, for d → ∞; the exit is at
    [T p (p+1) d + (1−T)(2 p μ0 − τ0)]/(2p), and at μ0 where that is less.
    Shapes (64, 1), (64, n), (64, n), n = 1 at p = 1.
    """
    mu, mu_weight = chi_squared_rule(p)
    half_tau, tau_weight = chi_squared_rule(p * (p - 1.0) / 2.0)
    start = mu[:, None]
    level = 0.5 * T * (p + 1.0) * d + (1.0 - T) * (start - half_tau / p)
    return start, np.maximum(level, start), np.outer(mu_weight, tau_weight)


@functools.lru_cache(maxsize=64)
def chi_squared_rule(freedom: float) -> tuple[Array, Array]:
    """Gauss nodes and weights for the law χ² of so many degrees of freedom (Golub and Welsch 1969)."""
    if freedom == 0.0:
        return np.zeros(1), np.ones(1)
    shape, order = freedom / 2.0, np.arange(_NODES, dtype=float)
    off_diagonal = np.sqrt(order[1:] * (order[1:] + shape - 1.0))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(2.0 * order + shape, off_diagonal)
    return 2.0 * nodes, vectors[0] ** 2
