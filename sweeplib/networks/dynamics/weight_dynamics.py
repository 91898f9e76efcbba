"""Base of the dynamics whose state is all p x d weights, with training sets, which are drawn when runs begin.

A training set is the first n = `samples` of the stream of a run. It is not stored in results. Replica i is the one
with number i among those that an instance advances; its weights are W (p, d), its teacher's W* (k, d).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.budget import CASE_BYTES, refuse_more
from sweeplib.networks.dynamics.dynamics import NumericalOptions
from sweeplib.networks.dynamics.overlap_dynamics import OverlapDynamics
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import functions_of
from sweeplib.networks.kernels.labels import inputs_address, labels
from sweeplib.networks.kernels.training_set import Means, TrainingSet, draw_samples, training_means
from sweeplib.networks.kernels.weights import ReplayedTasks, Replica
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import kinks
from sweeplib.networks.maths.expectations.nodes import MOST_AXES
from sweeplib.networks.maths.offsets import MOST_FIELDS, OffsetRisks
from sweeplib.networks.maths.overlaps import block_overlaps
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.numerics.random import stream_key
from sweeplib.networks.problem import DATA, DEFAULTS, UPDATES, Limit, Problem
from sweeplib.networks.problem.combinations import FRESH_SAMPLES, NO_MIXTURE, OFFSETS, mixtures
from sweeplib.networks.problem.targets import ridges_of, target
from sweeplib.networks.views import OverlapView, TrainingView, View

NO_TASKS = ReplayedTasks(np.empty(0), np.empty((0, 0)), np.empty((0, 0)))
"""The tasks of a run that replays none."""
_OF_DIVERGED = np.errstate(over="ignore", invalid="ignore")
"""A decorator that silences overflow and NaN in overlaps: only runs that diverged have them."""


def _has_no_risk(problem: Problem) -> bool:
    """Whether the population risk of students with offsets cannot be computed.

    That of committees, the default target, is always known; other targets need a rule over their k fields.
    """
    activations = [activation(name) for name in target(problem.learned).activations]
    return problem.target != DEFAULTS["target"] and (problem.k > MOST_FIELDS or any(map(kinks, activations)))


class WeightDynamics(OverlapDynamics):
    """Replicas with their weights, one after another, second layers and offsets.

    Subclasses change `_weights`, pairs of W (p, d) and W* (k, d), `a` (n, p) and `_offsets` (n, p) in place.
    `precision` is that of W alone. Arrays of (0, 0) stand for velocities and averages that a run does not have.
    """

    view = TrainingView
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit("data", "no risk of units with offsets", "", OFFSETS, NO_MIXTURE.is_of, choices=mixtures),
        Limit(
            "target",
            "no risk of units with offsets",
            f"a committee, or a formula of at most {MOST_FIELDS} fields without kinks; mean_field takes this one",
            OFFSETS,
            _has_no_risk,
        ),
    )

    def __init__(self, replicas: Replicas, options: NumericalOptions, precision: str = "float64") -> None:
        super().__init__(replicas, options)
        # addresses of the functions of the problem that kernels call
        self._functions = functions_of(replicas)
        starts = (replicas.weights(i) for i in range(len(replicas)))
        self._weights = [(W.astype(precision, order="C"), W_star.copy(order="C")) for W, W_star in starts]
        # the memory is that of the rule of steps, such as AdaGrad's
        self._offsets, self._memory = replicas.offsets(), replicas.memory
        has_velocities = UPDATES[replicas.rule.update].has_velocities
        self._velocities = [np.zeros(W.shape if has_velocities else (0, 0)) for W, _ in self._weights]
        self._averages = [W.astype(float) if replicas.has_averages else np.zeros((0, 0)) for W, _ in self._weights]
        # by replica, drawn at the first use
        self._training_sets: dict[int, TrainingSet] = {}

    def _replica(self, i: int) -> Replica:
        """The state and the constants of replica i, for kernels, which change the state in place."""
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
            self._averages[i],
            self._memory[i],
            replicas.keys[i],
            replicas.seeds[i],
            inputs_address(replicas.data),
            replicas.law_numbers(i),
            np.uint64(stream_key(int(replicas.keys[i]), "data", replicas.data)),
            NO_TASKS,
        )

    def _training_set(self, i: int) -> TrainingSet:
        """The training set of replica i, drawn on first use."""
        if i not in self._training_sets:
            self._training_sets[i] = self._new_training_set(i)
        return self._training_sets[i]

    def _new_training_set(self, i: int) -> TrainingSet:
        """Return the samples of replica i with the labels of its teacher, and the stream that chooses batches."""
        replicas, (W, W_star) = self.replicas, self._weights[i]
        n, key = int(replicas.samples[i]), replicas.keys[i]
        x, lam_star = np.empty((n, W.shape[1]), W.dtype), np.empty((len(W_star), n))
        # the part of each label that comes with its input, and the normal number of its noise
        shift, z = np.empty(n), np.empty(n)
        specialised(draw_samples)(self._replica(i), self._functions, x, lam_star, shift, z)
        y = labels(replicas.target, replicas.teacher_activation, lam_star, replicas.a_star[i]) + shift
        y += replicas.numbers.deviation[i] * z
        y = np.where(y > 0.0, 1.0, -1.0) if replicas.criterion.signs else y
        stream = np.uint64(stream_key(int(key), "batches"))
        order, swaps, current_pass = np.arange(n), np.empty(n, np.int64), np.full(1, -1)
        return TrainingSet(x, y, order, swaps, current_pass, stream, bool(replicas.epochs[i]))

    def _training_means(self, i: int, *, with_gradient: bool) -> tuple[float, float]:
        """The training risk of replica i, and the variance of the gradients of the samples, valid `with_gradient` only.

        The variance is that of ∇L over W: the mean of ‖∇L‖² less the square of the mean gradient.
        """
        replica = self._replica(i)
        p, d = replica.W.shape
        out = Means(np.empty(1), np.empty(1), np.empty((p, d)))
        specialised(training_means)(replica, self._functions, self._training_set(i), with_gradient, out)
        # a difference of two means, which rounding may take below zero
        variance = max(out.square[0] - (out.gradient**2).sum() / d, 0.0) / p**2
        return out.loss[0], variance

    def look(self) -> list[tuple[Array, View]]:
        """One view with weight one: overlaps of the current weights and means over training sets, computed if needed.

        Q is computed only if an observable needs more than its diagonal.
        """
        count, overlaps = range(len(self.replicas)), self.weight_view(self._weights, self.a, self._offsets)
        overlaps.companion = self.second_view
        overlaps.average = self._overlaps_of_averages
        if self.replicas.has_spectrum:
            overlaps.average_fields = lambda: self._overlaps_of_averages(weighted=True)
        view = TrainingView(
            overlaps,
            self.replicas.samples,
            risk=lambda: np.array([self._training_means(i, with_gradient=False)[0] for i in count]),
            variance=lambda: np.array([self._training_means(i, with_gradient=True)[1] for i in count]),
        )
        return [(np.ones(len(self.replicas)), view)]

    def _overlaps_of_averages(self, *, weighted: bool = False) -> tuple[Array, Array]:
        """Q (n, p, p) and M (n, p, k) of the averages of the weights, or `weighted` the covariances of their fields."""
        pairs = [(average, W_star) for average, (_, W_star) in zip(self._averages, self._weights, strict=True)]
        if weighted:
            roots = map(self.replicas.law_numbers, range(len(pairs)))
            pairs = [(root * average, root * W_star) for root, (average, W_star) in zip(roots, pairs, strict=True)]
        Q, M = zip(*(overlaps_of_weights(*pair) for pair in pairs), strict=True)
        return np.array(Q), np.array(M)

    def weight_view(self, weights: Sequence[tuple[Array, Array]], a: Array, b: Array) -> OverlapView:
        """The view of the overlaps of `weights`, pairs W, W* by replica, second layers a (n, p), offsets b (n, p)."""
        sizes = self.replicas.multiplicities

        def blocks() -> Iterator[Array]:
            """Return an iterator over two arrays: Q (n, L, p, p) and M (n, L, p, k) by block of the inputs."""
            pairs = zip(_double(weights), sizes, strict=True)
            overlaps = (block_overlaps(W, W_star, size)[:2] for (W, W_star), size in pairs)
            return map(np.array, zip(*overlaps, strict=True))

        view = self.overlap_view(
            Q=lambda: np.array([overlaps_of_weights(*pair)[0] for pair in weights]),
            M=_OF_DIVERGED(lambda: np.array([W @ W_star.T / W.shape[1] for W, W_star in _double(weights)])),
            a=a,
            # summed in double precision, also where the weights are stored in single
            q=_OF_DIVERGED(
                lambda: np.array([np.einsum("ij,ij->i", W, W, dtype=float) / W.shape[1] for W, _ in weights])
            ),
            by_block=_OF_DIVERGED(blocks),
        )
        if self.replicas.has_offsets:
            view.b = b.copy()
            view.expectations = population_with(self.replicas, view.b)
        return view

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError too for a training set that is too large for any machine."""
        super().check(problem, options)
        if problem.samples is not None:
            needed = cls.memory(problem, options)
            refuse_more("bytes of a training set", needed, CASE_BYTES, key="samples", instead="fewer samples")

    @staticmethod
    def memory(problem: Problem, options: NumericalOptions) -> int:
        """The bytes of the weights and of the training set, whose inputs have the precision of the weights."""
        size = np.dtype(getattr(options, "weights", "float64")).itemsize
        n, p, k, d = problem.samples or 0, problem.p, problem.k, problem.d
        # fields, labels and their like, numbers of each sample, are in double precision
        return (size * p + 8 * k) * d + n * (size * d + 8 * (2 * k + 4))


