"""The deterministic limit of one-pass SGD for d → ∞ at fixed γ/p: the ODE of Saad and Solla (arXiv 2302.05882, eq. 7).

Ṁ = Ψ^M(Ω), Q̇ = Ψ^GF(Ω) + (γ/p) Ψ^Var(Ω) in the time t = νγ/(pd), projected for spherical students. Integrated by scipy
with error control; exits are located on the dense output.
"""

import functools
from typing import Literal

import numpy as np
from pydantic import Field

from sweeplib.dynamics.dynamics import DYNAMICS, Array, Dynamics, NumericalOptions
from sweeplib.dynamics.overlap_flow import flow, pack, state_risk, unpack
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.trajectory import Trajectory
from sweeplib.maths.compiled import specialised
from sweeplib.maths.expectations import expectations
from sweeplib.problem import Problem


class OdeOptions(NumericalOptions):
    """How the ODE is integrated: scipy's method and tolerances, and the steps after which a run is called a failure."""

    method: Literal["RK45", "DOP853", "Radau", "BDF"] = "DOP853"
    rtol: float = Field(default=1e-10, ge=1e-13, le=1e-2)
    atol: float = Field(default=1e-12, gt=0, le=1e-2)
    max_steps: int = Field(default=1_000_000, ge=1)


class Ode(Dynamics):
    """The overlaps of each replica on their deterministic trajectory; exits are steps as real numbers."""

    name = "ode"
    label = "ODE"
    together = 256
    Options = OdeOptions
    options: OdeOptions

    def __init__(self, replicas: Replicas, options: OdeOptions) -> None:
        super().__init__(replicas, options)
        pair = expectations(replicas.activation, replicas.teacher_activation)
        self._flow = specialised(flow, drifts=pair.drifts, unpacked=unpack)
        self._risk = specialised(state_risk, population_risk=pair.risk, unpacked=unpack)
        start = pair.risks(replicas.Q, replicas.M, replicas.P, replicas.a, replicas.a_star)
        targets = (1.0 - replicas.thresholds) * start[:, None]
        self._trajectories = [self._trajectory(i, targets[i]) for i in range(len(replicas))]

    def _trajectory(self, i: int, targets: Array) -> Trajectory:
        import scipy.integrate

        replicas, options = self.replicas, self.options
        spherical, noise, Delta = replicas.spherical, replicas.gamma[i] / replicas.p, replicas.Delta[i]
        P, a, a_star = (np.ascontiguousarray(array[i]) for array in (replicas.P, replicas.a, replicas.a_star))
        solver = getattr(scipy.integrate, options.method)(
            lambda _, state: self._flow(state, spherical, noise, Delta, P, a, a_star),
            0.0,
            pack(replicas.Q[i], replicas.M[i], spherical),
            np.inf,
            rtol=options.rtol,
            atol=options.atol,
        )
        risk = functools.partial(self._risk, spherical=spherical, P=P, a=a, a_star=a_star)
        return Trajectory(solver, risk, targets, replicas.stop_at_exit, options.max_steps)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica to recording time number `to`."""
        for i in np.flatnonzero(self.running):
            trajectory, until = self._trajectories[i], float(self.replicas.times[i, to])
            trajectory.advance(until, lambda: self.clock() > deadline)
            self.diverged[i] = trajectory.diverged
            self.timed_out[i] = trajectory.time < until and not trajectory.over
            self.running[i] = trajectory.time == until
            unpack(trajectory.state, self.replicas.spherical, self.Q[i], self.M[i])

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds), NaN where there was none."""
        return np.array([trajectory.passages for trajectory in self._trajectories])

    @property
    def exit_steps(self) -> Array:
        """The exits in SGD steps, t p d/γ, not rounded."""
        return self.exit_time / self.replicas.step_time[:, None]

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return np.array([trajectory.time for trajectory in self._trajectories])

    @property
    def end_steps(self) -> Array:
        """The last time in SGD steps, t p d/γ, not rounded."""
        return self.end_time / self.replicas.step_time

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Right-hand sides, twelve a step, five steps a unit of time, times the entries of their fourth moments."""
        width = problem.p + problem.k
        return (60.0 * time + 120.0) * (2000.0 + 10.0 * problem.p**2 * width**2)


DYNAMICS.register("ode", Ode)
