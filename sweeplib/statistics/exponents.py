"""Exponents of powers of d, with a posterior from resampled seeds and small allowed departures from a power law."""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.statistics.bootstrap import PointErrors, Resampling, log_means, moments
from sweeplib.statistics.fits import line_fit
from sweeplib.statistics.seed_means import FEWEST_SEEDS

LEAST_SIGNAL = 2.0
"""Means below this number of standard errors count as not measured and are left out."""


def means(sample: Array) -> PointErrors:
    """Return logarithms of the means of a sample (seed, d), NaN for means below `LEAST_SIGNAL` standard errors."""
    present, mean, variance = moments(sample)
    error = np.sqrt(variance / np.maximum(present.sum(axis=0), 1))
    return log_means(np.where(mean > LEAST_SIGNAL * error, sample, np.nan))


def exponents(powers: PointErrors, d: Array, tolerance: float, resampling: Resampling) -> Array:
    """Return draws (1 + resamples,) of the exponent x in C d^−x, the estimate first; NaN for fewer than two dimensions.

    powers : the logarithms of quantities at the dimensions d (n,).
    Weighted least squares of logarithms. The error of each point includes a relative departure `tolerance` from the
    power law, for the rounding of p and corrections to scaling. Where the points scatter more, all draws include this
    scatter (`fits`). The central part of the draws, of the confidence, is as wide as the interval of Student's t.
    """
    finite = np.isfinite(powers.logs)
    if finite.sum() < 2:
        return np.full(1 + len(resampling.weights), np.nan)
    fit = line_fit(powers.at(finite), np.vander(np.log(d[finite]), 2), resampling, tolerance)
    return -np.append(fit.best[0], fit.draws[:, 0])


def least_error(powers: PointErrors, d: Array, tolerance: float) -> float:
    """Return the standard error of an exponent with endless seeds: that by departures `tolerance` from the power law.

    powers : the logarithms of quantities at the dimensions d (n,), NaN where not measured.
    """
    logs = np.log(d[np.isfinite(powers.logs)])
    return float(tolerance / np.sqrt(np.sum((logs - logs.mean()) ** 2))) if len(logs) > 1 else np.nan


def interval(draws: Array, confidence: float) -> tuple[float, float, float]:
    """Return the estimate and the bounds of its interval, from draws with the estimate first."""
    low, high = np.quantile(draws[1:], [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(draws[0]), float(low), float(high)


def need_seeds(seeds: int) -> None:
    """Raise InputError if there are too few seeds to estimate errors."""
    if seeds < FEWEST_SEEDS:
        expected = f"{FEWEST_SEEDS} or more"
        raise InputError("too few replicas to estimate errors", key="seeds", value=seeds, expected=expected)
