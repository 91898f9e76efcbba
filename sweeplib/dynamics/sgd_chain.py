"""One-pass SGD by its exact overlap chain: the law of the overlaps, at a cost that does not depend on d.

For fresh Gaussian samples the overlaps are a Markov chain. Carry the factor Ω = L Lᵀ, teacher rows first,
L = [[L*, 0], [A, B]] with B lower triangular. In the frame of its rows a sample √d x has coordinates u* (k), w (p) and,
out of their span, a component of length s, s² ~ χ²(d−p−k). The local fields are L (u*, w); with
c_i = (γ/(pd)) a_i σ'(λ_i) E a step is A += c u*ᵀ and B ← a lower triangular factor of [B + c wᵀ, s c]. Projection
divides rows by their norms. M = A L*ᵀ and Q = A Aᵀ + B Bᵀ; neither is ever factored, so units may align.
"""

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.step_dynamics import StepDynamics
from sweeplib.errors import InputError
from sweeplib.kernels.chain import chain_round
from sweeplib.kernels.lanes import LANES
from sweeplib.maths.overlaps import lower_factors
from sweeplib.problem import Problem

Array = NDArray[np.float64]

STEPS_A_ROUND = 512
"""Steps after which replicas that have stopped give up their lanes."""


class SgdChain(StepDynamics):
    """Replicas of the overlap chain; the replica is the last axis of the state arrays, as the kernel wants it."""

    name = "sgd_chain"
    label = "SGD (overlap chain)"
    together = 1024
    lanes = LANES

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        k = replicas.k
        self._round = self.compiled(chain_round)
        factor = np.moveaxis(lower_factors(replicas.Q, replicas.M, replicas.P), 0, -1)
        self._L_star = np.ascontiguousarray(factor[:k, :k])
        self._A, self._B = np.ascontiguousarray(factor[k:, :k]), np.ascontiguousarray(factor[k:, k:])
        self._a = replicas.a.T.copy()
        self._constants = (
            np.ascontiguousarray(replicas.a_star.T),
            replicas.step_time,
            replicas.second_layer_rate * replicas.step_time,
            np.sqrt(replicas.Delta),
            (replicas.d - replicas.p - k).astype(np.float64),
            replicas.keys,
            replicas.seeds,
        )

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Run rounds of steps until every running replica is at recording time number `to`."""
        until = np.ascontiguousarray(self.until[:, to])
        while (order := self.behind(to)).size:
            self._round(
                order,
                STEPS_A_ROUND,
                self.replicas.spherical,
                self._A,
                self._B,
                self._L_star,
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
        self._observe()

    def _observe(self) -> None:
        A, B, L_star = (np.ascontiguousarray(np.moveaxis(part, -1, 0)) for part in (self._A, self._B, self._L_star))
        self.a = self._a.T.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # in runs that diverged, and only there
            self.M = A @ L_star.transpose(0, 2, 1)
            self.Q = A @ A.transpose(0, 2, 1) + B @ B.transpose(0, 2, 1)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Steps, times the draws, the fields and the rotations of one."""
        width = problem.p + problem.k
        return time / problem.step_time() * (20.0 * (width + 3) + 8.0 * problem.p * width)

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """InputError unless a sample can leave the span of the weights: d ≥ p + k."""
        if problem.d < problem.p + problem.k:
            expected = f"at least p + k = {problem.p + problem.k} for sgd_chain (sgd has no such bound)"
            raise InputError("no overlap chain", key="d", value=problem.d, expected=expected)


DYNAMICS.register("sgd_chain", SgdChain)
