"""Kaplan-Meier statistics of one sample of first passages, by scipy."""

import warnings

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def median(exits: Array, ends: Array, confidence: float) -> tuple[float, float, float]:
    """The Kaplan-Meier median with its interval (median, low, high); NaN where the curve does not come down to ½.

    `exits` are the observed first passages, `ends` the censoring times of the others (inf: never). The interval holds
    the times whose log-log band of the survival function contains ½ (Brookmeyer and Crowley 1982, doi 10.2307/2530286).
    """
    if not exits.size:
        return np.nan, np.nan, np.nan
    times, *curves = survival_curve(exits, ends, confidence)
    middle, low, high = (_first_below(times, curve) for curve in curves)
    return middle, low, high


def survival_curve(exits: Array, ends: Array, confidence: float) -> tuple[Array, Array, Array, Array]:
    """The Kaplan-Meier curve: times, the fraction that has not exited after each, and its log-log band (low, high)."""
    from scipy.stats import CensoredData, ecdf

    latest = max(exits.max(), np.max(ends, where=np.isfinite(ends), initial=0.0))
    sample = CensoredData(uncensored=exits, right=np.minimum(ends, latest))
    survival = ecdf(sample).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the band is undefined where the curve is 0
        band = survival.confidence_interval(confidence, method="log-log")
    return survival.quantiles, survival.probabilities, band.low.probabilities, band.high.probabilities


def _first_below(times: Array, survival: Array) -> float:
    below = np.flatnonzero(survival <= 0.5)
    return float(times[below[0]]) if below.size else np.nan
