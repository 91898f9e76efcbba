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
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.budget import CASE_BYTES, refuse_more
from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import DYNAMICS, OFFSETS, STEPS, NumericalOptions
from sweeplib.networks.dynamics.replicas import Lessons, Replicas
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.kernels.batches import batch_steps
from sweeplib.networks.kernels.labels import inputs_address, labels
from sweeplib.networks.kernels.replay import tasks_of
from sweeplib.networks.kernels.sample_blocks import BLOCK
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.kernels.training_set import Means, TrainingSet, draw_samples, training_means, training_steps
from sweeplib.networks.kernels.weights import DIVERGED, GOING, Exits, Replica, sgd_steps
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import kinks
from sweeplib.networks.maths.offsets import MOST_FIELDS, OffsetRisks
from sweeplib.networks.maths.overlaps import block_overlaps
from sweeplib.networks.numerics.compiled import OneSignature, specialised
from sweeplib.networks.numerics.random import stream_key
from sweeplib.networks.problem import DATA, DEFAULTS, Problem
from sweeplib.networks.problem.targets import target
from sweeplib.networks.views import TrainingView, View

WORK_A_ROUND = 2e7
"""Number of multiplications after which the clock is read."""


_OF_DIVERGED = np.errstate(over="ignore", invalid="ignore")
"""Only runs that diverged overflow here."""


@cache
def _kernel_for(template: Callable[..., Any], weights: str) -> OneSignature:
    """The compiled kernel for weights of a precision."""
    return OneSignature(template)


class SgdOptions(NumericalOptions):
    """Options of SGD.

    weights : precision of the stored weights, and of a training set; float32 saves memory.
    """

    weights: Literal["float64", "float32"] = "float64"


