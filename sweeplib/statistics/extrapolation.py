"""The limit of a quantity along an axis, from its values at finite ones, with corrections whose form is not known.

With x over its smallest value, values are  limit + Σ_j c_j x^−(q e_j)  (law "constant"),  A ln x + B + the same ("log":
A is the limit), or the logarithms of values are ("power": A is the exponent). q is the exponent of the slowest
correction; its multiples e_j stand for all others. The coefficients have independent normal priors of widths A w_j
(constrained fits: Lepage et al. 2002, hep-lat/0110175): a series whose terms are of the size that the points show. A
has a posterior, uniform in ln A from the errors of the points on; the limit is computed with SURPLUS times A. So the
interval has in it the noise, the choice of the exponent, and what further corrections may change, and is wide where
points at small x cannot say. Where points scatter more than errors and corrections explain, it is wider by √(χ²/n).

Low means of a few skewed values have small errors: weights 1/error² would make the limit too small. The errors that
weigh are therefore those of each point together with a power of x through the errors of all, which counts for
SMOOTH_SEEDS; the interval is wider by as much as the errors of the points themselves, and their correlations, make the
limit less certain. With values of one sign it reaches farther away from 0 (as `mean_interval`): they may be skewed.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy

LAWS = {"constant": 1, "log": 2, "power": 2}
"""The laws, with the number of their coefficients."""
MULTIPLES, WIDTHS = np.array([1.0, 1.5, 2.0, 3.0, 4.0]), np.array([3.0, 2.0, 2.0, 1.0, 1.0])
"""The multiples e_j of the slowest exponent, and the widths w_j of the priors of their coefficients."""
SURPLUS = 1.5
"""With these widths and this factor intervals cover mixtures of corrections, also those that partly cancel."""
SIZES, LARGEST = 24, 30.0
"""Sizes A that are tried, up to this multiple of how far the points are from the law without corrections."""
MORE_POINTS, LEAST_RATIO = 2, 8.0
"""Points beyond the coefficients of a law, and the ratio of the last to the first, without which there is no limit."""
CLEAR = 1e-3
"""The chance of as large a χ², below which the points clearly have another form."""
EXACT = 1e-9
"""The relative error of values without an error."""
SMOOTH_SEEDS = 30.0
"""The number of seeds that the power of x through the errors of all points counts for in the error of each."""
TRUSTED, FEW, MISFIT = range(3)
"""Verdicts on a limit: trusted, too few values for the law, and values that clearly have another form."""


class Limit(NamedTuple):
    """A limit with its interval, NaN if it is not trusted; `verdict` is TRUSTED, FEW or MISFIT.

    points : the number of values that were used. shares (n,) : ∂ limit/∂ value, of all values.
    """

    value: float
    low: float
    high: float
    verdict: int
    points: int
    reduced_chi2: float
    shares: Array


class _Fits(NamedTuple):
    """Fits with corrections of several sizes A: arrays (sizes,), `shares` (sizes, points).

    value, variance : of the limit. chi2 : of values with their errors and corrections. evidence : the logarithm of the
    density of the values, but for a constant.
    """

    value: Array
    variance: Array
    shares: Array
    chi2: Array
    evidence: Array


def extrapolated(
    x: Array,
    values: Array,
    errors: Array,
    freedom: Array | float,
    law: str,
    correction: float,
    confidence: float,
    parts: Array | None = None,
) -> Limit:
    """Return the limit, for x → ∞, of values (n,) with `errors` (n,) at ascending x, NaN where there is none.

    law : one of LAWS. correction : the exponent q of the slowest correction.
    `freedom`, (n,) or one for all, are the degrees of freedom of the errors. `parts` (n, seeds), of length 1 at each
    point, are those of the seeds in the errors where points share seeds; errors are independent by default, and at
    points whose parts are zeros. Shares are 0 at points without a value.
    """
    finite, shares = np.isfinite(values) & np.isfinite(errors), np.zeros(len(x))
    x, values, single, freedom = x[finite], values[finite], errors[finite], np.broadcast_to(freedom, len(x))[finite]
    n_left = len(x) - LAWS[law]
    if n_left < MORE_POINTS or x[-1] < LEAST_RATIO * x[0]:
        return Limit(math.nan, math.nan, math.nan, FEW, len(x), math.nan, shares)
    errors = single = np.maximum(single, EXACT * np.abs(values).max() or EXACT)
    u, least_n = x / x[0], float(freedom.min())
    if single.min() > EXACT * np.abs(values).max():
        errors = _steady_errors(u, single, freedom)
        least_n = min(least_n + SMOOTH_SEEDS, float(freedom.sum())) if parts is None else least_n
    design = np.stack([*([np.log(u)] if law != "constant" else []), np.ones_like(u)], axis=1)
    terms = WIDTHS * u[:, None] ** (-correction * MULTIPLES)
    plain = values - design @ np.linalg.lstsq(design / errors[:, None], values / errors, rcond=None)[0]
    least = float(np.mean(errors**-2) ** -0.5)
    sizes = np.geomspace(least, max(LARGEST * float(np.abs(plain).max()), 4.0 * least), SIZES)
    # sizes A are weighted by the fits of size A; the limit is that of the fits of SURPLUS times A
    tried, wider = (_fits(values, errors, design, terms, factor * sizes) for factor in (1.0, SURPLUS))
    weights = np.exp(tried.evidence - tried.evidence.max())
    weights /= weights.sum()
    chi2 = float(tried.chi2[weights.argmax()])
    verdict = MISFIT if _chance(chi2, n_left, least_n) < CLEAR else TRUSTED
    value, shares[finite] = float(weights @ wider.value), weights @ wider.shares
    variance = float(weights @ (wider.variance + (wider.value - value) ** 2))
    noise = shares[finite] * single
    by_seed = noise if parts is None else np.append(noise @ parts[finite], noise[~parts[finite].any(axis=1)])
    # what the points' own errors, with their correlations, have beyond those that weighed
    variance += max(0.0, float(by_seed @ by_seed - shares[finite] ** 2 @ errors**2))
    # points that scatter by more than their errors make the interval wider
    half = float(scipy.special.stdtrit(least_n, 0.5 + 0.5 * confidence)) * math.sqrt(variance * max(1.0, chi2 / n_left))
    skews = law == "constant" and (values.min() > 0.0 or values.max() < 0.0)
    longer = half * (1.0 + 2.0 * math.sqrt(variance) / abs(float(values.mean()))) if skews else half
    below, above = (half, longer) if values.mean() > 0.0 else (longer, half)
    ends = (value, value - below, value + above) if verdict == TRUSTED else (math.nan,) * 3
    return Limit(*ends, verdict, len(x), chi2 / n_left, shares)


def _steady_errors(u: Array, errors: Array, freedom: Array) -> Array:
    """Return errors (n,) of means at u (n,), steadier than these `errors` (n,), which are those of few seeds.

    The variance of one seed is the mean of that of the point, of so many degrees of `freedom` (n,), and of a power of u
    through those of all points, which counts as `SMOOTH_SEEDS` of them.
    """
    scatter = errors**2 * (freedom + 1.0)
    slope, offset = np.polyfit(np.log(u), np.log(scatter), 1)
    smooth = np.exp(offset) * u**slope
    smooth *= (freedom @ (scatter / smooth)) / freedom.sum()
    return np.sqrt((SMOOTH_SEEDS * smooth + freedom * scatter) / ((SMOOTH_SEEDS + freedom) * (freedom + 1.0)))


def _chance(chi2: float, count: int, freedom: float) -> float:
    """Return the chance of as large a χ² with `count` degrees of freedom, by errors with `freedom` (Welch 1951)."""
    uncertain = count**2 / ((count + 1) * freedom)
    ratio = chi2 / count / (1.0 + 2.0 * (count - 1) / (count * (count + 2)) * uncertain)
    return float(scipy.special.fdtrc(count, count * (count + 2) / (3.0 * uncertain), ratio))


def _fits(values: Array, errors: Array, design: Array, terms: Array, sizes: Array) -> _Fits:
    """Return fits of `values` (n,) by `design` (n, k) and by `terms` (n, m), whose coefficients are N(0, size²).

    The value of a fit is the first coefficient of `design`. With the terms integrated out, the covariance of the values
    is that of their errors plus size² terms termsᵀ, which is diagonal in the same axes for all sizes (sizes,).
    """
    scaled = terms / errors[:, None]
    variances, axes = np.linalg.eigh(scaled @ scaled.T)
    rotated, white = axes.T @ (values / errors), axes.T @ (design / errors[:, None])
    weights = 1.0 / (1.0 + sizes[:, None] ** 2 * np.maximum(variances, 0.0))
    precision = np.einsum("sn,nk,nl->skl", weights, white, white)
    covariance = np.linalg.inv(precision)
    directions = np.einsum("skl,nl,sn->skn", covariance, white, weights)
    best = directions @ rotated
    chi2 = np.sum(weights * (rotated - best @ white.T) ** 2, axis=1)
    evidence = 0.5 * (np.log(weights).sum(axis=1) - np.linalg.slogdet(precision)[1] - chi2)
    return _Fits(best[:, 0], covariance[:, 0, 0], directions[:, 0] @ axes.T / errors, chi2, evidence)
