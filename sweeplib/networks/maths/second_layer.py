"""Ridge regression of the second layer at a fixed first layer: f = (1/p) Σ a_i σ(λ_i) is linear in a."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import Risks

LEAST = 1e-10
"""Eigenvalues of the regression matrix below this fraction of the largest one count as zero."""


@runtime_checkable
class MomentsOfRisk(Protocol):
    """Expectations whose risk is made of moments."""

    def moments(self, Q: Array, M: Array, P: Array, a_star: Array) -> tuple[Array, Array]:
        """Return E[σ(λ_i) σ(λ_j)] (n, p, p) and E[σ(λ_i) f*] (n, p) of n systems; a_star (n, k)."""
        ...


def population_moments(expectations: Risks, Q: Array, M: Array, P: Array, a_star: Array) -> tuple[Array, Array]:
    """The moments E[σ(λ_i) σ(λ_j)] (n, p, p) and E[σ(λ_i) f*] (n, p) of n systems, for any activation and target.

    R = ½ E[(f* − f)²] is quadratic in a, so they are differences of the risks of students of one unit at a = 0, ±1, and
    of two units at (±1, ±1), unless the expectations know them. Q (n, p, p), M (n, p, k), P (n, k, k), a_star (n, k).
    """
    if isinstance(expectations, MomentsOfRisk):
        return expectations.moments(Q, M, P, a_star)
    p = M.shape[1]

    def risks(units: NDArray[np.intp], *layer: float) -> Array:
        """The risks (n, m) of m students that have only the units numbered `units` (m, width), with this layer."""
        n, m = len(M), len(units)
        students = Q[:, units[:, :, None], units[:, None, :]], M[:, units]
        teachers = (np.repeat(array[:, None], m, axis=1) for array in (P, a_star))
        all_Q, all_M, all_P, all_a_star = (array.reshape(n * m, *array.shape[2:]) for array in (*students, *teachers))
        return expectations.risks(all_Q, all_M, all_P, np.tile(layer, (n * m, 1)), all_a_star).reshape(n, m)

    units, (rows, columns) = np.arange(p), np.triu_indices(p, 1)
    single, pairs = units[:, None], np.stack([rows, columns], axis=1)
    zero, plus, minus = (risks(single, a) for a in (0.0, 1.0, -1.0))
    squares = np.empty((len(M), p, p))
    squares[:, units, units] = plus + minus - 2.0 * zero
    # in sums over ±a the terms with f* cancel, and in their difference all but E[σ_i σ_j]
    equal, opposite = (risks(pairs, 1.0, sign) + risks(pairs, -1.0, -sign) for sign in (1.0, -1.0))
    squares[:, rows, columns] = squares[:, columns, rows] = equal - opposite
    return squares, 0.5 * (minus - plus)


def ridge_regression(squares: Array, products: Array, ridge: Array) -> Array:
    """The second layers a (n, p) that minimise ½ ⟨(y − f)²⟩ + (λ/2p) Σ a_i²: (⟨σσᵀ⟩/p + λ) a = ⟨σ y⟩.

    squares (n, p, p) is ⟨σσᵀ⟩, products (n, p) is ⟨σ y⟩ and ridge (n,) is λ ≥ 0. Directions in which the matrix is
    singular have a = 0. Non-finite systems have NaN.
    """
    finite = np.isfinite(squares).all(axis=(1, 2), keepdims=True)
    values, vectors = np.linalg.eigh(np.where(finite, squares, 0.0) / squares.shape[1])
    values = np.maximum(values, 0.0)
    total = values + ridge[:, None]
    mask = total > LEAST * values.max(axis=1, keepdims=True)
    inside = (vectors.transpose(0, 2, 1) @ products[:, :, None])[:, :, 0]
    along = np.where(mask, inside / np.where(mask, total, 1.0), 0.0)
    return np.where(finite, vectors @ along[:, :, None], np.nan)[:, :, 0]
