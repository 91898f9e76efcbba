"""Products of the mean gradients of the student's units, from the drifts alone."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESOLUTION = 1e-10
"""Relative size below which a part of Q⊥ counts as zero, unless the drifts have a larger error."""


def mean_gradient_products(
    drift_M: Array, drift_GF: Array, Q: Array, M: Array, P: Array, resolution: Array | float = RESOLUTION
) -> Array:
    """The products d E[c_i x]·E[c_j x] (n, p, p) of n systems, c_i = a_i σ'(λ_i) E, as the Gram matrix DΩDᵀ.

    By Stein's lemma E[c_i x] = Σ_m D_im w_m/d over all rows w_m, students and teachers, with D_im = E[∂c_i/∂λ_m] in two
    blocks, (D_s, D_t):
    Ψ^M = D_s M + D_t P and Ψ^GF = G + Gᵀ, G = D_s Q + D_t Mᵀ. D_s is symmetric: off the diagonal it is
    −(a_i a_j/p) E[σ'_i σ'_j]. So Q⊥ = Q − M P⁻¹ Mᵀ yields

        D_s Q⊥ + Q⊥ D_s = Ψ^GF − Ψ^M P⁻¹ Mᵀ − M P⁻¹ Ψ^Mᵀ,    DΩDᵀ = D_s Q⊥ D_s + Ψ^M P⁻¹ Ψ^Mᵀ.

    The left equation is solved in the eigenbasis of Q⊥, by division by q_α + q_β; where this is less than `resolution`
    (n,) of the largest Q_ii, D_s is of no account. Ω may be singular.

    drift_M (n, p, k) is Ψ^M, drift_GF (n, p, p) is Ψ^GF; Q (n, p, p), M (n, p, k), P (n, k, k).
    """
    inverse = np.linalg.pinv(P, hermitian=True)
    inside, along = (_products(part @ inverse, M) for part in (M, drift_M))
    variances, axes = np.linalg.eigh(Q - inside)
    variances = np.maximum(variances, 0.0)
    moments = axes.transpose(0, 2, 1) @ (drift_GF - along - along.transpose(0, 2, 1)) @ axes
    sums = variances[:, :, None] + variances[:, None, :]
    least = np.asarray(resolution * np.einsum("nii->ni", Q).max(axis=1))[:, None, None]
    slopes = np.where(sums > least, moments / np.where(sums > least, sums, 1.0), 0.0)
    across = axes @ (slopes * np.sqrt(variances)[:, None, :])
    return _products(drift_M @ inverse, drift_M) + _products(across, across)


def _products(one: Array, other: Array) -> Array:
    return one @ other.transpose(0, 2, 1)
