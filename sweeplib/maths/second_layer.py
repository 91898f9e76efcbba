"""Ridge regression of the second layer at a fixed first layer: f = (1/p) Σ a_i σ(λ_i) is linear in a."""

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.expectations import Expectations

Array = NDArray[np.float64]

LEAST = 1e-10
"""Eigenvalues of the regression matrix below this fraction of the largest one count as zero."""


def population_moments(expectations: Expectations, Q: Array, M: Array, P: Array, a_star: Array) -> tuple[Array, Array]:
    """E[σ(λ_i) σ(λ_j)] (n, p, p) and E[σ(λ_i) f*] (n, p) of n systems, for any activation and target.

    R = ½ E[(f* − f)²] is quadratic in a, so they are differences of the risks of students of one unit at a = 0, ±1, and
    of two units at (±1, ±1). Q (n, p, p), M (n, p, k), P (n, k, k), a* (n, k).
    """
    n, p, _ = M.shape

    def risks(units: Array, a: tuple[float, ...]) -> Array:
        """The risks (n, m) of m students with some of the units (m, width)."""
        m = len(units)
        teachers = (np.repeat(part, m, axis=0) for part in (P, a_star))
        own_Q, own_M = Q[:, units[:, :, None], units[:, None, :]], M[:, units]
        student = (part.reshape(n * m, *part.shape[2:]) for part in (own_Q, own_M))
        found_P, found_a_star = teachers
        layers = np.tile(np.array(a), (n * m, 1))
        return expectations.risks(*student, found_P, layers, found_a_star).reshape(n, m)

    one = np.arange(p)[:, None]
    zero, plus, minus = (risks(one, (a,)) for a in (0.0, 1.0, -1.0))
    squares = np.empty((n, p, p))
    squares[:, one[:, 0], one[:, 0]] = plus + minus - 2.0 * zero
    rows, columns = np.triu_indices(p, 1)
    if p > 1:
        two = np.stack([rows, columns], axis=1)
        signs = ((1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
        same, opposite, other, another = (risks(two, a) for a in signs)
        squares[:, rows, columns] = squares[:, columns, rows] = same + opposite - other - another
    return squares, 0.5 * (minus - plus)


def ridge_regression(squares: Array, products: Array, ridge: Array) -> Array:
    """The second layers a (n, p) that minimise ½ ⟨(y − f)²⟩ + (λ/2p) Σ a_i²: (⟨σσᵀ⟩/p + λ) a = ⟨σ y⟩.

    squares (n, p, p) is ⟨σσᵀ⟩, products (n, p) is ⟨σ y⟩ and ridge (n,) is λ ≥ 0. Directions in which the matrix is
    singular have a = 0. Non-finite systems have NaN.
    """
    finite = np.isfinite(squares).all(axis=(1, 2)) & np.isfinite(products).all(axis=1)
    values, vectors = np.linalg.eigh(np.where(finite[:, None, None], squares, 0.0) / squares.shape[1])
    values = np.maximum(values, 0.0)
    total = values + ridge[:, None]
    kept = total > LEAST * values.max(axis=1, keepdims=True)
    inside = (vectors.transpose(0, 2, 1) @ products[:, :, None])[:, :, 0]
    slopes = np.where(kept, inside / np.where(kept, total, 1.0), 0.0)
    return np.where(finite[:, None], (vectors @ slopes[:, :, None])[:, :, 0], np.nan)
