"""The curvature of the population risk and of single losses, at given overlaps: Hessians, and gᵀHg of batches.

With L = ½E² of a sample, E = y − f and x = (u/√d, its part outside of the rows' span), u ~ N(0, I_n) the n = p + k
coordinates in which the fields are λ̂ = L u, the gradient and the Hessian of a loss by W and by √(d/ε) a, so that one
rate γ is that of both layers, are g = −E ∇f and H = ∇f ∇fᵀ − E ∇²f, with

    √d ∇f = v/p,  v = (s_i u_a | √ε σ_l),  s_i = a_i σ'(λ_i);   d ∇²f = B/p,  B_(ia),(ib) = a_i σ''(λ_i) u_a u_b,
    B_(ia),i = √ε σ'(λ_i) u_a.

The Hessian of the population risk R is the mean of H, without noise: each of the p eigenvalues of

    d E[H] = E[s_i s_j]/p² − δ_ij E[a_i σ''(λ_i) (f* − f)]/p

in all d − n directions outside of the span, the *bulk*, and those of the matrix K = E[v vᵀ]/p² − E[(f* − f) B]/p. What
lies outside of the span enters through ρ = ‖x‖² with means ρ₁ = E[ρ | u] and ρ₂ = E[ρ² | u] that are known for every
d, and the label noise is averaged over in closed form: costs do not depend on d, and n_b is only a number.

Means over u are sums over nodes: of Gauss and Hermite for polynomials, equally spaced in up to four dimensions, else
Sobol' points. The error is three standard errors by leaving out parts of the nodes in turn: of equally spaced ones each
part has every second or third place along each axis, and one ends nearer, so that kinks of labels, steep fields and
what lies beyond the nodes show.

`network` is the `Network`, u (n, m) are nodes, weight (m,) their weights, n_b is `batch_size`.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.maths.expectations.grids import reach
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.numerics.low_discrepancy import low_discrepancy_normals

SPACING = {2: (0.07, 8.5), 3: (0.2, 7.5), 4: (0.4, 7.0)}
"""The distance of equally spaced nodes by their dimension, and the radius at which they end."""
NEARER = 0.9
"""The radius of the part of them that ends nearer, over that of the others."""
RESOLVED = 2.0
"""The largest (1 + 4 max Q_ii) h² that they resolve: the first is the inverse variance of a density with σ'⁴."""
PARTS, PART = 8, 8192
"""Parts of Sobol' points, and the points of each."""
MOST_PRODUCTS = 2**17
"""The most nodes of a product of rules of Gauss and Hermite."""
MOST_TERMS = 2**15
"""About the most numbers of a matrix of values at nodes, which fits into a cache."""
STEP = 2.0**-10
"""The distance of the differences of σ' that are σ'': their error is ∝ its fourth power, 10⁻¹³."""

Part = tuple[Array, Array]
"""Nodes u (n, m), and their weights (m,), whose sum is one."""


class Network(NamedTuple):
    """A student at given covariances of its fields, and its task.

    factor (n, n) : L, teacher rows first. a (p,) : its second layer. student : its activation.
    labels : function of λ* (k, m) that returns f* (m,). teacher_degree : that of the polynomial f*, None for others.
    Delta : the variance of label noise. d : the dimension. epsilon : the second layer's rate over that of the first.
    """

    factor: Array
    a: Array
    student: Activation
    labels: Callable[[Array], Array]
    teacher_degree: int | None
    Delta: float
    d: float
    epsilon: float


class Moments(NamedTuple):
    """Means over the samples of a network; all are sums over nodes.

    bulk (p, p), K : as above. noise (p, p), C : E[E² s_i s_j] and E[E² v vᵀ]/p².
    gradient : E[E v]/p. cross : y of E[gᵀH] E[g] = y · gradient. square, single : E‖g‖² and E[gᵀHg] of a sample.
    """

    bulk: Array
    K: Array
    noise: Array
    C: Array
    gradient: Array
    cross: Array
    square: Array
    single: Array


class Curvatures(NamedTuple):
    """What is known of the curvature at one network, or at n with a first axis.

    bulk (p,) : the eigenvalues of the Hessian of R in each direction outside of the span, ascending.
    outliers (p (p + k),), joint (p (p + k + 1),) : the eigenvalues inside, by the first layer and by both layers, these
        0 where the second layer is not trained.
    extremes (2,) : the smallest and the largest of all, by what is trained. batch () : the batch sharpness.
    """

    bulk: Array
    outliers: Array
    joint: Array
    extremes: Array
    batch: Array


def unknown(p: int, n: int) -> Curvatures:
    """Return NaN in place of the curvatures of a network that diverged, with p units and n fields."""
    return Curvatures(*(np.full(shape, np.nan) for shape in ((p,), (p * n,), (p * (n + 1),), (2,), ())))


