"""The mean loss and the classification error at given overlaps, of fresh labels.

Both are integrals over fields (λ, λ*) ~ N(0, Ω) without closed form in general. The orthonormal coordinates are turned
so that the first one, t, is along the gradient of Σ a_i λ_i; without label noise it is between this gradient and the
gradient of Σ a*_r λ*_r.
Lines along t have equally spaced nodes. The other coordinates are equally spaced too if there is one, else Sobol'
points. Labels are averaged over their noise before.

Lines are in batches, each a rule by itself: every other line in each direction, or another randomisation of Sobol'
points and of the places of nodes. The error is three times the standard error by the scatter of the batches, and a
third of the difference to every other node, as for kinks, of which the error is ∝ h²; that of roots (h⁴) and of smooth
functions is less.

`now` is a view of n networks, i the number of one. Arrays (lines, nodes) have values at the nodes of each line; a cell
is an interval between two nodes.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.kernels.label_noise import with_variances
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.kernels.losses import means_of
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.curvature import Curvatures, Network, curvatures, unknown
from sweeplib.networks.maths.overlaps import lower_factors
from sweeplib.networks.numerics.binding import unbound
from sweeplib.networks.numerics.compiled import call_by_address, function_values, pointer
from sweeplib.networks.numerics.low_discrepancy import low_discrepancy_normals
from sweeplib.networks.problem import DEFAULTS, LOSSES, Criterion
from sweeplib.networks.views import Estimate, OverlapView

REACH, SPACING = 7.5, 0.1
"""Where nodes on a line end, in standard deviations, and their distance."""
OTHER_REACH, OTHER_SPACINGS = 7.0, (0.025, 0.25)
"""Where lines over one or two other coordinates end, in standard deviations, and their distance for one and for two."""
SHARP = 0.04
"""The variance of label noise below which the labels' signs may jump between lines over two other coordinates."""
LEAST_SMOOTH = 1e-4
"""The variance below which the odds of a label, given f*, jump between lines and nodes: of two fields, noise then is a
coordinate."""
BATCHES, BATCH = 8, 256
"""Batches of lines over more coordinates, and their lines."""
NODES = SPACING * (np.arange(-round(REACH / SPACING), round(REACH / SPACING)) + 0.37)
"""The nodes of a line: none is zero, where a network of odd units is too."""
SIGNS = (1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)
"""Signs of f and f*: in the mean over all four, an output or a label of zero counts half on either side."""
ROUNDING = 1e-12
"""The least error, over the mean of absolute values."""


class Lines(NamedTuple):
    """Parallel lines of nodes over the fields, in orthonormal coordinates.

    others (others, lines), weight (lines,) : the other coordinates of each line, and its weight in means.
    batch (lines,) : the number of its batch.
    nodes, density (lines, nodes) : places along the line, and the density of N(0, 1) there.
    """

    others: Array
    weight: Array
    batch: NDArray[np.intp]
    nodes: Array
    density: Array


