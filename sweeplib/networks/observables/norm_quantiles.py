"""Quantiles of the norms ‖w_i‖/√d over the units, at equally spaced levels.

They are the law of the norms: the Wasserstein-2 distance of two laws is the root of the mean squared difference of
their quantiles.
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import QUANTILES, OverlapView, ParticleView


def of_units(now: OverlapView) -> Array:
    """The quantiles (n, levels) over the students."""
    return _quantiles(now.q, np.ones_like(now.q))


def of_particles(now: ParticleView) -> Array:
    """The quantiles (n, levels) over the particles, with their weights."""
    return _quantiles(now.q, now.weight)


def _quantiles(q: Array, weight: Array) -> Array:
    """The quantiles (n, levels) of √q (n, m) with weights (n, m): the least √q up to which there is that weight."""
    order = np.argsort(q, axis=1)
    norms = np.sqrt(np.maximum(np.take_along_axis(q, order, axis=1), 0.0))
    summed = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    levels = QUANTILES * summed[:, -1:]
    places = np.array([np.searchsorted(row, level) for row, level in zip(summed, levels, strict=True)])
    return np.take_along_axis(norms, np.minimum(places, q.shape[1] - 1), axis=1)


OBSERVABLES.add(
    Observable(
        "norm_quantiles",
        {OverlapView: of_units, ParticleView: of_particles},
        ("quantile",),
        "quantiles of the norms of the students",
        r"\|w\|/\sqrt{d}",
        reads=frozenset(),
    ),
)
