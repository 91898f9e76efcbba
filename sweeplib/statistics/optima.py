"""The optimum of means over the seeds along an axis, and where they pass a level: places and values, with intervals.

Both are those of a smooth curve through the means (`smooth_curve`), through their logarithms if all are clearly
positive, or through the logits of fractions.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.statistics.bootstrap import PointErrors, linear_means, log_means_by_leaving_out, moments
from sweeplib.statistics.error_covariances import TINY
from sweeplib.statistics.estimators import ends_by_error
from sweeplib.statistics.smooth_curve import Crossing, SmoothCurve, Tangent

FEWEST = 5
"""The least number of values of the axis: with fewer, any smooth curve may have its least value anywhere between."""
NEAR = 1.8
"""The ratio to the least value beyond which others tell more of the form of the curve far away than of its optimum.

With all values, intervals of the optimum of 1/γ + γ²/2 between .05 and 3, at shared starts, covered .55 to .85, with
those up to twice the least .84 to 1, with these .94 to 1.
"""
CLEARLY = 3.0
"""The standard errors by which the mean of values of either sign is above zero, for a curve of logarithms.

Of lines from .05 to 2.05 with errors of .07 a fifth had no crossing of 1, as all means were positive by chance.
"""


class Optimum(NamedTuple):
    """The place and the value of an optimum with their intervals; NaN with fewer than FEWEST values of the axis.

    at_edge : the optimum or an end of its interval is at the first or the last value used; at_end : the optimum is.
    used : how many values were.
    """

    at: float = np.nan
    low: float = np.nan
    high: float = np.nan
    value: float = np.nan
    value_low: float = np.nan
    value_high: float = np.nan
    at_edge: bool = False
    at_end: bool = False
    used: int = 0


class FirstOfCrossings(NamedTuple):
    """The first place along an axis at which a level is passed, with its interval; NaN if there is none.

    unsettled : there is another number of crossings than one, or an end of the interval lies beyond the values used;
    false of fewer than FEWEST values, which do not tell it.
    crossings, used : how many crossings there are, and values of the axis that were used.
    """

    at: float = np.nan
    low: float = np.nan
    high: float = np.nan
    unsettled: bool = True
    crossings: int = 0
    used: int = 0


class LeastValue(NamedTuple):
    """The least value of a curve, in the units of the curve (logarithms of positive means), and its errors.

    parts : those of the seeds (seed,) in its error. form : its standard error by the form of the curve.
    freedom : the degrees of freedom of the error. at_edge : whether its place is at an end of the values of the axis.
    """

    value: float
    parts: Array
    form: float
    freedom: float
    at_edge: bool

    @property
    def error(self) -> float:
        """Return the standard error of the value."""
        return float(np.hypot(np.linalg.norm(self.parts), self.form))


class MeanCurve:
    """The curve through the means over the seeds of `values` (seed, n) at `x` (n,): NaN where there is no run.

    The curve is that of `points`: of the logarithms of the means where all are clearly positive (`of_logarithms`), of
    logits where all values are 0 or 1 (`of_fractions`), else of the means in a `unit`, a power of two near the largest,
    as what is next to nothing has no unit. hidden (n,) : variances of logits that runs do not show, as equal outcomes
    do not make a fraction certain; 0 otherwise.
    If the `greatest` value is sought, it is the least of the negative curve: `sign` is −1.
    """

    def __init__(self, values: Array, x: Array, *, greatest: bool = False) -> None:
        present, means, variances = moments(values)
        order = np.argsort(x)[np.isfinite(means[np.argsort(x)])]
        # a mean of values of either sign may be above zero by chance, and its logarithm anywhere
        least = CLEARLY * np.sqrt(variances / np.maximum(present.sum(axis=0), 1))
        least = np.where((present & (values < 0.0)).any(axis=0), least, 0.0)
        self.x, self.sign = x[order], -1.0 if greatest else 1.0
        self._values, present = values[:, order], present[:, order]
        self.of_fractions = bool(np.isin(self._values[present], (0.0, 1.0)).all())
        self.of_logarithms = bool((means[order] > least[order]).all()) and not self.of_fractions
        self.unit, self.hidden = 1.0, np.zeros(len(order))
        if self.of_logarithms:
            self.points = log_means_by_leaving_out(self._values)
        elif self.of_fractions:
            self.points, self.hidden = _logits(self.linear)
        else:
            self.unit = 2.0 ** float(np.frexp(np.abs(means[order]).max(initial=0.0))[1] - 1)
            self.points = linear_means(self._values / self.unit)

    @property
    def is_enough(self) -> bool:
        """Return whether there are FEWEST values of the axis."""
        return len(self.x) >= FEWEST

    @cached_property
    def linear(self) -> PointErrors:
        """The means themselves, of any sign, in the place of logarithms: its `logs`."""
        return linear_means(self._values)

    @property
    def errors(self) -> Array:
        """Return the standard errors (n,) of the means; equal outcomes do not make a fraction certain."""
        variances = np.diag(self.linear.covariance)
        if self.of_fractions:
            counts = self.linear.present.sum(axis=0)
            # Agresti and Coull: two successes and two failures more than were seen
            share = (self.linear.logs * counts + 2.0) / (counts + 4.0)
            variances = np.maximum(variances, share * (1.0 - share) / (counts + 4.0))
        return np.asarray(np.sqrt(variances))

    @cached_property
    def at_levels(self) -> SmoothCurve:
        """The smooth curve of which crossings of a level are looked for."""
        return SmoothCurve(
            self.x, self.points.values, self.points.parts, of_logarithms=self.of_logarithms, with_shared=True,
            variances=self.hidden,
        )  # fmt: skip

    def crossings(self, level: float, confidence: float) -> list[Crossing]:
        """Return the places at which the curve passes a level, with their intervals.

        None at a level that no curve can pass, such as 0 for positive means or 1 for fractions.
        """
        if self.of_fractions:
            level = np.log(level / (1.0 - level)) if 0.0 < level < 1.0 else np.nan
        elif self.of_logarithms:
            level = np.log(level) if level > 0.0 else np.nan
        level /= self.unit
        return self.at_levels.crossings(level, confidence) if self.is_enough and np.isfinite(level) else []

    @cached_property
    def near(self) -> slice:
        """The values from which the least one is told: all between the outermost that are not clearly larger.

        Of positive quantities those clearly above NEAR times the least are left out at both ends, but FEWEST stay.
        """
        parts = self.points.parts
        is_exact = bool(np.abs(parts - parts.mean(axis=1, keepdims=True)).max() <= TINY)
        # an exact curve is told by all values: its interval is that of the interpolation
        if is_exact or not self.of_logarithms:
            return slice(0, len(self.x))
        values, errors = self.sign * self.points.values, np.sqrt(np.diag(self.points.covariance))
        best = int(values.argmin())
        is_near = values - values[best] <= np.log(NEAR) + 2.0 * np.hypot(errors, errors[best])
        first, last = np.flatnonzero(is_near)[[0, -1]]
        while last - first + 1 < min(FEWEST, len(values)):
            before = values[first - 1] if first > 0 else np.inf
            if last + 1 == len(values) or before < values[last + 1]:
                first -= 1
            else:
                last += 1
        return slice(int(first), int(last) + 1)

    @cached_property
    def smooth(self) -> SmoothCurve:
        """The smooth curve of which the least value is looked for, through the values near it."""
        values, near = self.sign * self.points.values, self.near
        parts = self.points.parts[:, near]
        return SmoothCurve(
            self.x[near], values[near], parts, of_logarithms=self.of_logarithms, variances=self.hidden[near]
        )

    @property
    def covariance(self) -> Array:
        """Return the covariance (n, n) of the errors of `points`."""
        return np.asarray(self.points.covariance + np.diag(self.hidden))

    def tangent(self, at: float) -> Tangent:
        """Return the tangent of the smooth curve at a place, with a weight for each value: 0 for those not `near`."""
        tangent, weights = self.smooth.tangent(at), np.zeros((2, len(self.x)))
        weights[:, self.near] = tangent.value_weights, tangent.slope_weights
        return tangent._replace(value_weights=weights[0], slope_weights=weights[1])

    def optimum(self, confidence: float) -> Optimum:
        """Return the optimum with its intervals."""
        if not self.is_enough:
            return Optimum(used=len(self.x))
        place, low, high = self.smooth.minimum(confidence)
        # beyond the values near the least one there are others, clearly larger: the next of them is beyond the interval
        if self.near.start > 0:
            low = max(low, float(self.x[self.near.start - 1]))
        if self.near.stop < len(self.x):
            high = min(high, float(self.x[self.near.stop]))
        first, last = float(self.x[0]), float(self.x[-1])
        at = min(max(place, first), last)  # exp(log x) may be a hair beyond x
        least = self.least(at)
        value, at_edge = self._interval(least, confidence), least.at_edge or low < first or high > last
        ends = min(max(low, first), at), max(min(high, last), at)
        return Optimum(at, *ends, *value, at_edge, least.at_edge, len(self.x))

    def least(self, at: float) -> LeastValue:
        """Return the value at the place of the least one, with its errors."""
        tangent, parts = self.tangent(at), self.points.parts
        weights = tangent.value_weights
        freedom = max(1.0, min(self.smooth.freedom, float(self.points.freedom(weights[None])[0])))
        at_edge = bool(np.isclose(self.x[[0, -1]], at, rtol=1e-9, atol=0.0).any())
        form = float(np.hypot(tangent.value_form, np.sqrt(weights**2 @ self.hidden)))
        return LeastValue(tangent.value, parts @ weights, form, freedom, at_edge)

    def _interval(self, least: LeastValue, confidence: float) -> tuple[float, float, float]:
        """Return the value of an optimum in units of the quantity, with its interval, made as that of a mean."""
        value, error = self.sign * least.value, least.error
        if self.of_logarithms:
            value = float(np.exp(value))
            error *= value
        skewness = float(np.sum(least.parts**3)) / max(least.error, TINY) ** 3
        # Student's t of one degree of freedom makes ends beyond the largest number: there the end is not known
        with np.errstate(over="ignore"):
            low, high = ends_by_error(value, error, skewness, least.freedom, self.of_logarithms, confidence=confidence)
        if self.of_fractions:
            value, low, high = scipy.special.expit(np.array([value, low, high]))
        return float(value * self.unit), float(low * self.unit), float(high * self.unit)


def _logits(fractions: PointErrors) -> tuple[PointErrors, Array]:
    """Return the logits of fractions with their errors, and variances (n,) of these that runs do not show."""
    counts = fractions.present.sum(axis=0)
    share = (fractions.logs * counts + 0.5) / (counts + 1.0)
    parts = fractions.parts * np.sqrt(1.0 - 1.0 / counts) / (share * (1.0 - share))
    # The variance of a logit by Gart and Zweifel (1967) is finite where all runs passed, or none.
    variances = (1.0 / share + 1.0 / (1.0 - share)) / (counts + 1.0)
    logits = fractions._replace(logs=np.log(share / (1.0 - share)), parts=parts, plain=parts)
    return logits, np.maximum(variances - np.sum(parts**2, axis=0), 0.0)


def minimum(values: Array, x: Array, confidence: float, *, greatest: bool = False) -> Optimum:
    """Return the optimum of the curve through the means of `values` (seed, n) at x (n,)."""
    return MeanCurve(values, x, greatest=greatest).optimum(confidence)


def least_mean(values: Array, x: Array, confidence: float) -> LeastValue:
    """Return the least value of the curve through the means of `values` (seed, n) at x (n,); NaN for too few means."""
    curve = MeanCurve(values, x)
    if not curve.is_enough:
        return LeastValue(np.nan, np.full(len(values), np.nan), np.nan, np.nan, at_edge=False)
    return curve.least(curve.smooth.minimum(confidence).at)


def first_crossing(values: Array, x: Array, level: float, confidence: float) -> FirstOfCrossings:
    """Return the first crossing of a level by the curve through the means of `values` (seed, n) at x (n,)."""
    curve = MeanCurve(values, x)
    crossings = curve.crossings(level, confidence)
    if not crossings:
        # of too few values it is not known whether they pass it
        return FirstOfCrossings(unsettled=curve.is_enough, used=len(curve.x))
    at, low, high, _ = crossings[0]
    is_open = low < curve.x[0] or high > curve.x[-1]
    ends = max(low, float(curve.x[0])), min(high, float(curve.x[-1]))
    return FirstOfCrossings(at, *ends, is_open or len(crossings) > 1, len(crossings), len(curve.x))