@_OF_DIVERGED
def overlaps_of_weights(W: Array, W_star: Array) -> tuple[Array, Array]:
    """Return Q = W Wᵀ/d (p, p) and M = W W*ᵀ/d (p, k), in double precision."""
    [(W, W_star)] = _double([(W, W_star)])
    return W @ W.T / W.shape[1], W @ W_star.T / W.shape[1]


def _double(weights: Sequence[tuple[Array, Array]]) -> Iterator[tuple[Array, Array]]:
    """Return the weights in double precision, one pair after another."""
    return ((W.astype(float), W_star.astype(float)) for W, W_star in weights)


def population_with(replicas: Replicas, b: Array) -> OffsetRisks:
    """The expectations over the inputs of the data law for units with offsets b (n, p).

    A committee's are known by its activation; other targets are given as the function of their labels. The law of the
    inputs is given as its classes, isotropic Gaussians, for each replica.
    """
    law = DATA[replicas.data]
    assert law.classes is not None  # by `limits`
    committee = law.teacher and replicas.target == DEFAULTS["target"]
    other = law.teacher and not committee
    return OffsetRisks(
        replicas.activation,
        replicas.teacher_activation if committee else None,
        partial(labels, replicas.target, replicas.teacher_activation) if other else None,
        tuple(law.classes(**replicas.law_of(i)) for i in range(len(replicas))),
        replicas.population,
        b,
        ridges_of(replicas.target) if other and replicas.k > MOST_AXES else (),
    )


def full_batch(name: str) -> tuple[Limit, ...]:
    """The limits of the dynamics `name`, every step of which takes all samples of a training set."""
    reused = f"a number, the same as `batch_size`: {name} reuses a data set of n = α d samples"
    whole = f"{{problem.samples}}, as `samples`: a step of {name} takes the whole data set"
    return (
        Limit("samples", "no data set", reused, FRESH_SAMPLES, lambda _: True),
        Limit("batch_size", "no full batch", whole, where=lambda problem: problem.batch_size != problem.samples),
    )
