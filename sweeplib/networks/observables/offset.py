"""The offsets b_i of units σ(λ_i + b_i), which change if they are trained; zero without offsets."""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView


def of_particles(now: ParticleView) -> Array:
    """The offsets (n, N) of N particles, zero without offsets."""
    return np.zeros(now.a.shape) if now.b is None else now.b


OBSERVABLES.add(
    Observable(
        "offset",
        {OverlapView: lambda now: now.b, ParticleView: of_particles},
        ("student",),
        "offsets of the student's units",
        "b",
        reads=frozenset(),
    ),
)
