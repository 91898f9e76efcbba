"""The moments of one SGD step that enter the means at first order in 1/d: covariance of increments, and drifts.

A step takes the time T = γ/(pd). Divided by T, its increments are X_M,ir = c_i λ*_r and
X_Q,ij = c_i λ_j + c_j λ_i + (γ/p) ‖x‖² c_i c_j of the overlaps and X_a,i = ε σ(λ_i) E of the second layer, with
c_i = a_i σ'(λ_i) E and the displacement E = f* + √Δ z − f. The fields are L u with u ~ N(0, I_{p+k}), and given u the
mean of ‖x‖² is 1 + (|u|² − p − k)/d. The moments of X are sums over a fixed set of n nodes: values of u and of the
label noise z. Arrays of Q hold the upper triangle, entries (i, j) with i ≤ j; those of M all entries (i, r).

The increments of a batch of n_b samples are the mean over the samples of X, with γ/n_b in place of γ, and
T (1 − 1/n_b) gᵢ·gⱼ in X_Q,ij, gᵢ = E[c_i u], from the products of different samples.

With decay weights are multiplied by 1 − λT first: X_M has −λM beside it, and X_Q −2λQ and, from the second order,
T (λ²Q − λ (c_i λ_j + c_j λ_i)).

Noise of the weights at the temperature T_w adds 2 T_w I to X_Q. With [L*, 0] and L, the rows of the teacher and of the
student in the frame of the fields, and N of N(0, 1) entries, the noise √(2 T_w T/d) N of the rows adds
√(2 T_w/(d T)) (N Lᵀ + L Nᵀ) to X_Q and √(2 T_w/(d T)) N [L*, 0]ᵀ to X_M.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.maths.overlaps import lower_factors
from sweeplib.networks.numerics.compiled import function_values

MOST_EXACT_NODES = 20_000
"""The largest number of nodes of a product rule that is exact for polynomials."""
NODES_AN_AXIS = {1: 24, 2: 24, 3: 16}
"""Nodes per axis by the number of axes, for other activations; more axes use quasi-random points."""
LOG2_POINTS = 12
"""Of the number of quasi-random points, without mirror images."""


class Nodes(NamedTuple):
    """Nodes u (dimension, n) and z (n,) with weights (n,), for means over independent N(0, 1)."""

    u: Array
    z: Array
    weights: Array


@cache
def nodes(dimension: int, an_axis: int | None, *, noisy: bool) -> Nodes:
    """The nodes for means over u in `dimension` = p + k numbers, and over z if labels are `noisy`.

    an_axis : number of nodes in each direction of a product of Gauss-Hermite rules, None for Sobol' points.
    E is linear in z and enters up to its fourth power, for which three nodes z are exact; one suffices without noise.
    """
    u, weights = _products(dimension, an_axis) if an_axis else _quasi_random(dimension)
    z, z_weights = map(np.array, gauss.normal(3 if noisy else 1))
    return Nodes(np.tile(u, len(z)), np.repeat(z, len(weights)), np.multiply.outer(z_weights, weights).ravel())


def _products(dimension: int, an_axis: int) -> tuple[Array, Array]:
    """Nodes (dimension, n) and weights (n,) of all combinations of `an_axis` Gauss-Hermite nodes in each direction."""
    points, factor = map(np.array, gauss.normal(an_axis))
    grids = np.meshgrid(*[points] * dimension, indexing="ij")
    weights = np.prod(np.meshgrid(*[factor] * dimension, indexing="ij"), axis=0)
    return np.stack([grid.ravel() for grid in grids]), weights.ravel()


def _quasi_random(dimension: int) -> tuple[Array, Array]:
    """Nodes (dimension, n) and equal weights (n,): scrambled Sobol' points as normal numbers, with mirror images."""
    # by the name `seed`, which SciPy before 1.15 has too; a generator is then taken as `rng` takes it
    sobol = scipy.stats.qmc.Sobol(dimension, seed=np.random.default_rng(0))
    points = scipy.special.ndtri(sobol.random_base2(LOG2_POINTS)).T
    # with mirror images the means of odd functions are zero, as they should be
    points = np.concatenate([points, -points], axis=1)
    return points, np.full(points.shape[1], 1.0 / points.shape[1])