@dataclass(frozen=True)
class LabelMeans:
    """Means over fresh labels, for a loss (`criterion`), activations of student and teacher, and a target by name."""

    criterion: Criterion
    student: str
    target: str
    teacher: str

    def test_loss(self, now: OverlapView) -> Estimate:
        """The mean loss E L(f, y) (n,) at the overlaps of a view, with its errors.

        It is a closed function of the risk for some losses of real labels (`mean`), otherwise a sum over nodes.
        """
        mean = LOSSES[self.criterion.loss].mean
        if mean is None or self.criterion.signs:
            return mean_losses(self, now)
        layers, errors, rule = (now.Q, now.M, now.P), np.zeros(len(now.a)), now.expectations

        def risks(a: Array) -> Array:
            """Return the risks (n,) at second layers a (n, p), and add their errors to `errors`."""
            losses = rule.risks(*layers, a, now.a_star)
            errors[:] += rule.risk_errors(losses, *layers, a, now.a_star)
            return losses

        return Estimate(mean(risks, now.a, now.Delta), errors)

    def classification_error(self, now: OverlapView) -> Estimate:
        """P(y f < 0) + ½ P(f = 0) (n,) at the overlaps of a view; labels y = 0 without noise have either sign."""
        return _joined([self._classification_error(now, i) for i in range(len(now.a))])

    def mean_loss(self, now: OverlapView, i: int) -> Estimate:
        """The mean loss of network i of a view, by a sum over nodes."""
        p, k = now.M.shape[1:]
        lines = _lines(p + k - 1, bool(now.Delta[i] < SHARP))
        f, f_star = self._on_lines(now, i, lines, jumps=bool(now.Delta[i] == 0.0))
        loss, tails = np.empty(f.size), self.criterion.tails
        mean = _mean_address(self.criterion.loss, self.criterion.signs, len(tails) > 0)
        numbers = with_variances(self.criterion.numbers, tails)
        call_by_address(mean, numbers, f_star.ravel(), f.ravel(), float(now.Delta[i]), loss)
        terms = SPACING * loss.reshape(f.shape) * lines.density
        least = ROUNDING * float(lines.weight @ np.abs(terms).sum(axis=1))
        return _estimate(lines, terms.sum(axis=1), 2.0 * terms[:, ::2].sum(axis=1), least)

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def curvatures(self, now: OverlapView) -> tuple[Curvatures, Curvatures]:
        """The curvatures at the n networks of a view, and their errors; NaN for those that diverged."""
        single = [self._curvatures(now, i) for i in range(len(now.a))]
        value, error = (Curvatures(*map(np.array, zip(*values, strict=True))) for values in zip(*single, strict=True))
        return value, error

    def _curvatures(self, now: OverlapView, i: int) -> tuple[Curvatures, Curvatures]:
        """The curvatures at network i of a view, and their errors."""
        if not (np.isfinite(now.Q[i]).all() and np.isfinite(now.M[i]).all() and np.isfinite(now.a[i]).all()):
            nothing = unknown(now.M.shape[1], sum(now.M.shape[1:]))
            return nothing, nothing
        series = activation(self.teacher).hermite if self.target == DEFAULTS["target"] else None
        network = Network(
            lower_factors(now.Q[i], now.M[i], now.P[i]),
            now.a[i],
            activation(self.student),
            lambda lam_star: labels(self.target, self.teacher, lam_star, now.a_star[i]),
            None if series is None else len(series) - 1,
            float(now.Delta[i]),
            float(now.d[i]),
            float(now.second_layer_rate[i]),
        )
        return curvatures(network, now.batch_size)

    def _classification_error(self, now: OverlapView, i: int) -> Estimate:
        """The classification error of network i of a view."""
        (p, k), Delta = now.M.shape[1:], float(now.Delta[i])
        # little noise makes a narrow step of the label's sign: as one more coordinate it has lines of its own
        noise_is_coordinate = p + k == 2 and 0.0 < Delta < LEAST_SMOOTH
        lines = _lines(p + k - 1 + noise_is_coordinate, Delta < SHARP)
        f, f_star = self._on_lines(now, i, lines, jumps=noise_is_coordinate or Delta == 0.0)
        # given the coordinate of the noise, labels have none
        if noise_is_coordinate:
            f_star, Delta = f_star + math.sqrt(Delta) * lines.others[-1][:, None], 0.0
        fine, coarse = (
            _wrong(f[:, ::step], f_star[:, ::step], lines.density[:, ::step], step * SPACING, Delta) for step in (1, 2)
        )
        return _estimate(lines, fine, coarse, ROUNDING)

    def _on_lines(self, now: OverlapView, i: int, lines: Lines, *, jumps: bool) -> tuple[Array, Array]:
        """Return f and f* of network i at the nodes (lines, nodes) of `lines`; NaN if it diverged.

        jumps : whether the sign of the label jumps with f*, so that lines are turned to where f* varies along them too.
        """
        (p, k), a, shape = now.M.shape[1:], now.a[i], lines.nodes.shape
        if not (np.isfinite(now.Q[i]).all() and np.isfinite(now.M[i]).all() and np.isfinite(a).all()):
            return np.full(shape, np.nan), np.full(shape, np.nan)
        # rows of the teacher come first
        factor = lower_factors(now.Q[i], now.M[i], now.P[i])
        along = a @ factor[k:]
        if jumps:
            along = _between(along, now.a_star[i] @ factor[:k])
        turned = _turned(factor, along)
        # behind the p + k − 1 other coordinates of the fields may be one of the noise of labels
        fields = (turned[:, 1:] @ lines.others[: p + k - 1])[:, :, None] + turned[:, :1, None] * lines.nodes
        f, value = np.zeros(shape), activation(self.student).value
        for unit in range(p):
            f += a[unit] / p * function_values(value, fields[k + unit] + now.b[i, unit])
        f_star = labels(self.target, self.teacher, fields[:k].reshape(k, -1), now.a_star[i])
        return f, f_star.reshape(shape)


def mean_losses(means: LabelMeans, now: OverlapView) -> Estimate:
    """The mean losses (n,) at the overlaps of a view, with their errors: by sums over nodes, whatever the loss."""
    return _joined([means.mean_loss(now, i) for i in range(len(now.a))])


