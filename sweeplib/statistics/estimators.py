"""Estimators over seeds: a number of the law of a quantity from its values at seeds, with the interval of that number.

The values are those along `seed`, NaN for a seed that is not observed. An end of an interval is infinite where so few
seeds do not tell it, and NaN where there is no interval. An interval is one of runs like those that were seen (`SEEN`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.seed_means import FEWEST_SEEDS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PART_OF_TAIL = 0.7
"""The part of the probability (1 − confidence)/2 that may lie beyond each end of an interval of a mean or a quantile.

The rest is for skewness that few seeds do not show, and for rounds that end when an interval is narrow.
"""
SEEN = "the interval is that of runs like those seen: a kind of run that no one of n seeds shows may be one in n/3"
"""What is said of the interval of a mean: rare runs with large values are in no interval of few seeds."""


class Estimate(NamedTuple):
    """An estimate of a number, and the ends of its interval."""

    value: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray


def unseen(count: int) -> str:
    """Return, in words, what the equal values of `count` seeds say of others, with a confidence of .95."""
    return f"other values have a probability below {100 * (1 - 0.05 ** (1 / count)):.2g} %"


@runtime_checkable
class Estimator(Protocol):
    """An estimator of one number of the law of a quantity."""

    def __call__(self, values: xr.DataArray, confidence: float) -> Estimate:
        """Return the estimate from the values over `seed`."""

    def title(self, quantity: str) -> str:
        """Return the name of the estimated number of a quantity, such as "median exit steps"."""


@dataclass(frozen=True)
class Mean:
    """The mean, of values of any sign and skewness; that of zeros and ones is a proportion."""

    def __call__(self, values: xr.DataArray, confidence: float) -> Estimate:
        """Return the mean and the ends of `mean_interval`, or of `proportion_interval` if all are zeros and ones."""
        if not _are_zeros_and_ones(values):
            return Estimate(values.mean("seed"), *mean_interval(values, confidence))
        mean, count = values.mean("seed"), values.count("seed")
        return Estimate(mean, *proportion_interval(mean, count.where(count >= FEWEST_SEEDS), confidence))

    def title(self, quantity: str) -> str:
        """Return the name of the quantity: what is shown of it is its mean, unless something else is said."""
        return quantity


@dataclass(frozen=True)
class RestrictedMean:
    """The mean of values min(T, horizon), or of pseudo-values of it (`restricted_values`).

    exits : the number of runs, per cell, that ended before the horizon: pseudo-values of others may lie below it too.
    """

    horizon: xr.DataArray
    exits: xr.DataArray

    def __call__(self, values: xr.DataArray, confidence: float) -> Estimate:
        """Return the mean, and the ends of `mean_interval` or, where most values are the horizon, by their few exits.

        Where less than half of the runs ended before it their scatter tells too little, and nothing if none did.
        What the mean lacks of the horizon h is a sum over few exits, Σ (h − T)/n, with an interval by gamma laws that
        needs no exit (Fay and Feuer 1997, Statistics in Medicine 16, 791). At the confidence .95 it covers .98 or more.
        """
        lowest, highest = mean_interval(values, confidence)
        # what values lack of the horizon, in parts of it: no mean lacks more than 1
        count, lacks = values.count("seed"), 1.0 - values / self.horizon
        has_few_exits = (count >= FEWEST_SEEDS) & (2 * self.exits < count)
        tail, mean, variance = (1.0 - confidence) / 2.0, lacks.mean("seed"), (lacks**2).sum("seed") / count**2
        # the upper end has one more exit, at the time 0, as that of Fay and Feuer
        share = 1.0 / count.where(count > 0)
        most = _gamma_quantile(1.0 - tail, mean + share, variance + share**2).clip(max=1.0)
        least = _gamma_quantile(tail, mean, variance)
        low = xr.where(has_few_exits, self.horizon * (1.0 - most), lowest)
        high = xr.where(has_few_exits, self.horizon * (1.0 - least), highest)
        # no mean of such values is outside
        return Estimate(values.mean("seed"), low.clip(min=0.0), high.clip(max=self.horizon))

    def title(self, quantity: str) -> str:
        """Return the name of the mean."""
        return f"restricted mean {quantity}"


@dataclass(frozen=True)
class Quantile:
    """The number below which a value is with the probability `level`: .5 for the median."""

    level: float

    def __call__(self, values: xr.DataArray, confidence: float) -> Estimate:
        """Return the sample quantile, whose median is near the true one, and its interval between order statistics.

        For a number of seeds that is fixed beforehand the interval covers at least with the probability
        1 − PART_OF_TAIL (1 − confidence).
        """
        tail = PART_OF_TAIL * (1.0 - confidence) / 2.0
        value, low, high = xr.apply_ufunc(
            _quantiles, values, input_core_dims=[["seed"]], output_core_dims=[()] * 3,
            kwargs={"level": self.level, "tail": tail},
        )  # fmt: skip
        return Estimate(value, low, high)

    def title(self, quantity: str) -> str:
        """Return the name of the quantile."""
        return f"median {quantity}" if self.level == 0.5 else f"{100 * self.level:g} % quantile of the {quantity}"


@dataclass(frozen=True)
class Fraction:
    """The probability of a value below a level, or above it."""

    level: float
    above: bool = False

    def __call__(self, values: xr.DataArray, confidence: float) -> Estimate:
        """Return the fraction of the seeds, and its interval by Clopper and Pearson."""
        count = values.count("seed")
        inside = (values > self.level if self.above else values < self.level).sum("seed")
        fraction = inside / count.where(count > 0)
        return Estimate(fraction, *proportion_interval(fraction, count.where(count >= FEWEST_SEEDS), confidence))

    def title(self, quantity: str) -> str:
        """Return the name of the fraction."""
        return f"fraction of runs with {quantity} {'above' if self.above else 'below'} {self.level:g}"


def _are_zeros_and_ones(values: xr.DataArray) -> bool:
    """Return whether values are zeros and ones, and some of both: zeros alone may be of any law."""
    zeros, ones = int((values == 0.0).sum()), int((values == 1.0).sum())
    return min(zeros, ones) > 0 and zeros + ones == int(values.count())


def mean_interval(values: xr.DataArray, confidence: float) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the ends of the interval of the mean over `seed`, by `ends_of_mean`; NaN for fewer than FEWEST_SEEDS."""
    count = values.count("seed")
    mean, has_one_sign = values.mean("seed"), (values.min("seed") > 0.0) | (values.max("seed") < 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):  # of infinite and of equal values
        # a zero in the place of no value, of which the deviation warns with xarray of 2024
        spread = values.where(count > 0, 0.0).std("seed")
        skewness = (((values - mean) / spread) ** 3).mean("seed").where(spread > 0.0, 0.0)
    ends: tuple[xr.DataArray, xr.DataArray] = xr.apply_ufunc(
        ends_of_mean, count.where(count >= FEWEST_SEEDS), mean, spread, skewness, has_one_sign,
        kwargs={"confidence": confidence}, output_core_dims=[(), ()],
    )  # fmt: skip
    return ends


