"""Student-teacher overlaps M = WW*ᵀ/d."""

from sweeplib.observables.observable import OBSERVABLES, Observable

OBSERVABLES.register(
    "overlap_M",
    Observable(
        "overlap_M", lambda now: now.M, ("student", "teacher"), "student-teacher overlap", "M", reads=frozenset()
    ),
)
