"""Second layers fitted to fresh samples at given overlaps, for layer-wise training.

The fields of fresh samples depend on the weights through the overlaps alone, (λ, λ*) ~ N(0, Ω): the regression is exact
in law for every dynamics of overlaps, at a cost without d.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.overlaps import lower_factors
from sweeplib.networks.maths.second_layer import population_moments, ridge_regression
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.numerics.random import normals
from sweeplib.networks.views import OverlapView

AT_ONCE = 1024
"""Samples that are drawn at a time: their numbers are one block of the random stream, whatever their count is."""


class Regression(NamedTuple):
    """How the second layers of n replicas are fitted.

    samples (n,) : number of fresh samples; zero for infinitely many.
    ridge (n,) : λ of the penalty.
    keys, seeds (n,) uint64 : streams of the samples. At all times and for all problems they have the same coordinates.
    """

    samples: NDArray[np.int64]
    ridge: Array
    keys: NDArray[np.uint64]
    seeds: NDArray[np.uint64]


def second_layers(now: OverlapView, regression: Regression, student: str, target: str, teacher: str) -> Array:
    """The second layers (n, p) of ridge regressions of the labels on σ(λ), at the overlaps `now` of n replicas.

    student, teacher : names of the activations; target : the name of the function of the teacher's fields.
    NaN where overlaps are not finite, in runs that diverged.
    """
    n, p, _ = now.M.shape
    squares, products = np.full((n, p, p), np.nan), np.full((n, p), np.nan)
    of_population = np.flatnonzero(regression.samples == 0)
    if of_population.size:
        moments = population_moments(now.expectations, now.Q, now.M, now.P, now.a_star)
        squares[of_population], products[of_population] = (array[of_population] for array in moments)
    for i in np.flatnonzero(regression.samples):
        if np.isfinite(now.Q[i]).all() and np.isfinite(now.M[i]).all():
            stream = int(regression.keys[i]), int(regression.seeds[i]), int(regression.samples[i])
            squares[i], products[i] = _sample_moments(now, i, stream, student, target, teacher)
    return ridge_regression(squares, products, regression.ridge)


def _sample_moments(
    now: OverlapView, i: np.intp, stream: tuple[int, int, int], student: str, target: str, teacher: str
) -> tuple[Array, Array]:
    """The means of σσᵀ (p, p) and σy (p,) over the samples of replica i, σ of the student's fields and y the label.

    stream : key and seed of the random stream, and number of samples; a larger number has the same first samples.
    student, teacher, target : names of the activations, and of the function of the teacher's fields.
    """
    (key, seed, count), (p, k) = stream, now.M.shape[1:]
    factor = lower_factors(now.Q[i], now.M[i], now.P[i])
    squares, products = np.zeros((p, p)), np.zeros(p)
    for first in range(0, count, AT_ONCE):
        draws = normals(key, seed, first // AT_ONCE, AT_ONCE * (p + k + 1)).reshape(p + k + 1, AT_ONCE)
        draws = draws[:, : count - first]
        fields = factor @ draws[:-1]
        y = labels(target, teacher, fields[:k], now.a_star[i]) + np.sqrt(now.Delta[i]) * draws[-1]
        values = function_values(activation(student).value, fields[k:] + now.b[i][:, None])
        squares += values @ values.T
        products += values @ y
    return squares / count, products / count
