"""How the steps to learn may grow with the dimension: n/d as 1, log d or d, and which of them points follow."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LAWS = (1, 2, 3)
"""Information exponents and their laws: n/d grows as 1, log d and, at rates γ ∝ 1/√d, as d (arXiv 2003.10409)."""


class LawFit(NamedTuple):
    """Least squares of one law, offset + amplitude · g(d), to points with errors."""

    offset: float = np.nan
    amplitude: float = np.nan
    chi2: float = np.nan


def growth(exponent: int, d: Array) -> Array:
    """g(d) of the law of an information exponent: 0 where n/d is but its offset, log d, or d."""
    return {1: np.zeros_like(d), 2: np.log(d), 3: d}[exponent]


def law_fit(exponent: int, d: Array, values: Array, errors: Array) -> LawFit:
    """The fit of n/d at three dimensions or more; the amplitude is not negative, that of the constant is 0."""
    if len(d) < 3:
        return LawFit()
    g = growth(exponent, d)
    design = np.vstack([np.ones_like(d), g]).T / errors[:, None]
    solution = np.linalg.lstsq(design[:, : 1 if exponent == 1 else 2], values / errors, rcond=None)[0]
    offset, amplitude = solution[0], solution[1] if exponent > 1 else 0.0
    if amplitude < 0.0:
        return law_fit(1, d, values, errors)
    return LawFit(offset, amplitude, float(np.sum(((values - offset - amplitude * g) / errors) ** 2)))


def best_law(fits: dict[int, LawFit]) -> float:
    """The information exponent whose law has the least χ² + 2 · its parameters; NaN where none was fitted."""
    scores = {exponent: fit.chi2 + 2.0 * (1 if exponent == 1 else 2) for exponent, fit in fits.items()}
    known = {exponent: score for exponent, score in scores.items() if np.isfinite(score)}
    return float(min(known, key=known.__getitem__)) if known else np.nan
