"""Self-overlaps q_i = ‖w_i‖²/d, the squared norms of the students: the diagonal of Q, without Q itself."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView

OBSERVABLES.add(
    Observable(
        "self_overlap",
        {OverlapView: lambda now: now.q, ParticleView: lambda now: now.q},
        ("student",),
        "self-overlap of a student",
        "q",
        reads=frozenset(),
    ),
)
