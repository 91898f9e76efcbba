"""Linear fits to points with errors that are known from seeds, and what is left of them where points scatter more.

A fit's interval from resampled seeds says where the fit would be with other seeds. Where the points lie farther from
the law than their errors let expect, it does not say where the law is: more seeds make it narrower, and no truer. The
model behind: each point lies off the law by a random scatter τ besides its error. τ is such that the residuals are as
large as is to be expected (Paule and Mandel 1982, J. Res. Natl. Bur. Stand. 87, 377), errors being correlated where
points share their seeds; it enters the weights, and is added to every resample; and as it is known from few points
only, all is widened as Student's t (Knapp and Hartung 2003, doi 10.1002/sim.1482). Where all errors are equal that
widens an interval by √(χ²/n) t_n, n the degrees of freedom.

A misfit that is no scatter but a bend is not mended by this, but seen.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEEN_FROM = {1.0: 0.1, 2.0: 0.7, 3.0: 0.9, 4.0: 1.0}
"""The χ²/n from which points are said to scatter more than their errors, by the degrees of freedom n.

Of few residuals it is below 1 by luck too often. With these, 95 % intervals cover 93 to 98 % of truths whatever the
scatter, and up to 99 % at one degree of freedom and no scatter (`tests/unit/test_analysis_coverage.py`).
"""
EXPECTED = 2.0
"""The residuals that a scatter given beforehand counts for."""
_ROUNDING = 1e-24


class Misfit(NamedTuple):
    """χ² over what the errors let expect, the scatter τ of points besides their errors, the degrees of freedom."""

    ratio: float = np.nan
    scatter: float = 0.0
    freedom: float = 0.0

    @property
    def seen(self) -> bool:
        """Whether points scatter more than their errors."""
        limit = np.interp(self.freedom, list(SEEN_FROM), list(SEEN_FROM.values()))
        return bool(self.freedom > 0.0 and self.ratio > limit)


class LineFit(NamedTuple):
    """The coefficients (k,) of a fit, draws of them (resamples, k), and the misfit."""

    best: Array
    draws: Array
    misfit: Misfit

    def interval(self, confidence: float) -> Array:
        """The ends (2, k) of the central intervals, of the `confidence` for which the draws were made."""
        return np.asarray(np.quantile(self.draws, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0))


def line_fit(
    values: Array, shifts: Array, seeds: float, design: Array, generator: np.random.Generator, confidence: float,
    departure: float = 0.0,
) -> LineFit:  # fmt: skip
    """Least squares of `values` (n,) by the columns of `design` (n, k), with weights one over the variances.

    `shifts` (resamples, n) are what bootstrap resamples of so many `seeds` change in the values. `departure` is a
    scatter that points are expected to have: an error of each besides, known as if from `EXPECTED` residuals more.
    """
    covariance = covariance_of(shifts, seeds) + departure**2 * np.eye(len(values))
    errors2 = np.diag(covariance)
    known = EXPECTED if departure > 0.0 else 0.0
    found = misfit(values, design, covariance, lambda scatter2: _inverse(errors2 + scatter2), known)
    solution = _solution(design, _inverse(errors2 + found.scatter**2))
    best = solution @ values
    drawn = scattered(shifts, seeds, found, generator, confidence, departure)
    return LineFit(best, best + drawn @ solution.T, found)


def scattered(
    shifts: Array,
    seeds: float,
    found: Misfit,
    generator: np.random.Generator,
    confidence: float,
    departure: float = 0.0,
) -> Array:
    """Draws of the deviations (resamples, n) of points from their law, from their `shifts` under resampled seeds.

    With the scatter of the points where it is seen. Their quantiles at `confidence` are those of Student's t, of the
    degrees of freedom from which their size is known: those of the fit where a scatter is seen, else those of the
    seeds.
    """
    noise = np.hypot(departure, found.scatter) * generator.standard_normal(shifts.shape)
    unbiased = shifts * np.sqrt(seeds / (seeds - 1.0))
    if not found.seen:
        return unbiased * _student(seeds - 1.0, confidence) + noise
    return (unbiased * np.sqrt(min(found.ratio, 1.0)) + noise) * _student(found.freedom, confidence)


def misfit(
    values: Array, design: Array, covariance: Array, weights_of: Callable[[float], Array], expected: float = 0.0
) -> Misfit:
    """The misfit of a linear fit to `values` (n,) of this error `covariance` (n, n).

    `weights_of(τ²)` (n,) are the weights where points scatter by τ besides. The errors are known as if from `expected`
    residuals more that are just as large as they say. Without degrees of freedom nothing is known.
    """
    if len(values) <= design.shape[1]:
        return Misfit()
    weights, errors2, scatter2 = weights_of(0.0), np.diag(covariance), 0.0
    found, due, each = _squares(values, design, covariance, weights)
    if found <= _ROUNDING * np.sum(weights * values**2):
        return Misfit(0.0, 0.0, _freedom(design, weights, errors2) + expected)
    if found > due:
        scatter2 = _root(lambda tried: _excess(values, design, covariance, weights_of, expected, tried), found / each)
    ratio = (found + expected) / (due + expected) if due + expected > 0.0 else np.inf
    freedom = _freedom(design, weights_of(scatter2), errors2 + scatter2) + expected
    return Misfit(ratio, float(np.sqrt(scatter2)), freedom)


def _squares(values: Array, design: Array, covariance: Array, weights: Array) -> tuple[float, float, float]:
    """The weighted sum of squared residuals, what it is expected to be, and what a scatter of 1 adds to that."""
    form = _residual_form(design, weights)
    residuals = values - design @ (_solution(design, weights) @ values)
    return float(np.sum(weights * residuals**2)), float(np.sum(form * covariance)), float(np.trace(form))


def _excess(
    values: Array, design: Array, covariance: Array, weights_of: Callable[[float], Array], expected: float,
    scatter2: float,
) -> float:  # fmt: skip
    """The sum of squared residuals less what it is expected to be with this scatter."""
    found, due, each = _squares(values, design, covariance, weights_of(scatter2))
    more = expected * scatter2 / (np.diag(covariance).mean() + scatter2) if expected else 0.0
    return found - due - scatter2 * each - more


def covariance_of(shifts: Array, seeds: float) -> Array:
    """The covariance (n, n) of errors that resampling moves by these shifts (resamples, n)."""
    centred = shifts - shifts.mean(axis=0)
    return np.asarray(centred.T @ centred / len(shifts) * seeds / (seeds - 1.0))


def _root(decreasing: Callable[[float], float], start: float) -> float:
    """The zero of a function that falls from a positive number at 0."""
    from scipy.optimize import brentq

    end = start
    while decreasing(end) > 0.0:
        end *= 4.0
    return float(brentq(decreasing, 0.0, end, xtol=1e-15, rtol=1e-4))


def _inverse(variances: Array) -> Array:
    """Weights one over the variances; equal ones where a point has no variance."""
    return 1.0 / variances if (variances > 0.0).all() else np.ones_like(variances)


def _solution(design: Array, weights: Array) -> Array:
    """The matrix (k, n) that takes values to the coefficients of their weighted fit."""
    root = np.sqrt(weights)
    return np.asarray(np.linalg.pinv(design * root[:, None]) * root)


def _residual_form(design: Array, weights: Array) -> Array:
    """The matrix (n, n) of the weighted sum of squared residuals as a quadratic form of the values."""
    return np.asarray(weights[:, None] * (np.eye(len(weights)) - design @ _solution(design, weights)))


def _freedom(design: Array, weights: Array, errors2: Array) -> float:
    """The degrees of freedom of that sum (Satterthwaite): n − k for weights one over the variances."""
    part = _residual_form(design, weights) * (errors2 if errors2.any() else np.ones_like(errors2))
    return float(np.trace(part) ** 2 / np.sum(part * part.T))


def _student(freedom: float, confidence: float) -> float:
    """The quantile of Student's t of so many degrees of freedom over that of the normal law."""
    from scipy.special import ndtri, stdtrit

    level = (1.0 + confidence) / 2.0
    return float(stdtrit(freedom, level) / ndtri(level))
