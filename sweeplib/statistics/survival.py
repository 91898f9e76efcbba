"""Kaplan-Meier statistics of first passages: of many samples at once, and the curve of one.

A cell is one sample of n runs, of which some are used. A run is seen until its exit or its end.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy

AT_ONCE = 2**20
"""Runs that are in memory at a time."""
HALF = 0.5 * (1.0 + 1e-12)
"""A product of fractions that is ½ may be rounded to more."""


class PassageSamples(NamedTuple):
    """First passages of many cells, of which each has n runs in the order in which they were seen last (cells, n).

    times : the exits where `exits`, otherwise the ends (inf: never exits); those that are not `used` come last.
    at_risk : the number of used runs that were seen until then, at least 1.
    """

    times: Array
    exits: NDArray[np.bool_]
    used: NDArray[np.bool_]
    at_risk: Array

    @classmethod
    def of(cls, exit_: Array, end: Array, used: NDArray[np.bool_]) -> "PassageSamples":
        """Return the samples of first passages (..., n), NaN where there was none, and of the ends of the others."""
        exit_, end, used = (values.reshape(-1, values.shape[-1]) for values in np.broadcast_arrays(exit_, end, used))
        exits = used & np.isfinite(exit_)
        times = np.where(exits, exit_, end)
        # at equal times exits come first: a run that is censored then was still at risk
        order = np.lexsort((~exits, times, ~used), axis=-1)
        times, exits, used = (np.take_along_axis(values, order, -1) for values in (times, exits, used))
        at_risk = used.sum(-1, keepdims=True) - np.arange(times.shape[-1], dtype=float)
        return cls(times, exits, used, np.maximum(at_risk, 1.0))


def medians(exit_: Array, end: Array, used: NDArray[np.bool_], confidence: float) -> tuple[Array, Array, Array]:
    """Return the Kaplan-Meier median and its interval (median, low, high); NaN if the curve stays above ½.

    Of cells with n runs each (..., n): `exit_` are the first passages, NaN where there was none, `end` the censoring
    times of the others (inf: never). The interval contains the times at which the log-log band of the survival function
    contains ½ (Brookmeyer and Crowley 1982, doi 10.2307/2530286); the curve and its band are those of
    `survival_curve`, and where no run is left by the probability that none of as many is. The upper end is infinite
    where the band stays above ½; both ends are NaN of so few runs that all may be on one side of the median: five or
    fewer at .95.
    """
    statistics = _in_parts(lambda *cells: np.stack(_medians(PassageSamples.of(*cells), confidence)), exit_, end, used)
    return statistics[0], statistics[1], statistics[2]


def _medians(sample: PassageSamples, confidence: float) -> Sequence[Array]:
    """Return the medians (cells,) by the curves of samples and by their bands: the first times with at most ½ left."""
    ends, _, used, _ = sample
    tail = (1.0 - confidence) / 2.0
    curve, least, most = _curves(sample, confidence)
    # where no run is left the log-log band is undefined: at a fraction u, none of n is with the probability (1 − u)^n
    most = np.where(curve > 0.0, most, 1.0 - tail ** (1.0 / _number_at_zero(sample))[:, None])
    below = [used & _last_of_equal(sample) & (band <= HALF) for band in (curve, least, most)]
    first = [np.take_along_axis(ends, mask.argmax(1)[:, None], 1)[:, 0] for mask in below]
    median, low, high = (np.where(mask.any(1), times, np.nan) for mask, times in zip(below, first, strict=True))
    high = np.where(used.any(1) & np.isnan(high), np.inf, high)
    # none of so few runs, or more, exits before the median with at most the probability of the tail
    enough = used.sum(1) >= int(np.ceil(-np.log2(tail)))
    return median, np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _number_at_zero(sample: PassageSamples) -> Array:
    """Return the number (cells,) of uncensored runs of which none being left says as much as that of a sample does."""
    steps = 1.0 - sample.exits / sample.at_risk
    return np.asarray(1.0 / np.prod(np.where(steps == 0.0, 1.0, steps), axis=1))


def _last_of_equal(sample: PassageSamples) -> NDArray[np.bool_]:
    """Return which runs (cells, n) are the last of those that were seen until the same time."""
    times, _, used, _ = sample
    last = np.append(times[:, 1:] > times[:, :-1], np.ones((len(times), 1), bool), axis=1)
    last[:, :-1] |= used[:, :-1] & ~used[:, 1:]
    return last


def _curves(sample: PassageSamples, confidence: float) -> tuple[Array, Array, Array]:
    """Return the Kaplan-Meier curves after each run (cells, n), and the ends of their bands, the upper NaN at 1 and 0.

    By logarithms of logarithms; the lower end is at most what those that are left may come to.
    """
    _, exits, _, at_risk = sample
    with np.errstate(divide="ignore", invalid="ignore"):
        curve: Array = np.cumprod(1.0 - exits / at_risk, axis=1, dtype=np.float64)
        errors = np.sqrt(np.cumsum(np.where(exits, 1.0 / (at_risk * (at_risk - 1.0)), 0.0), axis=1)) / -np.log(curve)
        width = np.exp(scipy.special.ndtri((1.0 + confidence) / 2.0) * errors)
        inside = np.where(curve < 1.0, curve, np.nan)
        # the band says nothing of runs that ended since the last exit
        low = np.fmin(inside**width, curve * staying(at_risk - 1.0, confidence))
        return curve, low, inside ** (1.0 / width)


def staying(runs: Any, confidence: float) -> Any:
    """Return the least probability to stay of runs of which all that are left do: then that is as rare as the tail.

    runs : their number, in any array; without one the probability is 0.
    """
    tail = (1.0 - confidence) / 2.0
    return tail ** (1.0 / np.maximum(runs, 1e-9))


def _in_parts(function: Callable[..., Array], *cells: NDArray[Any]) -> Array:
    """Return k statistics (k, ...) of cells (..., n), some cells at a time, to take little memory.

    function : of arrays (some cells, n), returns (k, some cells). cells : its arguments.
    """
    cells = tuple(np.broadcast_arrays(*cells))
    shape, step = cells[0].shape[:-1], max(1, AT_ONCE // max(1, cells[0].shape[-1]))
    rows = [values.reshape(-1, values.shape[-1]) for values in cells]
    results = [function(*(array[at : at + step] for array in rows)) for at in range(0, max(1, len(rows[0])), step)]
    return np.concatenate(results, axis=1).reshape(-1, *shape)


def survival_curve(exits: Array, ends: Array, confidence: float) -> tuple[Array, Array, Array, Array]:
    """Return the Kaplan-Meier curve: times, fraction not exited after each, its log-log band (low, high).

    exits (m,) : first passages. ends (n,) : the ends of runs without one, inf for runs that never exit.
    """
    # a run that never exits is at risk to the last time
    latest = max(exits.max(), np.max(ends, where=np.isfinite(ends), initial=0.0))
    exit_, end = np.append(exits, np.full(len(ends), np.nan)), np.append(exits, np.minimum(ends, latest))
    sample = PassageSamples.of(exit_, end, np.ones(len(exit_), bool))
    last = _last_of_equal(sample)
    curve, low, high = (row[last] for row in _curves(sample, confidence))
    return sample.times[last], curve, low, high


def fractions_exited(exit_: Array, end: Array, used: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return the Kaplan-Meier fraction that exited by the last observed time, an equivalent number of runs, those left.

    Of cells with n runs each (..., n), as `medians`. The equivalent number is that of uncensored runs whose fraction
    has the same Greenwood variance (Rothman 1978, J. Chronic Dis. 31, 557); it is n if all runs without an exit were
    observed up to the same time. Otherwise it says nothing of what happens after the last exit, until which the curve
    has a variance: at_end is the number of runs that were seen to the last time without an exit, infinite if no run was
    stopped before, or none is left.
    """
    statistics = _in_parts(lambda *cells: np.stack(_fractions_exited(PassageSamples.of(*cells))), exit_, end, used)
    return statistics[0], statistics[1], statistics[2]


