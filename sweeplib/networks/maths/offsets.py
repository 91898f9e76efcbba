"""The risk of students whose units have offsets, f = (1/p) Σ a_i σ(λ_i + b_i), from moments of fields with means.

R = ½ E[y²] − (1/p) Σ_i a_i E[σ_i y] + (1/2p²) Σ_ij a_i a_j E[σ_i σ_j], y the label without noise.

With σ(b + s g) = Σ_l c_l h_l(g), g ~ N(0, 1) and h_l the normalised Hermite polynomials, E[σ_m σ_n] = Σ_l ρ_mn^l c_ml
c_nl (Mehler), ρ_mn the correlation of the fields. Those of (x − c)⁺ are s φ(h) − (c − b) Φ(−h), s Φ(−h) and
s φ(h) h_(l−2)(h)/√(l(l−1)) with h = (c − b)/s. They fall slowly, so products of two such terms are those of `hinges`,
with the knots c − b. The rest of σ, which is smooth, has its coefficients by equally spaced nodes. Products are exact
for polynomials; their error is below 10⁻¹⁴ for erf and tanh at s = 1, 10⁻⁸ and 10⁻⁵ at s = 3. Where the slope jumps at
an unknown place, errors are larger.

E[σ_i f*] of a committee is a sum of such moments, and so is that of a formula of more than MOST_AXES fields that is a
sum of ridge functions: nodes for so many fields are few. For another f* the coefficients of f* along λ_i are means over
equally spaced nodes of λ*, at steps that resolve f*. `finer` is how many times as many nodes and polynomials there are
as usual, for errors. Of n students Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.maths.activations import Activation, activation
from sweeplib.networks.maths.activations.activation import hinges_of
from sweeplib.networks.maths.expectations import Risks, gauss, hinges
from sweeplib.networks.maths.expectations.grids import REACH, WIDEST, target_steps
from sweeplib.networks.maths.expectations.nodes import MOST_AXES
from sweeplib.networks.maths.formulas.ridges import Ridge
from sweeplib.networks.maths.particles import rules
from sweeplib.networks.maths.particles.smoothing import without_knots
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.numerics.python_calls import compiled

Labels = Callable[[Array, Array], Array]
"""A target f*: (λ* (k, m), a* (k,)) → f* (m,)."""

ORDERS, NODES, DISTANCE = 128, 193, 0.1
"""The number of Hermite polynomials, and the number and distance of the nodes by which coefficients are found."""
FARTHEST = 38.0
"""Standard deviations beyond which the density of a Gaussian number is zero."""
MOST_FIELDS, MOST_NODES, LEAST_WEIGHT = 6, 16384, 1e-17
"""The largest k of a target that is no committee, about the number of nodes of λ*, and the least weight of one."""


@dataclass(frozen=True, eq=False)
class OffsetRisks:
    """The expectations of n students of one activation with offsets b (n, p).

    student, teacher : the activations, the teacher's of a committee; None for another target, or without a teacher.
    labels : function (λ* (k, m), a* (k,)) that returns f* (m,) of another target; None without one.
    ridges : functions of one field whose sum is f*, in place of `labels`; none if there are too few fields, or no sum.
    classes : of each replica the classes of the law of the inputs: odds, √d times the standard deviation of the inputs,
        and what it adds to f*.
    of_label : what has ½ E[y²], the risk at a = 0.
    finer : how many times as many nodes and polynomials there are as usual.
    """

    student: str
    teacher: str | None
    labels: Labels | None
    classes: tuple[tuple[tuple[float, float, float], ...], ...]
    of_label: Risks
    b: Array
    ridges: tuple[Ridge, ...] = ()
    finer: int = 1

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def risks(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The population risk (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
        return self.of_label.risks(*_silent(M, P, a_star)) + self._of_network(Q, M, P, a, a_star)

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def risk_errors(self, risks: Array, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The errors (n,) of these `risks`: twice the difference to twice as many nodes and polynomials."""
        silent, finer = _silent(M, P, a_star), replace(self, finer=2 * self.finer)
        of_label = self.of_label.risks(*silent)
        fine = of_label + finer._of_network(Q, M, P, a, a_star)
        return self.of_label.risk_errors(of_label, *silent) + 2.0 * np.abs(fine - risks)

    def _of_network(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The risk (n,) but for the part of the label alone: ½ E f² − E[f y], without ½ E y²."""
        squares, products = self.moments(Q, M, P, a_star)
        layer = a / a.shape[1]
        square = np.einsum("ni,nij,nj->n", layer, squares, layer)
        return np.asarray(0.5 * square - np.einsum("ni,ni->n", layer, products))

    def moments(self, Q: Array, M: Array, P: Array, a_star: Array) -> tuple[Array, Array]:
        """The moments E[σ_i σ_j] (n, p, p) and E[σ_i y] (n, p) of n students; NaN for overlaps that are not finite."""
        squares, products = np.full(Q.shape, np.nan), np.full(Q.shape[:2], np.nan)
        # one sum in place of three tests: it is finite only if all terms are
        finite = np.isfinite(Q.sum(axis=(1, 2)) + M.sum(axis=(1, 2)) + self.b.sum(axis=1))
        for i in np.flatnonzero(finite):
            squares[i], products[i] = 0.0, 0.0
            for odds, deviation, shift in self.classes[i]:
                Q_class, M_class, P_class = (deviation**2 * array[i] for array in (Q, M, P))
                square, product, mean = self._moments(Q_class, M_class, P_class, a_star[i], self.b[i])
                squares[i] += odds * square
                products[i] += odds * (product + shift * mean)
        return squares, products

    def _moments(self, Q: Array, M: Array, P: Array, a_star: Array, b: Array) -> tuple[Array, Array, Array]:
        """The moments E[σσᵀ] (p, p), E[σ f*] (p,) and E[σ] (p,) of one student over Gaussian inputs of one class.

        Q (p, p), M (p, k), P (k, k), a_star (k,), b (p,) : of this student.
        """
        p, k = M.shape
        fields = Fields.of(activation(self.student), b, np.sqrt(np.maximum(np.diag(Q), 0.0)), self.finer)
        if self.ridges:
            weights, V = (np.array([getattr(ridge, name) for ridge in self.ridges]) for name in ("weight", "direction"))
            M, P, count = M @ V.T, V @ P @ V.T, 1
            functions, scales = [ridge.function for ridge in self.ridges], np.sqrt(np.diag(P))[:, None]
            fields_of = (Fields.of(form, 0.0 * s, s, self.finer) for form, s in zip(functions, scales, strict=True))
            of_target = reduce(Fields.beside, fields_of)
        elif self.teacher is None:
            product = np.zeros(p) if self.labels is None else _label_mean(fields, self.labels, M, P, a_star, self.finer)
            return products_of(fields, Q), product, fields.series[:, 0]
        else:
            weights, count = a_star, k
            of_target = Fields.of(activation(self.teacher), np.zeros(k), np.sqrt(np.diag(P)), self.finer)
        both = products_of(fields.beside(of_target), np.block([[Q, M], [M.T, P]]))
        return both[:p, :p], both[:p, p:] @ weights / count, fields.series[:, 0]


@dataclass(frozen=True, eq=False)
class Fields:
    """The functions σ_m(b + s g) of n Gaussian numbers, by their Hermite coefficients.

    scale (n,) : s.
    knots (n, 1 + 2J) : a constant, then each place and jump of the slope in turn, of the part with jumps.
    bent, series (n, orders) : the coefficients of this part, and of the whole function.
    """

    scale: Array
    knots: Array
    bent: Array
    series: Array

    @classmethod
    def of(cls, form: Activation, b: Array, s: Array, finer: int) -> "Fields":
        """The fields σ(b + s g) of the activation `form`, with b and s (n,); `finer` as in the module."""
        constant, terms, smooth = _parts(form)
        knots = np.zeros((len(b), 1 + 2 * len(terms)))
        knots[:, 0] = constant
        bent = np.zeros((len(b), finer * ORDERS))
        bent[:, 0] = constant
        for j, (place, jump) in enumerate(terms):
            knots[:, 1 + 2 * j], knots[:, 2 + 2 * j] = place - b, jump
            bent += jump * _ramp_series(place - b, s, finer * ORDERS)
        series = bent.copy()
        if smooth is not None:
            # a polynomial has coefficients up to its degree, which as many nodes of Gauss give
            x, table = _table(finer) if form.hermite is None else _weighted(*gauss.normal(len(form.hermite)))
            series[:, : table.shape[1]] += function_values(smooth, b[:, None] + s[:, None] * x) @ table
        return cls(s, knots, bent, series)

    def beside(self, others: "Fields") -> "Fields":
        """The fields of both, `self` first, with rows of `knots` of one length."""
        width = max(self.knots.shape[1], others.knots.shape[1])
        rows = (np.pad(fields.knots, ((0, 0), (0, width - fields.knots.shape[1]))) for fields in (self, others))
        pairs = ((getattr(self, name), getattr(others, name)) for name in ("scale", "bent", "series"))
        scale, bent, series = map(np.concatenate, pairs)
        return Fields(scale, np.concatenate(list(rows)), bent, series)


def products_of(fields: Fields, omega: Array) -> Array:
    """The means E[σ_m σ_n] (n, n) of fields with the covariance omega (n, n).

    Parts with jumps have closed forms; the rest is Mehler's sum.
    """
    products = np.zeros(omega.shape)
    if fields.knots.shape[1] > 1:
        compiled(hinges.products)(np.ascontiguousarray(fields.knots), np.ascontiguousarray(omega), products)
    smooth = np.abs(fields.series - fields.bent).max(axis=0, initial=0.0)
    # the sum ends at the last order whose coefficients are above rounding
    orders = np.flatnonzero(smooth > 1e-18 * smooth.max(initial=0.0))
    if orders.size:
        bounds = np.outer(fields.scale, fields.scale)
        rho = np.clip(np.divide(omega, bounds, out=np.zeros(omega.shape), where=bounds > 0.0), -1.0, 1.0)
        series = np.zeros(omega.shape)
        for order in range(orders[-1], -1, -1):
            whole, bent = fields.series[:, order], fields.bent[:, order]
            series = series * rho + np.outer(whole, whole) - np.outer(bent, bent)
        products += series
    return products


def _silent(M: Array, P: Array, a_star: Array) -> tuple[Array, ...]:
    """The arguments Q, M, P, a, a* of students of one unit without a second layer, whose risk is ½ E[y²]."""
    n, _, k = M.shape
    return np.zeros((n, 1, 1)), np.zeros((n, 1, k)), P, np.zeros((n, 1)), a_star


def _nodes(labels: Labels, L: Array, a_star: Array, finer: int) -> tuple[Array, Array]:
    """Nodes z (k, n) and weights (n,) for f*(L z): equally spaced ones that resolve it, Gauss's for many fields.

    L (k, k) : a factor of P. a_star (k,).
    """
    k = len(L)
    if k > MOST_AXES:
        count = finer * max(4, round(MOST_NODES ** (1.0 / k)))
        return rules.tensor([np.array(gauss.normal(count))] * k)
    scale = max(1.0, float(np.linalg.norm(L, axis=1).max()))
    steps = np.array(target_steps(lambda lam_star: labels(lam_star, a_star), [()] * k, scale))
    with np.errstate(divide="ignore"):
        h = np.minimum((steps[:, None] / np.abs(L)).min(axis=0), WIDEST)
    h *= max((np.prod(2.0 * REACH / h) / (MOST_NODES * finer**k)) ** (1.0 / k), 1.0 / finer)
    z, weight = rules.tensor(
        [np.array(gauss.trapezoidal(2 * math.ceil(REACH / step) + 1, step)) for step in h.tolist()]
    )
    mask = weight > LEAST_WEIGHT
    return z[:, mask], weight[mask]


def _label_mean(fields: Fields, labels: Labels, M: Array, P: Array, a_star: Array, finer: int) -> Array:
    """The means E[σ_i f*] (p,) of a target that is no committee; M (p, k), P (k, k), a_star (k,).

    With λ* = L z and λ_i = u_i·z + rest, it is Σ_l c_il (|u_i|/s_i)^l E[f* h_l(z·u_i/|u_i|)].
    """
    values, vectors = np.linalg.eigh(P)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    u = np.linalg.pinv(L) @ M.T
    size = np.linalg.norm(u, axis=0)
    z, weight = _nodes(labels, L, a_star, finer)
    weighted = weight * labels(L @ z, a_star)
    at = (u / np.where(size > 0.0, size, 1.0)).T @ z
    ratio = np.minimum(np.divide(size, fields.scale, out=np.zeros(size.shape), where=fields.scale > 0.0), 1.0)
    total, power, before, now = np.zeros(len(size)), np.ones(len(size)), np.zeros(at.shape), np.ones(at.shape)
    # polynomials have few orders
    for order in range(np.flatnonzero(fields.series.any(axis=0)).max(initial=-1) + 1):
        total += fields.series[:, order] * power * (now @ weighted)
        # the recurrence of the normalised Hermite polynomials
        following = (at * now - math.sqrt(order) * before) / math.sqrt(order + 1.0)
        before, now, power = now, following, power * ratio
    return total


def _ramp_series(place: Array, s: Array, orders: int) -> Array:
    """The Hermite coefficients (n, orders) of (s g − place)⁺; place and s (n,)."""
    series = np.zeros((len(place), orders))
    # a field without variance is a constant
    moving = s > 0.0
    series[~moving, 0] = np.maximum(-place[~moving], 0.0)
    place, s = place[moving], s[moving]
    with np.errstate(over="ignore"):
        h = np.clip(place / s, -FARTHEST, FARTHEST)
    density, above = np.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi), scipy.special.ndtr(-h)
    series[moving, 0], series[moving, 1] = s * density - place * above, s * above
    # s φ(h) times h_(l−2) of the order, by the recursion of the normalised polynomials
    before, now = np.zeros(len(s)), s * density
    for order in range(2, orders):
        series[moving, order] = now / math.sqrt(order * (order - 1.0))
        before, now = now, (h * now - math.sqrt(order - 2.0) * before) / math.sqrt(order - 1.0)
    return series


@cache
def _table(finer: int) -> tuple[Array, Array]:
    """Nodes x (n,), and their weights times h_l(x) (n, orders), both `finer` times as many as usual."""
    return _weighted(*gauss.trapezoidal(finer * (NODES - 1) + 1, DISTANCE / finer), finer * ORDERS)


def _weighted(nodes: tuple[float, ...], weights: tuple[float, ...], orders: int | None = None) -> tuple[Array, Array]:
    """Nodes x (n,), and their weights times h_l(x) (n, orders); by default as many orders as nodes."""
    x, now = np.array(nodes), np.array(weights)
    table, before = np.empty((len(x), orders or len(x))), np.zeros(len(x))
    for order in range(table.shape[1]):
        table[:, order] = now
        before, now = now, (x * now - math.sqrt(order) * before) / math.sqrt(order + 1.0)
    return x, table


@cache
def _parts(form: Activation) -> tuple[float, tuple[tuple[float, float], ...], Any]:
    """The parts of an activation: a constant, its knots (place, jump), and the smooth rest, None without one."""
    constant, terms = hinges_of(form)
    smooth = without_knots(form, np.array(terms).reshape(-1, 2).T.copy(), constant)
    return constant, terms, None if smooth is None else smooth[0]