def curvatures(network: Network, batch_size: int) -> tuple[Curvatures, Curvatures]:
    """Return the curvatures of a network with steps of `batch_size` fresh samples, and their errors."""
    parts = [moments(network, *rule) for rule in nodes(network)]
    curvatures_of_all = _of_moments(network, _mean(parts), batch_size)
    if len(parts) == 1:
        return curvatures_of_all, Curvatures(*map(np.zeros_like, curvatures_of_all))
    without_one = (_mean([*parts[:place], *parts[place + 1 :]]) for place in range(len(parts)))
    of_fewer = zip(*(_of_moments(network, means, batch_size) for means in without_one), strict=True)
    factor = 3.0 * math.sqrt(len(parts) - 1.0)
    return curvatures_of_all, Curvatures(*(factor * np.std(values, axis=0) for values in of_fewer))


def _of_moments(network: Network, means: Moments, batch_size: int) -> Curvatures:
    """The curvatures of a network with these moments, and steps of `batch_size` samples."""
    p, n, d, trained = len(network.a), len(network.factor), network.d, network.epsilon > 0.0
    matrices = means.bulk, means.K[: p * n, : p * n], means.K if trained else np.zeros_like(means.K)
    bulk, outliers, joint = (np.asarray(np.linalg.eigvalsh(matrix) / d, float) for matrix in matrices)
    # without a direction outside of the span there are no eigenvalues there
    eigenvalues = np.concatenate([joint if trained else outliers, bulk if n < d else bulk[:0]])
    extremes = np.array([eigenvalues.min(), eigenvalues.max()])
    return Curvatures(bulk, outliers, joint, extremes, batch_sharpness(network, means, batch_size))


def batch_sharpness(network: Network, means: Moments, batch_size: int) -> Array:
    """Return E[gᵀHg]/E‖g‖² of the gradients and Hessians of batches of n_b fresh samples.

    In Σ g_sᵀ H_t g_v over the samples s, t, v of a batch, all are one, two are one in three ways, or none.
    """
    d, p, share = network.d, len(network.a), 1.0 / batch_size
    outside = (d - len(network.factor)) * (means.bulk * means.noise).sum() / p**2 if d < math.inf else 0.0
    of_two = ((means.K * means.C).sum() + outside) / d**2 + 2.0 * means.cross @ means.gradient
    of_three = means.gradient @ means.K @ means.gradient / d**2
    curvature = share**2 * (means.single + (batch_size - 1) * (of_two + (batch_size - 2) * of_three))
    return np.asarray(curvature / (share * means.square + (1.0 - share) * means.gradient @ means.gradient / d))


