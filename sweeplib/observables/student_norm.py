"""Mean squared norm of the students, tr Q/p, in units of d: what the noise of SGD makes grow."""

import numpy as np

from sweeplib.observables.observable import OBSERVABLES, Array, Observable, Snapshot


def student_norm(now: Snapshot) -> Array:
    """The mean of the diagonal of Q (n,)."""
    return np.einsum("nii->n", now.Q) / now.Q.shape[1]


OBSERVABLES.register(
    "student_norm",
    Observable(
        "student_norm",
        student_norm,
        (),
        "mean squared norm of the students",
        r"\mathrm{tr}Q/p",
        reads=frozenset(),
    ),
)
