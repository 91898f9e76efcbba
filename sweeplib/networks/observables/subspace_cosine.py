"""Cosine of each teacher row and the span of the students: the part of the row that training has found.

‖Π w*_r‖/‖w*_r‖ = √((Mᵀ Q⁺ M)_rr/P_rr), where Π projects on the span of the student rows. Random students have √(p/d).
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView

ROUNDING = 1e-9
"""Eigenvalues of Q below this fraction of the largest count as zero: students that agree span one direction."""

SCALE = 8
"""The binary logarithm of the step by which rows are scaled: those of lengths between 1/16 and 16 stay as they are.

The squares that are left differ by 2^(2 * SCALE) at most, far less than 1/ROUNDING.
"""

SMALLEST = 1e-300
"""Eigenvalues below this have no finite inverse."""


def of_units(now: OverlapView) -> Array:
    """The cosines (n, k) of teacher rows with the span of the students; NaN for overlaps that are not finite."""
    finite = np.isfinite(now.Q.sum(axis=(1, 2)) + now.M.sum(axis=(1, 2)))[:, None, None]
    Q, M = np.where(finite, now.Q, 0.0), np.where(finite, now.M, np.nan)
    # the length of a row is no part of its direction: powers of two, which do not round, make lengths alike
    length = np.sqrt(np.maximum(np.einsum("nii->ni", Q), 0.0))
    scale = np.exp2(SCALE * np.round(np.log2(np.where(length > 0.0, length, 1.0)) / SCALE))[:, :, None]
    values, vectors = np.linalg.eigh(Q / scale / scale.swapaxes(1, 2))
    floor = np.maximum(ROUNDING * values[:, -1:], SMALLEST)
    inverse = np.where(values > floor, 1.0 / np.maximum(values, floor), 0.0)
    along = np.einsum("nij,nir->njr", vectors, M / scale)
    squares = np.einsum("nj,njr->nr", inverse, along**2) / np.einsum("nrr->nr", now.P)
    # rounding takes the square of a cosine beyond one
    return np.sqrt(np.minimum(squares, 1.0))


OBSERVABLES.add(
    Observable(
        "subspace_cosine",
        of_units,
        ("teacher",),
        "cosine of teacher direction and student subspace",
        r"\cos\vartheta_r",
        reads=frozenset(),
    ),
)
