"""Where a mean number of steps, known with noise at several learning rates, has its minimum.

The escape rate r(γ) = 1/(γ · steps), exits per unit of gradient time, is nearly linear in γ (for phase retrieval it is
∝ 1 − γ/(2 γ_opt) but for logarithms), where log steps against log γ is strongly skewed. So r is fitted by a parabola in
γ, with weights that fall off with the distance from the optimum, and γ r(γ), the speed, is maximised in closed form.
On synthetic exits (12 learning rates from 0.3 to 1.8 γ_opt, 128 seeds, d = 300 to 10⁵) its bias is below 1.5 % and
below half its standard deviation, where a cubic of log steps in log γ is biased by 8 %.
"""

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.fits import Misfit, covariance_of, misfit

Array = NDArray[np.float64]

HALF_WIDTH = 0.8
FEWEST = 5
_ITERATIONS = 4


def fastest(gamma: Array, steps: Array, weights: Array) -> Array:
    """The γ of least steps within the range of `gamma`, its ends included, for each row of `steps` (n, gammas).

    `weights` (gammas,) divide out the standard deviations of r; those that are zero leave their γ out.
    """
    scale = gamma.max()
    x = gamma / scale
    a, b, c = _parabola(x, steps, weights)
    low, high = x[weights > 0].min(), x[weights > 0].max()
    with np.errstate(all="ignore"):
        peak = a / (-b + np.sqrt(b * b - 3 * a * c))
    inside = np.where((peak > low) & (peak < high), peak, high)
    candidates = np.stack([inside, np.full_like(inside, low), np.full_like(inside, high)])
    speed = candidates * (a + candidates * (b + candidates * c))
    best: Array = np.take_along_axis(candidates, speed.argmax(axis=0)[None], axis=0)[0] * scale
    return best


def least_steps(gamma: Array, steps: Array, weights: Array, at: Array) -> Array:
    """The fitted number of steps at the learning rates `at` (n,), one for each row of `steps`."""
    scale = gamma.max()
    a, b, c = _parabola(gamma / scale, steps, weights)
    x = at / scale
    fitted: Array = 1.0 / (x * (a + x * (b + x * c)))
    return fitted


def local_weights(gamma: Array, steps: Array, counts: Array) -> Array:
    """Weights (gammas,) for `fastest`, from the mean steps and the numbers of seeds at each γ.

    √n/r, as the coefficient of variation of the exit steps hardly depends on γ, r smoothed by the fit itself, times a
    tricube in γ/γ_opt of half width HALF_WIDTH, wider where fewer than FEWEST learning rates would count.
    """
    scale = gamma.max()
    x = gamma / scale
    raw = 1.0 / (x * steps)
    rate = raw
    taper = np.ones_like(x)
    for _ in range(_ITERATIONS):
        weights = np.sqrt(counts * taper) / rate
        a, b, c = _parabola(x, steps[None], weights)
        rate = np.maximum(a + x * (b + x * c), 0.2 * raw)
        distance = np.abs(gamma / fastest(gamma, steps[None], weights) - 1.0)
        width = max(HALF_WIDTH, 1.2 * np.sort(distance)[FEWEST - 1])
        taper = np.clip(1.0 - (distance / width) ** 3, 0.0, None) ** 3
    result: Array = np.sqrt(counts * taper) / rate
    return result


def speed_misfit(gamma: Array, steps: Array, weights: Array, shifts: Array, seeds: float) -> Misfit:
    """How far the points are from the parabola besides their errors: of log steps, whose resamples are off by `shifts`.

    `steps` (gammas,), `shifts` (resamples, gammas). Relative residuals of r, with the weights of the fit.
    """
    counts = weights > 0.0
    x = gamma[counts] / gamma.max()
    rate = 1.0 / (x * steps[counts])
    design = np.vander(x, 3, increasing=True) / rate[:, None]
    relative = (weights[counts] * rate) ** 2
    return misfit(np.ones(len(x)), design, covariance_of(shifts[:, counts], seeds), lambda _: relative)


def _parabola(x: Array, steps: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The coefficients (n,) each of r = a + b x + c x², least squares of 1/(x steps) with these weights."""
    design = np.vander(x, 3, increasing=True)
    solution = np.linalg.pinv(design * weights[:, None]) * weights
    a, b, c = solution @ (1.0 / (x * steps)).T
    return a, b, c
