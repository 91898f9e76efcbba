"""Wild bootstrap over the seeds: what each seed contributes to the errors of means at many points.

The mean at a point is off by the sum of the parts of its seeds, to first order, so that the covariance of the errors of
all points is partsᵀ parts, whether seeds are shared by points or not. A resample multiplies the parts of each seed by
a number N(0, 1) (Wu 1986, doi 10.1214/aos/1176350142). Unlike seeds drawn with replacement it leaves no point without
a run, and is not discrete where there are few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.statistics.seed_means import FEWEST_SEEDS

POOLED_SEEDS = 10.0
"""The number of seeds that the mean relative variance of all points counts for in the variance of each point.

The variance of three seeds alone is so uncertain that weights 1/variance would choose points at random. Where a point
has more seeds than this, it counts for as many fewer: points that are more accurate than others are known to be.
"""


class PointErrors(NamedTuple):
    """Logarithms of positive quantities at points, or means of any sign in their place (`linear_means`), with errors.

    Each is from the seeds that were observed there. logs (points,): NaN where not measured. bias (points,): their mean
    error. parts (seeds, points): the parts of the seeds in their errors. present (seeds, points): which seeds were
    observed. plain (seeds, points): the parts by the variance of each point alone, which is not pooled.
    """

    logs: Array
    bias: Array
    parts: Array
    present: NDArray[np.bool_]
    plain: Array

    @property
    def covariance(self) -> Array:
        """Return the covariance (points, points) of the errors."""
        return np.asarray(self.parts.T @ self.parts)

    @property
    def values(self) -> Array:
        """Return the logarithms without their bias."""
        return self.logs - self.bias

    def at(self, places: NDArray[np.bool_] | NDArray[np.intp]) -> PointErrors:
        """Return the points at some places, or where a mask is true."""
        parts, plain = self.parts[:, places], self.plain[:, places]
        return PointErrors(self.logs[places], self.bias[places], parts, self.present[:, places], plain)

    def minus(self, other: PointErrors) -> PointErrors:
        """Return the logarithms of the quotients of these quantities and those of `other`, of the same seeds."""
        parts, present = self.parts - other.parts, self.present & other.present
        plain = self.plain - other.plain
        return PointErrors(self.logs - other.logs, self.bias - other.bias, parts, present, plain)

    def growth(self, directions: Array) -> Array:
        """Return the factors (k,), 1 at least, by which errors of combinations `directions` (k, points) are larger.

        That is by the variances of the points themselves. Pooled ones are alike at all points: where points share
        seeds, and the variance grows along an axis, what is left of the error of an exponent is too small.
        """
        plain, pooled = (np.linalg.norm(parts @ directions.T, axis=0) for parts in (self.plain, self.parts))
        return np.asarray(np.maximum(np.divide(plain, pooled, np.ones_like(plain), where=pooled > 0.0), 1.0))

    def freedom(self, directions: Array) -> Array:
        """Return the degrees of freedom (k,) of the variances of linear combinations `directions` (k, points).

        (Σ_s w_s)²/Σ_s w_s² − 1, where w_s is the part of seed s in the variance (Satterthwaite 1946). It is n − 1 if
        all points have the same n seeds; a point with few seeds counts by its part in the combination.
        """
        variances = np.diag(self.covariance)
        parts = directions**2 * (variances if variances.any() else 1.0) / self.present.sum(axis=0)
        by_seed = parts @ self.present.T
        squares = np.sum(by_seed**2, axis=-1)
        fallback = float(self.present.sum(axis=0).min())
        equivalent = np.divide(
            np.sum(by_seed, axis=-1) ** 2, squares, np.full(squares.shape, fallback), where=squares > 0
        )
        return np.asarray(equivalent - 1.0)


class Resampling(NamedTuple):
    """How intervals of a `confidence` are drawn: `weights` (resamples, seeds) of the seeds' parts, and other noise."""

    weights: Array
    generator: np.random.Generator
    confidence: float


def resampling_of(seeds: int, resamples: int, random_seed: int, confidence: float) -> Resampling:
    """Return the `Resampling` of a number of seeds by a number of resamples, the same for the same random seed."""
    return Resampling(seed_weights(seeds, resamples, random_seed), np.random.default_rng(random_seed), confidence)


def seed_weights(seeds: int, resamples: int, random_seed: int) -> Array:
    """Return the weight of each seed's part in each resample, N(0, 1), shape (resamples, seeds)."""
    return np.random.default_rng(random_seed).standard_normal((resamples, seeds))


def log_means(values: Array) -> PointErrors:
    """Return the logarithms of the means of values (seed, point), NaN for a seed that was not observed.

    A point is not measured with fewer than FEWEST_SEEDS seeds, or if its mean is not positive.
    """
    present, mean, _ = moments(values)
    positive = np.where(mean > 0.0, mean, np.nan)
    return _points(np.log(positive), np.where(present, values / positive - 1.0, 0.0), present, np.zeros(len(positive)))


