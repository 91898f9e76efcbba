"""Population risk of each of several tasks: R_τ = ½ E[(f*_τ − f_τ)²], whatever the student learns at the time."""

import numpy as np

from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.views import Estimate, OverlapView


@np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
def of_tasks(now: OverlapView) -> Estimate:
    """The risks (n, T) of T tasks, with their errors."""
    fields, layers = now.fields, zip(*(np.moveaxis(layer, 1, 0) for layer in now.layers), strict=True)
    rules, overlaps = fields.expectations, (fields.Q, fields.M, fields.P)
    pairs = [(np.ascontiguousarray(a), np.ascontiguousarray(a_star)) for a, a_star in layers]
    risks = [rules.risks(*overlaps, *pair) for pair in pairs]
    errors = [rules.risk_errors(risk, *overlaps, *pair) for risk, pair in zip(risks, pairs, strict=True)]
    return Estimate(np.stack(risks, axis=1), np.stack(errors, axis=1))


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
        estimated=is_inexact,
    ),
)
