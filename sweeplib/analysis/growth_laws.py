"""How the steps to learn may grow with the dimension: n/d as 1, log d or a power of d, and which of them fits."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_LAWS = 4


class LawFit(NamedTuple):
    """Least squares of one law, offset + amplitude · g(d), to points with errors."""

    offset: float = np.nan
    amplitude: float = np.nan
    chi2: float = np.nan


def laws(largest: float) -> tuple[int, ...]:
    """The information exponents whose laws are tried where `largest` is the largest that is expected."""
    return tuple(range(1, max(FEWEST_LAWS, int(np.nan_to_num(largest))) + 1))


def growth(exponent: int, d: Array) -> Array:
    """g(d) of n/d by the law of an information exponent κ (arXiv 2003.10409): 0, log d, d^(κ−2) for κ = 1, 2, ≥ 3.

    0 where n/d is but its offset. From κ = 3 on at learning rates γ ∝ d^−(κ−2)/2.
    """
    if exponent == 1:
        return np.zeros_like(d)
    return np.asarray(np.log(d) if exponent == 2 else d ** (exponent - 2.0))


def rate_exponent(exponent: Array) -> Array:
    """The x of the learning rates γ ∝ d^−x at which the law of an information exponent κ holds: 0, 0, (κ−2)/2.

    From m ~ d^−½ on, the drift m^(κ−1) has to outweigh the damping γ m by the noise; then t ~ d^((κ−2)/2) and
    n = t p d/γ ~ d^(κ−1).
    """
    return np.asarray(np.maximum(exponent - 2.0, 0.0) / 2.0)


def law_fit(exponent: int, d: Array, values: Array, errors: Array) -> LawFit:
    """The fit of n/d at three dimensions or more; the amplitude is not negative, that of the constant is 0."""
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
    """The information exponent whose law has the least χ²/c + 2 · its parameters; NaN where none was fitted.

    c is the least χ² over the degrees of freedom of all laws, 1 at least: where no law describes the points within
    their errors, these are too small to choose by (QAIC, Lebreton et al. 1992, doi 10.2307/2937171).
    """
    known = {exponent: fit for exponent, fit in fits.items() if np.isfinite(fit.chi2)}
    if not known:
        return np.nan
    excess = max(1.0, min(fit.chi2 / (points - _parameters(exponent)) for exponent, fit in known.items()))
    scores = {exponent: fit.chi2 / excess + 2.0 * _parameters(exponent) for exponent, fit in known.items()}
    return float(min(scores, key=scores.__getitem__))


def _parameters(exponent: int) -> int:
    return 1 if exponent == 1 else 2
