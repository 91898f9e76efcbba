"""SGD on the weights: w_i += (γ/p) a_i σ'(λ_i) E x, a fresh sample x of the data law at every step.

With `batch_size` n_b, a step takes the mean gradient of n_b samples. They are fresh, or from a training set: the first
n = `samples` of the stream, drawn when a run begins and not stored in results. With `repeats` r, r steps in a row take
the same batch; exits are then at the resolution of r steps, records at that of one.

The state consists of all p x d weights. While an exit is pending, Q and M follow their exact update, for the risk at
every step; they are computed from the weights at every record. Weights in float32 halve the memory and its traffic.
Arithmetic is in float64, so a block of steps rounds a weight once, by 3e-8 of it. The inputs of a training set have the
precision of the weights.

Functions that take steps have these arguments: i, the number of the replica; count, the largest number of steps;
uses = (first, end), the uses of its batch that a step consists of, (0, r) for a whole step; exits, which the kernel
notes. They return the number of steps taken, fewer than `count` after an exit or a divergence, and perhaps the fate of
the run, `GOING`, `STOPPED` or `DIVERGED`.
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
from sweeplib.networks.kernels.weights import DIVERGED, GOING, Exits, ReplayedTasks, Replica, sgd_steps
from sweeplib.networks.numerics.compiled import OneSignature
from sweeplib.networks.problem import AVERAGES, Problem

WORK_A_ROUND = 2e7
"""Number of multiplications after which the clock is read."""


@cache
def _kernel_for(template: Callable[..., Any], weights: str) -> OneSignature:
    """The kernel `template`, compiled for `weights` of a precision: each has its own signature."""
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
                self._take_steps(int(i), int(until[i]))
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        if self.stride > 1.0:
            for i in self.between(to):
                self._use_batch(int(i), int(self.remainder[i, to]))
            self.stop()
        # for the next exits: kernels carry Q and M over whole steps alone, and add up rounding errors
        if self.replicas.thresholds.size:
            for i in np.flatnonzero(self.running):
                self.Q[i], self.M[i] = overlaps_of_weights(*self._weights[i])

    def _take_steps(self, i: int, until: int) -> None:
        """Take steps of replica i, for about `WORK_A_ROUND`, to step number `until` at most.

        If a record was made between two uses of a batch, the only step is the uses of this batch that are left.
        """
        replicas, used = self.replicas, int(self.share[i])
        block = 1 if replicas.samples[i] else BLOCK
        work = block * replicas.batch_size * replicas.repeats * self._weights[i][0].size
        count = 1 if used else min(until - int(self.step[i]), block * max(1, int(WORK_A_ROUND / work)))
        exits = Exits(self.targets[i], self.exits[i], replicas.stop_at_exit, *self._carried_overlaps(i))
        self.step[i] += self._steps(i, count, (used, replicas.repeats), exits)
        self.share[i] = 0.0

    def _use_batch(self, i: int, uses: int) -> None:
        """Take replica i into its next step, to the state after `uses` uses of the batch, fewer than `repeats`.

        No exits are noted: they are at the resolution of whole steps.
        """
        used, self.share[i] = int(self.share[i]), uses
        if uses > used:
            no_exits = Exits(self.targets[i, :0], self.exits[i, :0], False, *self._carried_overlaps(i))
            self._steps(i, 1, (used, uses), no_exits)

    def _steps(self, i: int, count: int, uses: tuple[int, int], exits: Exits) -> int:
        """Take up to `count` steps of replica i, each of the `uses` of a batch; return their number.

        A divergence is noted in `failed`.
        """
        replicas, step = self.replicas, int(self.step[i])
        if replicas.replayed is not None:  # then `repeats` is one: a step is one use
            return self._steps_of_tasks(i, count, exits, replicas.replayed)
        arguments = self._replica(i), self._rates, self._functions, exits
        if replicas.samples[i]:
            data = self._training_set(i)
            done, fate = self._kernel(training_steps)(count, step, replicas.batch_size, uses, *arguments, data)
        else:
            done, fate = self._fresh_steps(count, step, uses, *arguments)
        if fate == DIVERGED:  # no step is under way in a run that has ended
            self.failed[i], self.share[i] = step + done, 0.0
        return int(done)

    def _steps_of_tasks(self, i: int, count: int, exits: Exits, lessons: Lessons) -> int:
        """Take up to `count` steps of replica i, of tasks drawn at random for each sample; return their number.

        Steps of one sample in a row that are of one task are taken together. The second layers of all tasks are kept in
        `heads`.
        """
        replicas, first = self.replicas, int(self.step[i])
        self.heads = lessons.heads.copy() if self.heads is None else self.heads
        ends = np.cumsum(lessons.shares[i, lessons.phase])
        done, replica = 0, self._replica(i)
        if replicas.batch_size > 1:
            replica = replica._replace(tasks=ReplayedTasks(ends, lessons.a_star[i], self.heads[i]))
            done, fate = self._fresh_steps(count, first, (0, 1), replica, self._rates, self._functions, exits)
            if fate == DIVERGED:
                self.failed[i] = first + done
            self.a[i] = self.heads[i, lessons.head]
            return int(done)
        tasks = tasks_of(ends, first, count, replicas.seeds[i], replicas.keys[i])
        for in_a_row in np.split(tasks, np.flatnonzero(np.diff(tasks)) + 1):
            task = in_a_row[0]
            # tasks that share one second layer have one head
            layers = {"a": self.heads[i, min(task, self.heads.shape[1] - 1)], "a_star": lessons.a_star[i, task]}
            arguments = replica._replace(**layers), self._rates, self._functions, exits
            steps, fate = self._fresh_steps(len(in_a_row), first + done, (0, 1), *arguments)
            done += int(steps)
            if fate == DIVERGED:
                self.failed[i] = first + done
                break
        self.a[i] = self.heads[i, lessons.head]
        return done

    def _fresh_steps(self, count: int, step: int, uses: tuple[int, int], replica: Replica, *others: Any) -> Any:
        """Take up to `count` steps from number `step` on, each of the `uses` of a fresh batch; return number and fate.

        others : the other arguments of the kernels: rates, functions and, last, exits.
        """
        changes_rows = replica.numbers.temperature > 0.0 or self.replicas.has_averages
        # the kernel of plain steps knows the factors of its samples, not whole rows of the weights
        needs_rows = self._functions.rule.moves_rows or changes_rows
        if self.replicas.batch_size == self.replicas.repeats == 1 and not needs_rows:
            return self._plain_steps(count, step, replica, *others)
        return self._kernel(batch_steps)(count, step, self.replicas.batch_size, uses, replica, *others)

    def _plain_steps(self, count: int, step: int, replica: Replica, *others: Any) -> tuple[int, int]:
        """Take up to `count` steps of one sample, from number `step` on; return their number and the fate of the run.

        others : as in `_fresh_steps`. Where the kernel ends early, to put rows on their sphere, Q and M of pending
        exits are computed anew.
        """
        exits: Exits = others[-1]
        done, fate = 0, GOING
        while done < count and fate == GOING:
            steps, fate = self._kernel(sgd_steps)(count - done, step + done, replica, *others)
            done += steps
            if done < count and fate == GOING and exits.targets.size:
                exits.Q[:, :, 0], exits.M[:, :, 0] = overlaps_of_weights(replica.W, replica.W_star)
        return done, fate

    def _kernel(self, template: Callable[..., Any]) -> OneSignature:
        """The kernel `template`, compiled for weights of this run's precision; other types are the same in all runs."""
        return _kernel_for(template, self.options.weights)

    def _carried_overlaps(self, i: int) -> tuple[Array, Array, Array]:
        """Views of Q (p, p, 1), M (p, k, 1), P (k, k, 1) of replica i, which kernels update while an exit is pending.

        Without thresholds there are none: small arrays of the same type stand for them.
        """
        if self.replicas.thresholds.size:
            return self.Q[i][:, :, None], self.M[i][:, :, None], self.replicas.P[i][:, :, None]
        return np.empty((1, 1, 1)), np.empty((1, 1, 1)), np.empty((1, 1, 1))

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Return True: exits may be on any level, as its kernels call the exit rule in place of the risk."""
        return True

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The number of steps times the work of one: draws of d normals, and products of inputs with p + k rows.

        A training set is drawn once, with its labels; noise of its inputs at each use.
        """
        steps, p, k, d = time / problem.step_time() * problem.repeats, problem.p, problem.k, problem.d
        draws = 16.0 if problem.input_noise == 0.0 else 32.0 + k
        if problem.samples is None:
            return steps * problem.batch_size * d * (draws + 2.0 * p + k)
        of_sample = 4.0 + 2.0 * p + (16.0 if problem.input_noise > 0.0 else 0.0)
        return steps * d * (problem.batch_size * of_sample + 2.0 * p) + problem.samples * d * (16.0 + k)


DYNAMICS.register("sgd", Sgd)
