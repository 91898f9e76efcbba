"""One-pass SGD by the exact Markov chain of its overlaps, at a cost that does not depend on d.

For fresh Gaussian samples the overlaps are a Markov chain. The state is the factor Ω = L Lᵀ, teacher rows first,
L = [[L*, 0], [A, B]] with B lower triangular. In the frame of its rows a sample √d x has coordinates u* (k), w (p) and,
out of their span, a component of length s, s² ~ χ²(d−p−k). The local fields are L (u*, w); with
c_i = (γ/(pd)) a_i σ'(λ_i) E a step is A += c u*ᵀ and B ← a lower triangular factor of [B + c wᵀ, s c]. Projection
divides rows by their norms. With momentum, A and B also have rows of the velocities, first, and the step adds c to both
kinds of rows. M = A L*ᵀ and Q = A Aᵀ + B Bᵀ; neither is ever factorised, so units may align.

With batches the components out of the span add a Wishart matrix (`kernels/chain_batches`). If a batch is used in
several steps, a step of the dynamics is all of these (`kernels/chain_reuse`), and exits are found after its last use; a
record between two uses takes the first of them from a copy of the state.

A state of n replicas is a block (rows, n): the entries of A and of B row by row, the memory of the rule of steps if it
has one, and a (p,); then, where a step is of a task drawn at random, numbers of the tasks (`_rows_of_tasks`). Before
the p rows of the weights, A and B have p rows of averages and p of velocities, if there are any.
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
from sweeplib.networks.kernels.chain import Settings
from sweeplib.networks.kernels.chain_batches import batch_step, batch_work
from sweeplib.networks.kernels.chain_blocks import BlockSettings, block_step, block_work
from sweeplib.networks.kernels.chain_reuse import reuse_step, reuse_work
from sweeplib.networks.kernels.lanes import Steps
from sweeplib.networks.kernels.replay import replay_step, replay_work
from sweeplib.networks.kernels.weight_noise import NoiseKind, noisy
from sweeplib.networks.kernels.weight_noise_of_rows import OF_BLOCKS, OF_CHAIN
from sweeplib.networks.maths.overlaps import split_factors, teacher_factors
from sweeplib.networks.problem import AVERAGES as AVERAGE_PARAMETERS
from sweeplib.networks.problem import UPDATES, Limit, Problem
from sweeplib.networks.problem.combinations import (
    AVERAGES,
    DROPOUT,
    HEAVY_BALL,
    INPUT_NOISE,
    ONE_LEVEL,
    REPEATS,
    REPLAY,
    SIGNS,
    SPECTRUM,
    UPDATE,
    VELOCITIES,
    WEIGHT_NOISE,
)

LARGEST_REUSED = 128
"""The largest batch that is used several times: the chain keeps the Gram matrix of its samples, one per lane."""


# reasons and expectations of limits
_NO_CHAIN, _SGD = "no overlap chain", "sgd_chain (sgd has no such bound)"
_BESIDE = _NO_CHAIN, f"{{default}} with {{beside}} in {_SGD}"


def _least_d(problem: Problem) -> str:
    """The number of rows of the chain and of the teacher together, in words: "2 p + k = 9"."""
    kinds = 1 + UPDATES[problem.update].has_velocities + problem.has_averages
    return f"{kinds} p + k = {kinds * problem.p + problem.k}"


def _mixes_samples(problem: Problem) -> bool:
    """Whether steps of one sample take the kernel of batches: spectral ones with momentum."""
    return UPDATES[problem.update].spectrum is not None and UPDATES[problem.update].has_velocities


def _is_beyond(problem: Problem) -> bool:
    """Whether the rows of the chain and of the teacher leave a sample no direction out of their span."""
    return problem.d < int(_least_d(problem).split()[-1])


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
        Limit("repeats", *_BESIDE, UPDATE),
        Limit("weight_decay", "no overlap chain of velocities that decay", _BESIDE[1], HEAVY_BALL),
        Limit("repeats", *_BESIDE, WEIGHT_NOISE),
        Limit("repeats", *_BESIDE, AVERAGES),
        Limit("batch_size", *_BESIDE, SIGNS),
        Limit("data", *_BESIDE, AVERAGES, lambda problem: problem.has_spectrum),
        Limit("batch_size repeats data", *_BESIDE, DROPOUT),
        Limit("batch_size repeats data", *_BESIDE, INPUT_NOISE),
        Limit("data", *_BESIDE, REPLAY, lambda problem: problem.has_spectrum),
        Limit("batch_size", _NO_CHAIN, f"1, or `replay: 0`, with {{beside}} in {_SGD}", REPLAY),
        *(Limit("update", *_BESIDE, beside, _mixes_samples) for beside in (DROPOUT, REPLAY)),
        Limit("update", *_BESIDE, INPUT_NOISE, lambda problem: _mixes_samples(problem) or SIGNS.is_of(problem)),
        Limit("batch_size repeats update", *_BESIDE, SPECTRUM),
        # a sample needs a component outside of the span of the weights, of velocities and of averages
        *(
            Limit("d", _NO_CHAIN, lambda problem: f"at least {_least_d(problem)} for {_SGD}", beside, _is_beyond)
            for beside in (VELOCITIES, AVERAGES)
        ),
        Limit(
            "d",
            _NO_CHAIN,
            lambda problem: f"at least p + k = {problem.p + problem.k} for {_SGD}",
            ONE_LEVEL,
            lambda problem: problem.d < problem.p + problem.k,
        ),
        Limit(
            "batch_size",
            "batch too large to be reused",
            f"at most {LARGEST_REUSED} with {{beside}} in {_SGD}",
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
        of_batch, decays = (replicas.batch_size, replicas.repeats), bool((replicas.numbers.weight_decay > 0.0).any())
        self.called = functions_of(replicas)
        # the height of A and B: rows of the weights, and as many of velocities and of averages if there are any
        self._rows = p * (1 + self.called.rule.has_velocities + replicas.has_averages)
        remembers = UPDATES[replicas.rule.update].memory is not None
        lessons = replicas.replayed
        tasks = (0, 0) if lessons is None else (lessons.a_star.shape[1], lessons.heads.shape[1])
        kinds = replicas.drops, replicas.has_input_noise, self.called.rule.takes_signs
        flags: Any = decays, self._rows, self._mixes, remembers, *kinds, *tasks
        self.settings = Settings(p, k, replicas.spherical, replicas.trains_second_layer, *of_batch, *flags)
        if replicas.has_spectrum:  # a chain of other states and kernels
            self.settings = block_settings(replicas)
            self.round = self._round(OF_BLOCKS, block_work, block_step)
            self.begin(block_states(replicas, self.settings), teacher_factors(replicas.fields[2]))
            return
        self.round = self._round(OF_CHAIN, *self._work_and_step())
        self._L_star, A, B = split_factors(replicas.Q, replicas.M, replicas.P)
        memory = [replicas.memory] if remembers else []
        A, B = with_velocities(A, B, p if self.called.rule.has_velocities else 0)
        parts = [*(with_averages(A, B, p) if replicas.has_averages else (A, B)), *memory, replicas.a]
        self.begin(np.concatenate([*map(rows, parts), *self._rows_of_tasks()]), self._L_star)

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
        """Whether the kernel of batches must mix rows: of a spectral step, or of velocities and averages with weights.

        The gradient of one sample has one direction, which a spectral step leaves: it takes the plain kernel.
        """
        rule, has_batches = self.called.rule, self.replicas.batch_size > 1
        has_other_rows = rule.has_velocities or self.replicas.has_averages
        return (rule.is_spectral and (has_batches or rule.has_velocities)) or (has_batches and has_other_rows)

    def _work_and_step(self) -> tuple[Any, Any]:
        """The kernels that make the work arrays of a step and that take it.

        They are those of a batch used in several steps, of a fresh batch, or of one fresh sample.
        """
        if self.replicas.repeats > 1:
            return reuse_work, reuse_step
        takes_batches = self.replicas.batch_size > 1 or self.settings.mixes
        return (batch_work, batch_step) if takes_batches else (replay_work, replay_step)

    def _round(self, kind: NoiseKind, work: Any, step: Any) -> Callable[..., None]:
        """The kernel that takes rounds of steps, with noise of the weights and averages where there are some.

        kind : how noise is added to this kind of state. work, step : kernels that make its work arrays and take a step.
        """
        replicas, steps = self.replicas, Steps(work, kind.prepare, step, kind.network)
        if self.has_weight_noise:
            # noise comes before the projection
            self.settings = self.settings._replace(spherical=False)
            rows_of_units = self._rows // replicas.p
            steps = noisy(kind, work, step, spherical=replicas.spherical, rows_of_units=rows_of_units)
        return averaged(steps, noisy=self.has_weight_noise).round if replicas.has_averages else steps.round

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

    def observe(self, state: Array) -> None:
        """Set Q = A Aᵀ + B Bᵀ, M = A L*ᵀ, a and, if there are any, the heads and averages, from states (rows, n)."""
        if self.replicas.has_spectrum:
            Q, M, self.a = block_overlaps_of(state, self.settings)
            self.by_block = Q, M
            self.Q, self.M = Q.sum(axis=1), M.sum(axis=1)
            return
        p, k, height = self.replicas.p, self.replicas.k, self._rows
        after_A, after_B = height * k, height * (k + height)
        A, B = unrolled(state[:after_A], height, k), unrolled(state[after_A:after_B], height, height)
        self.a = unrolled(state[-p:], p)
        if (lessons := self.replicas.replayed) is not None:
            self.heads = unrolled(state[-lessons.heads[0].size :], *lessons.heads.shape[1:])
            self.a = self.heads[:, lessons.head].copy()
        self.Q, self.M = self._overlaps_of(A[:, -p:], B[:, -p:])
        if self.replicas.has_averages:
            self.average = self._overlaps_of(A[:, :p], B[:, :p])

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def _overlaps_of(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Q (n, p, p) and M (n, p, k) of rows A (n, p, k) and B (n, p, ·)."""
        return A @ A.transpose(0, 2, 1) + B @ B.transpose(0, 2, 1), A @ self._L_star.transpose(0, 2, 1)

    @classmethod
    def limits_of(cls, options: NumericalOptions) -> tuple[Limit, ...]:
        """The limits with these options: steps of signs are taken with `delocalised` only, as an approximation."""
        return cls.limits if isinstance(options, ChainOptions) and options.delocalised else (*cls.limits, _SIGNS)

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The rows of `state`: of A, B, a memory and a, with p rows more of A and B for velocities and for averages."""
        step, goes_on = UPDATES[problem.update], super().state_size(problem, options) > 0
        count = problem.p * (1 + step.has_velocities + problem.has_averages)
        return count * (problem.k + count) + (step.memory is not None) + problem.p if goes_on else 0

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return the number of steps to a time, times the work of all samples and uses of a batch in one."""
        width = problem.p + problem.k + (problem.batch_size if problem.repeats > 1 else 0)
        of_sample = 20.0 * (width + 3) + 8.0 * problem.p * width * problem.repeats
        return time / problem.step_time() * problem.batch_size * of_sample * len(problem.blocks[0])


