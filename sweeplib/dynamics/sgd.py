"""One-pass SGD on the weights: w_i += (γ/p) a_i σ'(λ_i) E x, a fresh Gaussian sample x at every step.

With `batch_size` n_b, a step takes the mean gradient of n_b samples. With `repeats` r, r steps in a row take the same
samples; exits are then at the resolution of r steps.

The state consists of all p x d weights. While an exit is pending, Q and M follow their exact update, for the risk at
every step; they are computed from the weights at every record. Weights in float32 halve the memory and its traffic.
Arithmetic is in float64, so a block of steps rounds a weight once, by 3e-8 of it.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.step_dynamics import StepDynamics
from sweeplib.kernels.batches import batch_steps
from sweeplib.kernels.weights import BLOCK, DIVERGED, Exits, Replica, sgd_steps
from sweeplib.numerics.compiled import specialised
from sweeplib.problem import Problem
from sweeplib.views import View

Array = NDArray[np.float64]

WORK_A_ROUND = 2e7
"""Number of multiplications after which the clock is read."""


_OF_DIVERGED = np.errstate(over="ignore", invalid="ignore")
"""Only runs that diverged overflow here."""


class SgdOptions(NumericalOptions):
    """Options of SGD.

    weights : precision of the stored weights; float32 saves memory.
    """

    weights: Literal["float64", "float32"] = "float64"


class Sgd(StepDynamics):
    """Replicas of SGD on the weights, one after another."""

    name = "sgd"
    label = "SGD"
    replicas_at_once = 8
    reads = StepDynamics.reads | {"batch_size", "repeats"}
    Options = SgdOptions
    options: SgdOptions

    def __init__(self, replicas: Replicas, options: SgdOptions) -> None:
        super().__init__(replicas, options)
        self._called = self.functions()
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
        if self.replicas.thresholds.size:
            for i in np.flatnonzero(self.running):
                self.Q[i], self.M[i] = self._overlaps(int(i))

    def _take(self, i: int, until: int) -> None:
        W, W_star = self._weights[i]
        given, step = self.replicas, int(self.step[i])
        batch_size, repeats = given.batch_size, given.repeats
        blocks = max(1, int(WORK_A_ROUND / (BLOCK * batch_size * repeats * W.size)))
        count = min(until - step, BLOCK * blocks)
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
        exits = Exits(self.targets[i], self.exits[i], given.stop_at_exit, *self._carried(i))
        if batch_size == repeats == 1:
            taken, fate = specialised(sgd_steps)(count, step, replica, self._called, exits)
        else:
            taken, fate = specialised(batch_steps)(count, step, batch_size, repeats, replica, self._called, exits)
        self.step[i] += taken
        if fate == DIVERGED:
            self.failed[i] = self.step[i]

    def _carried(self, i: int) -> tuple[Array, Array, Array]:
        """Q (p, p, 1), M (p, k, 1) and P (k, k, 1) for the kernel, which uses them while an exit is pending."""
        if self.replicas.thresholds.size:
            return self.Q[i][:, :, None], self.M[i][:, :, None], self.replicas.P[i][:, :, None]
        return np.empty((1, 1, 1)), np.empty((1, 1, 1)), np.empty((1, 1, 1))

    @_OF_DIVERGED
    def _overlaps(self, i: int) -> tuple[Array, Array]:
        W, W_star = (weights.astype(float) for weights in self._weights[i])
        return W @ W.T / W.shape[1], W @ W_star.T / W.shape[1]

    @_OF_DIVERGED
    def _norms(self, i: int) -> Array:
        """The diagonal of Q (p,)."""
        W, _ = self._weights[i]
        return np.einsum("ij,ij->i", W, W, dtype=float) / W.shape[1]

    @_OF_DIVERGED
    def _teacher_overlaps(self, i: int) -> Array:
        """M (p, k)."""
        W, W_star = (weights.astype(float) for weights in self._weights[i])
        return W @ W_star.T / W.shape[1]

    def look(self) -> list[tuple[Array, View]]:
        """The overlaps of the current weights; Q is computed only if an observable needs more than its diagonal."""
        count = range(len(self.replicas))
        view = self.overlap_view(
            Q=lambda: np.array([self._overlaps(i)[0] for i in count]),
            M=lambda: np.array([self._teacher_overlaps(i) for i in count]),
            a=self.a,
            q=lambda: np.array([self._norms(i) for i in count]),
        )
        return [(np.ones(len(self.replicas)), view)]

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The number of steps times the work of the draws and products of all uses of a batch."""
        uses = time / problem.step_time() * problem.repeats
        return uses * problem.batch_size * problem.d * (16.0 + 2.0 * problem.p + problem.k)


DYNAMICS.register("sgd", Sgd)
