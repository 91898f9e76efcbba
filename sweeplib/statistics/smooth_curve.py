"""A smooth curve through values along an axis whose errors are correlated, and the interval of its least value.

No form is assumed: the curve is a Gaussian process (Rasmussen and Williams 2006, section 2.7), a straight line with a
wide prior plus deviations of covariance σ² exp(−(z − z′)²/(2ℓ²)). It is taken in four charts: of the values or of minus
their reciprocals, against the axis or its logarithm. A pole, a power and a parabola each are simple in one of them.
Charts, σ and ℓ are weighted by their evidence, so that the interval has in it what the values do not tell of the form.

A form of the curve is a pair of a chart and a shape of the prior; arrays (forms, ...) have those of a weight that
counts. A place is given by u: the logarithm of x if all x are positive, else x. In a chart it is z, from −1 to 1, and a
value is a response y, in standard deviations.

The least value lies below u as surely as the slope at u is positive. Of the errors only what differs between places
counts in the curve. Errors may be shared exactly, as those of a deterministic dynamics at the same starts: then the
curve is exact, and the interval is that of its interpolation. What is shared makes a level less certain, by the parts
of the seeds in the combination of the values that the curve is there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.statistics.error_covariances import TINY, errors_of_differences, freedom_of_levels

LENGTHS, SIZES = (0.8, 1.4, 2.5), (1.0, 10.0)
"""Lengths ℓ, in halves of the axis, and sizes σ of deviations, in standard deviations of the values.

With no length between .8 and 2.5, intervals of 1/γ + γ²/2 at shared starts covered .81 to .89.
"""
SCATTERS_OF_LEVELS, SCATTERS_OF_SLOPES = (1e-5, 0.1, 0.5), (1e-5, 0.02, 0.1, 0.5)
"""Sizes of a scatter of single values beside their errors, where a level or a slope is looked for.

