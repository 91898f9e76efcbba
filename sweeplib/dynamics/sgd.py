"""One-pass SGD on the weights: w_i += (γ/p) a_i σ'(λ_i) E x, a fresh Gaussian sample x at every step.

The weights are the state, kept for all p x d. While an exit is waited for, Q and M are carried along by their exact
update, for the risk of every step; they are computed again from the weights at every record. Weights kept in float32
halve the memory and its traffic; all arithmetic is in float64, so that a block of steps costs a weight one rounding,
3e-8 of it.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.step_dynamics import StepDynamics
from sweeplib.kernels.weights import BLOCK, DIVERGED, Exits, Replica, sgd_steps
from sweeplib.numerics.compiled import specialised
from sweeplib.problem import Problem

Array = NDArray[np.float64]

WORK_A_ROUND = 2e7
"""Multiplications after which the clock is looked at."""


class SgdOptions(NumericalOptions):
    """How the weights are kept: in float64, or in float32 to save memory."""

    weights: Literal["float64", "float32"] = "float64"


class Sgd(StepDynamics):
    """Replicas of SGD on the weights, one after another."""

    name = "sgd"
    label = "SGD"
    together = 8
    Options = SgdOptions
    options: SgdOptions

    def __init__(self, replicas: Replicas, options: SgdOptions) -> None:
        super().__init__(replicas, options)
        self._steps, self._called = specialised(sgd_steps), self.functions()
        starts = (replicas.weights(i) for i in range(len(replicas)))
        self._weights = [(W.astype(options.weights), W_star.copy()) for W, W_star in starts]

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take the steps up to recording time number `to`, each replica in turn."""
        until = self.until[:, to]
        while (order := self.behind(to)).size:
            for i in order:
                self._take(int(i), int(until[i]))
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        for i in np.flatnonzero(self.running | (self.timed_out & self.reached(to))):
            self._observe(int(i))

    def _take(self, i: int, until: int) -> None:
        W, W_star = self._weights[i]
        blocks = max(1, int(WORK_A_ROUND / (BLOCK * W.size)))
        count = min(until - int(self.step[i]), BLOCK * blocks)
        given = self.replicas
        replica = Replica(
            W,
            self.a[i],
            W_star,
            given.a_star[i],
            given.step_time[i],
            given.second_layer_rate[i],
            given.Delta[i],
            given.spherical,
            given.keys[i],
            given.seeds[i],
        )
        overlaps = self.Q[i][:, :, None], self.M[i][:, :, None], given.P[i][:, :, None]
        exits = Exits(self.targets[i], self.exits[i], given.stop_at_exit, *overlaps)
        taken, fate = self._steps(count, int(self.step[i]), replica, self._called, exits)
        self.step[i] += taken
        if fate == DIVERGED:
            self.failed[i] = self.step[i]

    def _observe(self, i: int) -> None:
        W, W_star = (weights.astype(float) for weights in self._weights[i])
        self.Q[i], self.M[i] = W @ W.T / W.shape[1], W @ W_star.T / W.shape[1]

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Steps, times the draws of one and its products with the weights of both networks."""
        return time / problem.step_time() * problem.d * (16.0 + 2.0 * problem.p + problem.k)


DYNAMICS.register("sgd", Sgd)
