"""The effective process of full-batch gradient descent on a reused data set, for d → ∞ at fixed α = n/d.

With T = γ/(pd) the time of a step, a step is w^{t+1} = w^t + (T/α) Σ_μ g^{t,μ} x^μ, g_i = a_i σ'(λ_i) E. Let e* (k),
e_0, e_1, ... (p each) be orthonormal directions of R^d: those of the teacher, of the students at the start, and of what
each further step adds. Let h_1, h_2, ... (p each) be the orthonormal functions of a sample that g^0, g^1, ... become by
Gram and Schmidt's procedure, g^t = Σ_{s≤t} G(t,s) h_{s+1}, E[h hᵀ] = 1. The components of a sample along the directions
are

    x·e* = ζ*,    x·e_0 = ζ_0,    x·e_q = V_q = ζ_q + h_q/√α,    ζ*, ζ_0, ζ_1, ... independent and N(0, 1),

because the step along e_q is the one that h_q made. Hence λ^t = U_t V for w^t = U_t e, and a step is

    U_{t+1} = (1 − λT) U_t + T E[g^t Vᵀ] on the directions so far,    T G(t,t)/√α on the new one,

with the weight decay λ. Means over samples are all it needs. The response of λ^t to g^s is
R(t,s) = Σ_q U_t,q (G⁻¹)_{q−1,s}/√α.

Where σ or f* grows faster than a line, g has heavy tails, those of polynomials in ζ*, ζ_0 of higher degree every step:
half of the samples of ζ*, ζ_0 are then wider than N(0, 1), and means are weighted. The `tails` of the terms of a mean
tell whether the samples determine it.

The means are those over the samples at hand, and ζ_q is made orthogonal to h_1, ..., h_q. As a data matrix keeps these
relations exactly, the process of N samples is gradient descent in N/α dimensions but for the fluctuations of norms: it
is stable wherever that is, however many steps it takes.

In arrays n is the number of samples at hand (`paths`), S the number of steps; rows of directions e and of functions h
come p at a time: the k rows of e* first, then those of e_0, e_1, ...
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.kernels.paths import combinations, means
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.numerics.low_discrepancy import low_discrepancy_normals, with_wider_half

OVERFLOW = 1e50
"""A larger displacement or coefficient, or NaN, is a divergence; overlaps are finite below it."""
ALIGNED = 1e-10
"""Relative size below which what a row of g adds to earlier ones is rounding."""


@dataclass(frozen=True)
class Setting:
    """What a process of one replica depends on, with the names that `Replicas` have for one of them.

    numbers : its `Numbers`. a (p,), a_star (k,) : second layers at the start.
    alpha : samples over dimensions, n/d.
    L (k+p, k+p) : factor of the initial overlaps, teacher rows first.
    """

    activation: str
    teacher_activation: str
    target: str
    spherical: bool
    alpha: float
    numbers: Any
    a: Array
    a_star: Array
    L: Array

    def labels(self, lam_star: Array) -> Array:
        """The labels (n,) without noise at fields (k, n) of the teacher."""
        return labels(self.target, self.teacher_activation, lam_star, self.a_star)


class History(NamedTuple):
    """What a process went through: steps 0 to S, S the last one before a divergence or the last one.

    Q (S+1, p, p), M (S+1, p, k), a (S+1, p) : overlaps and second layer.
    C, R (S+1, S+1, p, p) : correlations w^t w^sᵀ/d of the students, and responses of λ^t to g^s.
    training_risk (S+1,) : ½ E[E²] over the samples of the data set, with their noise.
    tails (S+1, p, 2), training_tails (S+1, 1, 2) : `tails` of the sums of g² over the steps before, and of E².
    """

    Q: Array
    M: Array
    a: Array
    C: Array
    R: Array
    training_risk: Array
    tails: Array
    training_tails: Array


def effective_history(
    setting: Setting, steps: int, paths: int, stream: tuple[int, int, int], late: Callable[[int], bool]
) -> History | None:
    """The history of `steps` steps by `paths` samples; None if `late(step)` is true after a step.

    stream : the key, the seed and the number of the batch of random numbers.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        process = EffectiveProcess(setting, steps, paths, stream)
        for _ in range(steps):
            if not process.advance():
                break
            if late(process.step):
                return None
        return process.history()


