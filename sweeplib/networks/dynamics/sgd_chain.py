"""One-pass SGD by the exact Markov chain of its overlaps, at a cost that does not depend on d.

For fresh Gaussian samples the overlaps are a Markov chain. The state is the factor Ω = L Lᵀ, teacher rows first,
L = [[L*, 0], [A, B]] with B lower triangular. In the frame of its rows a sample √d x has coordinates u* (k), w (p) and,
out of their span, a component of length s, s² ~ χ²(d−p−k). The local fields are L (u*, w); with
c_i = (γ/(pd)) a_i σ'(λ_i) E a step is A += c u*ᵀ and B ← a lower triangular factor of [B + c wᵀ, s c]. Projection
divides rows by their norms. With momentum, A and B also have rows of the velocities, first, and the step adds c to both
kinds of rows. M = A L*ᵀ and Q = A Aᵀ + B Bᵀ; neither is ever factorised, so units may align.

Each eigenvalue of the inputs has a block of coordinates with a factor of its own; in a block of few coordinates rows
are the weights themselves (`kernels/chain_state`). With batches the components out of the span add a Wishart matrix
(`kernels/chain_batches`). If a batch is used in several steps, a step of the dynamics is all of these
(`kernels/chain_reuse`), and exits are found after its last use; a record between two uses takes the first of them from
a copy of the state.

A state of n replicas is a block (rows, n): the entries of A and of B of each block of inputs row by row, the memory of
the rule of steps if it has one, and a (p,); then, where a step is of a task drawn at random, numbers of the tasks
(`_rows_of_tasks`). Before the p rows of the weights, A and B have p rows of averages and p of velocities, if any.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import DYNAMICS, STEPS, NumericalOptions
from sweeplib.networks.dynamics.lane_dynamics import LaneDynamics, rows, unrolled
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import functions_of
from sweeplib.networks.kernels.averages import averaged
from sweeplib.networks.kernels.chain_batches import batch_step, batch_work
from sweeplib.networks.kernels.chain_reuse import reuse_step, reuse_work
from sweeplib.networks.kernels.chain_rows import chain_network
from sweeplib.networks.kernels.chain_state import Frame, Settings, chain_prepare
from sweeplib.networks.kernels.lanes import Steps
from sweeplib.networks.kernels.replay import replay_step, replay_work
from sweeplib.networks.kernels.weight_noise import noisy
from sweeplib.networks.kernels.weight_noise_of_rows import OF_CHAIN
from sweeplib.networks.maths.overlaps import split_factors
from sweeplib.networks.problem import AVERAGES as AVERAGE_PARAMETERS
from sweeplib.networks.problem import UPDATES, Limit, Problem
from sweeplib.networks.problem.combinations import (
    INPUT_NOISE,
    REPEATS,
    REPLAY,
    SIGNS,
    WEIGHT_NOISE,
)

LARGEST_REUSED = 128
"""The largest batch that is used several times: the chain keeps the Gram matrix of its samples, one per lane."""


# reasons and expectations of limits
_WITH = "with {beside} in sgd_chain (sgd has no such bound)"
_BESIDE = f"{{default}} {_WITH}"


def _mixes_samples(problem: Problem) -> bool:
    """Whether steps of one sample take the kernel of batches: spectral ones with momentum."""
    return UPDATES[problem.update].spectrum is not None and UPDATES[problem.update].has_velocities


class ChainOptions(NumericalOptions):
    """Options of the chain.

    delocalised : take steps of signs as those of weights that are all of one size, which is an approximation.
    """

    delocalised: bool = False


_SIGNS = Limit(
    "update",
    "no exact overlap chain of signs, which depend on single weights",
    "{default}; or `delocalised: true`, an approximation for large d; or sgd",
    SIGNS,
)


class SgdChain(LaneDynamics):
    """Replicas of the overlap chain: the state is A, B and a."""

    name = "sgd_chain"
    label = "SGD (overlap chain)"
    reads = LaneDynamics.reads | {"batch_size", "repeats", "schedule", "tasks"} | STEPS | AVERAGE_PARAMETERS
    undefined = (("samples sampling", "the overlaps of a student that sees samples again are no Markov chain"),)
    limits = (
        Limit("repeats", "noise of each use adds directions to the frame of a batch", _BESIDE, WEIGHT_NOISE),
        Limit("repeats", "noise of each use adds directions to the frame of a batch", _BESIDE, INPUT_NOISE),
        Limit("batch_size repeats data", "signs are known of one sample, of inputs alike", _BESIDE, SIGNS),
        Limit("update", "signs of noisy inputs are not known", _BESIDE, INPUT_NOISE, SIGNS.is_of),
        Limit("batch_size", "samples of a batch may be of several tasks", f"1, or `replay: 0`, {_WITH}", REPLAY),
        Limit("update", "its steps are known of one task", _BESIDE, REPLAY, _mixes_samples),
        Limit(
            "weight_decay",
            "velocities that decay are known of one task",
            _BESIDE,
            REPLAY,
            lambda problem: problem.decays_velocities,
        ),
        Limit(
            "batch_size",
            "batch too large to be reused",
            f"at most {LARGEST_REUSED} {_WITH}",
            REPEATS,
            lambda problem: problem.batch_size > LARGEST_REUSED,
        ),
    )
    law_of = "sgd"
    cost_seconds = (0.75e-10, 1.1e-8, 4e-9)
    unaffected_by = frozenset({"times", "thresholds"})
    takes_spectra = True
    Options = ChainOptions

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        p, k = replicas.p, replicas.k
        self.called = functions_of(replicas)
        # the height of A and B: rows of the weights, and as many of velocities and of averages if there are any
        self._rows = p * (1 + self.called.rule.has_velocities + replicas.has_averages)
        remembers = UPDATES[replicas.rule.update].memory is not None
        lessons = replicas.replayed
        # replicas agree in which blocks have a factor, and in the sizes of all others: those of the first serve for all
        self._frame = frame_of(replicas.multiplicities[0], k, self._rows)
        self.settings = Settings(
            p=p,
            k=k,
            spherical=replicas.spherical,
            trained=replicas.trains_second_layer,
            batch_size=replicas.batch_size,
            repeats=replicas.repeats,
            decays=bool((replicas.numbers.weight_decay > 0.0).any()),
            rows=self._rows,
            mixes=self._mixes,
            remembers=remembers,
            drops=replicas.drops,
            has_input_noise=replicas.has_input_noise,
            takes_signs=self.called.rule.takes_signs,
            tasks=0 if lessons is None else lessons.a_star.shape[1],
            heads=0 if lessons is None else lessons.heads.shape[1],
            averages=replicas.has_averages,
            stride=replicas.repeats,
            has_spectrum=replicas.has_spectrum,
            frame=self._frame,
        )
        self.round = self._round()
        memory = [replicas.memory] if remembers else []
        blocks, teacher = self._blocks_at_start()
        self.begin(np.concatenate([*map(rows, (*blocks, *memory, replicas.a)), *self._rows_of_tasks()]), teacher)

    def _blocks_at_start(self) -> tuple[list[Array], Array]:
        """A_b and B_b of all blocks of inputs in turn, (n, rows, ·) each, and the rows (·, n) of the teacher.

        Those of a block are √λ_b, d_b − k − rows, and L*_b (`chain_state`).
        """
        replicas, frame, start = self.replicas, self._frame, self.replicas.blocks
        columns, of_student, of_teacher = columns_of_small_blocks(replicas, frame), list[Array](), list[Array]()
        for b, factored in enumerate(frame.factored):
            factors = split_factors(start.Q[:, b], start.M[:, b], start.P[:, b]) if factored else columns[b]
            of_student += with_other_rows(*factors[1:], self.called.rule.has_velocities, replicas.has_averages)
            degrees = replicas.multiplicities[:, b] - replicas.k - self._rows
            of_teacher += [np.sqrt(replicas.eigenvalues[:, b])[None], degrees[None], rows(factors[0])]
        return of_student, np.concatenate(of_teacher)

    def _rows_of_tasks(self) -> list[Array]:
        """The rows (rows, n) behind those of the chain, in the order of `replay_work`; none for steps of one task.

        They are, of T tasks, the ends of their shares in [0, 1], from which a uniform number draws the task of a step,
        the second layers of the teacher, and those of the student.
        """
        lessons = self.replicas.replayed
        if lessons is None:
            return []
        ends_of_shares = lessons.shares[:, lessons.phase].cumsum(axis=1)
        return [rows(array) for array in (ends_of_shares, lessons.a_star, lessons.heads)]

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks: go on with its second layers, or with those of all tasks that steps may be of."""
        super().begin_phase(phase)
        if tasks := self._rows_of_tasks():
            of_tasks = np.concatenate(tasks)
            self.state[-len(of_tasks) :] = of_tasks

    @property
    def _mixes(self) -> bool:
        """Whether steps of a fresh batch are taken in an explicit frame: of rules that are not plain, or other rows.

        The gradient of one sample has one direction, which a spectral step leaves: it takes the plain kernel, unless
        there are velocities of it, or velocities that take in a decay.
        """
        rule, other_rows = self.called.rule, self._rows > self.replicas.p
        if self.replicas.batch_size == 1:
            # replicas agree in whether velocities decay
            return rule.has_velocities and (rule.is_spectral or bool(self.replicas.numbers.weight_decay[0] > 0.0))
        return other_rows or rule.is_spectral or rule.rescales or rule.is_tangent

    def _work_and_step(self) -> tuple[Any, Any]:
        """The kernels that make the work arrays of a step and that take it.

        They are those of a batch used in several steps, of a fresh batch, or of one fresh sample.
        """
        if self.replicas.repeats > 1:
            return reuse_work, reuse_step
        takes_batches = self.replicas.batch_size > 1 or self.settings.mixes
        return (batch_work, batch_step) if takes_batches else (replay_work, replay_step)

    def _round(self) -> Callable[..., None]:
        """The kernel that takes rounds of steps, with noise of the weights and averages where there are some."""
        replicas, (work, step) = self.replicas, self._work_and_step()
        steps = Steps(work, chain_prepare, step, chain_network)
        if self.has_weight_noise:
            # noise comes before the projection
            self.settings = self.settings._replace(spherical=False)
            rows_of_units = self._rows // replicas.p
            steps = noisy(OF_CHAIN, work, step, spherical=replicas.spherical, rows_of_units=rows_of_units)
        # the averages of steps that use a batch several times are among the rows of a round
        outside = replicas.has_averages and replicas.repeats == 1
        return averaged(steps, noisy=self.has_weight_noise).round if outside else steps.round

    @property
    def steps_a_round(self) -> int:
        """The number of steps of a round, smaller for large batches: the clock is read after about the same work."""
        most = super().steps_a_round
        samples = self.replicas.batch_size * self.replicas.repeats * len(self.replicas)
        return min(most, max(1, most * self.replicas_at_once // samples))

    def settings_of(self, share: float) -> Settings:
        """The settings of a step that uses its batch `share` times only."""
        settings: Settings = self.settings
        return settings._replace(repeats=int(share))

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def observe(self, state: Array) -> None:
        """Set Q = A Aᵀ + B Bᵀ, M = A L*ᵀ, a and, if there are any, the heads and averages, from states (rows, n)."""
        replicas, p = self.replicas, self.replicas.p
        self.a = unrolled(state[-p:], p)
        if (lessons := replicas.replayed) is not None:
            self.heads = unrolled(state[-lessons.heads[0].size :], *lessons.heads.shape[1:])
            self.a = self.heads[:, lessons.head].copy()
        Q, M = self._overlaps_of(state, slice(self._rows - p, self._rows))
        self.Q, self.M = Q.sum(axis=1), M.sum(axis=1)
        if replicas.has_spectrum:
            self.by_block = Q, M
        if replicas.has_averages:
            Q, M = self._overlaps_of(state, slice(p))
            self.average = Q.sum(axis=1), M.sum(axis=1)
            self.average_fields = self._blocks(Q, M).weighted()[:2] if replicas.has_spectrum else None

    def _overlaps_of(self, state: Array, which: slice) -> tuple[Array, Array]:
        """Q (n, L, p, p) and M (n, L, p, k) of the rows `which` of A_b and B_b, for states (rows, n)."""
        Q, M, frame, height, k = list[Array](), list[Array](), self._frame, self._rows, self.replicas.k
        for b, (r, factored) in enumerate(zip(frame.coordinates, frame.factored, strict=True)):
            first, of_teacher = frame.states[b], self.teacher[frame.teachers[b] + 2 : frame.teachers[b + 1]]
            middle = first + height * r
            A, L_star = unrolled(state[first:middle], height, r)[:, which], unrolled(of_teacher, k, r)
            Q.append(A @ A.transpose(0, 2, 1))
            if factored:
                B = unrolled(state[middle : middle + height**2], height, height)[:, which]
                Q[-1] += B @ B.transpose(0, 2, 1)
            M.append(A @ L_star.transpose(0, 2, 1))
        return np.stack(Q, axis=1), np.stack(M, axis=1)

    @classmethod
    def limits_of(cls, options: NumericalOptions) -> tuple[Limit, ...]:
        """The limits with these options: steps of signs are taken with `delocalised` only, as an approximation."""
        return cls.limits if isinstance(options, ChainOptions) and options.delocalised else (*cls.limits, _SIGNS)

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The rows of `state`: of A and B of all blocks of inputs, a memory and a; 0 with several tasks."""
        if problem.in_turn:
            return 0
        frame = frame_of(np.array(problem.blocks[1]), problem.k, problem.rows)
        return int(frame.states[-1]) + (UPDATES[problem.update].memory is not None) + problem.p

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return the number of steps to a time, times the work of all samples and uses of a batch in one."""
        sizes, most = problem.blocks[1], problem.p + problem.k
        width = sum(min(size, most) for size in sizes) + len(sizes) * (problem.batch_size if problem.repeats > 1 else 0)
        of_sample = 20.0 * (width + 3 * len(sizes)) + 8.0 * problem.p * width * problem.repeats
        return time / problem.step_time() * problem.batch_size * of_sample


def with_other_rows(A: Array, B: Array, velocities: bool, averages: bool) -> tuple[Array, Array]:
    """A (n, rows, r) and B (n, rows, rows) of p rows A (n, p, r), B (n, p, p) of weights, and others before.

    Rows of velocities are zero, those of averages, the first, are as the weights. B stays lower triangular: the
    directions of the averages, its first columns, are at the start those of the weights. B may have no rows.
    """
    n, p, r = A.shape
    of_A = ([A] if averages else []) + ([np.zeros((n, p, r))] if velocities else []) + [A]
    height = p * len(of_A) if B.size else 0
    of_B = np.zeros((n, height, height))
    if B.size:
        of_B[:, -p:, : p if averages else height][:, :, -p:] = B
        if averages:
            of_B[:, :p, :p] = B
    return np.concatenate(of_A, axis=1), of_B


def frame_of(sizes: Array, k: int, height: int) -> Frame:
    """The `Frame` of A_b and B_b with so many rows, for blocks of `sizes` (L,) coordinates of one eigenvalue each.

    Blocks of more than k + `height` coordinates have a factor.
    """
    factored = sizes > k + height
    coordinates = np.where(factored, k, sizes).astype(int)
    counts = height * (coordinates + height * factored), coordinates + height * factored, 2 + k * coordinates
    states, draws, teachers = (np.cumsum([0, *count]) for count in counts)
    return Frame(coordinates, factored, states, draws, teachers)


def columns_of_small_blocks(replicas: Replicas, frame: Frame) -> dict[int, tuple[Array, Array, Array]]:
    """The weights W*_b (n, k, d_b), W_b (n, p, d_b), over √d, and no B_b, of the blocks b without a factor, by b."""
    small = np.flatnonzero(~frame.factored)
    if not small.size:
        return {}
    columns: dict[int, list[tuple[Array, Array]]] = {b: [] for b in small.tolist()}
    for i, sizes in enumerate(replicas.multiplicities):
        W, W_star = (weights / np.sqrt(replicas.d[i]) for weights in replicas.weights(i))
        ends = np.cumsum([0, *sizes]).astype(int)
        for b, pairs in columns.items():
            pairs.append((W_star[:, ends[b] : ends[b + 1]], W[:, ends[b] : ends[b + 1]]))
    none = np.empty((len(replicas), 0, 0))
    return {b: (np.array([W for W, _ in pairs]), np.array([W for _, W in pairs]), none) for b, pairs in columns.items()}


DYNAMICS.register("sgd_chain", SgdChain)