def ends_of_mean(
    count: Array, mean: Array, spread: Array, skewness: Array, has_one_sign: NDArray[np.bool_], *, confidence: float
) -> tuple[Array, Array]:
    """Return the ends of intervals of means by the moments of `count` values, all of one sign (`ends_by_error`) or not.

    spread : the standard deviation, by n. All arrays are of one shape, that of the cells.
    """
    # `spread` divides by n, not by n − 1
    error = spread / np.sqrt(count - 1.0)
    return ends_by_error(mean, error, skewness / np.sqrt(count), count - 1.0, has_one_sign, confidence=confidence)


def ends_by_error(
    mean: ArrayLike, error: ArrayLike, g: ArrayLike, freedom: ArrayLike, has_one_sign: ArrayLike, *, confidence: float
) -> tuple[Array, Array]:
    """Return the ends of intervals of means by the standard error of each, its skewness g and its degrees of freedom.

    has_one_sign : where all values that were averaged are above zero, or all below it.
    The hull of Student's interval and of Hall's, which allows for the skewness (J. Roy. Statist. Soc. B 54, 221, 1992),
    with PART_OF_TAIL of the probability beyond each end; of values of one sign also of m exp(−t s), m exp(t s (1 + 2s))
    with the relative standard error s, as a few of them show too little of a long tail. Coverage: docs/statistics.md.
    """
    mean, error, g, freedom = (np.asarray(number, dtype=float) for number in (mean, error, g, freedom))
    # .9825 for a confidence of .95
    # decisions: The mean of anything has one interval
    t = scipy.special.stdtrit(freedom, 1.0 - PART_OF_TAIL * (1.0 - confidence) / 2.0)
    relative = error / np.abs(np.where(has_one_sign, mean, np.nan))
    log_half = relative * scipy.special.stdtrit(freedom, (1.0 + confidence) / 2.0)
    near, far = mean * np.exp(-log_half), mean * np.exp(log_half * (1.0 + 2.0 * relative))
    lows = mean - t * error, mean - error * _hall(t, g), np.minimum(near, far)
    highs = mean + t * error, mean - error * _hall(-t, g), np.maximum(near, far)
    return np.asarray(np.fmin.reduce(lows)), np.asarray(np.fmax.reduce(highs))


