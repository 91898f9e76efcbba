"""SGD on the weights: w_i += (γ/p) a_i σ'(λ_i) E x, a fresh sample x of the data law at every step.

With `batch_size` n_b, a step takes the mean gradient of n_b samples. They are fresh, or from a training set: the first
n = `samples` of the stream, drawn when a run begins and not stored in results. With `repeats` r, r steps in a row take
the same batch; exits are then at the resolution of r steps, records at that of one.

The state consists of all p x d weights. While an exit is pending, Q and M follow their exact update, for the risk at
every step; they are computed from the weights at every record. Weights in float32 halve the memory and its traffic.
Arithmetic is in float64, so a block of steps rounds a weight once, by 3e-8 of it. The inputs of a training set have the
precision of the weights.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import DYNAMICS, OFFSETS, STEPS, NumericalOptions
from sweeplib.networks.dynamics.lessons import Lessons
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.dynamics.weight_dynamics import WeightDynamics, overlaps_of_weights
from sweeplib.networks.kernels.batches import batch_steps
from sweeplib.networks.kernels.replay import tasks_of
from sweeplib.networks.kernels.sample_blocks import BLOCK
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.kernels.training_set import training_steps
from sweeplib.networks.kernels.weights import DIVERGED, GOING, Exits, Replica, sgd_steps
from sweeplib.networks.numerics.compiled import OneSignature
from sweeplib.networks.problem import AVERAGES, Problem

WORK_A_ROUND = 2e7
"""Number of multiplications after which the clock is read."""


@cache
def _kernel_for(template: Callable[..., Any], weights: str) -> OneSignature:
    """The kernel compiled for weights of a precision: each has its own signature."""
    return OneSignature(template)


class SgdOptions(NumericalOptions):
    """Options of SGD.

    weights : precision of the stored weights, and of a training set; float32 saves memory.
    """

    weights: Literal["float64", "float32"] = "float64"


class Sgd(WeightDynamics, StepDynamics):
    """Replicas of SGD on the weights, one after another."""

    name = "sgd"
    label = "SGD"
    replicas_at_once = 8
    of_batches = frozenset({"batch_size", "repeats", "samples", "sampling"})
    reads = StepDynamics.reads | of_batches | {"schedule", "data", "tasks"} | OFFSETS | STEPS | AVERAGES
    cost_seconds = (0.75e-10, 2e-7, 7e-9)
    unaffected_by = frozenset({"thresholds"})  # a recording time ends a group of four steps, which are rounded together
    Options = SgdOptions
    options: SgdOptions

    def __init__(self, replicas: Replicas, options: SgdOptions) -> None:
        super().__init__(replicas, options, options.weights)
        self._rates = rates(replicas.schedule, self.stride, replicas.noise_schedule)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take the steps up to recording time number `to`, each replica in turn."""
        until = self.until[:, to]
        while (order := self.behind(to)).size:
            for i in order:
                self._take(int(i), int(until[i]))
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        if self.stride > 1.0:
            for i in self.between(to):
                self._use(int(i), int(self.remainder[i, to]))
            self.stop()
        if self.replicas.thresholds.size:
            for i in np.flatnonzero(self.running):
                self.Q[i], self.M[i] = overlaps_of_weights(*self._weights[i])

    def _take(self, i: int, until: int) -> None:
        """Take some steps of replica i, to number `until` at most; the first has what uses of its batch are left."""
        replicas, used = self.replicas, int(self.share[i])
        block = 1 if replicas.samples[i] else BLOCK
        work = block * replicas.batch_size * replicas.repeats * self._weights[i][0].size
        count = 1 if used else min(until - int(self.step[i]), block * max(1, int(WORK_A_ROUND / work)))
        exits = Exits(self.targets[i], self.exits[i], replicas.stop_at_exit, *self._carried(i))
        self.step[i] += self._steps(i, count, (used, replicas.repeats), exits)
        self.share[i] = 0.0

    def _use(self, i: int, uses: int) -> None:
        """Take replica i into its next step: to the state after so many `uses` of the batch, fewer than `repeats`."""
        used, self.share[i] = int(self.share[i]), uses
        if uses > used:
            self._steps(i, 1, (used, uses), Exits(self.targets[i, :0], self.exits[i, :0], False, *self._carried(i)))

    def _steps(self, i: int, count: int, uses: tuple[int, int], exits: Exits) -> int:
        """Take up to `count` steps of replica i, each of some uses of a batch, (first, end); return their number.

        A divergence is noted in `failed`.
        """
        replicas, step = self.replicas, int(self.step[i])
        if replicas.replayed is not None:
            return self._taken_of_tasks(i, count, exits, replicas.replayed)
        called = self._replica(i), self._rates, self._called, exits
        if replicas.samples[i]:
            data = self._training_set(i)
            done, fate = self._kernel(training_steps)(count, step, replicas.batch_size, uses, *called, data)
        else:
            done, fate = self._fresh_steps(count, step, uses, *called)
        if fate == DIVERGED:
            self.failed[i], self.share[i] = step + done, 0.0
        return int(done)

    def _taken_of_tasks(self, i: int, count: int, exits: Exits, lessons: Lessons) -> int:
        """Take up to `count` steps of tasks drawn at random, those of one task in a row together; return how many."""
        replicas, first = self.replicas, int(self.step[i])
        self.heads = lessons.heads.copy() if self.heads is None else self.heads
        ends = np.cumsum(lessons.shares[i, lessons.phase])
        tasks = tasks_of(ends, first, count, replicas.seeds[i], replicas.keys[i])
        done, replica = 0, self._replica(i)
        for some in np.split(tasks, np.flatnonzero(np.diff(tasks)) + 1):
            layers = {"a": self.heads[i, min(some[0], self.heads.shape[1] - 1)], "a_star": lessons.a_star[i, some[0]]}
            called = replica._replace(**layers), self._rates, self._called, exits
            steps, fate = self._fresh_steps(len(some), first + done, (0, 1), *called)
            done += int(steps)
            if fate == DIVERGED:
                self.failed[i] = first + done
                break
        self.a[i] = self.heads[i, lessons.head]
        return done

    def _fresh_steps(self, count: int, step: int, uses: tuple[int, int], replica: Replica, *called: Any) -> Any:
        """Take up to `count` steps, each of some uses of a fresh batch; return their number and the fate of the run."""
        n_b, more = self.replicas.batch_size, replica.numbers.temperature > 0.0 or self.replicas.has_averages
        moves_rows = self._called.rule.moves_rows or more
        if n_b == self.replicas.repeats == 1 and not moves_rows:
            return self._plain_steps(count, step, replica, *called)
        return self._kernel(batch_steps)(count, step, n_b, uses, replica, *called)

    def _plain_steps(self, count: int, step: int, replica: Replica, *called: Any) -> tuple[int, int]:
        """Take up to `count` steps of one sample, from number `step` on; return their number and the fate of the run.

        called : the other arguments of the kernel. Where it ends early, to put rows on their sphere, Q and M of pending
        exits are computed anew.
        """
        exits: Exits = called[-1]
        done, fate = 0, GOING
        while done < count and fate == GOING:
            steps, fate = self._kernel(sgd_steps)(count - done, step + done, replica, *called)
            done += steps
            if done < count and fate == GOING and exits.targets.size:
                Q, M = overlaps_of_weights(replica.W, replica.W_star)
                exits.Q[:, :, 0], exits.M[:, :, 0] = Q, M
        return done, fate

    def _kernel(self, template: Callable[..., Any]) -> OneSignature:
        """The compiled kernel for weights of this precision; all other arguments have the same types in all runs."""
        return _kernel_for(template, self.options.weights)

    def _carried(self, i: int) -> tuple[Array, Array, Array]:
        """Q (p, p, 1), M (p, k, 1) and P (k, k, 1) for the kernel, which uses them while an exit is pending."""
        if self.replicas.thresholds.size:
            return self.Q[i][:, :, None], self.M[i][:, :, None], self.replicas.P[i][:, :, None]
        return np.empty((1, 1, 1)), np.empty((1, 1, 1)), np.empty((1, 1, 1))

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """All: its kernel calls the rule in place of the risk."""
        return True

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The number of steps times the work of the draws and products of one step; a training set is drawn once."""
        steps, p, k, d = time / problem.step_time() * problem.repeats, problem.p, problem.k, problem.d
        draws = 16.0 if problem.input_noise == 0.0 else 32.0 + k
        if problem.samples is None:
            return steps * problem.batch_size * d * (draws + 2.0 * p + k)
        return steps * d * (problem.batch_size * (4.0 + 2.0 * p) + 2.0 * p) + problem.samples * d * (16.0 + k)


DYNAMICS.register("sgd", Sgd)
