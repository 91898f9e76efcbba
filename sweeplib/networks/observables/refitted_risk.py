"""Population risk after the second layer is replaced by that of a ridge regression on fresh samples.

With the second layer frozen while the first is trained, this is the risk of layer-wise training ("First order
optimization methods in two-layer neural networks training", section 4).
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.problem import Parameters, parameter
from sweeplib.networks.problem.combinations import GAUSSIAN_NOISE
from sweeplib.networks.views import Estimate, OverlapView


class RidgeParameters(Parameters):
    """The number m of samples and the ridge λ of the regression."""

    second_layer_samples: Annotated[int, Field(ge=1, le=10**8)] | None = parameter(
        None, "fresh samples of the regression of the second layer", "m", 1000
    )
    """number m of fresh samples, labels with noise, for the ridge regression of `refitted_risk`; by default infinitely
    many."""
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = parameter(
        0.0, "penalty of the regression of the second layer", r"\lambda", 0.01
    )
    """λ ≥ 0 of the regression of `refitted_risk`: (λ/2p) Σ a_i² is added to half the mean squared error."""


@np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
def refitted_risk(now: OverlapView, second_layer_samples: NDArray[np.int64], ridge: Array) -> Estimate:
    """The population risk (n,) with the fitted second layer, and its error.

    second_layer_samples (n,) : numbers m of samples, 0 for infinitely many. ridge (n,) : λ.
    """
    now = now.fields
    state = now.Q, now.M, now.P, now.refitted(second_layer_samples, ridge), now.a_star
    risk = now.expectations.risks(*state)
    return Estimate(risk, now.expectations.risk_errors(risk, *state))


OBSERVABLES.add(
    Observable(
        "refitted_risk",
        refitted_risk,
        (),
        "population risk with the second layer fitted to fresh samples",
        r"\mathcal{R}_{\mathrm{refit}}",
        reads=READS | {"Delta"},
        limits=(GAUSSIAN_NOISE,),
        parameters=RidgeParameters,
        needs_teacher=True,
        least=0.0,
        estimated=is_inexact,
    ),
)