def _joined(estimates: list[Estimate]) -> Estimate:
    """The estimates of n networks as one of arrays (n,)."""
    return Estimate(*np.array(estimates).reshape(-1, 2).T)


def _estimate(lines: Lines, fine: Array, coarse: Array, least: float) -> Estimate:
    """The mean of values (lines,) over lines, and its error.

    fine, coarse (lines,) : values by all nodes of a line, and by every other one. least : the least error.
    The error is three standard errors of the batches, a third of the difference of fine and coarse, and `least`.
    """
    count = lines.batch.max() + 1
    batches = count * np.bincount(lines.batch, lines.weight * fine)
    scatter = 3.0 * batches.std(ddof=1) / math.sqrt(count)
    return Estimate(lines.weight @ fine, scatter + abs(lines.weight @ (fine - coarse)) / 3.0 + least)


@cache
def _lines(others: int, sharp: bool) -> Lines:
    """The lines over `others` other coordinates, equally spaced if there is one, or two and labels are not `sharp`.

    More coordinates have Sobol' points; one number more of each point moves the nodes of its line by part of a cell.
    """
    if others == 1 or (others == 2 and not sharp):
        spacing = OTHER_SPACINGS[others - 1]
        most = round(OTHER_REACH / spacing)
        place = np.array(list(product(range(-most, most + 1), repeat=others))).T
        place = place[:, np.linalg.norm(place, axis=0) <= most]
        z, shift = spacing * place, np.zeros((1, place.shape[1]))
        # batches are the parities of the places: every other line in each direction
        weight, batch = np.prod(spacing * _density(z), axis=0), 2 ** np.arange(others) @ (place % 2)
    else:
        points = [low_discrepancy_normals(0, 0, number, others + 1, BATCH) for number in range(BATCHES)]
        *coordinates, last = np.concatenate(points, axis=1)
        z, weight = np.array(coordinates), np.full(len(last), 1.0 / len(last))
        batch, shift = np.arange(len(last)) // BATCH, scipy.special.ndtr(last)[None] - 0.5
    nodes = NODES + SPACING * shift.T
    return Lines(z, weight, batch, nodes, _density(nodes))


def _density(t: Array) -> Array:
    """The density of N(0, 1) at t, of any shape."""
    return np.asarray(np.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi))


def _wrong(f: Array, f_star: Array, density: Array, spacing: float, Delta: float) -> Array:
    """The mean ½ E[1 − sign f sign y] on each line (lines,), where sign 0 = 0: hinges are zero for many inputs.

    f, f_star, density (lines, nodes) : f, f* and the density of N(0, 1) at nodes. spacing : their distance.
    Delta : the variance of the noise of labels.
    """
    # the usual case, by one sum in place of four
    if f.all() and f_star.all():
        return _differ(f, f_star, density, spacing, Delta)
    whole = spacing * density.sum(axis=1)
    flipped = [(sign, other, _differ(sign * f, other * f_star, density, spacing, Delta)) for sign, other in SIGNS]
    # with one of both flipped, signs differ where they were the same
    return np.asarray(sum(differ if sign == other else whole - differ for sign, other, differ in flipped) / 4.0)


def _differ(f: Array, f_star: Array, density: Array, spacing: float, Delta: float) -> Array:
    """P(f > 0, y ≤ 0) + P(f ≤ 0, y > 0) on each line (lines,).

    f, f_star, density (lines, nodes) : f, f* and the density of N(0, 1) at nodes. spacing : their distance.
    Delta : the variance of the noise of labels.
    With π = P(y > 0) given λ* it is E[π] plus the mean of 1 − 2π where f > 0.
    """
    if Delta == 0.0:
        return _where_signs_differ(density, f, f_star, spacing)
    plus = scipy.special.ndtr(f_star / math.sqrt(Delta))
    where_positive = _where_positive((1.0 - 2.0 * plus) * density, f, spacing)
    return np.asarray(spacing * (plus * density).sum(axis=1) + where_positive.sum(axis=1))


def _between(of_f: Array, of_star: Array) -> Array:
    """The direction (N,) halfway between those of f and f*, so that lines along it meet the roots of both.

    Along the direction of f alone f* may hardly vary. of_f, of_star (N,) : gradients over the orthonormal coordinates.
    """
    lengths = np.linalg.norm(of_f), np.linalg.norm(of_star)
    if 0.0 in lengths:
        return of_f
    return np.asarray(of_f / lengths[0] + np.copysign(1.0, of_f @ of_star) * of_star / lengths[1])


