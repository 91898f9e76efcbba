"""Averages of the iterates, w̄: their overlaps, and the population risk of the student with them as weights.

The second layer and the offsets are those of the student now, not averages.
"""

from typing import Any

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.problem import AVERAGES, Problem
from sweeplib.networks.views import Estimate, OverlapView


def risk_of_average(now: OverlapView) -> Estimate:
    """The population risk (n,) with the averages as weights, and its error."""
    fields = now.fields
    state = *(now.average_fields() or now.average()), fields.P, fields.a, fields.a_star
    risk = fields.expectations.risks(*state)
    return Estimate(risk, fields.expectations.risk_errors(risk, *state))


def average_Q(now: OverlapView) -> Array:
    """The overlaps w̄_i·w̄_j/d (n, p, p) of the averages."""
    Q: Array = now.average()[0]
    return Q


def average_M(now: OverlapView) -> Array:
    """The overlaps w̄_i·w*_r/d (n, p, k) of the averages with the teacher."""
    M: Array = now.average()[1]
    return M


def check(problem: Problem) -> None:
    """Raise InputError for a problem without averages."""
    if not problem.has_averages:
        expected = "an averaging_rate or an averaging_order above zero"
        raise InputError("no averages of the iterates", key="averaging_rate", value=0.0, expected=expected)


# arguments of all observables of averages
_COMMON: Any = {"reads": READS | AVERAGES, "check": check}
OBSERVABLES.add(
    Observable(
        "risk_of_average",
        risk_of_average,
        (),
        "population risk of the average of the iterates",
        r"\bar{\mathcal{R}}",
        least=0.0,
        estimated=is_inexact,
        **_COMMON,
    )
)
OBSERVABLES.add(
    Observable("average_Q", average_Q, ("student", "student_2"), "overlaps of averages", r"\bar{Q}", **_COMMON)
)
OBSERVABLES.add(
    Observable(
        "average_M", average_M, ("student", "teacher"), "averages' overlaps with teachers", r"\bar{M}", **_COMMON
    )
)
