"""Exponents of powers of d, with a posterior from resampled seeds and small allowed departures from a power law."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.bootstrap import resampled_means
from sweeplib.analysis.fits import line_fit
from sweeplib.errors import InputError

Array = NDArray[np.float64]
FEWEST_SEEDS = 3
LEAST_SIGNAL = 2.0
"""Means below this number of standard errors count as not measured and are left out."""


class Powers(NamedTuple):
    """Logarithms of a quantity (d,), NaN where not measured, and of its resamples (resamples, d); number of seeds."""

    values: Array
    resampled: Array
    seeds: int


def means(sample: Array, draws: Array) -> Powers:
    """Return logarithms of the means of a sample (seed, d), NaN below `LEAST_SIGNAL` standard errors above zero."""
    mean = resampled_means(np.ones((1, len(sample))), sample)[0]
    error = _std(sample) / np.sqrt(np.maximum(_counts(sample), 1))
    return _logarithms(np.where(mean > LEAST_SIGNAL * error, mean, np.nan), resampled_means(draws, sample), sample)


def spreads(sample: Array, draws: Array) -> Powers:
    """Return logarithms of the standard deviations over the seeds of a sample (seed, d)."""
    centred = sample - resampled_means(np.ones((1, len(sample))), sample)
    variance = resampled_means(draws, centred**2) - resampled_means(draws, centred) ** 2
    return _logarithms(_std(sample), np.sqrt(np.maximum(variance, 0.0)), sample)


def minus(one: Powers, other: Powers) -> Powers:
    """Return the logarithms of the quotient of two quantities."""
    return Powers(one.values - other.values, one.resampled - other.resampled, min(one.seeds, other.seeds))


def exponents(powers: Powers, d: Array, tolerance: float, confidence: float, generator: np.random.Generator) -> Array:
    """Return draws (1 + resamples,) of the exponent x in C d^−x, the estimate first; NaN for fewer than two dimensions.

    Weighted least squares of logarithms. The error of each point includes a relative departure `tolerance` from the
    power law, for the rounding of p and corrections to scaling. Where the points scatter more, all draws include this
    scatter (`fits`). The central part `confidence` of the draws is as wide as the interval of Student's t.
    """
    need_seeds(powers.seeds)
    known = np.isfinite(powers.values)
    if known.sum() < 2:
        return np.full(1 + len(powers.resampled), np.nan)
    values, design = powers.values[known], np.vander(np.log(d[known]), 2)
    shifts = np.nan_to_num(powers.resampled[:, known] - values, nan=0.0, posinf=0.0, neginf=0.0)
    shifts = shifts - shifts.mean(axis=0)
    fit = line_fit(values, shifts, float(powers.seeds), design, generator, confidence, tolerance)
    return -np.append(fit.best[0], fit.draws[:, 0])


def interval(draws: Array, confidence: float) -> tuple[float, float, float]:
    """Return the estimate and the bounds of its interval, from draws with the estimate first."""
    low, high = np.quantile(draws[1:], [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(draws[0]), float(low), float(high)


def need_seeds(seeds: int) -> None:
    """Raise InputError if there are too few seeds to estimate errors."""
    if seeds < FEWEST_SEEDS:
        expected = f"{FEWEST_SEEDS} or more"
        raise InputError("too few replicas to estimate errors", key="seeds", value=seeds, expected=expected)


def _std(sample: Array) -> Array:
    """Return the standard deviation over the seeds; NaN for fewer than two."""
    count, mean = _counts(sample), resampled_means(np.ones((1, len(sample))), sample)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        std: Array = np.sqrt(np.nansum((sample - mean) ** 2, axis=0) / (count - 1.0))
    return np.where(count > 1, std, np.nan)


def _counts(sample: Array) -> Array:
    """Return the number of seeds at each dimension."""
    return np.isfinite(sample).sum(axis=0).astype(float)


def _logarithms(values: Array, resampled: Array, sample: Array) -> Powers:
    counts = _counts(sample)
    seeds = int(counts[counts > 0].min(initial=len(sample)))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(values > 0.0, values, np.nan))
        return Powers(logs, np.log(np.where(resampled > 0.0, resampled, np.nan)), seeds)
