"""A plugin for tests: an observable for two views."""

import numpy as np

from sweeplib.networks.observables import OBSERVABLES, Observable
from sweeplib.networks.views import OverlapView, ParticleView


def of_units(now):
    return now.M.mean(axis=1)


def of_particles(now):
    return np.einsum("ni,nir->nr", now.weight, now.m)


OBSERVABLES.register(
    "mean_overlap",
    Observable(
        "mean_overlap",
        {OverlapView: of_units, ParticleView: of_particles},
        ("teacher",),
        "mean overlap with the teacher",
        r"\overline{M}",
        reads=frozenset(),
    ),
)