class EffectiveProcess:
    """n samples (`paths`) of the process of a `setting`, and the weights that they lead to, after `step` of S `steps`.

    stream : the key, the seed and the number of the batch of random numbers.
    V (k + (S+1)p, n), h (S p, n) : components along the directions, and the orthonormal parts of g.
    y (n,) : labels.
    U (S+1, p, k + (S+1)p) : the weights after each step.
    G, G_inverse (S p, S p) : g in terms of h, and the inverse.
    a, training_risk, tails, training_tails : as in `History`.
    squares (p, n) : the sums of g² over the steps so far.
    weights (n,) : of the samples; None where all have the same.
    """

    def __init__(self, setting: Setting, steps: int, paths: int, stream: tuple[int, int, int]) -> None:
        self.setting, self.steps, self.step = setting, steps, 0
        (self.p, self.k), width = (len(setting.a), len(setting.a_star)), len(setting.L)
        # the first row is the noise of the labels. Samples that are far out count more for means that grow
        z, self.V = np.split(low_discrepancy_normals(*stream, 1 + width + steps * self.p, paths), [1])
        self.weights = with_wider_half(self.V[:width]) if _grows(setting, self.V[: self.k, :8]) else None
        self.h, self.squares = np.empty((steps * self.p, paths)), np.zeros((self.p, paths))
        self.y = setting.labels(combinations(setting.L[: self.k, : self.k], self.V[: self.k]))
        self.y += math.sqrt(setting.numbers.Delta) * z[0]
        self.U = np.zeros((steps + 1, self.p, len(self.V)))
        self.U[0, :, :width] = setting.L[self.k :]
        self.G = np.zeros((steps * self.p, steps * self.p))
        self.G_inverse = np.zeros_like(self.G)
        self.a = np.repeat(setting.a[None], steps + 1, axis=0)
        self.training_risk = np.full(steps + 1, np.nan)
        self.tails, self.training_tails = np.zeros((steps + 1, self.p, 2)), np.zeros((steps + 1, 1, 2))
        self._observe()

    def _count_known(self, step: int) -> int:
        """The number of directions along which w^step may have components."""
        return self.k + (step + 1) * self.p

    def _observe(self) -> bool:
        """Set σ, σ', displacements and training risk to those of the present weights; return False if they diverged."""
        count, activated = self._count_known(self.step), activation(self.setting.activation)
        lam = combinations(self.U[self.step, :, :count], self.V[:count])
        self.value, self.slope = (function_values(form, lam) for form in (activated.value, activated.derivative))
        self.E = self.y - combinations(self.a[self.step][None] / self.p, self.value)[0]
        # not `>=`, which is false for NaN
        if not np.abs(self.E).max() < OVERFLOW:
            return False
        self.training_risk[self.step] = 0.5 * float(self._means(self.E[None], self.E[None])[0, 0])
        self.training_tails[self.step] = self._tails(self.E[None] ** 2)
        return True

    def advance(self) -> bool:
        """Take a step; return False if it diverged, and then leave the state as it was before."""
        t, g = self.step, self.a[self.step][:, None] * self.slope * self.E
        U, a = self._stepped(g)
        if not (np.abs(U).max() < OVERFLOW and np.abs(a).max() < OVERFLOW):
            return False
        self._condition_new_directions()
        self.squares += g * g
        self.step, self.U[t + 1], self.a[t + 1], self.tails[t + 1] = t + 1, U, a, self._tails(self.squares)
        if not self._observe():
            self.step = t
            return False
        return True

    def _stepped(self, g: Array) -> tuple[Array, Array]:
        """The weights (p, k + (S+1)p), along the directions, and the second layer (p,) after a step by g (p, n)."""
        t, numbers = self.step, self.setting.numbers
        count, T = self._count_known(t), numbers.T
        U, a = (1.0 - numbers.weight_decay * T) * self.U[t], self.a[t].copy()
        U[:, :count] += T * self._means(g, self.V[:count])
        U[:, count : count + self.p] = T / math.sqrt(self.setting.alpha) * self._orthonormalise(g)
        a += numbers.second_layer_rate * T * self._means(self.value, self.E[None])[:, 0]
        a -= numbers.second_layer_rate * numbers.second_layer_decay * T * self.a[t]
        if self.setting.spherical:
            U /= np.sqrt(np.einsum("im,im->i", U, U))[:, None]
        return U, a

    def _condition_new_directions(self) -> None:
        """Make the normal draws along the p new directions of this step components of inputs that earlier steps saw.

        They lose their part along the h so far, and get h_{t+1}/√α of the step itself: V_q = ζ_q + h_q/√α.
        """
        count = self._count_known(self.step)
        new, h = self.V[count : count + self.p], self.h[: count - self.k]
        new -= combinations(self._means(new, h), h)
        new += h[-self.p :] / math.sqrt(self.setting.alpha)

    def _orthonormalise(self, g: Array) -> Array:
        """Fill h_{t+1} and row t of G and of G⁻¹ from g (p, n); return G(t,t) (p, p).

        Where a row of g adds nothing to earlier rows and steps, its h is 0, and so is its row of G⁻¹.
        """
        done, sizes = self.step * self.p, np.sqrt([float(self._means(row[None], row[None])[0, 0]) for row in g])
        rows = slice(done, done + self.p)
        remainder, self.G[rows, :done] = self._remainder(g, self.h[:done])
        for i, place in enumerate(range(done, done + self.p)):
            residual, coefficients = self._remainder(remainder[i : i + 1], self.h[done:place])
            length = math.sqrt(float(self._means(residual, residual)[0, 0]))
            self.G[place, done:place] = coefficients[0]
            self.h[place] = 0.0
            if length > ALIGNED * sizes[i]:
                self.h[place], self.G[place, place] = residual[0] / length, length
                # G is lower triangular: a row of its inverse follows from those above
                inverse = -self.G[place, :place] @ self.G_inverse[:place, :place]
                self.G_inverse[place, :place], self.G_inverse[place, place] = inverse / length, 1.0 / length
        return self.G[rows, rows]

    def _remainder(self, rows: Array, h: Array) -> tuple[Array, Array]:
        """The rows (p, n) without their components along orthonormal functions h (m, n), and these components (p, m).

        They are taken out twice: once would lose the orthogonality of small rests.
        """
        components = np.zeros((len(rows), len(h)))
        for _ in range(2):
            projections = self._means(rows, h)
            components += projections
            rows = rows - combinations(projections, h)
        return rows, components

    def _means(self, first: Array, second: Array) -> Array:
        """The means (p, m) over samples of the products of rows (p, n) and rows (m, n)."""
        return means(first if self.weights is None else first * self.weights, second)

    def _tails(self, squares: Array) -> Array:
        """The `tails` (m, 2) of the terms of the means of squares (m, n)."""
        return tails(squares if self.weights is None else squares * self.weights)

    def history(self) -> History:
        """The history of the steps up to the present one."""
        count, p, k = self.step + 1, self.p, self.k
        U = self.U[:count, :, : self._count_known(self.step)]
        C = np.einsum("tim,sjm->tsij", U, U, optimize=True)
        R = np.zeros((count, count, p, p))
        done = self.step * p
        responses = U[:, :, k + p :] @ self.G_inverse[:done, :done] / math.sqrt(self.setting.alpha)
        R[:, : self.step] = responses.reshape(count, p, self.step, p).swapaxes(1, 2)
        M = U[:, :, :k] @ self.setting.L[:k, :k].T
        alone = (array[:count] for array in (self.training_risk, self.tails, self.training_tails))
        return History(np.einsum("ttij->tij", C).copy(), M, self.a[:count], C, R, *alone)


