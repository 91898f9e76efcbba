"""One-pass SGD on the weights: w_i += (γ/p) a_i σ'(λ_i) E x, a fresh Gaussian sample x at every step.

The weights are the state, kept for all p x d; Q and M are carried along by their exact update (what exits and the
projection need at every step) and computed again from the weights at every record.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.dynamics.step_dynamics import OVERFLOW, StepDynamics
from sweeplib.maths.activations import ACTIVATIONS
from sweeplib.maths.compiled import specialised
from sweeplib.problem import Problem
from sweeplib.random import fill_normals

Array = NDArray[np.float64]

WORK_A_ROUND = 2e7
"""Multiplications after which the clock is looked at."""


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_value = student_derivative = teacher_value = population_risk = _unbound


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """Σ x_j y_j over the length of x."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_multiple(w, factor, x):  # type: ignore[no-untyped-def]
    """w += factor x."""
    for j in range(w.shape[0]):
        w[j] += factor * x[j]


def sgd_steps(  # type: ignore[no-untyped-def]
    W, W_star, a, a_star, rate, noise, spherical, key, seed, step, count, Q, M, P, targets, exits, stop_at_exit
):
    """Take up to `count` steps from `step` on; return the steps taken and whether the run diverged.

    W (p, d) is changed in place, and with it Q (p, p, 1), M (p, k, 1) and exits (thresholds,), negative where not yet.
    Projection is lazy: a row's norm is kept in `norm` and multiplied into the row only at the end.
    """
    p, d = W.shape
    k = W_star.shape[0]
    samples = np.empty(4 * ((d + 4) // 4))
    lam, lam_star, c = np.empty(p), np.empty(k), np.empty(p)
    norm, risk = np.ones(p), np.empty(1)
    root = 1.0 / math.sqrt(d)
    second_layer, teacher_layer = a.reshape((p, 1)), a_star.reshape((k, 1))
    taken, diverged, pending = 0, False, True
    while taken < count and (pending or not stop_at_exit):
        fill_normals(key, seed, np.uint64(step + taken), samples)
        x = samples[:d]
        displacement = noise * samples[d]
        for r in range(k):
            lam_star[r] = root * inner_product(W_star[r], x)
            displacement += a_star[r] * teacher_value(lam_star[r]) / k
        for i in range(p):
            lam[i] = norm[i] * root * inner_product(W[i], x)
            displacement -= a[i] * student_value(lam[i]) / p
        if not abs(displacement) < OVERFLOW:
            diverged = True
            break
        square = inner_product(x, x)
        for i in range(p):
            c[i] = rate * a[i] * student_derivative(lam[i]) * displacement
            add_multiple(W[i], c[i] / (norm[i] * root), x)
        for i in range(p):
            for j in range(p):
                Q[i, j, 0] += c[i] * lam[j] + c[j] * lam[i] + c[i] * c[j] * square
            for r in range(k):
                M[i, r, 0] += c[i] * lam_star[r]
        if spherical:
            for i in range(p):
                c[i] = 1.0 / math.sqrt(Q[i, i, 0])
                norm[i] *= c[i]
            for i in range(p):
                for j in range(p):
                    Q[i, j, 0] *= c[i] * c[j]
                for r in range(k):
                    M[i, r, 0] *= c[i]
        taken += 1
        if targets.shape[0] > 0:
            population_risk(Q, M, P, second_layer, teacher_layer, risk)
            pending = False
            for t in range(targets.shape[0]):
                if exits[t] < 0 and risk[0] <= targets[t]:
                    exits[t] = step + taken
                pending |= exits[t] < 0
    for i in range(p):
        for j in range(d):
            W[i, j] *= norm[i]
    return taken, diverged


class Sgd(StepDynamics):
    """Replicas of SGD on the weights, one after another."""

    name = "sgd"
    label = "SGD"
    together = 1

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        student, teacher = ACTIVATIONS[replicas.activation], ACTIVATIONS[replicas.teacher_activation]
        self._steps = specialised(
            sgd_steps,
            student_value=student.value,
            student_derivative=student.derivative,
            teacher_value=teacher.value,
            population_risk=self.expectations.risk,
        )
        self._weights = [tuple(w.copy() for w in replicas.weights(i)) for i in range(len(replicas))]
        self._noise = np.sqrt(replicas.Delta)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take the steps up to recording time number `to`, each replica in turn."""
        until = self.replicas.steps[:, to]
        while (order := self.behind(to)).size:
            for i in order:
                self._take(int(i), int(until[i]))
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        for i in np.flatnonzero(self.running):
            self._observe(int(i))

    def _take(self, i: int, until: int) -> None:
        W, W_star = self._weights[i]
        count = min(until - int(self.step[i]), max(1, int(WORK_A_ROUND / W.size)))
        taken, diverged = self._steps(
            W,
            W_star,
            self.a[i],
            self.replicas.a_star[i],
            self.replicas.step_time[i],
            self._noise[i],
            self.replicas.spherical,
            self.replicas.keys[i],
            self.replicas.seeds[i],
            int(self.step[i]),
            count,
            self.Q[i][:, :, None],
            self.M[i][:, :, None],
            self.replicas.P[i][:, :, None],
            self.targets[i],
            self.exits[i],
            self.replicas.stop_at_exit,
        )
        self.step[i] += taken
        if diverged:
            self.failed[i] = self.step[i]

    def _observe(self, i: int) -> None:
        W, W_star = self._weights[i]
        self.Q[i], self.M[i] = W @ W.T / W.shape[1], W @ W_star.T / W.shape[1]

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Steps, times the draws of one and its products with the weights of both networks."""
        return time / problem.step_time() * problem.d * (16.0 + 4.0 * problem.p + 2.0 * problem.k)


DYNAMICS.register("sgd", Sgd)