def _turned(factor: Array, along: Array) -> Array:
    """The factor (N, N) of Ω, teacher rows first, in coordinates of which the first has the direction `along` (N,)."""
    if not along.any():  # a network that is zero: any direction serves, such as that of the last unit
        return factor[:, ::-1]
    basis = np.linalg.qr(np.column_stack([along, np.eye(len(factor))]))[0]
    return np.asarray(factor @ basis)


@cache
def _mean_address(loss: str, signs: bool, tails: bool):  # type: ignore[no-untyped-def]
    """The address of `_fill_means` for a loss by name, real labels or `signs`, and noise with `tails` or without."""
    line = types.Array(types.float64, 1, "C")
    signature = types.void(line, line, line, types.float64, line)
    return pointer(_fill_means, signature, means=means_of(loss, signs, tails))


means = unbound
"""Bound by `_mean_address`."""


def _fill_means(numbers, f_star, f, Delta, out):  # type: ignore[no-untyped-def]
    """Fill out (n,) with the mean losses of f (n,) over the noise, of variance Δ, of labels with f* (n,).

    numbers : the parameters of the loss and, behind them, of the noise's tails.
    """
    for n in range(out.shape[0]):
        _, _, out[n] = means(numbers, f_star[n], f[n], Delta)


def _where_signs_differ(F: Array, f: Array, g: Array, spacing: float) -> Array:
    """The integrals (lines,) of F > 0 over where f g < 0; f and g have at most one root each in a cell.

    F, f, g (lines, nodes) : values at nodes of a distance `spacing`.
    """
    # in a cell in which both change signs in opposite directions, f > 0 and g > 0 overlap or leave a gap
    of_f, of_g, whole = (_where_positive(F, values, spacing) for values in (f, g, np.ones(f.shape)))
    opposite = (np.diff(np.sign(f)) * np.diff(np.sign(g)) < 0.0)[:, 1:-1]
    return np.asarray(np.where(opposite, whole - np.abs(whole - of_f - of_g), np.abs(of_f - of_g)).sum(axis=1))


def _where_positive(F: Array, g: Array, spacing: float) -> Array:
    """The integrals (lines, cells) of F over where g > 0, of which the edges are the roots of g (`_roots`).

    F, g (lines, nodes) : values at nodes of a distance `spacing`. The first and the last cell are left out.
    """
    # the integral over the middle cell of the cubic through four nodes
    cells = spacing / 24.0 * (13.0 * (F[:, 1:-2] + F[:, 2:-1]) - F[:, :-3] - F[:, 3:])
    left, right = g[:, 1:-2] > 0.0, g[:, 2:-1] > 0.0
    values = cells * (left & right)
    line, cell = np.nonzero(left != right)
    u = _roots(*(g[line, cell + n] for n in range(4)))
    rise, bend, twist = _cubic(*(F[line, cell + n] for n in range(4)))
    integral = spacing * u * (F[line, cell + 1] + u * (rise / 2.0 + u * (bend / 3.0 + u * twist / 4.0)))
    values[line, cell] = np.where(left[line, cell], integral, cells[line, cell] - integral)
    return np.asarray(values)


def _roots(before: Array, first: Array, second: Array, after: Array) -> Array:
    """The roots (n,) in [0, 1] of functions whose sign changes there: of the cubics through their values.

    before, first, second, after (n,) : the values at −1, 0, 1, 2. Where a function is zero on one side, as a hinge is,
    the root is that of the line through the values on the other side. Errors are O(h⁴), of lines O(h²).
    """
    u = first / (first - second)
    with np.errstate(divide="ignore", invalid="ignore"):  # where a cubic is level, and where g is too short for a line
        for _ in range(3):  # Newton's steps, from the root of a straight line
            rise, bend, twist = _cubic(before, first, second, after)
            step = (((twist * u + bend) * u + rise) * u + first) / ((3.0 * twist * u + 2.0 * bend) * u + rise)
            u = np.where(np.isfinite(step), np.clip(u - step, 0.0, 1.0), u)
        to_right, to_left = first / (before - first), 1.0 - second / (after - second)
    u = np.where((second == 0.0) & (before > first), np.minimum(to_right, 1.0), u)
    return np.where((first == 0.0) & (after > second), np.maximum(to_left, 0.0), u)


def _cubic(before: Array, first: Array, second: Array, after: Array) -> tuple[Array, Array, Array]:
    """The coefficients of u, u², u³ of the cubic through four values, at u = −1, 0, 1, 2."""
    bend = (before + second) / 2.0 - first
    twist = (after - before + 3.0 * (first - second)) / 6.0
    return (second - before) / 2.0 - twist, bend, twist