def _fractions_exited(sample: PassageSamples) -> tuple[Array, Array, Array]:
    """Return the fractions (cells,) that exited, the equivalent numbers (cells,) of uncensored runs, and those left.

    By Greenwood's variance the number is n = (1 − S)/(S G) at the surviving fraction S; without an exit it is that of
    the runs seen to the latest end. Where no run is left, S = 0, the number is 0/0: its limit is 1 over the product of
    the other factors of S.
    """
    times, exits, used, at_risk = sample
    any_used, any_exit = used.any(1), exits.any(1)
    steps = 1.0 - exits / at_risk
    surviving = np.prod(steps, axis=1)
    latest = np.where(used & np.isfinite(times), times, -np.inf).max(1, initial=-np.inf)
    seen_to_latest = (used & (times >= latest[:, None])).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.where(exits, 1.0 / (at_risk * (at_risk - 1.0)), 0.0).sum(1)
        by_variance = (1.0 - surviving) / (surviving * greenwood)
    equivalent = np.where(~any_exit, seen_to_latest, np.where(surviving == 0.0, _number_at_zero(sample), by_variance))
    unexited = used & ~exits
    at_end = (unexited & (times >= latest[:, None])).sum(1)
    at_end = np.where((at_end > 0) & (at_end < unexited.sum(1)), at_end, np.inf)
    return np.where(any_used, 1.0 - surviving, np.nan), np.where(any_used, equivalent, np.nan), at_end