def _grows(setting: Setting, directions: Array) -> bool:
    """Whether σ, or f* along one of m directions (k, m) of the teacher's fields, grows faster than a line."""
    value, rays = activation(setting.activation).value, directions / np.linalg.norm(directions, axis=0)
    near, far = (
        [max(abs(value(z)), abs(value(-z))), np.abs(setting.labels(z * np.hstack([rays, -rays]))).max()]
        for z in (10.0, 20.0)
    )
    # from 10 to 20 a line grows twofold, a square fourfold: three is between
    return any(at_20 > 3.0 * at_10 for at_10, at_20 in zip(near, far, strict=True))


def tails(samples: Array) -> Array:
    """The tail index of each row (m, n) of a positive variable, and the share of the largest of its n samples: (m, 2).

    A tail of index k falls as x^(−1/k): it has no variance from k = ½ on, no mean from k = 1 on. The estimate, from the
    √n/2 largest samples, is that of Dekkers, Einmahl and de Haan (Annals of Statistics 17, 1833 (1989)). Light tails
    have indices of zero or less; an index is zero where these samples are zero or equal.
    """
    count = round(0.5 * math.sqrt(samples.shape[1]))
    ordered = np.sort(np.partition(samples, -count - 1, axis=1)[:, -count - 1 :], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(ordered[:, 1:] / ordered[:, :1])
        first, second = excess.mean(axis=1), (excess * excess).mean(axis=1)
        index = first + 1.0 - 0.5 / (1.0 - first * first / second)
        share = ordered[:, -1] / samples.sum(axis=1)
    return np.nan_to_num(np.stack([index, share], axis=1), posinf=0.0)
