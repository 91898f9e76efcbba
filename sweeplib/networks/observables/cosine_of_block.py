"""Cosines of student and teacher rows within a block of coordinates whose inputs have one eigenvalue.

M_b,ir/√(Q_b,ii P_b,rr), the first block has the first eigenvalue; NaN for rows without a part in the block.
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView


def of_units(now: OverlapView) -> Array:
    """The cosines (n, L, p, k) of student and teacher rows in each of L blocks."""
    q, P = (np.einsum("nbii->nbi", overlaps) for overlaps in (now.blocks.Q, now.blocks.P))
    norms = np.sqrt(q[:, :, :, None] * P[:, :, None, :])
    return np.divide(now.blocks.M, norms, out=np.full(norms.shape, np.nan), where=norms > 0.0)


OBSERVABLES.add(
    Observable(
        "cosine_of_block",
        of_units,
        ("block", "student", "teacher"),
        "cosine of student and teacher within a block",
        r"\cos\vartheta_{b,ir}",
        reads=frozenset({"data"}),
    ),
)
