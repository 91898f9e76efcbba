"""The student's second layer, which changes if it is trained."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView

OBSERVABLES.add(
    Observable(
        "second_layer",
        {OverlapView: lambda now: now.a, ParticleView: lambda now: now.a},
        ("student",),
        "second layer of the student",
        "a",
        reads=frozenset(),
    ),
)