Without the least one, matrices of exact values had no inverses. A scatter of .02 is what smooth deviations leave of a
curve of many precise values: without it .91 of intervals of an optimum covered, from 24 rates, where .94 do. With it
a level that is just not reached would be passed.
"""
SHAPES_OF_LEVELS = tuple(product(LENGTHS, SIZES, SCATTERS_OF_LEVELS))
SHAPES_OF_SLOPES = tuple(product(LENGTHS, SIZES, SCATTERS_OF_SLOPES))
"""The shapes (ℓ, σ, scatter) of the priors of curves of which levels are looked for, or slopes."""
LINE = np.array([30.0, 10.0])
"""The prior sizes of the constant and the slope of the line."""
LEAST_WEIGHT = 1e-3
"""The weight, of all, that a form needs to count."""
ROUNDING = 1e-14
"""The relative error of a variance by rounding."""
LEAST_RECIPROCAL = 0.25
"""The least reciprocal of a value that a curve has, over the least of those that were measured."""
NEAR = 1e-3
"""The part of the axis over which a bend is a difference of slopes."""
FINE, ZOOM, ZOOMS = 81, 12, 4
"""Places at which the slope is looked at for changes of its sign; parts into which a step between them is cut, so often
in turn."""


class Minimum(NamedTuple):
    """The place of a least value and its interval; an end is infinite where the values do not show that it is one."""

    at: float
    low: float
    high: float


class Crossing(NamedTuple):
    """The place at which a curve passes a level, its interval with ends that may be infinite, and whether it rises."""

    at: float
    low: float
    high: float
    rises: bool


class Tangent(NamedTuple):
    """The value of a curve and its slope at a place, as combinations of the values (n,), and what these leave open.

    The value is that of the quantity, or its logarithm; slope and bend are its derivatives along the axis, or along its
    logarithm if it is positive. value_form, slope_form : standard errors by the form of the curve alone.
    """

    value: float
    bend: float
    value_weights: Array
    slope_weights: Array
    value_form: float
    slope_form: float


class _Chart(NamedTuple):
    """One way to look at the values: the response y (n,), against z from −1 to 1.

    logarithmic : whether z is that of log x. reciprocal : whether y is that of minus the reciprocal of the value.
    middle, scale : its mean and standard deviation before it was scaled. slopes (n,) : dy/d(value).
    """

    logarithmic: bool
    reciprocal: bool
    y: Array
    middle: float
    scale: float
    slopes: Array


class SmoothCurve:
    """The curves through `values` (n,) at `x` (n,), ascending, whose errors are sums of `parts` (seeds, n).

    of_logarithms : the values are logarithms of positive quantities, whose least value is looked for; else near 1.
    with_shared : a level is looked for, which what all values share moves; it does not move a least value.
    variances (n,) : those of single values that the parts do not show.
    """

    def __init__(
        self, x: Array, values: Array, parts: Array, *, of_logarithms: bool, with_shared: bool = False,
        variances: Array | None = None,
    ) -> None:  # fmt: skip
        self.x, self.values, self.of_logarithms = x, values, of_logarithms
        self._shapes = SHAPES_OF_LEVELS if with_shared else SHAPES_OF_SLOPES
        self._errors, self.freedom = errors_of_differences(parts)
        # what errors of a level have beyond those of differences: by it alone values would be weighted by chance
        self._shared = parts.T @ parts - self._errors
        if with_shared:
            self.freedom = freedom_of_levels(parts)
        if variances is not None:
            self._errors = self._errors + np.diag(variances)
        axes, responses = (True, False) if x[0] > 0.0 else (False,), (False, True) if of_logarithms else (False,)
        charts = [self._chart(*kind) for kind in product(axes, responses)]
        roots = [self._root_of(chart) for chart in charts]
        evidence = np.concatenate([_evidence(*pair) for pair in zip(charts, roots, strict=True)])
        # relative to the largest: densities of many values underflow
        weights = np.exp(evidence - evidence.max())
        counts = np.flatnonzero(weights > LEAST_WEIGHT * weights.sum())
        self._weights = weights[counts] / weights[counts].sum()
        self._roots = np.concatenate(roots)[counts]
        chart_of, shape_of = np.divmod(counts, len(self._shapes))
        self._lengths, self._sizes, _ = np.array(self._shapes).T[:, shape_of, None]
        # the fields of the chart of each form, (forms, 1) or (forms, n)
        self._logarithmic, self._reciprocal, self._y, self._middle, self._scale, self._slopes = (
            np.stack([np.atleast_1d(chart[field]) for chart in charts])[chart_of]
            for field in range(len(_Chart._fields))
        )

    def _chart(self, logarithmic: bool, reciprocal: bool) -> _Chart:
        """Return the response of a chart: the values or minus their reciprocals, against the axis or its logarithm."""
        values = self.values - self.values.mean()
        y, slopes = values, np.ones_like(values)
        if reciprocal:
            y = -np.exp(-values - 0.5 * np.diag(self._errors))  # the mean of reciprocals is too large
            slopes = np.exp(-self._smoothed)
        scale = max(float(y.std()), TINY)
        return _Chart(logarithmic, reciprocal, (y - y.mean()) / scale, float(y.mean()), scale, slopes / scale)

    @cached_property
    def _smoothed(self) -> Array:
        """The values, relative to their mean, on the curves of one chart.

        Errors of reciprocals are by these: by the values themselves those that are too large would count most.
        """
        chart = self._chart(logarithmic=bool(self.x[0] > 0.0), reciprocal=False)
        root = self._root_of(chart)
        evidence = _evidence(chart, root)
        weights = np.exp(evidence - evidence.max())
        solutions = np.einsum("s,sji,sj->i", weights / weights.sum(), root, root @ chart.y)
        return self.values - self.values.mean() - self._errors @ solutions * chart.slopes

    def _root_of(self, chart: _Chart) -> Array:
        """Return the inverse Cholesky factors (shapes, n, n) of the covariances of the responses in a chart."""
        errors = self._errors * np.outer(chart.slopes, chart.slopes)
        prior = prior_covariances(tuple(self.x), self._shapes, logarithmic=chart.logarithmic)
        return np.linalg.inv(np.linalg.cholesky(prior + errors))

    @property
    def _u(self) -> Array:
        """The places (n,) at which the values are, or their logarithms if all are positive."""
        return np.log(self.x) if self.x[0] > 0.0 else self.x

    def _z(self, u: Array) -> tuple[Array, Array]:
        """Return z (forms, places), the coordinate from −1 to 1 in the chart of a form, at u (places,), and dz/du."""
        linear, rate = (np.exp(u), np.exp(u)) if self.x[0] > 0.0 else (u, np.ones_like(u))
        low, high = (np.where(self._logarithmic, self._u[end], self.x[end]) for end in (0, -1))
        place, slope = np.where(self._logarithmic, u, linear), np.where(self._logarithmic, 1.0, rate)
        return (2.0 * place - low - high) / (high - low), 2.0 * slope / (high - low)

    @cached_property
    def _places(self) -> Array:
        """The z (forms, n) of the values."""
        return self._z(self._u)[0]

    @cached_property
    def _solutions(self) -> Array:
        """The inverse covariances times the responses (forms, n)."""
        return np.asarray((self._roots.transpose(0, 2, 1) @ (self._roots @ self._y[..., None]))[..., 0])

    def _prior_of_levels(self, u: Array) -> tuple[Array, Array]:
        """Return the prior covariances (forms, places, n) of responses at u (places,) with those of the values.

        And their prior variances (forms, places).
        """
        z, _ = self._z(u)
        apart = (z[:, :, None] - self._places[:, None]) / self._lengths[:, None]
        line = LINE[0] ** 2 + LINE[1] ** 2 * z[:, :, None] * self._places[:, None]
        bell = self._sizes[:, None] ** 2 * np.exp(-0.5 * apart**2)
        return bell + line, LINE[0] ** 2 + (LINE[1] * z) ** 2 + self._sizes**2

    def _prior_of_slopes(self, u: Array) -> tuple[Array, Array]:
        """Return the prior covariances (forms, places, n) of slopes dy/du at u (places,) with responses of the values.

        And their prior variances (forms, places).
        """
        z, dz = self._z(u)
        apart = (z[:, :, None] - self._places[:, None]) / self._lengths[:, None]
        bell = self._sizes[:, None] ** 2 * np.exp(-0.5 * apart**2)
        cross = (LINE[1] ** 2 * self._places[:, None] - apart / self._lengths[:, None] * bell) * dz[:, :, None]
        return cross, (LINE[1] ** 2 + (self._sizes / self._lengths) ** 2) * dz**2

    def _posterior(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        """Return means and variances (forms, places) of responses, or of slopes, by their prior.

        cross, prior : as `_prior_of_levels` and `_prior_of_slopes` return them.
        """
        white = cross @ self._roots.transpose(0, 2, 1)
        # where values are exact this is the difference of two equal numbers
        variance = np.maximum(prior - np.sum(white**2, axis=2), ROUNDING * prior)
        return (cross @ self._solutions[..., None])[..., 0], variance

    def rising(self, u: Array) -> Array:
        """Return the probability (places,) that the curve rises at u (places,)."""
        mean, variance = self._posterior(*self._prior_of_slopes(u))
        return np.asarray(self._weights @ scipy.special.stdtr(self.freedom, mean / np.sqrt(variance)))

    def minimum(self, confidence: float) -> Minimum:
        """Return the place of the least value with its interval."""
        u, tail = np.linspace(self._u[0], self._u[-1], FINE), 0.5 * (1.0 - confidence)
        rising = self.rising(u)
        turns = np.flatnonzero((rising[:-1] < 0.5) & (rising[1:] >= 0.5))
        # where the curve turns from falling to rising, and an end of the axis where it falls towards it
        places = np.concatenate([u[:1][rising[:1] >= 0.5], u[turns], u[-1:][rising[-1:] < 0.5]])
        responses, _ = self._posterior(*self._prior_of_levels(places))
        best = int((self._weights @ self._values_of(responses)).argmin())
        # places that may have a lower value belong to the interval
        also = [at for at in range(len(places)) if at == best or self._is_lower(places[at], places[best]) > tail]
        below = np.flatnonzero((u <= places[also[0]]) & (rising <= tail))[-1:]
        above = np.flatnonzero((u >= places[also[-1]]) & (rising >= 1.0 - tail))[:1]
        turn = np.flatnonzero(u[turns] == places[best])
        first = np.clip(np.concatenate([below, turns[turn], above - 1]), 0, FINE - 2)
        levels = np.repeat([tail, 0.5, 1.0 - tail], [len(below), len(turn), len(above)])
        roots = iter(_roots_of(self.rising, u[first], u[first + 1], levels))
        low = next(roots) if len(below) else -np.inf
        at = next(roots) if len(turn) else places[best]
        high = next(roots) if len(above) else np.inf
        x_of = np.exp if self.x[0] > 0.0 else np.asarray
        return Minimum(float(x_of(at)), float(x_of(low)), float(x_of(high)))

    def crossings(self, level: float, confidence: float) -> list[Crossing]:
        """Return the places at which the curve passes a level, with their intervals."""
        tail = 0.5 * (1.0 - confidence)

        def above(u: Array) -> Array:
            """Return the probability that the curve is above the level at u."""
            return self.above(u, level)

        u = np.linspace(self._u[0], self._u[-1], FINE)
        probability = above(u)
        sides = probability >= 0.5
        turns = np.flatnonzero(sides[1:] != sides[:-1])
        ends = np.concatenate([[0], turns + 1, [FINE]])
        x_of = np.exp if self.x[0] > 0.0 else np.asarray
        crossings = []
        for number, turn in enumerate(turns):
            rises = bool(sides[turn + 1])
            chance = probability if rises else 1.0 - probability
            # the last place before the turn that is surely on one side, and the first after it on the other
            before = np.flatnonzero(chance[ends[number] : turn + 1] <= tail)[-1:] + ends[number]
            after = np.flatnonzero(chance[turn + 1 : ends[number + 2]] >= 1.0 - tail)[:1] + turn + 1
            first = np.concatenate([before, [turn], after - 1])
            levels = np.concatenate([[tail] * len(before), [0.5], [1.0 - tail] * len(after)])
            places = x_of(_roots_of(above if rises else lambda at: 1.0 - above(at), u[first], u[first + 1], levels))
            low = float(places[0]) if len(before) else -np.inf
            crossings.append(
                Crossing(float(places[len(before)]), low, float(places[-1]) if len(after) else np.inf, rises)
            )
        return crossings

    def above(self, u: Array, level: float) -> Array:
        """Return the probability (places,) that the curve is above a level at u (places,)."""
        cross, prior = self._prior_of_levels(u)
        mean, variance = self._posterior(cross, prior)
        directions = (cross @ self._roots.transpose(0, 2, 1) @ self._roots) * self._slopes[:, None]
        shared = np.sum(directions @ self._shared * directions, axis=2)
        variance = np.maximum(variance + shared, ROUNDING * prior)
        response = level - self.values.mean()
        response = np.where(self._reciprocal, -np.exp(np.where(self._reciprocal, -response, 0.0)), response)
        apart = mean - (response - self._middle) / self._scale
        return np.asarray(self._weights @ scipy.special.stdtr(self.freedom, apart / np.sqrt(variance)))

    def _is_lower(self, place: float, other: float) -> float:
        """Return the probability that the curve is lower at a place than at another."""
        z, _ = self._z(np.array([place, other]))
        apart = z[:, :1] - z[:, 1:]
        # expm1: near places have a difference of little variance
        prior = (LINE[1] * apart) ** 2 - 2.0 * self._sizes**2 * np.expm1(-0.5 * (apart / self._lengths) ** 2)
        cross, _ = self._prior_of_levels(np.array([place, other]))
        mean, variance = self._posterior(cross[:, :1] - cross[:, 1:], prior)
        return float(self._weights @ scipy.special.stdtr(self.freedom, -mean / np.sqrt(variance))[:, 0])

    def _values_of(self, responses: Array) -> Array:
        """Return the values, relative to their mean, of responses (forms, places)."""
        y = self._middle + self._scale * responses
        return np.where(self._reciprocal, -np.log(self._reciprocals(y)), y)

    def _reciprocals(self, y: Array) -> Array:
        """Return −y, a reciprocal in charts of those, not below the part LEAST_RECIPROCAL of the least one measured."""
        return np.maximum(-y, LEAST_RECIPROCAL * float(np.exp(self.values.mean() - self.values.max())))

    def noise_at(self, at: float) -> float:
        """Return the standard error of a level at a place by the errors of the values alone."""
        weights = self.tangent(at).value_weights
        return float(np.sqrt(weights @ (self._errors + self._shared) @ weights))

    def tangent(self, at: float) -> Tangent:
        """Return the value and the slope of the curve at a place, with their weights."""
        u = np.log(at) if self.x[0] > 0.0 else at
        step = NEAR * (self._u[-1] - self._u[0])
        around = np.array([u, u - step, u + step])
        (levels, level_prior), (rises, rise_prior) = self._prior_of_levels(around), self._prior_of_slopes(around)
        level, level_variance = self._posterior(levels, level_prior)
        rise, rise_variance = self._posterior(rises, rise_prior)
        y = self._middle + self._scale * level
        unit = self._scale * np.where(self._reciprocal, 1.0 / self._reciprocals(y), 1.0)
        # dv/dy of a value v: slopes of responses become slopes of values
        weights = self._weights @ (unit * rise)
        parts = []
        for cross, variance in ((levels, level_variance), (rises, rise_variance)):
            direction = ((cross[:, :1] @ self._roots.transpose(0, 2, 1)) @ self._roots)[:, 0] * self._slopes
            noise = np.einsum("ki,ij,kj->k", direction, self._errors, direction)
            form = np.maximum(variance[:, 0] - noise, 0.0)
            parts.append((self._weights @ (unit[:, :1] * direction), float(self._weights @ (unit[:, 0] ** 2 * form))))
        (value_weights, value_form), (slope_weights, slope_form) = parts
        values = self._values_of(level)[:, 0]
        value = float(self._weights @ values)
        return Tangent(
            self.values.mean() + value,
            float(weights[2] - weights[1]) / (2.0 * step),
            value_weights + (1.0 - value_weights.sum()) / len(self.values),
            slope_weights - slope_weights.mean(),
            float(np.sqrt(value_form + self._weights @ (values - value) ** 2)),
            float(np.sqrt(slope_form)),
        )


def _roots_of(rising: Callable[[Array], Array], lows: Array, highs: Array, levels: Array) -> Array:
    """Return the places (n,) between `lows` and `highs` at which a function that rises there passes `levels` (n,)."""
    for _ in range(ZOOMS if len(lows) else 0):
        u = np.linspace(lows, highs, ZOOM + 1)
        above = rising(u[1:-1].ravel()).reshape(ZOOM - 1, -1) >= levels
        step = np.where(above.any(axis=0), above.argmax(axis=0), ZOOM - 1)
        lows, highs = u[step, range(len(step))], u[step + 1, range(len(step))]
    return np.asarray(0.5 * (lows + highs))


def _evidence(chart: _Chart, root: Array) -> Array:
    """Return the logarithms (shapes,) of the densities of the values in a chart, but for a constant.

    root (shapes, n, n) : inverse Cholesky factors of the covariances of its responses.
    """
    white = root @ chart.y
    volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) + np.log(np.abs(chart.slopes)).sum()
    return np.asarray(volume - 0.5 * np.sum(white**2, axis=1))


@lru_cache(maxsize=256)
def prior_covariances(x: tuple[float, ...], shapes: tuple[tuple[float, ...], ...], *, logarithmic: bool) -> Array:
    """Return the prior covariances (shapes, n, n) of responses at x (n,), in a chart of x or of log x."""
    places = np.log(x) if logarithmic else np.array(x)
    z = (2.0 * places - places[0] - places[-1]) / (places[-1] - places[0])
    apart = z[:, None] - z
    line = LINE[0] ** 2 + LINE[1] ** 2 * np.outer(z, z)
    return np.stack(
        [
            size**2 * np.exp(-0.5 * (apart / length) ** 2) + scatter**2 * np.eye(len(z)) + line
            for length, size, scatter in shapes
        ]
    )
