"""Laws for the number of samples n needed in d dimensions: n/d is constant, ∝ log d or a power of d; the best fit.

A law is named by its information exponent κ: n/d = offset + amplitude · g(d), with g of `growth`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.statistics.bootstrap import Resampling, log_means
from sweeplib.statistics.fits import power_of

FEWEST_LAWS = 4
"""The laws that are fitted at least: those of κ = 1, ..., 4."""


class LawFit(NamedTuple):
    """Least-squares fit of one law, offset + amplitude · g(d), to points with errors."""

    offset: float = np.nan
    amplitude: float = np.nan
    chi2: float = np.nan


class Growth(NamedTuple):
    """The exponent of n(d) with its interval and χ²/n, the law that fits best (its κ), and the fits (laws,)."""

    exponent: float
    low: float
    high: float
    reduced_chi2: float
    law: float
    offset: Array
    amplitude: Array
    chi2: Array


def growth_of(ratio: Array, d: Array, resampling: Resampling, tolerance: float, tried: Sequence[int]) -> Growth:
    """Return the growth of n/d, `ratio` (seed, d) with NaN for runs left out, for the laws `tried`.

    tolerance : the relative departure from a law that is allowed at each point, in addition to its error.
    """
    points = log_means(ratio)
    finite = np.isfinite(points.logs)
    if finite.sum() < 2:
        unknown = np.full(len(tried), np.nan)
        return Growth(np.nan, np.nan, np.nan, np.nan, np.nan, unknown, unknown, unknown)
    power = power_of(ratio, d, resampling)
    points, d = points.at(finite), d[finite]
    mean = np.exp(points.logs)
    error = mean * np.sqrt(np.diag(points.covariance) + tolerance**2)
    fits = {law: law_fit(law, d, mean, error) for law in tried}
    best = best_law(fits, len(d))
    low, high, chi2 = 1.0 + power.low, 1.0 + power.high, power.reduced_chi2
    return Growth(1.0 + power.exponent, low, high, chi2, best, *np.array(list(fits.values())).T)


def laws(largest: float) -> tuple[int, ...]:
    """Return the information exponents whose laws are fitted, to the largest of any problem (NaN: not known)."""
    return tuple(range(1, max(FEWEST_LAWS, int(np.nan_to_num(largest))) + 1))


def growth(exponent: int, d: Array) -> Array:
    """Return g(d) of n/d for an information exponent κ (arXiv 2003.10409): 0, log d, d^(κ−2) for κ = 1, 2, ≥ 3.

    For κ = 1, n/d is the offset alone. For κ ≥ 3 the law holds at learning rates γ ∝ d^−(κ−2)/2.
    """
    if exponent == 1:
        return np.zeros_like(d)
    return np.asarray(np.log(d) if exponent == 2 else d ** (exponent - 2.0))


def rate_exponent(exponent: Array) -> Array:
    """Return x such that the law of an information exponent κ holds for learning rates γ ∝ d^−x: 0, 0, (κ−2)/2.

    From m ~ d^−½ on, the drift m^(κ−1) must exceed the damping γ m by the noise; then t ~ d^((κ−2)/2) and
    n = t p d/γ ~ d^(κ−1).
    """
    return np.asarray(np.maximum(exponent - 2.0, 0.0) / 2.0)


def law_fit(exponent: int, d: Array, values: Array, errors: Array) -> LawFit:
    """Return the fit of a law to n/d `values` (n,) at three dimensions `d` or more, with `errors`.

    exponent : the information exponent of the law. The amplitude is not negative, and 0 for the constant law.
    """
    if len(d) < 3:
        return LawFit()
    g = growth(exponent, d)
    scale = max(g.max(), 1.0)
    design = np.vstack([np.ones_like(d), g / scale]).T / errors[:, None]
    solution = np.linalg.lstsq(design[:, : _parameters(exponent)], values / errors, rcond=None)[0]
    offset, amplitude = solution[0], solution[1] / scale if exponent > 1 else 0.0
    if amplitude < 0.0:
        return law_fit(1, d, values, errors)
    return LawFit(offset, amplitude, float(np.sum(((values - offset - amplitude * g) / errors) ** 2)))


def best_law(fits: dict[int, LawFit], points: int) -> float:
    """Return the information exponent whose law has the least χ²/c + 2 · (number of parameters); NaN if none is fitted.

    c is the smallest χ² per degree of freedom of all laws, at least 1: if no law describes the points within their
    errors, the errors are too small for a choice (QAIC, Lebreton et al. 1992, doi 10.2307/2937171).
    """
    fitted = {exponent: fit for exponent, fit in fits.items() if np.isfinite(fit.chi2)}
    if not fitted:
        return np.nan
    excess = max(1.0, min(fit.chi2 / (points - _parameters(exponent)) for exponent, fit in fitted.items()))
    scores = {exponent: fit.chi2 / excess + 2.0 * _parameters(exponent) for exponent, fit in fitted.items()}
    return float(min(scores, key=scores.__getitem__))


def _parameters(exponent: int) -> int:
    """Return the number of parameters of a law: that of κ = 1 has the offset alone."""
    return 1 if exponent == 1 else 2