class StepMoments:
    """The moments of a step of replica i, at any state of its overlaps.

    trained : whether the second layer is part of the state.
    size : the length of a flat state: Q's upper triangle, without the diagonal on the sphere; M; and a if trained.
    """

    def __init__(self, replicas: Replicas, i: int, *, trained: bool) -> None:
        self._student = activation(replicas.activation)
        self._target, self._teacher = replicas.target, replicas.teacher_activation
        self._spherical, self._trained = replicas.spherical, trained
        self._noise_factor = float(replicas.numbers.noise[i])  # γ/(p n_b)
        # 1/n_b, the share that products of a sample with itself have among those of a batch
        self._share, self._decay = 1.0 / replicas.batch_size, float(replicas.numbers.weight_decay[i])
        self._heat = float(replicas.numbers.temperature[i])
        # 1/(dT), T the time of a step: noise of the weights has it per time, and rows over √d
        self._per_step = 1.0 / float(replicas.d[i] * replicas.step_time[i])
        self._rate, self._P, self._a_star = replicas.numbers.second_layer_rate[i], replicas.P[i], replicas.a_star[i]
        self._u, z, self._weights = nodes(
            replicas.p + replicas.k, self._nodes_an_axis(replicas.p + replicas.k), noisy=bool(replicas.Delta[i] > 0)
        )
        self._label_noise = np.sqrt(replicas.Delta[i]) * z
        self._rows, self._columns = np.triu_indices(replicas.p)
        self._upper = self._rows < self._columns if replicas.spherical else self._rows <= self._columns
        self.size = int(self._upper.sum()) + replicas.p * (replicas.k + trained)

    def _nodes_an_axis(self, dimension: int) -> int | None:
        """The number of nodes in each direction that make means of products of four c_i exact, or nearly so.

        They are exact for polynomials: c_i has the degree of σ' plus the larger of those of σ and f*.
        None if a product rule would have too many nodes.
        """
        student = self._student.hermite
        teacher = activation(self._teacher).hermite if self._target == "committee" else None
        if student is not None and teacher is not None:
            exact = 2 * (len(student) - 2 + max(len(student), len(teacher)) - 1) + 1
            if exact**dimension <= MOST_EXACT_NODES:
                return exact
        return NODES_AN_AXIS.get(dimension)

    def at(self, Q: Array, M: Array, a: Array) -> tuple[Array, Array]:
        """The h (size,) and S (size, size) at Q (p, p), M (p, k), a (p,), of flat states after any projection.

        T h is what the mean of X has beyond the slope of the ODE; S is the covariance of X.
        """
        lam, displacement, lam_star = self._fields(Q, M, a)
        c = a[:, None] * function_values(self._student.derivative, lam) * displacement
        # the increments X (entries, n) of the overlaps at all nodes; of Q the upper triangle
        rows, columns = self._rows, self._columns
        squares = c[rows] * c[columns]
        flow, decay = c[rows] * lam[columns] + c[columns] * lam[rows], self._decay
        X_Q = flow + self._noise_factor * squares - 2.0 * decay * Q[rows, columns][:, None]
        X_Q += 2.0 * self._heat * (rows == columns)[:, None]
        X_M = (c[:, None] * lam_star).reshape(M.size, -1) - decay * M.reshape(-1, 1)
        X_a = np.empty((0, c.shape[1]))
        if self._trained:
            X_a = self._rate * function_values(self._student.value, lam) * displacement
        # T h: the mean of ‖x‖² given u is 1 + excess/d; products of different samples; decay at second order
        excess = (self._u**2).sum(axis=0) - len(self._u)
        gradient = (c * self._weights) @ self._u.T
        drift_Q = self._share * squares @ (self._weights * excess)
        drift_Q += (1.0 - self._share) * (gradient @ gradient.T)[rows, columns]
        drift_Q += decay * (decay * Q[rows, columns] - flow @ self._weights)
        drift_M = np.zeros(M.size)
        # terms of each number of N, whose covariance is that of noise of the weights
        noise_Q, noise_M = self._noise(Q, M) if self._heat > 0.0 else (np.zeros((len(X_Q), 1)), np.zeros((len(X_M), 1)))
        if self._spherical:
            # the projection after the step: what it adds at second order, to X and to the noise, and at first order
            second_Q, second_M = self._second_order(Q, M, X_Q, X_M)
            of_noise = self._products_of(Q, M, noise_Q, noise_M)
            second_Q, second_M = second_Q + of_noise[0].sum(axis=1), second_M + of_noise[1].sum(axis=1)
            X_Q, X_M = self._projected(Q, M, X_Q, X_M)
            noise_Q, noise_M = self._projected(Q, M, noise_Q, noise_M)
            drift_Q, drift_M = (array[:, 0] for array in self._projected(Q, M, drift_Q[:, None], drift_M[:, None]))
            drift_Q, drift_M = drift_Q + second_Q, drift_M + second_M
        X = np.concatenate([X_Q[self._upper], X_M, X_a])
        mean = X @ self._weights
        covariance = self._share * ((X * self._weights) @ X.T - np.outer(mean, mean))
        noise = np.concatenate([noise_Q[self._upper], noise_M, np.zeros((len(X_a), noise_M.shape[1]))])
        covariance += noise @ noise.T
        return np.concatenate([drift_Q[self._upper], drift_M, np.zeros(len(X_a))]), covariance

    def _fields(self, Q: Array, M: Array, a: Array) -> tuple[Array, Array, Array]:
        """λ (p, n), the displacement E (n,) and λ* (k, n) at the nodes."""
        p, k = M.shape
        fields = lower_factors(Q, M, self._P) @ self._u
        lam_star, lam = fields[:k], fields[k:]
        label = labels(self._target, self._teacher, lam_star, self._a_star) + self._label_noise
        return lam, label - a @ function_values(self._student.value, lam) / p, lam_star

    def _noise(self, Q: Array, M: Array) -> tuple[Array, Array]:
        """What each entry of N (p, p + k), the noise of the weights, adds to X_Q and to X_M: (entries, p (p + k))."""
        (p, k), factor = M.shape, lower_factors(Q, M, self._P)
        # four axes: the row and the column of Q or M, and those of N
        units = np.sqrt(2.0 * self._heat * self._per_step) * np.eye(p)
        of_Q = units[:, None, :, None] * factor[None, k:, None, :]
        of_Q = (of_Q + of_Q.swapaxes(0, 1))[self._rows, self._columns]
        of_M = units[:, None, :, None] * factor[None, :k, None, :]
        return of_Q.reshape(len(self._rows), -1), of_M.reshape(p * k, -1)

    def _projected(self, Q: Array, M: Array, X_Q: Array, X_M: Array) -> tuple[Array, Array]:
        """Increments (entries, n) after the projection, at first order.

        X_Q,ij − Q_ij (X_Q,ii + X_Q,jj)/2 and X_M,ir − M_ir X_Q,ii/2.
        """
        rows, columns, k = self._rows, self._columns, M.shape[1]
        norms = X_Q[rows == columns]
        X_Q = X_Q - 0.5 * Q[rows, columns][:, None] * (norms[rows] + norms[columns])
        return X_Q, X_M - 0.5 * M.reshape(-1, 1) * np.repeat(norms, k, axis=0)

    def _second_order(self, Q: Array, M: Array, X_Q: Array, X_M: Array) -> tuple[Array, Array]:
        """The means of the second-order terms of the projection after increments X (entries, n), over T², of Q and M.

        Different samples of a batch are independent: the mean of a product of their increments is that of the means.
        So a share 1/n_b of the terms is of one sample, the rest of two.
        """
        of_one = (terms @ self._weights for terms in self._products_of(Q, M, X_Q, X_M))
        means = ((X @ self._weights)[:, None] for X in (X_Q, X_M))
        of_two = (terms[:, 0] for terms in self._products_of(Q, M, *means))
        second_Q, second_M = (
            self._share * first + (1.0 - self._share) * second for first, second in zip(of_one, of_two, strict=True)
        )
        return second_Q, second_M

    def _products_of(self, Q: Array, M: Array, X_Q: Array, X_M: Array) -> tuple[Array, Array]:
        """The second-order terms (entries, n), of Q and M, of the projection after increments X (entries, n)."""
        rows, columns, k = self._rows, self._columns, M.shape[1]
        norms = X_Q[rows == columns]
        first, second, of_M = norms[rows], norms[columns], np.repeat(norms, k, axis=0)
        second_Q = -0.5 * X_Q * (first + second)
        second_Q += Q[rows, columns][:, None] * (0.375 * (first**2 + second**2) + 0.25 * first * second)
        second_M = -0.5 * X_M * of_M + 0.375 * M.reshape(-1, 1) * of_M**2
        return second_Q, second_M
