"""The student's second layer, which changes where it is trained."""

from sweeplib.observables.observable import OBSERVABLES, Observable

OBSERVABLES.register(
    "second_layer",
    Observable("second_layer", lambda now: now.a, ("student",), "second layer of the student", "a", reads=frozenset()),
)
