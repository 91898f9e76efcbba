"""Batch sharpness times the learning rate, γ E[gᵀHg]/E‖g‖².

g and H are the gradient and the Hessian of the loss of a batch of n_b fresh samples (Andreyev and Beneventano, arXiv
2412.20553). It is the ratio of two means, not the mean of the ratios, which differs from it for few samples. Where it
is 2, a step of SGD leaves on average the squared gradient of its own batch as it is, to second order: beyond, steps of
single samples make their losses larger. Unlike `sharpness` it is of order one at γ of order one.

Exact for every d and n_b, with both layers where the second is trained (`maths/curvature.py`).
"""

from sweeplib.networks.observables.hessian import OF_STEPS, of_curvatures
from sweeplib.networks.observables.observable import OBSERVABLES
from sweeplib.networks.problem import Limit
from sweeplib.networks.views import Estimate, OverlapView

FRESH = Limit("samples", "no batches of fresh samples", "null, as batch sharpness is that of fresh samples")


def times_rate(now: OverlapView) -> Estimate:
    """The batch sharpness times γ (n,), and its error."""
    return Estimate(*(now.gamma * curvatures.batch for curvatures in now.curvatures))


OBSERVABLES.add(
    of_curvatures(
        "batch_sharpness",
        times_rate,
        (),
        "learning rate times the batch sharpness",
        r"\gamma\,\mathbb{E}[g^\top H g]/\mathbb{E}\|g\|^2",
        reads=OF_STEPS | {"Delta", "batch_size"},
        limits=(FRESH,),
    ),
)
