"""One-pass SGD by the exact Markov chain of its overlaps, at a cost that does not depend on d.

For fresh Gaussian samples the overlaps are a Markov chain. The state is the factor Ω = L Lᵀ, teacher rows first,
L = [[L*, 0], [A, B]] with B lower triangular. In the frame of its rows a sample √d x has coordinates u* (k), w (p) and,
out of their span, a component of length s, s² ~ χ²(d−p−k). The local fields are L (u*, w); with
c_i = (γ/(pd)) a_i σ'(λ_i) E a step is A += c u*ᵀ and B ← a lower triangular factor of [B + c wᵀ, s c]. Projection
divides rows by their norms. M = A L*ᵀ and Q = A Aᵀ + B Bᵀ; neither is ever factorised, so units may align.
"""

import numpy as np

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.lane_dynamics import LaneDynamics, rows, trained, unrolled
from sweeplib.dynamics.replicas import Replicas
from sweeplib.errors import InputError
from sweeplib.kernels.chain import Settings, chain_network, chain_prepare, chain_step, chain_work
from sweeplib.kernels.lanes import round_of
from sweeplib.maths.overlaps import lower_factors
from sweeplib.problem import Problem


class SgdChain(LaneDynamics):
    """Replicas of the overlap chain: the state is A, B and a."""

    name = "sgd_chain"
    label = "SGD (overlap chain)"

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        p, k = replicas.p, replicas.k
        self.settings = Settings(p, k, replicas.spherical, trained(replicas))
        self.called = self.functions()
        self.round = round_of(chain_work, prepare=chain_prepare, take_step=chain_step, fill_network=chain_network)
        factor = lower_factors(replicas.Q, replicas.M, replicas.P)
        self._L_star = factor[:, :k, :k]
        parts = factor[:, k:, :k], factor[:, k:, k:], replicas.a
        self.begin(np.concatenate([rows(part) for part in parts]), self._L_star)

    def observe(self) -> None:
        """Take Q = A Aᵀ + B Bᵀ, M = A L*ᵀ and a from the state."""
        p, k = self.replicas.p, self.replicas.k
        A, B = unrolled(self.state[: p * k], p, k), unrolled(self.state[p * k : p * (k + p)], p, p)
        self.a = unrolled(self.state[p * (k + p) :], p)
        with np.errstate(over="ignore", invalid="ignore"):  # in runs that diverged
            self.M = A @ self._L_star.transpose(0, 2, 1)
            self.Q = A @ A.transpose(0, 2, 1) + B @ B.transpose(0, 2, 1)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The number of steps times the work of the draws, fields and rotations of one step."""
        width = problem.p + problem.k
        return time / problem.step_time() * (20.0 * (width + 3) + 8.0 * problem.p * width)

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError unless d ≥ p + k, so that a sample has a component outside the span of the weights."""
        if problem.d < problem.p + problem.k:
            expected = f"at least p + k = {problem.p + problem.k} for sgd_chain (sgd has no such bound)"
            raise InputError("no overlap chain", key="d", value=problem.d, expected=expected)


DYNAMICS.register("sgd_chain", SgdChain)