class Sgd(StepDynamics):
    """Replicas of SGD on the weights, one after another."""

    name = "sgd"
    label = "SGD"
    replicas_at_once = 8
    view = TrainingView
    of_batches = frozenset({"batch_size", "repeats", "samples", "sampling"})
    reads = StepDynamics.reads | of_batches | {"schedule", "data", "tasks"} | OFFSETS | STEPS
    cost_seconds = (0.75e-10, 2e-7, 7e-9)
    unaffected_by = frozenset({"thresholds"})  # a recording time ends a group of four steps, which are rounded together
    Options = SgdOptions
    options: SgdOptions

    def __init__(self, replicas: Replicas, options: SgdOptions) -> None:
        super().__init__(replicas, options)
        self._called, self._rates = self.functions(), rates(replicas.schedule, self.stride, replicas.noise_schedule)
        starts = (replicas.weights(i) for i in range(len(replicas)))
        self._weights = [(W.astype(options.weights, order="C"), W_star.copy(order="C")) for W, W_star in starts]
        self._offsets, self._memory = replicas.offsets(), replicas.memory
        self._velocities = [np.zeros(W.shape if self._called.rule.has_velocities else (0, 0)) for W, _ in self._weights]
        self._training_sets: dict[int, TrainingSet] = {}

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
                self.Q[i], self.M[i] = self._overlaps(int(i))

    def _take(self, i: int, until: int) -> None:
        """Take some steps of replica i, the first with the uses of its batch that are left."""
        replicas, used = self.replicas, int(self.share[i])
        block = 1 if replicas.samples[i] else BLOCK
        work = block * replicas.batch_size * replicas.repeats * self._weights[i][0].size
        count = 1 if used else min(until - int(self.step[i]), block * max(1, int(WORK_A_ROUND / work)))
        exits = Exits(self.targets[i], self.exits[i], replicas.stop_at_exit, *self._carried(i))
        self.step[i] += self._steps(i, count, replicas.repeats - used, exits)
        self.share[i] = 0.0

    def _use(self, i: int, uses: int) -> None:
        """Take replica i into its next step: to the state after so many `uses` of the batch, fewer than `repeats`."""
        more, self.share[i] = uses - int(self.share[i]), uses
        if more:
            self._steps(i, 1, more, Exits(self.targets[i, :0], self.exits[i, :0], False, *self._carried(i)))

    def _steps(self, i: int, count: int, repeats: int, exits: Exits) -> int:
        """Take up to `count` steps of replica i, each of `repeats` uses of a batch; return how many were taken."""
        replicas, step = self.replicas, int(self.step[i])
        if replicas.replayed is not None:
            return self._taken_of_tasks(i, count, exits, replicas.replayed)
        called = self._replica(i), self._rates, self._called, exits
        if replicas.samples[i]:
            data = self._training_set(i)
            done, fate = self._kernel(training_steps)(count, step, replicas.batch_size, repeats, *called, data)
        elif replicas.batch_size == replicas.repeats == 1 and not self._called.rule.moves_rows:
            done, fate = self._plain_steps(count, step, *called)
        else:
            done, fate = self._kernel(batch_steps)(count, step, replicas.batch_size, repeats, *called)
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
            steps, fate = self._plain_steps(len(some), first + done, *called)
            done += int(steps)
            if fate == DIVERGED:
                self.failed[i] = first + done
                break
        self.a[i] = self.heads[i, lessons.head]
        return done

    def _plain_steps(self, count: int, step: int, replica: Replica, *called: Any) -> tuple[int, int]:
        """Take up to `count` steps of one sample each; return their number and the fate of the run.

        Where the kernel ends early, to put rows on their sphere, Q and M of pending exits are computed anew.
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

    def _replica(self, i: int) -> Replica:
        """The state and the constants of a replica, for kernels."""
        replicas, (W, W_star) = self.replicas, self._weights[i]
        return Replica(
            W,
            self.a[i],
            self._offsets[i],
            W_star,
            replicas.a_star[i],
            replicas.numbers_of(i),
            replicas.spherical,
            self._velocities[i],
            self._memory[i],
            replicas.keys[i],
            replicas.seeds[i],
            inputs_address(replicas.data),
            replicas.law_numbers(i),
            np.uint64(stream_key(int(replicas.keys[i]), "data", replicas.data)),
        )

    def _training_set(self, i: int) -> TrainingSet:
        """The training set of a replica, drawn on first use."""
        if i not in self._training_sets:
            self._training_sets[i] = self._new_training_set(i)
        return self._training_sets[i]

    def _new_training_set(self, i: int) -> TrainingSet:
        replicas, (W, W_star) = self.replicas, self._weights[i]
        n, key = int(replicas.samples[i]), replicas.keys[i]
        x, lam_star = np.empty((n, W.shape[1]), W.dtype), np.empty((len(W_star), n))
        shift, z = np.empty(n), np.empty(n)
        specialised(draw_samples)(self._replica(i), x, lam_star, shift, z)
        y = labels(replicas.target, replicas.teacher_activation, lam_star, replicas.a_star[i]) + shift
        y += replicas.numbers.deviation[i] * z
        y = np.where(y > 0.0, 1.0, -1.0) if replicas.criterion.signs else y
        choices = np.uint64(stream_key(int(key), "batches"))
        numbers = np.arange(n), np.empty(n, np.int64), np.full(1, -1)
        return TrainingSet(x, y, *numbers, choices, bool(replicas.epochs[i]))

    def _training_means(self, i: int, *, with_gradient: bool) -> tuple[float, float]:
        """The training risk of a replica and, with the gradient, the variance of the gradients of the samples."""
        replica = self._replica(i)
        p, d = replica.W.shape
        out = Means(np.empty(1), np.empty(1), np.empty((p, d)))
        specialised(training_means)(replica, self._called, self._training_set(i), with_gradient, out)
        # a difference of two means, which rounding may take below zero
        variance = max(out.square[0] - (out.gradient**2).sum() / d, 0.0) / p**2
        return out.loss[0], variance

    def _carried(self, i: int) -> tuple[Array, Array, Array]:
        """Q (p, p, 1), M (p, k, 1) and P (k, k, 1) for the kernel, which uses them while an exit is pending."""
        if self.replicas.thresholds.size:
            return self.Q[i][:, :, None], self.M[i][:, :, None], self.replicas.P[i][:, :, None]
        return np.empty((1, 1, 1)), np.empty((1, 1, 1)), np.empty((1, 1, 1))

    @_OF_DIVERGED
    def _overlaps(self, i: int) -> tuple[Array, Array]:
        return overlaps_of_weights(*self._weights[i])

    @_OF_DIVERGED
    def _block_overlaps(self, i: int) -> tuple[Array, Array]:
        """Q (L, p, p) and M (L, p, k) of the blocks of inputs."""
        W, W_star = (weights.astype(float) for weights in self._weights[i])
        Q, M, _ = block_overlaps(W, W_star, self.replicas.multiplicities[i])
        return Q, M

    @_OF_DIVERGED
    def _norms(self, i: int) -> Array:
        """The diagonal of Q (p,)."""
        W, _ = self._weights[i]
        # summed in double precision, also where the weights are stored in single
        return np.einsum("ij,ij->i", W, W, dtype=float) / W.shape[1]

    @_OF_DIVERGED
    def _teacher_overlaps(self, i: int) -> Array:
        """M (p, k)."""
        W, W_star = (weights.astype(float) for weights in self._weights[i])
        return W @ W_star.T / W.shape[1]

    def look(self) -> list[tuple[Array, View]]:
        """The overlaps of the current weights, and means over training sets, each computed only if it is needed.

        Q is computed only if an observable needs more than its diagonal.
        """
        count = range(len(self.replicas))
        overlaps = self.overlap_view(
            Q=lambda: np.array([self._overlaps(i)[0] for i in count]),
            M=lambda: np.array([self._teacher_overlaps(i) for i in count]),
            a=self.a,
            q=lambda: np.array([self._norms(i) for i in count]),
            by_block=lambda: map(np.array, zip(*(self._block_overlaps(i) for i in count), strict=True)),
        )
        if self.replicas.has_offsets:
            overlaps.b = self._offsets.copy()
            overlaps.expectations = population_with(self.replicas, overlaps.b)
        view = TrainingView(
            overlaps,
            self.replicas.samples,
            risk=lambda: np.array([self._training_means(i, with_gradient=False)[0] for i in count]),
            variance=lambda: np.array([self._training_means(i, with_gradient=True)[1] for i in count]),
        )
        return [(np.ones(len(self.replicas)), view)]

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

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError too for a training set that is too large for any machine, and for offsets without a risk."""
        super().check(problem, options)
        if problem.has_offsets:
            _check_offsets(problem)
        if problem.samples is not None:
            needed = cls.memory(problem, options)
            refuse_more("bytes of a training set", needed, CASE_BYTES, key="samples", instead="fewer samples")

    @staticmethod
    def memory(problem: Problem, options: NumericalOptions) -> int:
        """The bytes of the weights and of the training set, whose inputs have the precision of the weights."""
        assert isinstance(options, SgdOptions)
        size = np.dtype(options.weights).itemsize
        n, p, k, d = problem.samples or 0, problem.p, problem.k, problem.d
        return (size * p + 8 * k) * d + n * (size * d + 8 * (2 * k + 4))


