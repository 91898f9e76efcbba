"""Population risk of each of several tasks: R_τ = ½ E[(f*_τ − f_τ)²], whatever the student learns at the time."""

import numpy as np

from sweeplib.arrays import Array
from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.observables.risk import READS
from sweeplib.views import OverlapView


def of_tasks(now: OverlapView) -> Array:
    """The risks (n, T)."""
    fields, layers = now.fields, zip(*(np.moveaxis(each, 1, 0) for each in now.layers), strict=True)
    pairs = ((np.ascontiguousarray(a), np.ascontiguousarray(a_star)) for a, a_star in layers)
    return np.stack([fields.expectations.risks(fields.Q, fields.M, fields.P, *pair) for pair in pairs], axis=1)


OBSERVABLES.add(
    Observable(
        "risk_of_task",
        of_tasks,
        ("task",),
        "population risk of a task",
        r"\mathcal{R}_\tau",
        reads=READS | {"tasks"},
        needs_teacher=True,
        least=0.0,
    ),
)
