"""Teacher-teacher overlaps P = W*W*ᵀ/d, constant along a run."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView

OBSERVABLES.add(
    Observable(
        "overlap_P",
        {OverlapView: lambda now: now.P, ParticleView: lambda now: now.P},
        ("teacher", "teacher_2"),
        "teacher-teacher overlap",
        "P",
        over_time=False,
        reads=frozenset(),
    ),
)