def with_velocities(A: Array, B: Array, count: int) -> tuple[Array, Array]:
    """A (n, p, k) and B (n, p, p) with `count` rows of zero velocities before, and as many columns of zeros in B."""
    before = (0, 0), (count, 0)
    return np.pad(A, (*before, (0, 0))), np.pad(B, (*before, (count, 0)))


def with_averages(A: Array, B: Array, p: int) -> tuple[Array, Array]:
    """A (n, rows, k) and B (n, rows, rows) with p rows of averages before theirs, which start as the weights.

    The weights are the last p rows. B stays lower triangular: the directions of the averages, its first columns, are
    at the start those of the weights.
    """
    n, rows, _ = A.shape
    larger_B = np.zeros((n, p + rows, p + rows))
    larger_B[:, :p, :p] = larger_B[:, -p:, :p] = B[:, -p:, -p:]
    return np.concatenate([A[:, -p:], A], axis=1), larger_B


def block_settings(replicas: Replicas) -> BlockSettings:
    """The settings of replicas of inputs with several eigenvalues, in blocks of one eigenvalue each.

    The sizes of the first replica serve for all: replicas agree in which blocks have more than p + k coordinates, and
    in the sizes of all others.
    """
    p, k, sizes = replicas.p, replicas.k, replicas.multiplicities[0].astype(int)
    factored = sizes > p + k
    coordinates = np.where(factored, k, sizes)
    lengths = 2 + (k + p) * coordinates + p * p * factored
    first_rows, first_draws = (np.cumsum([0, *counts]) for counts in (lengths, coordinates + p * factored))
    decays = bool((replicas.numbers.weight_decay > 0.0).any())
    flags = replicas.spherical, replicas.trains_second_layer, decays
    return BlockSettings(p, k, *flags, coordinates, factored, first_rows, first_draws)


