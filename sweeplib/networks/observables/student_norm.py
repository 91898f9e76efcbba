"""Mean squared norm of the students, tr Q/p, in units of d; the noise of SGD makes it grow."""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView


def of_units(now: OverlapView) -> Array:
    """The mean of the diagonal of Q (n,)."""
    return np.einsum("ni->n", now.q) / now.q.shape[1]


def of_particles(now: ParticleView) -> Array:
    """The weighted mean of the squared norms (n,)."""
    return np.einsum("ni,ni->n", now.weight, now.q)


OBSERVABLES.add(
    Observable(
        "student_norm",
        {OverlapView: of_units, ParticleView: of_particles},
        (),
        "mean squared norm of the students",
        r"\mathrm{tr}\,Q/p",
        reads=frozenset(),
    ),
)
