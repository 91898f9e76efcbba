"""Kaplan-Meier statistics of one sample of first passages; scipy computes curves and bands."""

import warnings

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def median(exits: Array, ends: Array, confidence: float) -> tuple[float, float, float]:
    """Return the Kaplan-Meier median and its interval (median, low, high); NaN if the curve stays above ½.

    `exits` are the observed first passages, `ends` the censoring times of the others (inf: never). The interval
    contains the times at which the log-log band of the survival function contains ½ (Brookmeyer and Crowley 1982,
    doi 10.2307/2530286).
    """
    if not exits.size:
        return np.nan, np.nan, np.nan
    times, *curves = survival_curve(exits, ends, confidence)
    middle, low, high = (_first_below(times, curve) for curve in curves)
    return middle, low, high


def survival_curve(exits: Array, ends: Array, confidence: float) -> tuple[Array, Array, Array, Array]:
    """Return the Kaplan-Meier curve: times, fraction not exited after each, its log-log band (low, high)."""
    from scipy.stats import CensoredData, ecdf

    latest = max(exits.max(), np.max(ends, where=np.isfinite(ends), initial=0.0))
    sample = CensoredData(uncensored=exits, right=np.minimum(ends, latest))
    survival = ecdf(sample).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the band is undefined where the curve is 0
        band = survival.confidence_interval(confidence, method="log-log")
    return survival.quantiles, survival.probabilities, band.low.probabilities, band.high.probabilities


def fraction_exited(seen: Array, reached: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the Kaplan-Meier fraction that exited by the last observed time, and the equivalent number of runs.

    `seen` (n,) are the exits where `reached`, otherwise the ends (inf: never exits). The equivalent number is that of
    uncensored runs whose fraction has the same Greenwood variance (Rothman 1978, J. Chronic Dis. 31, 557); it is n if
    all runs without an exit were observed up to the same time.
    """
    if not len(seen):
        return np.nan, np.nan
    order = np.lexsort((~reached, seen))
    exits = reached[order]
    at_risk = np.arange(len(seen), 0.0, -1.0)
    left = np.prod(1.0 - exits / at_risk)
    if not exits.any():
        ends = seen[np.isfinite(seen)]
        return 0.0, float(np.sum(seen >= ends.max(initial=-np.inf)))
    if left == 0.0:
        return 1.0, float(1.0 / np.prod(1.0 - exits[:-1] / at_risk[:-1]))
    greenwood = np.sum(1.0 / (at_risk[exits] * (at_risk[exits] - 1.0)))
    return float(1.0 - left), float((1.0 - left) / (left * greenwood))


def restricted_values(seen: Array, reached: NDArray[np.bool_], horizon: float) -> Array:
    """Return pseudo-values (n,) of the mean of min(first passage, horizon); NaN in `seen` means no run, and stays NaN.

    They are n θ − (n − 1) θ_(i), where θ is the area under the Kaplan-Meier curve to the horizon and θ_(i) that area
    without run i. Their mean and standard error are those of θ (Andersen, Klein and Rosthøj 2003,
    doi 10.1093/biomet/90.1.15). Without censoring before the horizon they are min(first passage, horizon).
    """
    known = ~np.isnan(seen)
    times, exits = np.minimum(seen[known], horizon), reached[known]
    n = len(times)
    values = np.full(len(seen), np.nan)
    if n < 2 or (exits | (times >= horizon)).all():
        values[known] = times
        return values
    order = np.lexsort((~exits, times))
    lengths, exits = np.diff(times[order], prepend=0.0), exits[order]
    lengths = np.append(lengths, horizon - times[order[-1]])
    at_risk = np.arange(n, 0.0, -1.0)
    full_area = _area(lengths, 1.0 - exits / at_risk)
    earlier = np.arange(n) < np.arange(n)[:, None]  # without run i, one run fewer is at risk at earlier times
    factors = 1.0 - exits / (at_risk - earlier)
    np.fill_diagonal(factors, 1.0)
    pseudo = np.empty(n)
    pseudo[order] = n * full_area - (n - 1) * _area(lengths, factors)
    values[known] = pseudo
    return values


def _area(lengths: Array, factors: Array) -> Array:
    """Return the area below a curve that starts at 1 and is multiplied by `factors` (..., n), one after each length."""
    curve = np.cumprod(factors, axis=-1)
    return np.asarray(lengths[0] + curve @ lengths[1:])


def _first_below(times: Array, survival: Array) -> float:
    below = np.flatnonzero(survival <= 0.5)
    return float(times[below[0]]) if below.size else np.nan
