"""Population risk R = ½ E[(y − f)²] of labels without noise, that is without the floor Δ/2; y = f* with a teacher."""

import numpy as np

from sweeplib.observables.observable import OBSERVABLES, Array, Observable
from sweeplib.views import NetworkView, OverlapView


def risk(now: OverlapView | NetworkView) -> Array:
    """The population risk (n,); of overlaps, with values below zero set to zero.

    They are rounding errors: the overlaps of a view satisfy Ω ≥ 0, for which the risk is not negative.
    """
    if isinstance(now, NetworkView):
        return now.risk
    return np.maximum(now.expectations.risks(now.Q, now.M, now.P, now.a, now.a_star), 0.0)


READS = frozenset({"activation", "teacher_activation", "a_star", "target", "data", "contrast"})

OBSERVABLES.register(
    "risk",
    Observable("risk", {OverlapView: risk, NetworkView: risk}, (), "population risk", r"\mathcal{R}", reads=READS),
)