def _hall(x: Array | np.float64, g: Array | np.float64) -> Array:
    """Return the Studentised mean whose transform by Hall's cubic is x, for a skewness of √n g."""
    # 0/0 at g = 0, where the limit is x: 1e-9 comes to it within 1e-7
    g = np.where(np.abs(g) > 1e-9, g, 1e-9)
    return np.asarray(3.0 / g * (np.cbrt(1.0 + g * (x - g / 6.0)) - 1.0))


def _gamma_quantile(level: float, mean: xr.DataArray, variance: xr.DataArray) -> xr.DataArray:
    """Return the quantile of the gamma law of a mean and a variance; 0 for a mean of 0."""
    shape = (mean**2 / variance).where(mean > 0.0, 1.0)
    quantiles: xr.DataArray = xr.apply_ufunc(scipy.special.gammaincinv, shape, level) * (variance / mean)
    return quantiles.where(mean > 0.0, 0.0)


def proportion_interval(
    fraction: xr.DataArray, total: xr.DataArray, confidence: float
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the ends of the interval of a probability that `fraction` of `total` runs have shown.

    By Clopper and Pearson (1934, doi 10.1093/biomet/26.4.404): it covers at least as often as it says, whatever the
    probability. The number of runs need not be whole.
    """
    tail, hits = (1.0 - confidence) / 2.0, fraction * total

    def quantile(a: Array, b: Array, level: float) -> Array:
        """Return quantiles of beta laws; 0 or 1 where a or b is zero, whose law is a point."""
        inside = (a > 0.0) & (b > 0.0)
        ends = scipy.special.betaincinv(np.where(inside, a, 1.0), np.where(inside, b, 1.0), level)
        return np.where(inside, ends, np.where(np.isnan(a + b), np.nan, (b <= 0.0).astype(float)))

    low = xr.apply_ufunc(quantile, hits, total - hits + 1.0, tail)
    high = xr.apply_ufunc(quantile, hits + 1.0, total - hits, 1.0 - tail)
    return low, high


def _quantiles(values: Array, *, level: float, tail: float) -> tuple[Array, ...]:
    """Return the quantiles and the ends of their intervals of values (..., seeds), NaN for seeds without one.

    level : that of the quantile. tail : the probability that the true quantile is beyond an end.
    """
    counts = np.sum(~np.isnan(values), axis=-1)
    ordered = np.sort(values, axis=-1)
    # Hyndman and Fan's definition 8: its median is near the true quantile, whatever the law
    place = np.clip((counts + 1.0 / 3.0) * level + 1.0 / 3.0, 1.0, np.maximum(counts, 1)) - 1.0
    before, share = np.floor(place).astype(int), place % 1.0
    numbers, ranks = np.unique(counts, return_inverse=True)
    # ranks from 1, the same for all cells with as many seeds
    least, greatest = np.array([rank_interval(int(count), level, tail) for count in numbers]).T[
        :, ranks.reshape(counts.shape)
    ]

    def ranked(rank: NDArray[np.int_]) -> Array:
        """Return the values (...,) of some rank, from 0, among the seeds."""
        inside = np.clip(rank, 0, values.shape[-1] - 1)
        return np.take_along_axis(ordered, inside[..., None], -1)[..., 0]

    lower, upper = ranked(before), ranked(before + (share > 0.0))
    with np.errstate(invalid="ignore"):  # of two infinite values
        value = np.where(lower == upper, lower, lower + share * (upper - lower))
    low = np.where(least > 0, ranked(least - 1), -np.inf)
    high = np.where(greatest <= counts, ranked(greatest - 1), np.inf)
    enough = counts >= FEWEST_SEEDS
    return value, np.where(enough, low, np.nan), np.where(enough, high, np.nan)


@cache
def rank_interval(count: int, level: float, tail: float) -> tuple[int, int]:
    """Return the ranks, from 1, of the values between which a quantile is, with at most `tail` beyond each.

    count : the number of values. level : the probability of the quantile. A rank of 0, or of count + 1, says that so
    few values do not bound it on this side.
    """
    # twelve standard deviations of the binomial number of values below: no smaller tail is asked for
    reach = 12.0 * np.sqrt(count * level * (1.0 - level)) + 12.0
    low, high = max(0, int(count * level - reach)), min(count, int(count * level + reach))
    below = scipy.special.bdtr(np.arange(low, high + 1), count, level)
    return low + int(np.argmax(below >= tail)), low + int(np.argmax(below >= 1.0 - tail)) + 1
