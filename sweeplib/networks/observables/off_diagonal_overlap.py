"""Largest overlap of two students outside of the teacher's span: max_(i≠j) |Q⊥_ij|, Q⊥ = Q − M P⁺ Mᵀ.

That is ‖Q − M P⁺ Mᵀ − diag Q⊥‖∞, what mean fields with d → ∞ leave out. Students N(0, I) have elements of variance
1/d, whose largest is about √(4 log p/d). It is zero for p = 1.
"""

from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView


def of_units(now: OverlapView) -> Array:
    """The largest |Q⊥_ij| (n,) over pairs of different students i, j."""
    inverse: Any = np.linalg.pinv(now.P, hermitian=True)
    outside = np.abs(now.Q - now.M @ inverse @ now.M.swapaxes(1, 2))
    # the diagonal, of which `einsum` returns a view
    np.einsum("nii->ni", outside)[:] = 0.0
    return np.asarray(outside.max(axis=(1, 2)))


OBSERVABLES.add(
    Observable(
        "off_diagonal_overlap",
        of_units,
        (),
        "largest overlap of two students outside of the teacher's span",
        r"\max_{i \neq j} |Q^\perp_{ij}|",
        reads=frozenset(),
        needs_teacher=True,
    ),
)
