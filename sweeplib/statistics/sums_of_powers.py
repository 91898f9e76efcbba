"""Fits of sums of powers, D = Σ_t A_t x_t^e_t with A_t ≥ 0, to points whose errors are known from seeds.

The fit is of log D, in the parameters log A_t and e_t, with the errors and the extra scatter of `fits`: at the minimum
the model is linear in its parameters, and the misfit is that of this linear model. Intervals are those of fits to
resamples, as a term that is barely resolved is far from linear in its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.statistics.bootstrap import PointErrors, Resampling, log_means
from sweeplib.statistics.fits import Misfit, inverse_variances, linear_solution, misfit, scatter_draws, widening

TRIAL_EXPONENT = -0.5
"""The exponent at which it is decided whether points determine all parameters."""
DOMINANT = 0.9
"""The part of D that one term has in the fit's starting points, one of which is for each term."""
LOST = 1e-3
"""A term that is nowhere a larger part of D than this has no exponent."""
ROUNDING = 1e-20
"""The square of a difference of logarithms that is a rounding error."""
PULL = 1e-4
"""The strength of the pull of parameters to their starting point, in units of the root of the mean weight."""
MOST_ROUNDS = 20
"""Rounds of a fit and of the scatter that follows from it."""


class SumOfPowers(NamedTuple):
    """Exponents (terms,), their intervals, prefactors (terms,), χ²/n and relative scatter of the points.

    NaN for a term that is not resolved: the points are fitted as well without it. An end of an interval is infinite if
    the term has no exponent in too many resamples.
    """

    exponent: Array
    low: Array
    high: Array
    prefactor: Array
    reduced_chi2: float = np.nan
    scatter: float = np.nan
    points: float = 0.0


class _Points(NamedTuple):
    """log D at the points with its errors, and log x_t (terms, points) around 0."""

    means: PointErrors
    variables: Array

    @property
    def logs(self) -> Array:
        """Return log D (points,)."""
        return self.means.values


class _BestFit(NamedTuple):
    """The parameters (2 terms,) of the fit, its weights, whether they are 1/variance or equal, and its misfit."""

    parameters: Array
    weights: Array
    weighted: bool
    misfit: Misfit


def sum_of_powers(values: Array, logarithms: Array, resampling: Resampling) -> SumOfPowers:
    """Return the fit of Σ_t A_t x_t^e_t to the means of `values` (seed, point); `logarithms` (term, point): log x_t.

    A term is resolved if χ² without it is larger by more than a quantile, the confidence, of Fisher's law for its two
    parameters. The others are left out of the fit, but not of the fits to resamples, because a term that is too small
    to be resolved may still bend the others. All is NaN if the points do not determine the parameters.
    """
    means = log_means(values)
    finite = np.isfinite(means.logs)
    logarithms = logarithms[:, finite]
    unknown = np.full(len(logarithms), np.nan)
    nothing = SumOfPowers(unknown, unknown, unknown, unknown, points=float(finite.sum()))
    if not _is_determined(logarithms):
        return nothing
    # x_t relative to their middle: amplitudes there hardly depend on exponents
    middle = logarithms.mean(axis=1)
    points = _Points(means.at(finite), logarithms - middle[:, None])
    best = _best_fit(points)
    resolved = _resolved_terms(points, best, resampling.confidence)
    low, high = _interval(points, best, resampling) if resolved.any() else (unknown, unknown)
    if resolved.any() and not resolved.all():
        points = points._replace(variables=points.variables[resolved])
        best = _best_fit(points)
    ratio, scatter = (best.misfit.ratio, best.misfit.scatter) if best.misfit.freedom > 0.0 else (np.nan, np.nan)
    without_exponents = nothing._replace(reduced_chi2=ratio, scatter=scatter)
    if not resolved.any():
        return without_exponents
    amplitudes, exponents = np.split(best.parameters, 2)
    low, high = (_with_gaps(ends[resolved], resolved) for ends in (low, high))
    prefactor = _with_gaps(np.exp(amplitudes - exponents * middle[resolved]), resolved)
    return without_exponents._replace(exponent=_with_gaps(exponents, resolved), low=low, high=high, prefactor=prefactor)


def _with_gaps(values: Array, resolved: NDArray[np.bool_]) -> Array:
    """Return the values at the places that are resolved, NaN at others."""
    whole = np.full(len(resolved), np.nan)
    whole[resolved] = values
    return whole


class _Model(NamedTuple):
    """log D at points, `logs` (points,), and its derivatives by the parameters, `slopes` (points, 2 terms)."""

    logs: Array
    slopes: Array


def _model(parameters: Array, variables: Array) -> _Model:
    """Return log D of parameters (2 terms,), log A_t then e_t, and its derivatives by them.

    variables (terms, points) : log x_t.
    """
    amplitudes, exponents = np.split(parameters, 2)
    terms = amplitudes[:, None] + exponents[:, None] * variables
    # taken out of the sum: powers of far points overflow
    largest = terms.max(axis=0)
    powers = np.exp(terms - largest)
    total = powers.sum(axis=0)
    shares = powers / total
    return _Model(largest + np.log(total), np.vstack([shares, shares * variables]).T)


def _is_determined(logarithms: Array) -> bool:
    """Whether points determine all parameters, for terms that are equal in the middle and fall as TRIAL_EXPONENT."""
    terms, points = logarithms.shape
    if points < 2 * terms:
        return False
    middle = logarithms.mean(axis=1, keepdims=True)
    trial = np.repeat([0.0, TRIAL_EXPONENT], terms)
    return bool(np.linalg.matrix_rank(_model(trial, logarithms - middle).slopes, tol=1e-8) == 2 * terms)