def moments(network: Network, u: Array, weight: Array) -> Moments:
    """Return the moments of a network by nodes u (n, m) and their weights (m,), a few nodes at a time."""
    width = len(network.a) * (len(network.factor) + 1)
    # so many nodes that a matrix of their terms fits into a cache
    step = max(64, MOST_TERMS // width)
    chunks = (slice(start, start + step) for start in range(0, len(weight), step))
    terms = [_terms(network, u[:, chunk], weight[chunk]) for chunk in chunks]
    return Moments(*(np.asarray(sum(values)) for values in zip(*terms, strict=True)))


def _terms(network: Network, u: Array, weight: Array) -> Moments:
    """Return the terms of the moments at some nodes u (n, m), with weights (m,): sums over these nodes."""
    (n, m), p, d, epsilon = u.shape, len(network.a), network.d, network.epsilon
    fields, root = network.factor @ u, math.sqrt(epsilon)
    value, slope, bend = values_of(network.student, fields[n - p :])
    s, bends = network.a[:, None] * slope, network.a[:, None] * bend
    residual = network.labels(fields[: n - p]) - network.a @ value / p
    # E[E²] and E[E³] over the label's noise
    square, cube = residual**2 + network.Delta, residual**3 + 3.0 * residual * network.Delta
    v = np.concatenate([(s[:, None, :] * u).reshape(p * n, m), root * value])
    # ρ₁ and ρ₂
    rho = 1.0 + ((u**2).sum(axis=0) - n) / d
    rho_square = rho**2 + (2.0 * (d - n) / d**2 if d < math.inf else 0.0)

    # norm is ‖∇f‖², fourth ‖∇f‖⁴ and along ∇fᵀ ∇²f ∇f, all averaged over what is outside of the span
    S, S_a = (s**2).sum(axis=0), epsilon / d * (value**2).sum(axis=0)
    norm = (S * rho + S_a) / p**2
    fourth = (S**2 * rho_square + 2.0 * S * S_a * rho + S_a**2) / p**4
    along = ((s**2 * bends).sum(axis=0) * rho_square + 2.0 * epsilon / d * (s * slope * value).sum(axis=0) * rho) / p**3
    # ∇²f ∇f, averaged likewise, in the coordinates of v: of the rows, then of the second layer
    of_rows = ((s * bends * rho + epsilon / d * value * slope)[:, None, :] * u).reshape(p * n, m)
    of_bends = np.concatenate([of_rows, root * s * slope * rho]) / p
    return Moments(
        bulk=(s * weight) @ s.T / p**2 - np.diag(bends @ (weight * residual)) / p,
        K=(v * weight) @ v.T / p**2 - _bends(bends, root * slope, u, weight * residual) / p,
        noise=(s * weight * square) @ s.T,
        C=(v * weight * square) @ v.T / p**2,
        gradient=v @ (weight * residual) / p,
        cross=(v @ (weight * residual * norm) - of_bends @ (weight * square)) / (p * d),
        square=np.asarray(weight @ (square * norm)),
        single=np.asarray(weight @ (square * fourth - cube * along)),
    )


def _bends(bends: Array, of_layer: Array, u: Array, weight: Array) -> Array:
    """Return the sum over nodes of weight · B, a matrix (p (n + 1), p (n + 1)).

    bends, of_layer (p, m) : a_i σ'' and √ε σ' at the nodes u (n, m).
    """
    (p, _), n = bends.shape, len(u)
    out = np.zeros((p * (n + 1), p * (n + 1)))
    for i in range(p):
        rows = slice(i * n, (i + 1) * n)
        out[rows, rows] = (u * (bends[i] * weight)) @ u.T
        out[rows, p * n + i] = out[p * n + i, rows] = u @ (of_layer[i] * weight)
    return out


def values_of(student: Activation, fields: Array) -> tuple[Array, Array, Array]:
    """Return σ, σ' and σ'' of fields (p, m); σ'' by differences of σ'."""
    value, slope = (function_values(function, fields) for function in (student.value, student.derivative))
    near, far = (
        function_values(student.derivative, fields + step) - function_values(student.derivative, fields - step)
        for step in (STEP, 2.0 * STEP)
    )
    return value, slope, (8.0 * near - far) / (12.0 * STEP)


def nodes(network: Network) -> list[Part]:
    """Return the parts of the nodes for a network, each of which is a rule by itself."""
    n, hermite, of_labels = len(network.factor), network.student.hermite, network.teacher_degree
    # functions that are no polynomials grow at most like their argument
    degree, of_labels = 1 if hermite is None else len(hermite) - 1, 1 if of_labels is None else of_labels
    # the highest degree is that of E³ ∇fᵀ ∇²f ∇f = E³ σ'² σ'' ‖x‖⁴
    highest = 3 * (degree + max(degree, of_labels))
    if hermite is not None and network.teacher_degree is not None:
        count = highest // 2 + 1  # nodes are exact up to the degree 2 count − 1
        if count**n <= MOST_PRODUCTS:
            return [products(n, count)]
    # of the density times σ'⁴ along the longest row of the student, where σ' ∝ e^(−λ²/2) as for erf
    inverse_variance = 1.0 + 4.0 * (network.factor[n - len(network.a) :] ** 2).sum(axis=1).max()
    if n not in SPACING or inverse_variance * SPACING[n][0] ** 2 > RESOLVED:
        return sobol(n)
    # of four dimensions more nodes would cost too much: the error says what lies beyond them
    return spaced(n, n - len(network.a), 1.0 if n == 4 else reach(highest // 2) / reach(3))


@cache
def products(n: int, count: int) -> Part:
    """Return the product of n rules of Gauss and Hermite of `count` nodes each."""
    x, weight = map(np.array, gauss.normal(count))
    return np.array(list(product(x, repeat=n))).T, np.prod(list(product(weight, repeat=n)), axis=1)


@cache
def spaced(n: int, k: int, stretch: float) -> list[Part]:
    """Return equally spaced nodes inside a sphere in n dimensions, in parts by the remainders of the places.

    k : the number of the teacher's fields, along whose axes labels have kinks.
    stretch : the radius, over that of `SPACING`.
    """
    step, end = SPACING[n][0], stretch * SPACING[n][1]
    places = np.indices((2 * round(end / step) + 1,) * n).reshape(n, -1)
    # no node at zero, where functions may have kinks
    u = np.asarray(step * (places - round(end / step) + 0.37), float)
    # Parts by the remainder of the sum would have the same places along each axis, and the same error of a kink there.
    # Two along an axis have the same error of kinks halfway between nodes; three of four dimensions are too coarse.
    periods = tuple(3 if n < 4 and axis < k else 2 for axis in range(n))
    square, remainder = (u**2).sum(axis=0), np.ravel_multi_index(tuple(places % np.array(periods)[:, None]), periods)
    ends = [NEARER * end] + [end] * (math.prod(periods) - 1)
    return [_with_density(u[:, (remainder == at) & (square <= last**2)]) for at, last in enumerate(ends)]


def _with_density(u: Array) -> Part:
    """Nodes u (n, m) with the weights of N(0, 1) there, of the sum one."""
    weight = np.exp(-0.5 * (u**2).sum(axis=0))
    return u, weight / weight.sum()


@cache
def sobol(n: int) -> list[Part]:
    """Return parts of randomised Sobol' points in n dimensions, which are independent of each other."""
    return [(low_discrepancy_normals(0, 0, at, n, PART), np.full(PART, 1.0 / PART)) for at in range(PARTS)]


def _mean(parts: list[Moments]) -> Moments:
    """The mean of the moments by the parts of the nodes."""
    return Moments(*(np.asarray(sum(values) / len(parts)) for values in zip(*parts, strict=True)))