def linear_means(values: Array) -> PointErrors:
    """Return the means of values (seed, point) of any sign, as `PointErrors` that have means in place of logarithms."""
    present, mean, _ = moments(values)
    parts = np.where(present & np.isfinite(mean), values - mean, 0.0)
    counts = np.maximum(present.sum(axis=0), 2.0)
    parts = parts / np.sqrt(counts * (counts - 1.0))
    return PointErrors(mean, np.zeros_like(mean), parts, present, parts)


def log_means_by_leaving_out(values: Array) -> PointErrors:
    """Return the logarithms of the means of values (seed, point); the part of a seed is what its absence changes.

    Deviations from the mean, which `log_means` takes, are small for a run that makes most of the mean.
    """
    present, mean, _ = moments(values)
    counts, measured = present.sum(axis=0), np.where(present, values, 0.0)
    positive = np.where(mean > 0.0, mean, np.nan)
    others = (measured.sum(axis=0) - measured) / np.maximum(counts - 1.0, 1.0)
    left_out = np.log(positive / np.where(others > 0.0, others, positive)) * (counts - 1.0)
    centre = np.sum(left_out * present, axis=0) / np.maximum(counts, 1)
    points = _points(np.log(positive), np.where(present, left_out - centre, 0.0), present, np.zeros(len(positive)))
    return points._replace(bias=log_means(values).bias)


def log_deviations(values: Array) -> PointErrors:
    """Return the logarithms of the standard deviations over the seeds of values (seed, point), NaN for no run.

    Their variance is at least that of normal values, ψ′((n−1)/2)/4, which a few seeds underestimate; their bias is that
    of normal values, (ψ((n−1)/2) − log((n−1)/2))/2.
    """
    present, mean, variance = moments(values)
    spread = np.where(variance > 0.0, variance, np.nan)
    squares = np.where(present, (values - mean) ** 2, 0.0)
    middle = np.sum(squares, axis=0) / np.maximum(present.sum(axis=0), 1)
    parts = np.where(present, 0.5 * (squares - middle) / spread, 0.0)
    counts = np.maximum(present.sum(axis=0), 2)
    half = 0.5 * (counts - 1.0)
    points = _points(0.5 * np.log(spread), parts, present, counts * scipy.special.polygamma(1, half) / 4.0)
    return points._replace(bias=0.5 * (scipy.special.digamma(half) - np.log(half)))


def moments(values: Array) -> tuple[NDArray[np.bool_], Array, Array]:
    """Return which seeds were observed, means and variances (points,); NaN for fewer than FEWEST_SEEDS seeds."""
    present = np.isfinite(values)
    counts = np.where(present.sum(axis=0) >= FEWEST_SEEDS, present.sum(axis=0), np.nan)
    mean = np.sum(np.where(present, values, 0.0), axis=0) / counts
    variance = np.sum(np.where(present, values - mean, 0.0) ** 2, axis=0) / (counts - 1.0)
    return present, mean, variance


def _points(logs: Array, relative: Array, present: NDArray[np.bool_], least: Array) -> PointErrors:
    """Return the points of logarithms (points,) whose changes by the values of single seeds are `relative`.

    relative (seed, point) : in units in which their mean over n seeds is the change. present (seed, point) : which
    seeds were observed. least (points,) : the least variance of a seed.
    The variance s² of a seed is corrected by the factor 1 + s²/n, its bias for passage times (exactly for exponential
    ones to first order), pooled, and at least `least`. The logarithm of a mean of n values is too small by s²/(2n).
    """
    finite = np.isfinite(logs)
    relative = np.where(finite, relative, 0.0)
    counts = np.maximum(present.sum(axis=0), 2.0)
    spreads = np.sum(relative**2, axis=0) / (counts - 1.0)
    estimates = spreads * (1.0 + spreads / counts)
    weights = np.where(finite, counts - 1.0, 0.0)
    pooled = np.sum(weights * estimates) / max(float(weights.sum()), 1.0)
    prior = POOLED_SEEDS * np.minimum(1.0, POOLED_SEEDS / np.maximum(weights, 1.0))
    steady = np.maximum((prior * pooled + weights * estimates) / (prior + weights), least)
    parts, plain = (
        relative * np.sqrt(np.divide(variances, spreads, np.zeros_like(spreads), where=spreads > 0.0) / counts)
        / np.sqrt(counts - 1.0)
        for variances in (steady, estimates)
    )  # fmt: skip
    return PointErrors(logs, -np.where(spreads > 0.0, steady, 0.0) / (2.0 * counts), parts, present, plain)
