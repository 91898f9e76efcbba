"""The mean of the overlaps of SGD at finite d, to first order in 1/d: the ODE with its fluctuations.

Let μ be the mean of the state and TΣ its covariance, T = γ/(pd) the time of a step; b is the slope of the ODE with
derivatives b' and b'', and h and S are the moments of a step (`step_moments`). Then

    dμ/dt = b + T (½ b'':Σ + h − ½ b' b),    dΣ/dt = b' Σ + Σ b'ᵀ + S,    E f = f(μ) + ½ T f'':Σ,

up to terms of order 1/d². The term with b' b accounts for steps of length T in place of continuous time.
Derivatives are differences of the compiled slope along the principal axes of Σ, with displacements of at most one
standard deviation.

A state of the ODE has m numbers. `equations` are the compiled `Calls` of the ODE: `slope_of` fills the time derivative
of a state of system i, `level_of` returns its risk. `order` are the numbers, of n, of the solutions of a call.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.step_moments import StepMoments
from sweeplib.networks.kernels.overlap_flow import unpack
from sweeplib.networks.numerics.cache import cached
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.numerics.integrators.stiff import StiffSolution, StiffSystem

LEAST_DISPLACEMENT, LARGEST_DISPLACEMENT = 1e-6, 3e-3
"""Bounds of the lengths of displacements of a state in difference quotients."""
FINEST, FINEST_ABSOLUTE = 1e-8, 1e-10
"""The smallest relative and absolute tolerances of the integrator that the differences allow."""
NEGLIGIBLE = 1e-7
"""A mean risk below zero by less than this, times one plus the risk at the start, is zero to rounding and tolerance."""
STEPS_A_ROUND = 5
"""Number of steps of a solution after which its risk and the clock are read."""


_kernel = partial(cached, partial(numba.njit, error_model="numpy", fastmath={"contract"}, nogil=True))


@_kernel
def fill_slopes(equations, i, states, out):  # type: ignore[no-untyped-def]
    """Fill out (n, m) with the time derivatives of states (n, m) of system i."""
    for n in range(states.shape[0]):
        equations.slope_of(i, states[n], equations.arguments, out[n])


@_kernel
def fill_risks(equations, i, states, out):  # type: ignore[no-untyped-def]
    """Fill out (n,) with the risks of states (n, m) of system i."""
    for n in range(states.shape[0]):
        out[n] = equations.level_of(i, states[n], equations.arguments)


class Ensemble(NamedTuple):
    """States (2m + 1, m) with weights (2m + 1,), whose weighted mean of a function is its mean to second order.

    states (2m + 1, m) : the mean, the mean plus each displacement, and the mean minus each displacement.
    weights (2m + 1,) : weights of the states.
    displacements (m, m) : one displacement per row, along a principal axis of the covariance.
    lengths, variances (m,) : lengths of the displacements, variances along them.
    """

    states: Array
    weights: Array
    displacements: Array
    lengths: Array
    variances: Array


def ensemble(mean: Array, covariance: Array) -> Ensemble:
    """The ensemble of a mean (m,) and a covariance (m, m).

    A displacement is one standard deviation, clipped if that is large, so that the states stay close to Ω ≥ 0. The
    weight of the mean may be negative.
    """
    variances, axes = np.linalg.eigh(covariance)
    # rounding leaves some variances below zero
    lengths = np.clip(np.sqrt(np.maximum(variances, 0.0)), LEAST_DISPLACEMENT, LARGEST_DISPLACEMENT)
    displacements = lengths[:, None] * axes.T
    half = 0.5 * variances / lengths**2
    # the weight of the mean is negative where displacements are cut to less than a standard deviation
    # decisions: Means at finite d are an option of the ODE
    weights = np.concatenate([[1.0 - 2.0 * half.sum()], half, half])
    states = np.ascontiguousarray(np.concatenate([mean[None], mean + displacements, mean - displacements]))
    return Ensemble(states, weights, displacements, lengths, variances)


class MeanSystem(StiffSystem):
    """Mean and covariance of the overlaps of replica i as one system of equations.

    Its state is μ (m,), then the upper triangle of Σ row by row. `evaluations` counts the right-hand sides of the ODE.
    moments : h and S of a step, as functions of the overlaps. step_time : T.
    """

    def __init__(self, equations: Equations, i: int, moments: StepMoments, step_time: float) -> None:
        super().__init__(equations, i)
        self._moments, self._step_time, self._size = moments, step_time, moments.size
        # `_jacobian` is b' at the state of the last slope
        self._triangle = np.triu_indices(self._size)
        self._jacobian = np.empty((self._size, self._size))

    def start(self, mean: Array) -> Array:
        """The state of a mean (m,) that does not fluctuate."""
        return np.concatenate([mean, np.zeros(len(self._triangle[0]))])

    def ensemble(self, state: Array) -> Ensemble:
        """Return the ensemble around the mean that a state has: its covariance is the state's spread times T."""
        mean, spread = self._split(state)
        return ensemble(mean, self._step_time * spread)

    def slope(self, _: float, state: Array) -> Array:
        """The time derivative of a state. That of the last state is kept, with its `_jacobian`, which comes for free.

        The integrator asks for the slope and then for the Jacobian of one state.
        """
        if not np.array_equal(state, self._last[0]):
            self._last = state.copy(), self._new_slope(state)
        return self._last[1].copy()

    def jacobian(self, time: float, state: Array) -> Array:
        """The derivative of the slope by the state, without the coupling of μ and Σ: enough for Newton's method.

        Its blocks are b' for μ, and Σ ↦ b' Σ + Σ b'ᵀ for the upper triangle of Σ.
        """
        self.slope(time, state)  # sets `_jacobian` to b' at the mean of this state
        size, (rows, columns) = self._size, self._triangle
        units = np.zeros((len(rows), size, size))
        units[np.arange(len(rows)), rows, columns] = units[np.arange(len(rows)), columns, rows] = 1.0
        images = self._jacobian @ units
        images += images.transpose(0, 2, 1)
        jacobian = np.zeros((size + len(rows), size + len(rows)))
        jacobian[:size, :size], jacobian[size:, size:] = self._jacobian, images[:, rows, columns].T
        return jacobian

    def level(self, state: Array) -> float:
        """The mean risk, to second order in the fluctuations."""
        if not np.isfinite(state).all():
            return np.nan
        ensemble = self.ensemble(state)
        risks = np.empty(len(ensemble.weights))
        fill_risks(self._equations.calls, self._i, ensemble.states, risks)
        return float(ensemble.weights @ risks)

    def _split(self, state: Array) -> tuple[Array, Array]:
        """The μ (m,) and Σ (m, m) of a state."""
        spread = np.empty((self._size, self._size))
        spread[self._triangle] = spread[self._triangle[::-1]] = state[self._size :]
        return state[: self._size], spread

    def _new_slope(self, state: Array) -> Array:
        """Return dμ/dt and the upper triangle of dΣ/dt, as in the module's equations; set `_jacobian` to b'.

        First and second differences of b come from pairs of states at the ends of the ensemble's displacements.
        """
        if not np.isfinite(state).all():
            return np.full_like(state, np.nan)
        (mean, spread), ensemble = self._split(state), self.ensemble(state)
        slopes = np.empty_like(ensemble.states)
        fill_slopes(self._equations.calls, self._i, ensemble.states, slopes)
        self.evaluations += len(slopes)
        slope, forth, back = slopes[0], slopes[1 : self._size + 1], slopes[self._size + 1 :]
        curvature = 0.5 * (ensemble.variances / ensemble.lengths**2) @ (forth + back - 2.0 * slope)
        J = self._jacobian = ((0.5 * (forth - back)).T / ensemble.lengths**2) @ ensemble.displacements
        drift, covariance = self._moments.at(*self._overlaps(mean))
        mean_slope = slope + curvature + self._step_time * (drift - 0.5 * J @ slope)
        flow = J @ spread
        return np.concatenate([mean_slope, (flow + flow.T + covariance)[self._triangle]])

    def _overlaps(self, mean: Array) -> tuple[Array, Array, Array]:
        """Q (p, p), M (p, k) and a (p,) of a mean state (m,), in work arrays."""
        systems, (Q, M, a, *_) = self._equations.systems, self._equations.work
        a[:] = systems.a[self._i]
        unpack(mean, systems.spherical, systems.trained, Q, M, a)
        return Q, M, a