def least_means(exit_: Array, end: Array, used: NDArray[np.bool_], confidence: float) -> Array:
    """Return what means of min(first passage, last observed time) are at least, of cells with n runs (..., n).

    It is the area under the curve of which those that are left may come to least (`staying`): after the last exit the
    curve has no variance, however few are seen. inf where no run was stopped before the last time.
    """
    return _in_parts(lambda *cells: _least_means(PassageSamples.of(*cells), confidence)[None], exit_, end, used)[0]


def _least_means(sample: PassageSamples, confidence: float) -> Array:
    """Return what means (cells,) of samples are at least."""
    times, exits, used, at_risk = sample
    times = np.where(used, times, 0.0)
    latest = times.max(1, initial=0.0, where=np.isfinite(times))[:, None]
    before = np.cumprod(1.0 - exits / at_risk, axis=1)
    before = np.append(np.ones_like(latest), before[:, :-1], axis=1) * staying(at_risk, confidence)
    lengths = np.diff(np.minimum(times, latest), axis=1, prepend=0.0)
    was_stopped = (used & ~exits & (times < latest)).any(1)
    return np.where(was_stopped, np.sum(before * lengths, axis=1, where=used), np.inf)


def restricted_values(observations: Array, reached: NDArray[np.bool_], horizon: float) -> Array:
    """Return pseudo-values (n,) of the mean of min(first passage, horizon); NaN, for no run, stays NaN.

    observations (n,) : first passages where `reached`, else ends.
    They are n θ − (n − 1) θ_(i), where θ is the area under the Kaplan-Meier curve to the horizon and θ_(i) that area
    without run i. Their mean and standard error are those of θ (Andersen, Klein and Rosthøj 2003,
    doi 10.1093/biomet/90.1.15). Without censoring before the horizon they are min(first passage, horizon); without an
    exit before it they are the horizon, to the last bit.
    """
    valid = ~np.isnan(observations)
    times, exits = np.minimum(observations[valid], horizon), reached[valid]
    n = len(times)
    values = np.full(len(observations), np.nan)
    if not (exits & (times < horizon)).any():
        values[valid] = horizon
        return values
    if n < 2 or (exits | (times >= horizon)).all():
        values[valid] = times
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
    values[valid] = pseudo
    return values


def _area(lengths: Array, factors: Array) -> Array:
    """Return the area below a curve that starts at 1 and is multiplied by `factors` (..., n), one after each length."""
    curve = np.cumprod(factors, axis=-1)
    return np.asarray(lengths[0] + curve @ lengths[1:])
