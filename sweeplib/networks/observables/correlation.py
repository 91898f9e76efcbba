"""Correlations W(t) W(t')ᵀ/d of the students at a time with those at an earlier instant."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import TwoTimeView

OBSERVABLES.add(
    Observable(
        "correlation",
        {TwoTimeView: lambda now: now.C},
        ("instant", "student", "student_2"),
        "correlation with the students at an instant",
        "C(t, t')",
        reads=frozenset(),
    ),
)