def _fit(values: Array, variables: Array, weights: Array, starts: Sequence[Array]) -> tuple[Array, float]:
    """Return the parameters (2 terms,) of the least χ² that is found from the starting points, and that χ².

    values, weights (points,) : of log D. variables (terms, points) : log x_t.
    A weak pull to the first starting point keeps the parameters of a term that vanishes finite and reproducible.
    """
    root = np.sqrt(weights)
    pull = PULL * np.sqrt(weights.mean()) * np.eye(len(starts[0]))

    def residuals(parameters: Array) -> Array:
        """Return the weighted differences of the model to the values, and the pull to the first starting point."""
        return np.concatenate([root * (_model(parameters, variables).logs - values), pull @ (parameters - starts[0])])

    def slopes(parameters: Array) -> Array:
        """Return the derivatives of the `residuals` by the parameters."""
        return np.vstack([root[:, None] * _model(parameters, variables).slopes, pull])

    solutions = [scipy.optimize.least_squares(residuals, start, slopes, method="lm", max_nfev=200) for start in starts]
    best = min(solutions, key=lambda solution: float(solution.cost)).x
    return best, float(np.sum(weights * (_model(best, variables).logs - values) ** 2))


def _starts(values: Array, variables: Array) -> list[Array]:
    """Return starting points (2 terms,) with the exponents of a product of powers: equal terms, each term dominant."""
    terms = len(variables)
    design = np.vstack([np.ones(len(values)), variables]).T
    height, *exponents = np.linalg.lstsq(design, values, rcond=None)[0]
    shares = np.full((terms, terms), (1.0 - DOMINANT) / max(terms - 1, 1))
    np.fill_diagonal(shares, DOMINANT)
    equal = np.full((1, terms), 1.0 / terms)
    return [np.concatenate([height + np.log(share), exponents]) for share in np.vstack([equal, shares])]


def _best_fit(points: _Points) -> _BestFit:
    """Return the fit whose weights contain the scatter that makes its residuals as large as expected.

    Weights and scatter depend on each other: they are found in turn.
    """
    covariance = points.means.covariance
    errors2 = np.diag(covariance)

    def weights_of(scatter2: float) -> Array:
        """Return the weights of points with this scatter τ² beside their errors."""
        return inverse_variances(errors2 + scatter2)

    excess, starts = Misfit(), _starts(points.logs, points.variables)
    for _ in range(MOST_ROUNDS):
        before, weights = excess.scatter, weights_of(excess.scatter**2)
        parameters, _ = _fit(points.logs, points.variables, weights, starts)
        fitted, design = _model(parameters, points.variables)
        excess = misfit(points.logs - fitted + design @ parameters, design, covariance, weights_of)
        if abs(excess.scatter - before) <= 1e-3 * excess.scatter:
            break
        starts = [parameters, *_starts(points.logs, points.variables)]
    return _BestFit(parameters, weights, bool((errors2 + before**2 > 0.0).all()), excess)


def _resolved_terms(points: _Points, best: _BestFit, confidence: float) -> NDArray[np.bool_]:
    """Return a mask (terms,) of the terms without which the points are fitted clearly worse; true for a single term."""
    terms = len(points.variables)
    if terms == 1:
        return np.ones(1, dtype=bool)
    freedom = best.misfit.freedom if best.misfit.is_large else float(points.means.freedom(np.ones(len(points.logs))))
    residuals = points.logs - _model(best.parameters, points.variables).logs
    least = float(np.sum(best.weights * residuals**2))
    unit = 1.0 if best.weighted else least / max(len(points.logs) - 2 * terms, 1) + ROUNDING

    def squares_without(term: int) -> float:
        """Return the least χ² without one of the terms."""
        remaining = np.delete(points.variables, term, axis=0)
        _, chi2 = _fit(points.logs, remaining, best.weights, _starts(points.logs, remaining))
        return chi2

    increases = np.array([squares_without(term) - least for term in range(terms)])
    return np.asarray(increases > 2.0 * scipy.special.fdtri(2.0, freedom, confidence) * unit)


def _interval(points: _Points, best: _BestFit, resampling: Resampling) -> Array:
    """Return the ends (2, terms) of the central intervals of the exponents, by fits to resamples."""
    fitted, design = _model(best.parameters, points.variables)
    directions = linear_solution(design, best.weights)[len(points.variables) :]
    widths = widening(points.means, directions, best.misfit, resampling.confidence)
    by_seed, by_scatter = scatter_draws(points.means, resampling, best.misfit)
    draws = (by_seed * points.means.growth(directions).max() + by_scatter) * widths.max()
    start = [best.parameters]
    parameters = np.array([_fit(fitted + draw, points.variables, best.weights, start)[0] for draw in draws])
    exponents = parameters[:, len(points.variables) :]
    largest_shares = np.array([_largest_parts(row, points.variables) for row in parameters])
    lost = largest_shares < LOST
    tail = (1.0 - resampling.confidence) / 2.0
    low = np.quantile(np.where(lost, -np.inf, exponents), tail, axis=0, method="lower")
    high = np.quantile(np.where(lost, np.inf, exponents), 1.0 - tail, axis=0, method="higher")
    return np.array([low, high])


def _largest_parts(parameters: Array, variables: Array) -> Array:
    """Return the largest part (terms,) of D that each term is at any point."""
    # the derivative of log D by the logarithm of an amplitude is the part of its term
    return np.asarray(_model(parameters, variables).slopes[:, : len(variables)].max(axis=0))
