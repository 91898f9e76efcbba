"""The slope of the logarithm of a mean over that of time, where all times share their seeds."""

from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.statistics.estimators import ends_by_error
from sweeplib.statistics.exponents import means


class Slopes(NamedTuple):
    """The slope of the logarithm over that of time, and its change from the earlier to the later half, with bounds."""

    slope: float = np.nan
    slope_low: float = np.nan
    slope_high: float = np.nan
    change: float = np.nan
    change_low: float = np.nan
    change_high: float = np.nan


def slopes_of_mean(sample: Array, times: Array, confidence: float) -> Slopes:
    """Return the slopes of the mean of a sample (seed, time), by the jackknife; NaN for a mean that is not positive.

    A slope is a mean over the seeds of what each changes in it: its interval is that of a mean, with its skewness.
    """
    sample = sample[np.isfinite(sample).any(axis=1)]
    present, freedom, directions = np.isfinite(sample), len(sample) - 1.0, _directions(np.log(times))
    total, counts = np.where(present, sample, 0.0).sum(axis=0), present.sum(axis=0)
    if not np.isfinite(means(sample).logs).all():
        return Slopes()
    without = (total - np.where(present, sample, 0.0)) / (counts - present)
    if not (without > 0.0).all():
        return Slopes()
    slopes = np.log(without) @ directions.T
    centre = slopes.mean(axis=0)
    parts = np.sqrt(freedom / (freedom + 1.0)) * (centre - slopes)
    error = np.linalg.norm(parts, axis=0)
    skewness = np.divide(np.sum(parts**3, axis=0), error**3, out=np.zeros_like(error), where=error > 0.0)
    value = (freedom + 1.0) * (directions @ np.log(total / counts)) - freedom * centre
    ends = ends_by_error(value, error, skewness, freedom, has_one_sign=False, confidence=confidence)
    return Slopes(*np.stack([value, *ends], axis=1).ravel())


def _directions(x: Array) -> Array:
    """Return the combinations (2, n) of values at x that give their slope, and its later minus its earlier half."""
    middle = (len(x) + 1) // 2
    halves = [_slope(x, slice(0, middle)), _slope(x, slice(middle - 1, None))]
    return np.stack([_slope(x, slice(None)), halves[1] - halves[0]])


def _slope(x: Array, window: slice) -> Array:
    """Return the combination (n,) of values at x (n,) that is the slope of the straight line through a window."""
    combination = np.zeros_like(x)
    centred = x[window] - x[window].mean()
    combination[window] = centred / np.sum(centred**2)
    return combination
