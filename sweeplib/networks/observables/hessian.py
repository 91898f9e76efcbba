"""Eigenvalues of the Hessian of the population risk, and the sharpness.

The Hessian is that by all weights, in R^{pd} also for students on the sphere; weight decay is not in it. Of its p d
eigenvalues by the first layer, p are in each of the d − p − k directions outside of the span of all rows,
`hessian_bulk`, and p (p + k) belong to directions inside, `hessian_outliers`. Where the second layer is trained, at the
rate ε γ/d, there are p more of both layers, in coordinates in which both have the rate γ: `joint_hessian_outliers`.

Gradient descent with the rate γ on a quadratic risk diverges where `sharpness`, γ times the largest eigenvalue, is
above 2 (Cohen et al., arXiv 2103.00065). It is of order γ/d: steps of single samples end elsewhere
(`batch_sharpness`). `least_curvature` is γ times the smallest eigenvalue, negative at saddles.
"""

from collections.abc import Callable
from typing import Any

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import kinks
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.problem import Limit
from sweeplib.networks.views import Estimate, OverlapView

MOST = 400
"""The most outliers of a Hessian, whose eigenvalues take a tenth of a second, with their errors."""
DIRECTIONS = Limit(
    "d",
    "no direction for each row",
    "at least p + k = {problem.p} + {problem.k} where a Hessian is recorded",
    where=lambda problem: problem.p + problem.k > problem.d,
)
WIDTH = Limit(
    "p",
    "too large a Hessian",
    f"p (p + k) of at most {MOST} where its eigenvalues are recorded",
    where=lambda problem: problem.p * (problem.p + problem.k) > MOST,
)
SMOOTH = Limit(
    "activation",
    "a slope that jumps",
    "a smooth activation where a Hessian is recorded",
    where=lambda problem: bool(kinks(activation(problem.activation))),
)
BOTH_LAYERS = Limit(
    "second_layer_rate", "a second layer that is not trained", "a rate above 0; or `hessian_outliers`",
    where=lambda problem: not problem.trains_second_layer,
)  # fmt: skip


def _of(name: str) -> Callable[[OverlapView], Estimate]:
    """The function for eigenvalues (n, ...), ascending, by their name in `Curvatures`, with their errors."""
    return lambda now: Estimate(*(getattr(curvatures, name) for curvatures in now.curvatures))


def _extreme(place: int) -> Callable[[OverlapView], Estimate]:
    """The function for the smallest (place 0) or the largest (1) eigenvalue times γ (n,), and its error."""
    return lambda now: Estimate(*(now.gamma * curvatures.extremes[:, place] for curvatures in now.curvatures))


OF_W = READS | {"d"}
"""The parameters on which a Hessian by the first layer depends."""
OF_STEPS = OF_W | {"gamma", "second_layer_rate"}
"""The parameters on which a Hessian times the learning rate depends, of both layers where both are trained."""


def of_curvatures(*labelled: Any, reads: frozenset[str] = OF_W, limits: tuple[Limit, ...] = ()) -> Observable:
    """An observable of second derivatives, with the limits of all and its own `limits`.

    labelled : its name, function, dimensions, long name and symbol.
    """
    shared: dict[str, Any] = {"uses_drifts": True, "needs_teacher": True, "estimated": lambda problem: True}
    return Observable(*labelled, reads=reads, limits=(SMOOTH, DIRECTIONS, WIDTH, *limits), **shared)


for observable in (
    of_curvatures(
        "hessian_bulk",
        _of("bulk"),
        ("student",),
        "eigenvalues of the Hessian outside of the span of the rows",
        r"\lambda^{\mathrm{bulk}}",
    ),
    of_curvatures(
        "hessian_outliers",
        _of("outliers"),
        ("outlier",),
        "eigenvalues of the Hessian in the span of the rows",
        r"\lambda^{\mathrm{out}}",
    ),
    of_curvatures(
        "joint_hessian_outliers",
        _of("joint"),
        ("joint_outlier",),
        "eigenvalues of the Hessian of both layers in the span of the rows",
        r"\lambda^{\mathrm{out}}_{W, a}",
        reads=OF_W | {"second_layer_rate"},
        limits=(BOTH_LAYERS,),
    ),
    of_curvatures(
        "sharpness",
        _extreme(1),
        (),
        "learning rate times the largest eigenvalue of the Hessian",
        r"\gamma \lambda_{\max}",
        reads=OF_STEPS,
    ),
    of_curvatures(
        "least_curvature",
        _extreme(0),
        (),
        "learning rate times the smallest eigenvalue of the Hessian",
        r"\gamma \lambda_{\min}",
        reads=OF_STEPS,
    ),
):
    OBSERVABLES.add(observable)
