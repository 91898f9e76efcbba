"""The diffusion that one-pass SGD follows at large d: the ODE's drift, and the covariance of SGD's increments.

dΩ = Ψ(Ω) dt + √(γ/(pd)) σ(Ω) dB, σσᵀ = Cov of the increment of a step over γ/(pd) (arXiv 2305.18502, eq. 21), for any
activations, widths and second layer, projected for spherical students. By Euler and Maruyama, of weak order 1. The
noise of a step is a sum over a few fresh samples of Gaussian multiples of their increments less their mean: its
covariance is σσᵀ without any bias, and positive semi-definite whatever Ω. A step that leaves Ω ≥ 0 is pulled back.
"""

import numpy as np
from pydantic import Field

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.sde_kernel import sde_steps
from sweeplib.dynamics.step_dynamics import StepDynamics
from sweeplib.maths.overlaps import lower_factors
from sweeplib.problem import Problem

STEPS_A_ROUND = 20_000
"""Steps after which the clock is looked at."""


class SdeOptions(NumericalOptions):
    """How the SDE is integrated: the length of a step in SGD steps, and the samples that make up its noise."""

    step: float = Field(default=1.0, gt=0, le=1e6)
    samples: int = Field(default=2, ge=1, le=1024)


class Sde(StepDynamics):
    """Replicas of the diffusion, one after another; exits are at the resolution of its own steps."""

    name = "sde"
    label = "SDE"
    together = 64
    uses_drifts = True
    Options = SdeOptions
    options: SdeOptions

    def __init__(self, replicas: Replicas, options: SdeOptions) -> None:
        super().__init__(replicas, options)
        self._steps = self.compiled(sde_steps, drifts=self.expectations.drifts)
        k = replicas.k
        self._L_star = np.ascontiguousarray(lower_factors(replicas.Q, replicas.M, replicas.P)[:, :k, :k])
        if replicas.spherical:
            norm = np.sqrt(np.einsum("nii->ni", self.Q))
            self.Q, self.M = self.Q / (norm[:, :, None] * norm[:, None, :]), self.M / norm[:, :, None]
        self._trained = bool((replicas.second_layer_rate > 0).any())

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take the steps up to recording time number `to`, each replica in turn."""
        while (order := self.behind(to)).size:
            for i in order:
                self._take(int(i), int(self.until[i, to]))
            self.stop()
            if self.clock() > deadline:
                self.give_up()

    def _take(self, i: int, until: int) -> None:
        replicas = self.replicas
        count = min(until - int(self.step[i]), max(1, STEPS_A_ROUND // replicas.p**2))
        taken, diverged = self._steps(
            self.Q[i],
            self.M[i],
            self.a[i],
            replicas.P[i],
            replicas.a_star[i],
            self._L_star[i],
            replicas.spherical,
            self._trained,
            replicas.gamma[i] / replicas.p,
            replicas.Delta[i],
            replicas.second_layer_rate[i],
            self.options.step * replicas.step_time[i],
            replicas.step_time[i],
            self.options.samples,
            replicas.keys[i],
            replicas.seeds[i],
            int(self.step[i]),
            count,
            self.targets[i],
            self.exits[i],
            replicas.stop_at_exit,
        )
        self.step[i] += taken
        if diverged:
            self.failed[i] = self.step[i]

    @staticmethod
    def step_length(options: NumericalOptions) -> float:
        """The option `step`."""
        return options.step if isinstance(options, SdeOptions) else 1.0

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Steps, times the drifts, the draws and the products of one."""
        width = problem.p + problem.k
        return time / problem.step_time() * (600.0 + 60.0 * width + 30.0 * problem.p * width**2)


DYNAMICS.register("sde", Sde)
