"""Whether two samples have one law: Kolmogorov and Smirnov's test, and the ratio of their spreads."""

import warnings

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy

DIGITS = 9
"""Values that agree to this number of digits of the largest value count as equal: dynamics round differently."""


def kolmogorov_smirnov(first: Array, second: Array) -> tuple[Array, Array]:
    """Return two-sample statistics and p-values of samples (..., n) and (..., m), ignoring NaN.

    Values of inf count as later than all others.
    """
    n, m = (np.sum(~np.isnan(sample), axis=-1, keepdims=True) for sample in (first, second))
    # n m times the difference of the two distribution functions is a whole number: its jumps are m and −n
    pooled = np.concatenate([first, second], axis=-1)
    jumps = np.concatenate([np.where(np.isnan(first), 0, m), np.where(np.isnan(second), 0, -n)], axis=-1)
    order = np.argsort(pooled, axis=-1)
    pooled, jumps = (np.take_along_axis(array, order, axis=-1) for array in (pooled, jumps))
    last_of_ties = np.ones(pooled.shape, dtype=bool)
    last_of_ties[..., :-1] = pooled[..., :-1] != pooled[..., 1:]
    largest = np.max(np.where(last_of_ties, np.abs(np.cumsum(jumps, axis=-1)), 0), axis=-1)
    pairs = (n * m)[..., 0]
    statistic = np.where(pairs > 0, largest / np.maximum(pairs, 1), np.nan)
    return statistic, _pvalues(np.stack([n[..., 0], m[..., 0], largest], axis=-1), first, second)


def _pvalues(keys: NDArray[np.int64], first: Array, second: Array) -> Array:
    """Return the p-values (...,) of samples (..., n) and (..., m).

    keys (..., 3) : the numbers n and m of values, and n m times the statistic, on which a p-value depends alone; each
    distinct row is computed once.
    """
    unique, where, back = np.unique(keys.reshape(-1, 3), axis=0, return_index=True, return_inverse=True)
    samples = (sample.reshape(keys.size // 3, sample.shape[-1])[where] for sample in (first, second))
    with warnings.catch_warnings():
        # scipy then takes the asymptotic law, and says so at each call
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        pvalues = [
            scipy.stats.ks_2samp(x[~np.isnan(x)], other[~np.isnan(other)]).pvalue if n and m else np.nan
            for (n, m, _), x, other in zip(unique, *samples, strict=True)
        ]
    return np.array(pvalues)[back.ravel()].reshape(keys.shape[:-1])


def spread_ratio(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the ratio of the standard deviations of samples (..., n), ignoring NaN, and its jackknife error.

    The jackknife removes a seed from both samples at once, so the error holds for paired samples too.
    """
    in_both = ~np.isnan(first) & ~np.isnan(second)
    n = in_both.sum(axis=-1, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [_log_deviations(np.where(in_both, sample, np.nan), n) for sample in (first, second)]
        ratio = np.exp(logs[0][0] - logs[1][0])
        leave_one = np.where(in_both, logs[0][1] - logs[1][1], np.nan)
        centred = leave_one - np.nansum(leave_one, axis=-1, keepdims=True) / n[..., None]
        error = ratio * np.sqrt((n - 1) / n * np.nansum(centred**2, axis=-1))
    valid = (n > 2) & np.isfinite(ratio) & (ratio > 0.0)
    return np.where(valid, ratio, np.nan), np.where(valid & np.isfinite(error), error, np.nan)


def _log_deviations(sample: Array, n: Array) -> tuple[Array, Array]:
    """Return the logarithm of the standard deviation (...,) of samples (..., n), and it without each value (..., n).

    n (...,) : the number of values that are not NaN.
    """
    centred = sample - (np.nansum(sample, axis=-1) / n)[..., None]
    total = np.nansum(centred**2, axis=-1)
    # values that differ by less than the DIGITS to which they were rounded are equal
    total = np.where(total > 10.0 ** (-2 * DIGITS) * np.nansum(sample**2, axis=-1), total, 0.0)
    without = total[..., None] - centred**2 * (n / (n - 1.0))[..., None]
    return 0.5 * np.log(total / (n - 1.0)), 0.5 * np.log(without / (n - 2.0)[..., None])
