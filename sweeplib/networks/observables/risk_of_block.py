"""Population risk of a linear student from each block of coordinates whose inputs have one eigenvalue.

f − f* is a sum over blocks, and so is its variance: R_b = ½ λ_b (āᵀQ_b ā − 2 āᵀM_b ā* + ā*ᵀP_b ā*), ā = a/p, ā* = a*/k.
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.problem import Limit
from sweeplib.networks.views import OverlapView

# the reason and what is expected, as a `Limit` takes them
_NO_SUM = (
    "no `risk_of_block`: this risk is no sum over the blocks",
    "`linear` with a linear committee; or `cosine_of_block`, for all students",
)


def of_units(now: OverlapView) -> Array:
    """The risks (n, L), whose sum is the population risk."""
    blocks, a, a_star = now.blocks, now.a / now.a.shape[1], now.a_star / now.a_star.shape[1]
    products = ((a, blocks.Q, a), (a, -2.0 * blocks.M, a_star), (a_star, blocks.P, a_star))
    return 0.5 * blocks.eigenvalues * sum(np.einsum("ni,nbij,nj->nb", u, kernel, v) for u, kernel, v in products)


OBSERVABLES.add(
    Observable(
        "risk_of_block",
        of_units,
        ("block",),
        "population risk from a block of inputs",
        r"\mathcal{R}_b",
        reads=READS,
        limits=(
            Limit("activation", *_NO_SUM, where=lambda problem: problem.activation != "linear"),
            Limit("teacher_activation", *_NO_SUM, where=lambda problem: problem.teacher != "linear"),
            Limit("target", *_NO_SUM),
        ),
        needs_teacher=True,
        least=0.0,
    ),
)
