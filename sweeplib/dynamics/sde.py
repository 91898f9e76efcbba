"""The diffusion that one-pass SGD follows at large d, with the corrections to it of the next order in 1/d.

dΩ = Ψ(Ω) dt + √T σ(Ω) dB, T = γ/(pd), σσᵀ = Cov of the increment of an SGD step over T (arXiv 2305.18502, eq. 21), for
any activations, widths and second layer, projected for spherical students. By Euler and Maruyama, of weak order 1.

The mean of a step is SGD's to relative order 1/d: E[‖x‖² c_i c_j] is Ψ^Var at Ω times 1 + 2/d, and spherical students
are divided by their norms after the step, noise included, which has Itô's terms in it. The noise is a sum over a few
fresh samples of their increments less the mean, each times a Gaussian number: its covariance is σσᵀ without any bias,
and its third cumulants are those of SGD's steps. A step that leaves Ω ≥ 0 is reflected.
"""

import math

import numpy as np
from pydantic import Field

from sweeplib.dynamics.dynamics import DYNAMICS, Array, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.step_dynamics import StepDynamics
from sweeplib.kernels.lanes import LANES
from sweeplib.kernels.sde import sde_round
from sweeplib.maths.overlaps import lower_factors
from sweeplib.numerics.compiled import specialised
from sweeplib.problem import Problem

STEPS_A_ROUND = 512
"""Steps after which replicas that have stopped give up their lanes and the clock is looked at; fewer at large p."""


class SdeOptions(NumericalOptions):
    """How the SDE is integrated: the length of a step in SGD steps, and the samples that make up its noise."""

    step: float = Field(default=1.0, gt=0, le=1e6)
    samples: int = Field(default=2, ge=1, le=1024)


class Sde(StepDynamics):
    """Replicas of the diffusion, the last axis of the state arrays; exits are at the resolution of its own steps."""

    name = "sde"
    label = "SDE"
    together = 1024
    lanes = LANES
    uses_drifts = True
    Options = SdeOptions
    options: SdeOptions

    def __init__(self, replicas: Replicas, options: SdeOptions) -> None:
        super().__init__(replicas, options)
        self._round = self.compiled(sde_round, lane_drifts=specialised(self.expectations.of_many(replicas.p)))
        k = replicas.k
        if replicas.spherical:
            norm = np.sqrt(np.einsum("nii->ni", self.Q))
            self.Q, self.M = self.Q / (norm[:, :, None] * norm[:, None, :]), self.M / norm[:, :, None]
        L_star = lower_factors(replicas.Q, replicas.M, replicas.P)[:, :k, :k]
        self._state = _lanes_last(self.Q), _lanes_last(self.M), _lanes_last(replicas.P), _lanes_last(L_star)
        self._a = replicas.a.T.copy()
        self._multiplier = multiplier(self.options.step, self.options.samples)
        self._constants = (
            np.ascontiguousarray(replicas.a_star.T),
            replicas.gamma / replicas.p,
            replicas.Delta,
            replicas.second_layer_rate,
            self.options.step * replicas.step_time,
            replicas.step_time,
            replicas.d.astype(np.float64),
            replicas.keys,
            replicas.seeds,
        )

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Run rounds of steps until every running replica is at recording time number `to`."""
        until = np.ascontiguousarray(self.until[:, to])
        while (order := self.behind(to)).size:
            self._round(
                order,
                max(1, STEPS_A_ROUND // self.replicas.p**2),
                self.replicas.spherical,
                self.options.samples,
                *self._multiplier,
                *self._state,
                self._a,
                *self._constants,
                until,
                self.targets,
                self.step,
                self.exits,
                self.failed,
            )
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        self.Q, self.M = (np.ascontiguousarray(np.moveaxis(part, -1, 0)) for part in self._state[:2])
        self.a = self._a.T.copy()

    @staticmethod
    def step_length(options: NumericalOptions) -> float:
        """The option `step`."""
        return options.step if isinstance(options, SdeOptions) else 1.0

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Steps, times the drifts, the draws and the products of one."""
        width = problem.p + problem.k
        return time / problem.step_time() * (600.0 + 60.0 * width + 30.0 * problem.p * width**2)


def multiplier(step: float, samples: int) -> tuple[float, float]:
    """(α, β): what a sample's increment less its mean is multiplied with is η = α + β ξ, ξ ~ N(0, 1).

    The sum over the samples has the covariance and the third cumulants of `step` SGD steps where E η² = r and E η³ = r,
    r = step/samples: α² + β² = r and 3 r α − 2 α³ = r, of which the smallest root is α = √(2r) sin φ,
    sin 3φ = 1/√(2r). For r < ½ there is none; 3φ = π/2 then gives most of the third cumulants, √(2r) of them.
    """
    ratio = step / samples
    root = math.sqrt(2.0 * ratio)
    share = root * math.sin(math.asin(min(1.0, 1.0 / root)) / 3.0)
    return share, math.sqrt(ratio - share * share)


def _lanes_last(part: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(part, 0, -1))


DYNAMICS.register("sde", Sde)
