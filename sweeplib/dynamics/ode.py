"""The deterministic limit of one-pass SGD for d → ∞ at fixed γ/p: the ODE of Saad and Solla (arXiv 2302.05882, eq. 7).

Ṁ = Ψ^M(Ω), Q̇ = Ψ^GF(Ω) + (γ/p) Ψ^Var(Ω), ȧ = ε Ψ^a(Ω) in the time t = νγ/(pd), projected for spherical students.
Integrated with error control; exits are located on the interpolant.
"""

from typing import Any

import numpy as np
from pydantic import Field

from sweeplib.dynamics.dop853 import advance, solutions, tableau
from sweeplib.dynamics.dynamics import DYNAMICS, Array, Dynamics, NumericalOptions
from sweeplib.dynamics.overlap_flow import Systems, pack, pointers, unpack, work_space
from sweeplib.dynamics.replicas import Replicas
from sweeplib.errors import SweeplibError
from sweeplib.maths.expectations import expectations
from sweeplib.problem import Problem

STEPS_A_ROUND = 200
"""Steps of each replica after which the clock is looked at."""


class OdeOptions(NumericalOptions):
    """How the ODE is integrated: its tolerances, and the steps after which a run is called a failure."""

    rtol: float = Field(default=1e-10, ge=1e-13, le=1e-2)
    atol: float = Field(default=1e-12, gt=0, le=1e-2)
    max_steps: int = Field(default=1_000_000, ge=1)


class Ode(Dynamics):
    """The overlaps of each replica on their deterministic trajectory; exits are steps as real numbers."""

    name = "ode"
    label = "ODE"
    together = 256
    stochastic = False
    uses_drifts = True
    Options = OdeOptions
    options: OdeOptions

    def __init__(self, replicas: Replicas, options: OdeOptions) -> None:
        super().__init__(replicas, options)
        pair = expectations(replicas.activation, replicas.teacher_activation)
        self._functions = pointers(pair)
        self._trained = bool((replicas.second_layer_rate > 0).any())
        self._systems = self._constants()
        self._work = work_space(replicas.p, replicas.k)
        start = pair.risks(replicas.Q, replicas.M, replicas.P, replicas.a, replicas.a_star)
        self._targets = (1.0 - replicas.thresholds) * start[:, None]
        states = pack(replicas.Q, replicas.M, replicas.a, replicas.spherical, self._trained)
        self._solutions = solutions(states, len(replicas.thresholds), options.max_steps)
        self._states, self._times = states, np.zeros(len(replicas))

    def _noise(self) -> Array:
        """The factor (n,) of Ψ^Var."""
        return self.replicas.gamma / self.replicas.p

    def _constants(self) -> Systems:
        replicas = self.replicas
        arrays = (self._noise(), replicas.Delta, replicas.second_layer_rate, replicas.P, replicas.a, replicas.a_star)
        return Systems(replicas.spherical, self._trained, *map(np.ascontiguousarray, arrays))

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica to recording time number `to`."""
        until, order = np.ascontiguousarray(self.replicas.times[:, to]), np.flatnonzero(self.running)
        while not self._round(order, until):
            order = order[self._solutions.left[order] > 0]
            if not order.size:
                break
            if self.clock() > deadline:
                self.timed_out |= self.running & (self._times < until)
                break
        self._check_steps(until)
        self.diverged = self._solutions.failed.copy()
        self.running &= self._times == until
        for i in range(len(self.replicas)):
            unpack(self._states[i], self.replicas.spherical, self._trained, self.Q[i], self.M[i], self.a[i])

    def _round(self, order: Any, until: Array) -> bool:
        """Take some steps; say whether all of `order` came as far as they will."""
        options = self.options
        return bool(
            advance(
                *self._functions,
                order,
                until,
                STEPS_A_ROUND,
                self.replicas.stop_at_exit,
                options.rtol,
                options.atol,
                tableau(),
                self._solutions,
                self._targets,
                self._states,
                self._times,
                self._systems,
                self._work,
            )
        )

    def _check_steps(self, until: Array) -> None:
        spent = self.running & (self._solutions.left == 0) & (self._solutions.time < until) & ~self._solutions.failed
        if spent.any():
            time = self._solutions.time[spent][0]
            raise SweeplibError(f"the ODE needs more than max_steps steps; it is at time {time:.6g}")

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds), NaN where there was none."""
        passages = self._solutions.passages
        return np.where(passages <= self._times[:, None], passages, np.nan)

    @property
    def exit_steps(self) -> Array:
        """The exits in SGD steps, t p d/γ, not rounded."""
        return self.exit_time / self.replicas.step_time[:, None]

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return self._times.copy()

    @property
    def end_steps(self) -> Array:
        """The last time in SGD steps, t p d/γ, not rounded."""
        return self._times / self.replicas.step_time

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Right-hand sides, twelve a step, five steps a unit of time, times the entries of their fourth moments."""
        width = problem.p + problem.k
        return (60.0 * time + 120.0) * (2000.0 + 10.0 * problem.p**2 * width**2)


DYNAMICS.register("ode", Ode)
