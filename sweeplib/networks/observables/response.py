"""Responses R(t, t') of the students: a force g on a sample at t' changes its fields at t by R(t, t') g."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import TwoTimeView

OBSERVABLES.add(
    Observable(
        "response",
        {TwoTimeView: lambda now: now.R},
        ("instant", "student", "student_2"),
        "response to a force at an instant",
        "R(t, t')",
        reads=frozenset(),
    ),
)
