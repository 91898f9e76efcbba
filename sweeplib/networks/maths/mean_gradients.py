"""Products of the mean gradients of the student's units, from the drifts alone.

A step moves unit i by c_i x, c_i = a_i σ'(λ_i) E. With the mean slopes D_im = E[∂c_i/∂λ_m], D_s to students (p, p) and
D_t to teachers (p, k), E[c_i x] is Σ_m D_im w_m/d. D_s is found in the eigenbasis of Q⊥ = Q − M P⁻¹ Mᵀ, the covariance
of the students' fields given the teacher's. Of n systems, drift_M (n, p, k) is Ψ^M, drift_GF (n, p, p) is Ψ^GF, and
resolution (n,) is the relative error of both.
"""

from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import Expectations

ROUNDING, RESOLUTION = 1e-14, 1e-10
"""The relative error of drifts in closed form, and the least of others."""


def resolution_of(expectations: Expectations, *state: Array) -> Array:
    """The relative error (n,) of the drifts of n systems by their rule, at least `ROUNDING` or `RESOLUTION`.

    state : Q, M, P, a, a* and Δ of the systems.
    """
    if expectations.finer is None:
        return np.full(len(state[0]), ROUNDING if expectations.exact else RESOLUTION)
    return np.fmax(RESOLUTION, expectations.drift_errors(*state))


def mean_gradient_products(
    drift_M: Array, drift_GF: Array, Q: Array, M: Array, P: Array, resolution: Array
) -> tuple[Array, Array]:
    """The products d E[c_i x]·E[c_j x] (n, p, p) of n systems as the Gram matrix DΩDᵀ, and what their trace lacks (n,).

    With c_i = a_i σ'(λ_i) E and D_im = E[∂c_i/∂λ_m], E[c_i x] = Σ_m D_im w_m/d over all rows w_m, students and
    teachers, by Stein's lemma. With the two blocks of D, Ψ^M = D_s M + D_t P and Ψ^GF = G + Gᵀ, G = D_s Q + D_t Mᵀ.
    D_s is symmetric: off the diagonal it is −(a_i a_j/p) E[σ'_i σ'_j]. So, with Q⊥ = Q − M P⁻¹ Mᵀ,

        D_s Q⊥ + Q⊥ D_s = Ψ^GF − Ψ^M P⁻¹ Mᵀ − M P⁻¹ Ψ^Mᵀ,    DΩDᵀ = D_s Q⊥ D_s + Ψ^M P⁻¹ Ψ^Mᵀ.

    The left equation is solved in the eigenbasis of Q⊥, by division by the sums q_α + q_β of its eigenvalues. A sum of
    zero does not matter, so Ω may be singular; sums below `resolution` (n,) of the largest Q_ii count as zero. What the
    trace then lacks is known as far as the drifts are. Systems with non-finite overlaps have NaN.

    drift_M (n, p, k) is Ψ^M, drift_GF (n, p, p) is Ψ^GF; Q (n, p, p), M (n, p, k), P (n, k, k).
    """
    inverse, slopes, variances, axes, finite, lack = _solved(drift_M, drift_GF, Q, M, P, resolution)
    across = axes @ (slopes * np.sqrt(variances)[:, None, :])
    return np.where(finite, _products(drift_M @ inverse, drift_M) + _products(across, across), np.nan), lack


def mean_slopes(
    drift_M: Array, drift_GF: Array, Q: Array, M: Array, P: Array, resolution: Array
) -> tuple[Array, Array]:
    """The two blocks D_s (n, p, p) and D_t (n, p, k) of D, the mean slopes, of least norm where Ω is singular.

    The arguments and D are those of `mean_gradient_products`.
    """
    inverse, slopes, _, axes, finite, _ = _solved(drift_M, drift_GF, Q, M, P, resolution)
    D = np.where(finite, axes @ slopes @ axes.transpose(0, 2, 1), np.nan)
    return D, (drift_M - D @ M) @ inverse


def _solved(
    drift_M: Array, drift_GF: Array, Q: Array, M: Array, P: Array, resolution: Array
) -> tuple[Array, Array, Array, Array, Any, Array]:
    """The parts of the solution D_s: P⁺, D_s in the eigenbasis of Q⊥, its eigenvalues and vectors, `finite`, `lack`.

    finite (n, 1, 1) : where overlaps are finite numbers. lack (n,) : what tr D_s Q⊥ D_s lacks.
    The arguments are those of `mean_gradient_products`.
    """
    inverse: Any = np.linalg.pinv(P, hermitian=True)
    inside, along = (_products(matrix @ inverse, M) for matrix in (M, drift_M))
    outside = Q - inside
    finite = np.isfinite(outside).all(axis=(1, 2), keepdims=True)
    variances, axes = np.linalg.eigh(np.where(finite, outside, 0.0))
    variances = np.maximum(variances, 0.0)
    moments = axes.transpose(0, 2, 1) @ (drift_GF - along - along.transpose(0, 2, 1)) @ axes
    sums = variances[:, :, None] + variances[:, None, :]
    largest = np.einsum("nii->ni", Q).max(axis=1)[:, None, None]
    small = ~(sums > resolution[:, None, None] * largest)
    slopes = np.where(small, 0.0, moments / np.where(small, 1.0, sums))
    floor = np.fmax(np.finfo(float).eps * largest, np.finfo(float).tiny)
    lack = np.where(small, 0.5 * moments**2 / np.maximum(sums, floor), 0.0).sum(axis=(1, 2))
    return inverse, slopes, variances, axes, finite, lack


def _products(first: Array, second: Array) -> Array:
    """The products x_i·y_j (n, p, q) of the rows of first (n, p, m) and second (n, q, m)."""
    return first @ second.transpose(0, 2, 1)
