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
    INPUT_NOISE,
    ONE_LEVEL,
    REPEATS,
    SPECTRUM,
    UPDATE,
    VELOCITIES,
    WEIGHT_NOISE,
)

LARGEST_REUSED = 128
"""The largest batch that is used several times: the chain keeps the Gram matrix of its samples, one per lane."""


_NO_CHAIN, _SGD = "no overlap chain", "sgd_chain (sgd has no such bound)"
_BESIDE = _NO_CHAIN, f"{{default}} with {{beside}} in {_SGD}"


def _frame(problem: Problem) -> str:
    """The number of rows of the chain with those of the teacher, in words."""
    kinds = 1 + UPDATES[problem.update].has_velocities + problem.has_averages
    return f"{kinds} p + k = {kinds * problem.p + problem.k}"


def _is_beyond(problem: Problem) -> bool:
    return problem.d < int(_frame(problem).split()[-1])


class SgdChain(LaneDynamics):
    """Replicas of the overlap chain: the state is A, B and a."""

    name = "sgd_chain"
    label = "SGD (overlap chain)"
    reads = LaneDynamics.reads | {"batch_size", "repeats", "schedule", "tasks"} | STEPS | AVERAGE_PARAMETERS
    undefined = (("samples sampling", "the overlaps of a student that sees samples again are no Markov chain"),)
    limits = (
        Limit("repeats", *_BESIDE, UPDATE),
        Limit("repeats", *_BESIDE, WEIGHT_NOISE),
        Limit("repeats", *_BESIDE, AVERAGES),
        Limit("data", *_BESIDE, AVERAGES, lambda problem: problem.has_spectrum),
        Limit("batch_size repeats", *_BESIDE, DROPOUT),
        Limit("batch_size repeats", *_BESIDE, INPUT_NOISE),
        Limit("batch_size repeats update", *_BESIDE, SPECTRUM),
        # a sample needs a component outside of the span of the weights, of velocities and of averages
        *(
            Limit("d", _NO_CHAIN, lambda problem: f"at least {_frame(problem)} for {_SGD}", beside, _is_beyond)
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

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        p, k = replicas.p, replicas.k
        of_batch, decays = (replicas.batch_size, replicas.repeats), bool((replicas.numbers.weight_decay > 0.0).any())
        self.called = functions_of(replicas)
        self._rows = p * (1 + self.called.rule.has_velocities + replicas.has_averages)
        remembers = UPDATES[replicas.rule.update].memory is not None
        lessons = replicas.replayed
        tasks = (0, 0) if lessons is None else (lessons.a_star.shape[1], lessons.heads.shape[1])
        flags: Any = decays, self._rows, self._mixes, remembers, replicas.drops, replicas.has_input_noise, *tasks
        self.settings = Settings(p, k, replicas.spherical, replicas.trains_second_layer, *of_batch, *flags)
        if replicas.has_spectrum:
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
        """The rows (rows, n) behind those of the chain: shares and second layers where steps have tasks."""
        lessons = self.replicas.replayed
        if lessons is None:
            return []
        return [rows(x) for x in (lessons.shares[:, lessons.phase].cumsum(axis=1), lessons.a_star, lessons.heads)]

    def begin_phase(self, phase: int) -> None:
        """Go on with the second layers of the task, or of the tasks among those of which steps may be."""
        super().begin_phase(phase)
        if tasks := self._rows_of_tasks():
            of_tasks = np.concatenate(tasks)
            self.state[-len(of_tasks) :] = of_tasks

    @property
    def _mixes(self) -> bool:
        """Whether steps mix the gradients of units, or keep other rows with batches; with one sample some do not."""
        rule, many = self.called.rule, self.replicas.batch_size > 1
        others = rule.has_velocities or self.replicas.has_averages
        return (rule.is_spectral and (many or rule.has_velocities)) or (many and others)

    def _work_and_step(self) -> tuple[Any, Any]:
        """The step with one fresh sample, with a fresh batch, or with a batch used in several steps, and its data."""
        if self.replicas.repeats > 1:
            return reuse_work, reuse_step
        many = self.replicas.batch_size > 1 or self.settings.mixes
        return (batch_work, batch_step) if many else (replay_work, replay_step)

    def _round(self, kind: NoiseKind, work: Any, step: Any) -> Callable[..., None]:
        """The kernel for steps, with noise of the weights where there is some, and averages."""
        replicas, steps = self.replicas, Steps(work, kind.prepare, step, kind.network)
        if self.has_weight_noise:
            # noise comes before the projection
            self.settings = self.settings._replace(spherical=False)
            rows_of_units = self._rows // replicas.p
            steps = noisy(kind, work, step, spherical=replicas.spherical, rows_of_units=rows_of_units)
        return averaged(steps, noisy=self.has_weight_noise).round if replicas.has_averages else steps.round

    @property
    def steps_a_round(self) -> int:
        """The number of steps of a round, smaller for large batches."""
        most = super().steps_a_round
        samples = self.replicas.batch_size * self.replicas.repeats * len(self.replicas)
        return min(most, max(1, most * self.replicas_at_once // samples))

    def settings_of(self, share: float) -> Settings:
        """The settings of a step that uses its batch `share` times only."""
        settings: Settings = self.settings
        return settings._replace(repeats=int(share))

    def observe(self, state: Array) -> None:
        """Take Q = A Aᵀ + B Bᵀ, M = A L*ᵀ and a from the states (rows, n)."""
        if self.replicas.has_spectrum:
            Q, M, self.a = block_overlaps_of(state, self.settings)
            self.by_block = Q, M
            self.Q, self.M = Q.sum(axis=1), M.sum(axis=1)
            return
        p, k, count = self.replicas.p, self.replicas.k, self._rows
        A, B = unrolled(state[: count * k], count, k), unrolled(state[count * k : count * (k + count)], count, count)
        self.a = unrolled(state[-p:], p)
        if (lessons := self.replicas.replayed) is not None:
            count = lessons.heads.shape[1]
            self.heads = unrolled(state[-count * p :], count, p)
            self.a = self.heads[:, lessons.head].copy()
        self.Q, self.M = self._overlaps_of(A[:, -p:], B[:, -p:])
        if self.replicas.has_averages:
            self.average = self._overlaps_of(A[:, :p], B[:, :p])

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def _overlaps_of(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Q (n, p, p) and M (n, p, k) of some rows."""
        return A @ A.transpose(0, 2, 1) + B @ B.transpose(0, 2, 1), A @ self._L_star.transpose(0, 2, 1)

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The rows of `state`: with velocities and averages A and B have p more each, and a memory is one more."""
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
    """A (n, p, k) and B (n, p, p) with `count` rows of zero velocities before theirs, and as many columns of B."""
    before = (0, 0), (count, 0)
    return np.pad(A, (*before, (0, 0))), np.pad(B, (*before, (count, 0)))


def with_averages(A: Array, B: Array, p: int) -> tuple[Array, Array]:
    """A and B with p rows before theirs, averages that start as the last p rows, in the frame of these."""
    n, rows, _ = A.shape
    more = np.zeros((n, p + rows, p + rows))
    more[:, :p, :p] = more[:, -p:, :p] = B[:, -p:, -p:]
    return np.concatenate([A[:, -p:], A], axis=1), more


def block_settings(replicas: Replicas) -> BlockSettings:
    """The settings of replicas whose blocks of inputs agree in all numbers of coordinates up to p + k."""
    p, k, sizes = replicas.p, replicas.k, replicas.multiplicities[0].astype(int)
    factored = sizes > p + k
    coordinates = np.where(factored, k, sizes)
    lengths = 2 + (k + p) * coordinates + p * p * factored
    first_rows, first_draws = (np.cumsum([0, *counts]) for counts in (lengths, coordinates + p * factored))
    decays = bool((replicas.numbers.weight_decay > 0.0).any())
    flags = replicas.spherical, replicas.trains_second_layer, decays
    return BlockSettings(p, k, *flags, coordinates, factored, first_rows, first_draws)


def block_states(replicas: Replicas, settings: BlockSettings) -> Array:
    """The states (rows, n) at the start."""
    start, blocks = replicas.blocks, list[Array]()
    columns = _few_columns(replicas, settings)
    for b, factored in enumerate(settings.factored):
        parts = split_factors(start.Q[:, b], start.M[:, b], start.P[:, b]) if factored else columns[b]
        blocks += [np.sqrt(replicas.eigenvalues[:, b]), replicas.multiplicities[:, b] - settings.p - settings.k, *parts]
    return np.concatenate([rows(array) for array in (*blocks, replicas.a)])


def _few_columns(replicas: Replicas, settings: BlockSettings) -> dict[int, tuple[Array, Array]]:
    """The weights W*_b (n, k, d_b) and W_b (n, p, d_b) over √d of the blocks without a factor, by their numbers."""
    chosen = np.flatnonzero(~settings.factored)
    if not chosen.size:
        return {}
    columns: dict[int, list[tuple[Array, Array]]] = {b: [] for b in chosen.tolist()}
    for i, sizes in enumerate(replicas.multiplicities):
        W, W_star = (weights / np.sqrt(replicas.d[i]) for weights in replicas.weights(i))
        ends = np.cumsum([0, *sizes]).astype(int)
        for b, parts in columns.items():
            parts.append((W_star[:, ends[b] : ends[b + 1]], W[:, ends[b] : ends[b + 1]]))
    return {b: (np.array([u for u, _ in parts]), np.array([v for _, v in parts])) for b, parts in columns.items()}


def block_overlaps_of(state: Array, settings: BlockSettings) -> tuple[Array, Array, Array]:
    """Q (n, L, p, p), M (n, L, p, k) and a (n, p) of states (rows, n)."""
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
