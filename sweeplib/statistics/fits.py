"""Linear fits to points whose errors are known from seeds, with an extra scatter where the points need one.

The interval of a fit from resampled seeds says where the fit would lie with other seeds. Where the points deviate from
the fitted law by more than their errors, it does not say where the law lies: more seeds make it narrower but not more
accurate. The model used here: each point deviates from the law by a random scatter τ in addition to its error. τ is
chosen such that the residuals have their expected size (Paule and Mandel 1982, J. Res. Natl. Bur. Stand. 87, 377);
errors are correlated where points share their seeds. τ enters the weights and is added to every resample. Because τ is
estimated from few points, the interval is widened to that of Student's t (Knapp and Hartung 2003,
doi 10.1002/sim.1482). If all errors are equal this widens an interval by √(χ²/n) t_n, with n degrees of freedom.

This does not correct a systematic bend, but χ²/n shows it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.statistics.bootstrap import PointErrors, Resampling, log_means

SEEN_FROM = {1.0: 0.26, 2.0: 0.7, 3.0: 0.9, 4.0: 1.0}
"""The χ²/n above which points are said to scatter more than their errors, by the degrees of freedom n.

With few residuals χ²/n is often below 1 by chance. With these limits, 95 % intervals cover 93 to 98 % of truths for any
scatter, and up to 99 % at one degree of freedom and no scatter (`tests/unit/test_analysis_coverage.py`).
"""
MISFIT = ("chi-squared over degrees of freedom of the fitted power", r"\chi^2/n")
"""The labels of `reduced_chi2` of a power."""
FEWEST_POINTS = 3
"""The least number of points for the interval of an exponent: two points fit any power."""
EXPECTED = 2.0
"""The number of residuals that a scatter given in advance counts for."""
_ROUNDING = 1e-24
"""The relative sum of squared residuals below which they are rounding errors, of 1e-12."""


class Misfit(NamedTuple):
    """The ratio of χ² to its expected value, the scatter τ of points beyond their errors, the degrees of freedom."""

    ratio: float = np.nan
    scatter: float = 0.0
    freedom: float = 0.0

    @property
    def is_large(self) -> bool:
        """Whether points scatter more than their errors."""
        limit = np.interp(self.freedom, list(SEEN_FROM), list(SEEN_FROM.values()))
        return bool(self.freedom > 0.0 and self.ratio > limit)


class LineFit(NamedTuple):
    """The coefficients `best` (k,) of a fit, draws of them (resamples, k), and the misfit."""

    best: Array
    draws: Array
    misfit: Misfit

    def interval(self, confidence: float) -> Array:
        """Return the ends (2, k) of the central intervals, for the `confidence` with which the draws were made."""
        return np.asarray(np.quantile(self.draws, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0))


class Power(NamedTuple):
    """A power A x^e of means: e with its interval, χ² over the degrees of freedom, A; NaN for fewer than two points."""

    exponent: float = np.nan
    low: float = np.nan
    high: float = np.nan
    reduced_chi2: float = np.nan
    prefactor: float = np.nan


class PowerLaw(NamedTuple):
    """A product of powers: exponents (k,) with their intervals, prefactor, χ²/n and relative scatter of the points.

    points : the number of points of the fit. NaN for what they do not determine.
    """

    exponent: Array
    low: Array
    high: Array
    prefactor: float = np.nan
    reduced_chi2: float = np.nan
    scatter: float = np.nan
    points: float = 0.0


def power_of(values: Array, x: Array, resampling: Resampling, largest: float = np.inf) -> Power:
    """Return the power of x (n,) that the means of `values` (seed, n) follow, up to the largest x.

    NaN marks runs that are left out. It has no interval with fewer than FEWEST_POINTS points.
    """
    values, x = values[:, x <= largest], x[x <= largest]
    points = log_means(values)
    finite = np.isfinite(points.logs)
    if finite.sum() < 2:
        return Power()
    fit = line_fit(points.at(finite), np.vander(np.log(x[finite]), 2), resampling)
    low, high = fit.interval(resampling.confidence)[:, 0] if finite.sum() >= FEWEST_POINTS else (np.nan, np.nan)
    return Power(fit.best[0], low, high, fit.misfit.ratio, float(np.exp(fit.best[1])))


def power_law(values: Array, logarithms: Array, resampling: Resampling) -> PowerLaw:
    """Return the fit of Π x_v^e_v to the means of `values` (seed, point); `logarithms` (variable, point): log x_v."""
    unknown = np.full(len(logarithms), np.nan)
    points = log_means(values)
    finite = np.isfinite(points.logs)
    number = float(finite.sum())
    design = np.vstack([np.ones(len(finite)), logarithms]).T[finite]
    if number < 2 or np.linalg.matrix_rank(design) < design.shape[1]:
        return PowerLaw(unknown, unknown, unknown, points=number)
    fit = line_fit(points.at(finite), design, resampling)
    if not fit.misfit.freedom > 0.0:
        return PowerLaw(fit.best[1:], unknown, unknown, float(np.exp(fit.best[0])), points=number)
    low, high = fit.interval(resampling.confidence)[:, 1:]
    return PowerLaw(fit.best[1:], low, high, float(np.exp(fit.best[0])), *fit.misfit[:2], number)


def line_fit(points: PointErrors, design: Array, resampling: Resampling, departure: float = 0.0) -> LineFit:
    """Return the least-squares fit of the points (n,) by the columns of `design` (n, k), weighted by 1/variance.

    `departure` is a scatter that is expected in advance: it adds to the error of each point and counts as `EXPECTED`
    more residuals.
    """
    covariance = points.covariance + departure**2 * np.eye(len(points.logs))
    errors2 = np.diag(covariance)
    more = EXPECTED * departure**2 / errors2.mean() if departure > 0.0 else 0.0
    excess = misfit(points.values, design, covariance, lambda scatter2: inverse_variances(errors2 + scatter2), more)
    solution = linear_solution(design, inverse_variances(errors2 + excess.scatter**2))
    best = solution @ points.values
    resampled, noise = scatter_draws(points, resampling, excess, departure)
    widths = widening(points, solution, excess, resampling.confidence, departure)
    by_seed, by_scatter = resampled @ solution.T * points.growth(solution), noise @ solution.T
    if not excess.is_large:
        return LineFit(best, best + by_seed * widths + by_scatter, excess)
    return LineFit(best, best + (by_seed + by_scatter) * widths, excess)


def scatter_draws(
    points: PointErrors, resampling: Resampling, excess: Misfit, departure: float = 0.0
) -> tuple[Array, Array]:
    """Return draws (resamples, n) of the deviations of points from their law: by their seeds, and by their scatter.

    excess : the misfit of the law. departure : a scatter that is expected in advance.
    """
    weights, generator, _ = resampling
    noise = np.hypot(departure, excess.scatter) * generator.standard_normal((len(weights), len(points.logs)))
    return weights @ points.parts * (np.sqrt(min(excess.ratio, 1.0)) if excess.is_large else 1.0), noise


def widening(
    points: PointErrors, directions: Array, excess: Misfit, confidence: float, departure: float = 0.0
) -> Array:
    """Return the factors (k,) that widen draws of linear combinations `directions` (k, n) of the points.

    Their quantiles at `confidence` then are those of Student's t: with the degrees of freedom of the seeds; where a
    scatter is seen, with those of the fit or, if these are fewer, of the sum of both variances (Satterthwaite).
    """
    freedom = points.freedom(directions)
    if excess.is_large:
        by_seed = np.einsum("kn,nm,km->k", directions, points.covariance, directions) * min(excess.ratio, 1.0)
        by_scatter = (excess.scatter**2 + departure**2) * np.sum(directions**2, axis=-1)
        squares = by_seed**2 / freedom + by_scatter**2 / excess.freedom
        total = np.divide((by_seed + by_scatter) ** 2, squares, np.full(squares.shape, np.inf), where=squares > 0.0)
        freedom = np.minimum(total, excess.freedom)
    return _student_factor(freedom, confidence)


def misfit(
    values: Array, design: Array, covariance: Array, weights_of: Callable[[float], Array], expected: float = 0.0
) -> Misfit:
    """Return the misfit of a linear fit to `values` (n,) with the error covariance `covariance` (n, n).

    `weights_of(τ²)` returns the weights (n,) for points with the scatter τ. `expected` is a number of additional
    residuals that have exactly their expected size. Without degrees of freedom the misfit is unknown (NaN).
    """
    if len(values) <= design.shape[1]:
        return Misfit()
    weights, errors2, scatter2 = weights_of(0.0), np.diag(covariance), 0.0
    chi2, mean, slope = _squares(values, design, covariance, weights)
    if chi2 <= _ROUNDING * np.sum(weights * values**2):
        return Misfit(0.0, 0.0, _freedom(design, weights, errors2) + expected)
    if chi2 > mean:
        scatter2 = _root(lambda tried: _excess(values, design, covariance, weights_of, expected, tried), chi2 / slope)
    ratio = (chi2 + expected) / (mean + expected) if mean + expected > 0.0 else np.inf
    freedom = _freedom(design, weights_of(scatter2), errors2 + scatter2) + expected
    return Misfit(ratio, float(np.sqrt(scatter2)), freedom)


def _squares(values: Array, design: Array, covariance: Array, weights: Array) -> tuple[float, float, float]:
    """Return the weighted sum of squared residuals, its expected value, and its increase by a scatter τ² of 1."""
    form = _residual_form(design, weights)
    residuals = values - design @ (linear_solution(design, weights) @ values)
    return float(np.sum(weights * residuals**2)), float(np.sum(form * covariance)), float(np.trace(form))


def _excess(
    values: Array, design: Array, covariance: Array, weights_of: Callable[[float], Array], expected: float,
    scatter2: float,
) -> float:  # fmt: skip
    """Return the sum of squared residuals minus its expected value with the scatter τ² = `scatter2`; see `misfit`."""
    chi2, mean, slope = _squares(values, design, covariance, weights_of(scatter2))
    more = expected * scatter2 / (np.diag(covariance).mean() + scatter2) if expected else 0.0
    return chi2 - mean - scatter2 * slope - more


def _root(decreasing: Callable[[float], float], start: float) -> float:
    """Return the zero of a decreasing function that is positive at 0; `start` is about where it may be."""
    end = start
    while decreasing(end) > 0.0:
        end *= 4.0
    return float(scipy.optimize.brentq(decreasing, 0.0, end, xtol=1e-15, rtol=1e-4))


def inverse_variances(variances: Array) -> Array:
    """Return the weights 1/variance; equal weights if a point has no variance."""
    return 1.0 / variances if (variances > 0.0).all() else np.ones_like(variances)


def linear_solution(design: Array, weights: Array) -> Array:
    """Return the matrix (k, n) that maps values to the coefficients of their weighted fit."""
    root = np.sqrt(weights)
    return np.asarray(np.linalg.pinv(design * root[:, None]) * root)


def _residual_form(design: Array, weights: Array) -> Array:
    """Return the matrix (n, n) of the weighted sum of squared residuals as a quadratic form of the values."""
    return np.asarray(weights[:, None] * (np.eye(len(weights)) - design @ linear_solution(design, weights)))


def _freedom(design: Array, weights: Array, errors2: Array) -> float:
    """Return the degrees of freedom of the sum of squared residuals (Satterthwaite): n − k for weights 1/variance."""
    form = _residual_form(design, weights) * (errors2 if errors2.any() else np.ones_like(errors2))
    return float(np.trace(form) ** 2 / np.sum(form * form.T))


def _student_factor(freedom: Array, confidence: float) -> Array:
    """Return the quantiles of Student's t with `freedom` degrees of freedom over that of the normal distribution."""
    level = (1.0 + confidence) / 2.0
    return np.asarray(scipy.special.stdtrit(freedom, level) / scipy.special.ndtri(level))
