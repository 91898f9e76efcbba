"""Student-teacher overlaps M = WW*ᵀ/d."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView

OBSERVABLES.add(
    Observable(
        "overlap_M",
        {OverlapView: lambda now: now.M, ParticleView: lambda now: now.m},
        ("student", "teacher"),
        "student-teacher overlap",
        "M",
        reads=frozenset(),
    ),
)