class MeanIntegration:
    """n solutions for mean and covariance, with the attributes and methods of `Integration`, in whose place it stands.

    A solution whose mean risk becomes negative has failed, as its fluctuations have grown too large for the expansion:
    it ends at the end of the round before.

    starts (n, m) : the states at time zero. ends (n,) : the latest times. rtol, atol (n,) : tolerances.
    targets (n, thresholds) : mean risks whose passages to note. max_steps : of each solution.
    """

    def __init__(
        self,
        systems: list[MeanSystem],
        starts: Array,
        ends: Array,
        *,
        rtol: Array,
        atol: Array,
        targets: Array,
        max_steps: int,
    ) -> None:
        self._systems, self._max_steps = systems, max_steps
        self.passages, self.passage_rates = np.full(targets.shape, np.inf), np.full(targets.shape, np.nan)
        self.states = np.array([system.start(mean) for system, mean in zip(systems, starts, strict=True)])
        passing = np.repeat(self.states[:, None], targets.shape[1], axis=1)
        self.times = np.zeros(len(systems))
        atol = np.maximum(atol, FINEST_ABSOLUTE)
        self._solutions = [
            StiffSolution(system, 0.0, self.states[i], ends[i], rtol[i], atol[i], *noted)
            for i, (system, *noted) in enumerate(
                zip(systems, targets, self.passages, self.passage_rates, passing, strict=True)
            )
        ]
        self.failed = np.zeros(len(systems), dtype=bool)
        self._least_risks = -NEGLIGIBLE * (1.0 + self.risks)  # a solution with a lower mean risk has failed

    @property
    def spent(self) -> NDArray[np.bool_]:
        """Which solutions (n,) may take no further step."""
        return np.array([solution.steps >= self._max_steps for solution in self._solutions])

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """The number of right-hand sides of the ODE evaluated so far (n,)."""
        return np.array([system.evaluations for system in self._systems])

    @property
    def risks(self) -> Array:
        """The mean risks (n,)."""
        return np.array([system.level(state) for system, state in zip(self._systems, self.states, strict=True)])

    def levels(self, order: NDArray[np.intp]) -> Array:
        """The mean risks of the solutions with the numbers `order`, one each."""
        return np.array([self._systems[i].level(self.states[i]) for i in order.tolist()])

    def ensembles(self) -> tuple[Array, Array]:
        """States (n, 2m + 1, m) and weights (n, 2m + 1): a function's mean now is its weighted mean over them."""
        several = [system.ensemble(state) for system, state in zip(self._systems, self.states, strict=True)]
        return np.array([mean.states for mean in several]), np.array([mean.weights for mean in several])

    def advance(self, order: NDArray[np.intp], until: Array, *, stops: bool, late: Callable[[], bool]) -> None:
        """Bring the solutions in `order` to the times `until` (n,), or to failure or their last step, if not `late`.

        With `stops` a solution goes no further than its last passage.
        """
        for i in order.tolist():
            while not self._round(i, until[i], stops=stops):
                if late():
                    return

    def _round(self, i: int, until: float, *, stops: bool) -> bool:
        """Take up to `STEPS_A_ROUND` steps of solution i, to the time `until`; return whether it came to its end."""
        solution, system = self._solutions[i], self._systems[i]
        solution.advance(until, min(STEPS_A_ROUND, self._max_steps - solution.steps), stops=stops)
        # not `<`, which is false for NaN
        if not system.level(solution.state) >= self._least_risks[i]:
            self.failed[i] = True
            return True
        self.failed[i] = solution.failed
        end = min(until, self.passages[i].max(initial=-np.inf)) if stops else until
        self.times[i] = min(solution.time, end)
        self.states[i] = solution.at(self.times[i])
        return bool(self.times[i] >= end or self.failed[i] or solution.steps >= self._max_steps)