def overlaps_of_weights(W: Array, W_star: Array) -> tuple[Array, Array]:
    """Q (p, p) and M (p, k)."""
    W, W_star = W.astype(float), W_star.astype(float)
    return W @ W.T / W.shape[1], W @ W_star.T / W.shape[1]


def population_with(replicas: Replicas, b: Array) -> OffsetRisks:
    """The expectations over the inputs for units with offsets b (n, p)."""
    law = DATA[replicas.data]
    assert law.classes is not None  # by `check`
    committee = law.teacher and replicas.target == DEFAULTS["target"]
    return OffsetRisks(
        replicas.activation,
        replicas.teacher_activation if committee else None,
        partial(labels, replicas.target, replicas.teacher_activation) if law.teacher and not committee else None,
        tuple(law.classes(**replicas.law_of(i)) for i in range(len(replicas))),
        replicas.population,
        b,
    )


def _check_offsets(problem: Problem) -> None:
    """Raise InputError where the population risk of students with offsets cannot be computed."""
    if DATA[problem.data].classes is None:
        laws = [name for name in DATA if DATA[name].classes is not None]
        raise InputError("no risk of units with offsets", key="data", value=problem.data, choices=laws)
    if problem.target == DEFAULTS["target"]:
        return
    forms = [activation(name) for name in target(problem.learned).activations]
    if problem.k > MOST_FIELDS or any(map(kinks, forms)):
        expected = f"a committee, or a formula of at most {MOST_FIELDS} fields without kinks; mean_field takes this one"
        raise InputError("no risk of units with offsets", key="target", value=problem.target, expected=expected)


DYNAMICS.register("sgd", Sgd)
