"""Student-student overlaps Q = WWᵀ/d."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable

OBSERVABLES.add(
    Observable(
        "overlap_Q", lambda now: now.Q, ("student", "student_2"), "student-student overlap", "Q", reads=frozenset()
    ),
)
