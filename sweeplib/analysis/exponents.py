"""Exponents of powers of d, with a posterior: what resampled seeds and small departures from a power leave open."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.bootstrap import resampled_means
from sweeplib.analysis.fits import line_fit
from sweeplib.errors import InputError

Array = NDArray[np.float64]
FEWEST_SEEDS = 3
LEAST_SIGNAL = 2.0
"""Means below so many standard errors are not measured, and left out."""


class Powers(NamedTuple):
    """Logarithms of a quantity (d,), NaN where it is not measured, and of its resamples (resamples, d); its seeds."""

    values: Array
    resampled: Array
    seeds: int


def means(sample: Array, draws: Array) -> Powers:
    """Logarithms of the means of a sample (seed, d), where they are `LEAST_SIGNAL` standard errors above zero."""
    mean = resampled_means(np.ones((1, len(sample))), sample)[0]
    error = _std(sample) / np.sqrt(np.maximum(_counts(sample), 1))
    return _logarithms(np.where(mean > LEAST_SIGNAL * error, mean, np.nan), resampled_means(draws, sample), sample)


def spreads(sample: Array, draws: Array) -> Powers:
    """Logarithms of the standard deviations over the seeds of a sample (seed, d)."""
    centred = sample - resampled_means(np.ones((1, len(sample))), sample)
    variance = resampled_means(draws, centred**2) - resampled_means(draws, centred) ** 2
    return _logarithms(_std(sample), np.sqrt(np.maximum(variance, 0.0)), sample)


def minus(one: Powers, other: Powers) -> Powers:
    """The logarithms of a quotient."""
    return Powers(one.values - other.values, one.resampled - other.resampled, min(one.seeds, other.seeds))


def exponents(powers: Powers, d: Array, tolerance: float, confidence: float, generator: np.random.Generator) -> Array:
    """Draws (1 + resamples,) of the exponent x in C d^−x, the estimate first; NaN with fewer than two dimensions.

    Weighted least squares of logarithms. Each point is given, beside its error, a relative departure `tolerance` from
    the power: rounding of p, corrections to scaling. Where points scatter more, all draws have that in them (`fits`);
    their central part of `confidence` is as wide as Student's t.
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
    """The estimate and the bounds of its interval, from draws with the estimate first."""
    low, high = np.quantile(draws[1:], [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(draws[0]), float(low), float(high)


def need_seeds(seeds: int) -> None:
    """Raise InputError for fewer seeds than intervals can be told from."""
    if seeds < FEWEST_SEEDS:
        expected = f"{FEWEST_SEEDS} or more"
        raise InputError("too few replicas to tell errors from", key="seeds", value=seeds, expected=expected)


def _std(sample: Array) -> Array:
    """The standard deviation over the seeds; NaN of fewer than two."""
    count, mean = _counts(sample), resampled_means(np.ones((1, len(sample))), sample)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        std: Array = np.sqrt(np.nansum((sample - mean) ** 2, axis=0) / (count - 1.0))
    return np.where(count > 1, std, np.nan)


def _counts(sample: Array) -> Array:
    """The seeds at each dimension."""
    return np.isfinite(sample).sum(axis=0).astype(float)


def _logarithms(values: Array, resampled: Array, sample: Array) -> Powers:
    counts = _counts(sample)
    seeds = int(counts[counts > 0].min(initial=len(sample)))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(values > 0.0, values, np.nan))
        return Powers(logs, np.log(np.where(resampled > 0.0, resampled, np.nan)), seeds)