def block_states(replicas: Replicas, settings: BlockSettings) -> Array:
    """The states (rows, n) at the start, of inputs with several eigenvalues: of each block in turn, and then a.

    A block has √λ_b, d_b − p − k, and its factors L*, A, B, or its weights if it has few columns (`chain_blocks`).
    """
    start, blocks = replicas.blocks, list[Array]()
    columns = _columns_of_small_blocks(replicas, settings)
    for b, factored in enumerate(settings.factored):
        parts = split_factors(start.Q[:, b], start.M[:, b], start.P[:, b]) if factored else columns[b]
        blocks += [np.sqrt(replicas.eigenvalues[:, b]), replicas.multiplicities[:, b] - settings.p - settings.k, *parts]
    return np.concatenate([rows(array) for array in (*blocks, replicas.a)])


def _columns_of_small_blocks(replicas: Replicas, settings: BlockSettings) -> dict[int, tuple[Array, Array]]:
    """The weights W*_b (n, k, d_b) and W_b (n, p, d_b), over √d, of the blocks b that have no factor, by b."""
    small = np.flatnonzero(~settings.factored)
    if not small.size:
        return {}
    columns: dict[int, list[tuple[Array, Array]]] = {b: [] for b in small.tolist()}
    for i, sizes in enumerate(replicas.multiplicities):
        W, W_star = (weights / np.sqrt(replicas.d[i]) for weights in replicas.weights(i))
        ends = np.cumsum([0, *sizes]).astype(int)
        for b, pairs in columns.items():
            pairs.append((W_star[:, ends[b] : ends[b + 1]], W[:, ends[b] : ends[b + 1]]))
    return {b: (np.array([W for W, _ in pairs]), np.array([W for _, W in pairs])) for b, pairs in columns.items()}


def block_overlaps_of(state: Array, settings: BlockSettings) -> tuple[Array, Array, Array]:
    """Q (n, L, p, p), M (n, L, p, k) and a (n, p) of states (rows, n) of L blocks of inputs (`block_states`).

    The first two rows of a block are constants.
    """
    p, k, Q, M = settings.p, settings.k, list[Array](), list[Array]()
    for r, factored, first in zip(settings.coordinates, settings.factored, settings.rows, strict=False):
        at = first + 2 + k * r
        L_star, A = unrolled(state[first + 2 : at], k, r), unrolled(state[at : at + p * r], p, r)
        Q.append(A @ A.transpose(0, 2, 1))
        if factored:
            B = np.tril(unrolled(state[at + p * r : at + p * (r + p)], p, p))
            Q[-1] += B @ B.transpose(0, 2, 1)
        M.append(A @ L_star.transpose(0, 2, 1))
    return np.stack(Q, axis=1), np.stack(M, axis=1), unrolled(state[settings.rows[-1] :], p)


DYNAMICS.register("sgd_chain", SgdChain)
