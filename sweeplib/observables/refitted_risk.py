"""Population risk after the second layer is replaced by that of a ridge regression on fresh samples.

With the second layer frozen while the first is trained, this is the risk of layer-wise training ("First order
optimization methods in two-layer neural networks training", section 4).
"""

import numpy as np

from sweeplib.observables.observable import OBSERVABLES, Array, Observable
from sweeplib.observables.risk import READS
from sweeplib.views import OverlapView


@np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
def refitted_risk(now: OverlapView) -> Array:
    """The population risk (n,) at the second layer that is fitted."""
    return now.expectations.risks(now.Q, now.M, now.P, now.refitted, now.a_star)


OBSERVABLES.register(
    "refitted_risk",
    Observable(
        "refitted_risk",
        refitted_risk,
        (),
        "population risk with the second layer fitted to fresh samples",
        r"\mathcal{R}_{\mathrm{refit}}",
        reads=READS | {"Delta", "second_layer_samples", "ridge"},
        needs_teacher=True,
        least=0.0,
    ),
)
