"""Least risks of two isotropic Gaussians: y = ±1 with equal odds, x ~ N(0, (1 + y c)² I_d/d), c the contrast.

R = ½ E[(y − f)²] without label noise, half of the risk of arXiv 1804.06561, whose Δ is c. The norm of √d x is
(1 + y c) ρ, ρ² ~ χ²(d). `d` may be infinite: then ρ/√d is one. NaN for contrasts outside [0, 1), and for d < 1.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.theory.labelled import Real, labelled

CLASSES = (-1.0, 1.0)
"""The labels of the classes."""
LENGTHS, COSINES = 100, 64
"""Nodes of ρ, and of ω where the activation has no closed form."""
LEAST, MOST, NORMS, FINER = 1e-2, 1e6, 800, 20
"""Norms √q above zero: ends and length of the grid, and into how many parts intervals beside optimal norms are cut."""
LARGEST = 1e4
"""Norms with a larger mean of σ are left out: sums of powers lose their digits."""
OPTIMAL = 1e-10
"""How much nearer to the goal a column of length one may come at the optimum; rounding makes 1e-15 of it."""
TAIL, STEPS = 1e-40, 4000
"""Of the integral over the norms of inputs: the probability beyond its upper end, and its steps."""


class Measure(NamedTuple):
    """A measure over weights that does not change with their directions.

    norms, weights (n,) : √q = ‖w‖/√d and the weight of each, which sum to one.
    risk : R of the network f = ∫ σ(w·x) dρ(w).
    """

    norms: Array
    weights: Array
    risk: float


@labelled(r"\mathcal{R}_{\mathrm{Bayes}}", "Bayes risk of two Gaussians")
def bayes_risk(contrast: Real, d: Real) -> Real:
    """R = ½ E[(y − E[y|x])²] = E[1/(1 + e^L)], the mean over the class y = 1, with L = log p(x|+)/p(x|−).

    L = ½ u (r² − 1) − d log r, u ~ χ²(d), r = (1 + c)/(1 − c). ½ at c = 0; for d → ∞ zero at every c > 0, and at
    c = h/√d that of L ~ N(4h², 8h²). Absolute error below 1e-10.
    """
    return np.vectorize(_bayes_risk, otypes=[float])(contrast, d)


def least_network_risk(activation: str, contrast: Any, d: Any) -> Any:
    """The least R of networks f = ∫ σ(w·x) dρ(w), over all measures ρ of weight one.

    Students with a = 1 have measures of p points, so that none of any width has less. R is convex in ρ and does not
    change with the directions of weights. Therefore a measure of q = ‖w‖²/d attains the least (arXiv 1804.06561,
    "centered isotropic Gaussians"): f(x) = ∫ E_ω[σ(√q (1 + y c) ρ ω)] dρ(q), with ω the cosine of w and x. On a grid of
    √q, from .01 to 10⁶ and with zero, this is a quadratic program.
    activation : σ. contrast, d : broadcast. InputError for an unknown activation.
    Absolute error for piecewise linear σ: 1e-3 at d = 1, 1e-4 at d = 2 and 3, 1e-6 for d ≥ 10. Where the optimum of a
    polynomial has norms beyond the range, 1e-4. Smooth activations other than polynomials have too few nodes of ω for
    norms above 30, unless they are odd up to a constant.
    """

    def of_one(contrast: float, d: float) -> float:
        """Return the least risk at one contrast and dimension."""
        return optimal_measure(activation, float(contrast), float(d)).risk

    # `labelled` takes numbers alone, and gives the result the name of the function
    @labelled(r"\mathcal{R}_{\min}", "least risk at infinite width")
    def least_network_risk(contrast: Real, d: Real) -> Real:
        """Return the least risks of arrays."""
        return np.vectorize(of_one, otypes=[float])(contrast, d)

    return least_network_risk(contrast, d)


@functools.lru_cache(1024)
def optimal_measure(activation: str, contrast: float, d: float) -> Measure:
    """The measure of least R of an activation, by name, on the grid of norms, refined once around its points.

    Its R is NaN for a contrast outside [0, 1), and unless d is a whole number above zero or inf.
    """
    if not (0.0 <= contrast < 1.0 and d >= 1.0 and (math.isinf(d) or float(d).is_integer())):
        return Measure(np.empty(0), np.empty(0), math.nan)
    norms = np.concatenate([[0.0], np.geomspace(LEAST, MOST, NORMS)])
    columns = residuals(activation, contrast, d, norms)
    moderate = np.abs(columns).max(axis=0) < LARGEST
    norms = _finer_norms(norms[moderate], _nearest(columns[:, moderate]) > 0.0)
    columns = residuals(activation, contrast, d, norms)
    weights = _nearest(columns)
    positive = weights > 0.0
    return Measure(norms[positive], weights[positive], 0.5 * float(np.sum((columns @ weights) ** 2)))


def _finer_norms(norms: Array, chosen: NDArray[np.bool_]) -> Array:
    """The norms (n,), with those that cut the intervals beside `chosen` ones (n,) into FINER parts."""
    beside = np.flatnonzero(chosen[1:] | chosen[:-1])
    finer = [np.linspace(norms[i], norms[i + 1], FINER, endpoint=False) for i in beside]
    return np.unique(np.concatenate([norms, *finer]))


def residuals(activation: str, contrast: float, d: float, norms: Array) -> Array:
    """The matrix B (inputs, norms) with R = ½ |B ρ|², ρ (norms,) the weights of a measure on the `norms`.

    Its entries are √(weight) (E_ω σ(√q (1 + y c) ρ ω) − y) at nodes of the length ρ of the input, in both classes y.
    """
    from sweeplib.networks.maths.particles.rules import lengths

    if math.isinf(d):
        rho, weights = np.ones(1), np.ones(1)
    else:
        rho, weights = lengths(int(d), LENGTHS, even=False)
    parts = []
    for label in CLASSES:
        means = _mean_over_cosines(activation, d, (1.0 + label * contrast) * np.outer(rho, norms))
        parts.append(np.sqrt(0.5 * weights)[:, None] * (means - label))
    return np.concatenate(parts)


def _nearest(columns: Array) -> Array:
    """The weights ρ ≥ 0 (norms,) of sum one that minimise |B ρ|, with B (inputs, norms) the `columns`.

    |B ρ|² + (Σρ − 1)², minimised over ρ ≥ 0 of any sum, has the same direction: at a sum s and ρ/s of norm b it is
    s² b² + (s − 1)², whose minimum over s, b²/(1 + b²), grows with b.
    """
    rows = np.vstack([columns, np.ones(columns.shape[1])])
    # of one length: the tolerance of `nnls` is relative to the longest, beside which others would be nothing
    lengths = np.linalg.norm(rows, axis=0)
    shares = _non_negative(rows / lengths, np.append(np.zeros(len(columns)), 1.0)) / lengths
    return shares / shares.sum()


def _non_negative(columns: Array, goal: Array) -> Array:
    """The shares (n,) ≥ 0 that minimise |B shares − goal|, with B (m, n) the `columns`, each of length one."""
    try:
        shares, _ = scipy.optimize.nnls(columns, goal)
    except (RuntimeError, np.linalg.LinAlgError):
        shares = np.zeros(columns.shape[1])
    # where the least is, more of no column comes nearer; `nnls` of SciPy 1.14 and 1.15 ends elsewhere at times
    if (columns.T @ (goal - columns @ shares)).max() > OPTIMAL:
        options = {"method": "bvls", "tol": 1e-14, "max_iter": 10 * columns.shape[1]}
        shares = scipy.optimize.lsq_linear(columns, goal, (0.0, np.inf), **options).x
    return shares


def _mean_over_cosines(activation: str, d: float, scales: Array) -> Array:
    """E σ(s ω) for each s of the array `scales`, ω a coordinate of a random direction in R^d, or N(0, 1) for d = ∞.

    activation : σ, by name; closed forms for piecewise linear ones, else sums over nodes.
    """
    from sweeplib.networks.maths.activations import activation as activation_of
    from sweeplib.networks.maths.particles.rules import coordinates
    from sweeplib.networks.numerics.compiled import function_values

    form = activation_of(activation)
    if form.hinges is not None:
        offset, hinges = form.hinges
        above: Array = np.sum([jump * _mean_above(knot, d, scales) for knot, jump in hinges], axis=0)
        return offset + above
    # in one dimension a direction is a sign
    nodes, weights = coordinates(d, COSINES) if d > 1.0 else np.array([[-1.0, 1.0], [0.5, 0.5]])
    mean = np.zeros_like(scales)
    for node, weight in zip(nodes, weights, strict=True):
        mean += weight * function_values(form.value, node * scales)
    return mean


def _mean_above(knot: float, d: float, scales: Array) -> Array:
    """The mean E max(s ω − x, 0) = s E[ω 1(ω > h)] − x P(ω > h), h = x/s, of the `knot` x, for each scale s."""
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(scales > 0.0, knot / scales, math.copysign(math.inf, knot) if knot else 0.0)
    first, above = _beyond(h, d)
    return scales * first - knot * above


def _beyond(h: Array, d: float) -> tuple[Array, Array]:
    """The means E[ω 1(ω > h)] and P(ω > h), ω as in `_mean_over_cosines`, for an array h.

    1 − ω² has the law Beta((d − 1)/2, ½).
    """
    if math.isinf(d):
        return np.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi), scipy.special.ndtr(-h)
    if d == 1.0:
        half: Array = np.where(np.abs(h) < 1.0, 0.5, 0.0)
        return half, np.where(h > 0.0, half, 1.0 - half)
    power, remainder = 0.5 * (d - 1.0), np.maximum(1.0 - h * h, 0.0)
    half = 0.5 * scipy.special.betainc(power, 0.5, remainder)
    return remainder**power / (2.0 * power * scipy.special.beta(0.5, power)), np.where(h > 0.0, half, 1.0 - half)


def _bayes_risk(contrast: float, d: float) -> float:
    """The Bayes risk of one contrast and dimension, by equal steps of log u between quantiles of u."""
    if not (0.0 <= contrast < 1.0 and d >= 1.0):
        return math.nan
    if contrast == 0.0:
        return 0.5
    if math.isinf(d):
        return 0.0
    # u = d e^x, and what the ratio of the deviations is above one: d and large sums cancel by hand
    first, last = np.log(scipy.special.chdtri(d, [1.0 - 1e-16, TAIL])).tolist()
    x, excess = np.linspace(first, last, STEPS) - math.log(d), 2.0 * contrast / (1.0 - contrast)
    density = np.exp(0.5 * d * (x - np.expm1(x)))
    odds = scipy.special.expit(d * (math.log1p(excess) - 0.5 * np.exp(x) * excess * (2.0 + excess)))
    return float(np.sum(density * odds) / np.sum(density))
