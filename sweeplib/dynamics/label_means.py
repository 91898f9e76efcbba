"""The mean loss and the classification error at given overlaps, of fresh labels.

Both are integrals over fields (λ, λ*) ~ N(0, Ω) without closed form in general. The orthonormal coordinates are turned
so that the first one, t, is along the gradient of Σ a_i λ_i. Lines along t have equally spaced nodes. The other
coordinates are equally spaced too if there is one, else Sobol' points. Labels are averaged over their noise before.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import types
from numpy.typing import NDArray

from sweeplib.kernels.labels import labels
from sweeplib.kernels.losses import means_of
from sweeplib.maths.activations import activation
from sweeplib.maths.overlaps import lower_factors
from sweeplib.numerics.compiled import call_by_address, over_arrays, pointer
from sweeplib.numerics.low_discrepancy import low_discrepancy_normals
from sweeplib.problem import LOSSES, Criterion
from sweeplib.views import OverlapView

Array = NDArray[np.float64]

REACH, SPACING = 7.5, 0.1
"""Where nodes on a line end, in standard deviations, and their distance."""
OTHER_SPACING, LINES = 0.1, 1024
"""The distance of lines over one other coordinate; their number over more."""
NODES = SPACING * (np.arange(-round(REACH / SPACING), round(REACH / SPACING)) + 0.37)
"""The nodes of a line: none is zero, where a network of odd units is too."""
DENSITY = np.exp(-0.5 * NODES**2) / math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class LabelMeans:
    """Means over fresh labels of a target by a student's activation, with a loss and a teacher's activation."""

    criterion: Criterion
    student: str
    target: str
    teacher: str

    def test_loss(self, now: OverlapView) -> Array:
        """The mean loss E L(f, y) (n,)."""
        mean = LOSSES[self.criterion.loss].mean
        if mean is None or self.criterion.signs:
            return mean_losses(self, now)
        return mean(lambda a: now.expectations.risks(now.Q, now.M, now.P, a, now.a_star), now.a, now.Delta)

    def classification_error(self, now: OverlapView) -> Array:
        """P(y f < 0) (n,)."""
        return np.array([self._error(now, i) for i in range(len(now.a))])

    def mean_loss(self, now: OverlapView, i: int) -> float:
        """That of replica i, by a sum over nodes."""
        f, f_star, weight = self._on_lines(now, i)
        loss, numbers = np.empty(f.size), np.array(self.criterion.numbers, float)
        mean = _mean_address(self.criterion.loss, self.criterion.signs)
        call_by_address(mean, numbers, f_star.ravel(), f.ravel(), float(now.Delta[i]), loss)
        return float(weight @ (loss.reshape(f.shape) @ DENSITY) * SPACING)

    def _error(self, now: OverlapView, i: int) -> float:
        """Of labels y > 0 with the probability π given λ*: E[π] + the mean of 1 − 2π where f > 0."""
        from scipy.special import ndtr

        f, f_star, weight = self._on_lines(now, i)
        if now.Delta[i] == 0.0:
            return float(weight @ _where_positive(np.broadcast_to(DENSITY, f.shape), -f * f_star))
        plus = ndtr(f_star / math.sqrt(now.Delta[i]))
        return float(weight @ (SPACING * (plus @ DENSITY) + _where_positive((1.0 - 2.0 * plus) * DENSITY, f)))

    def _on_lines(self, now: OverlapView, i: int) -> tuple[Array, Array, Array]:
        """Return f and f* of replica i at nodes (lines, nodes), and the weights of the lines; NaN if it diverged."""
        (p, k), a = now.M.shape[1:], now.a[i]
        others, weight = _lines(p + k - 1)
        shape = len(weight), len(NODES)
        if not (np.isfinite(now.Q[i]).all() and np.isfinite(now.M[i]).all() and np.isfinite(a).all()):
            return np.full(shape, np.nan), np.full(shape, np.nan), weight
        turned = _turned(lower_factors(now.Q[i], now.M[i], now.P[i]), k, a)
        fields = (turned[:, 1:] @ others)[:, :, None] + turned[:, :1, None] * NODES
        f, value, form = np.zeros(fields[0].size), np.empty(fields[0].size), over_arrays(activation(self.student).value)
        for unit in range(p):
            call_by_address(form, (fields[k + unit] + now.b[i, unit]).ravel(), value)
            f += a[unit] / p * value
        f_star = labels(self.target, self.teacher, fields[:k].reshape(k, -1), now.a_star[i])
        return f.reshape(shape), f_star.reshape(shape), weight


def mean_losses(means: LabelMeans, now: OverlapView) -> Array:
    """The mean losses (n,), by sums over nodes."""
    return np.array([means.mean_loss(now, i) for i in range(len(now.a))])


@cache
def _lines(others: int) -> tuple[Array, Array]:
    """The other coordinates (others, lines) of lines, and their weights."""
    if others == 1:
        most = round(REACH / OTHER_SPACING)
        z = np.asarray(OTHER_SPACING * np.arange(-most, most + 1), dtype=np.float64)
        weight: Array = OTHER_SPACING * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return z[None], weight
    return low_discrepancy_normals(0, 0, 0, others, LINES), np.full(LINES, 1.0 / LINES)


def _turned(factor: Array, k: int, a: Array) -> Array:
    """The factor (N, N) of Ω, teacher rows first, in coordinates of which the first is along Σ a_i λ_i."""
    along = a @ factor[k:]
    if not along.any():
        return factor[:, ::-1]
    basis = np.linalg.qr(np.column_stack([along, np.eye(len(factor))]))[0]
    return np.asarray(factor @ basis)


@cache
def _mean_address(loss: str, signs: bool):  # type: ignore[no-untyped-def]
    line = types.Array(types.float64, 1, "C")
    signature = types.void(line, line, line, types.float64, line)
    return pointer(_fill_means, signature, means=means_of(loss, signs))


def _unbound(*_: object) -> tuple[float, float, float]:
    raise NotImplementedError("bound by `_mean_address`")


means = _unbound


def _fill_means(numbers, f_star, f, Delta, out):  # type: ignore[no-untyped-def]
    for n in range(out.shape[0]):
        _, _, out[n] = means(numbers, f_star[n], f[n], Delta)


def _where_positive(F: Array, g: Array) -> Array:
    """The integrals (lines,) of F (lines, nodes) over where g > 0, whose roots are found by cubics: error O(h⁴)."""
    cells = SPACING / 24.0 * (13.0 * (F[:, 1:-2] + F[:, 2:-1]) - F[:, :-3] - F[:, 3:])
    left, right = g[:, 1:-2] > 0.0, g[:, 2:-1] > 0.0
    whole = (cells * (left & right)).sum(axis=1)
    line, cell = np.nonzero(left != right)
    before, first, second, after = (g[line, cell + n] for n in range(4))
    u = first / (first - second)
    for _ in range(3):  # Newton's steps, from the root of a straight line
        rise, bend, twist = _cubic(before, first, second, after)
        u -= (((twist * u + bend) * u + rise) * u + first) / ((3.0 * twist * u + 2.0 * bend) * u + rise)
        u = np.clip(u, 0.0, 1.0)
    rise, bend, twist = _cubic(*(F[line, cell + n] for n in range(4)))
    part = SPACING * u * (F[line, cell + 1] + u * (rise / 2.0 + u * (bend / 3.0 + u * twist / 4.0)))
    parts = np.where(left[line, cell], part, cells[line, cell] - part)
    return np.asarray(whole + np.bincount(line, parts, len(g)))


def _cubic(before: Array, first: Array, second: Array, after: Array) -> tuple[Array, Array, Array]:
    """The coefficients of u, u², u³ of the cubic through values at u = −1, 0, 1, 2."""
    bend = (before + second) / 2.0 - first
    twist = (after - before + 3.0 * (first - second)) / 6.0
    return (second - before) / 2.0 - twist, bend, twist
