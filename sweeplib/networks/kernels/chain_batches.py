"""The step of the overlap chain with a batch of fresh samples, for a group of replicas in vector lanes.

With C = (T/n_b) [c¹ ... c^{n_b}], U* and W the coordinates of the samples in the frame of a block of inputs, and
G (n_b, m) those out of it, m = d_b − k − rows, a step is A += C U*ᵀ and B ← a factor of [B + C Wᵀ, C G]. Samples are
times √λ_b. The columns of C G are independent N(0, CCᵀ): C G = F N with F a factor of CCᵀ and N (p, m) of N(0, 1)
entries, and N Nᵀ = S Sᵀ with Bartlett's lower triangular S, S_jj² ~ χ²(m − j), S_ij ~ N(0, 1) for j < i. Hence
B ← a factor of [B + C Wᵀ, F S], with an S of each block.

Nothing is squared: F is updated by rotations with each sample, or by reflections with many. All ranks are covered. If
n_b < p, the columns of F from n_b on are zero; if m < p, those of S from m on.

A plain step adds its moves to A and B. With a rule that changes the moves, or with rows of velocities or averages, the
step is one in the explicit frame of the coordinates and of p more, whose columns are F S (`chain_frames`).

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `Batch` of the group.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import (
    Samples,
    Sums,
    absorb,
    begin_batches,
    empty_sums,
    samples_of,
    sum_batches,
)
from sweeplib.networks.kernels.chain import decay, needs_slack
from sweeplib.networks.kernels.chain_frames import (
    Explicit,
    begin_round,
    empty_frame,
    finish_round,
    shorten_slack,
    step_in_frame,
)
from sweeplib.networks.kernels.chain_rows import OTHER_KEY, project, weight_lengths
from sweeplib.networks.kernels.chain_state import Chain, chain_work, rows_of
from sweeplib.networks.kernels.lanes import Network, Stream, allocating, draw_normals, empty_stream, kernel, loops
from sweeplib.networks.kernels.lengths import Length, draw_length, lengths_of_S


class Outside(NamedTuple):
    """What a step adds out of the frames: F S `across` (L, p, p, lanes), with S made of normals z.

    degrees, scale, width (L, p, lanes) : of each S_jj², as in `Length`. root (L, lanes) : by which S is multiplied.
    """

    stream: Stream
    z: Array
    S: Array
    across: Array
    degrees: Array
    scale: Array
    width: Array
    root: Array


class Batch(NamedTuple):
    """The data of a group: chain, `samples` in lanes, their `sums` for each replica, and steps `outside` of the frames.

    explicit : rows in an explicit frame, for steps that `mix` rows. network : that of the chain.
    """

    chain: Chain
    samples: Samples
    sums: Sums
    outside: Outside
    explicit: Explicit
    network: Network


@allocating
def batch_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Batch` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, frame = settings.p, settings.frame
    chain = chain_work(settings, state, constants)
    lanes, blocks = chain.a.shape[1], frame.factored.size
    degrees, scale, width = lengths_of_S(chain.lengths.degrees, p)
    z = np.empty((4 * ((frame.draws[-1] + 1 + blocks * p * (p + 1) // 2 + 3) // 4), lanes))
    # nothing writes above the diagonals
    S, across, root = np.zeros((p, p, lanes)), np.zeros((blocks, p, p, lanes)), np.ones((blocks, lanes))
    weight_lengths(chain, root)
    outside = Outside(empty_stream(lanes), z, S, across, degrees, scale, width, root)
    # without columns if no step mixes rows
    explicit = empty_frame(settings, p, lanes if settings.mixes else 0)
    sums = empty_sums(p, frame.draws[-1], lanes)
    return Batch(chain, samples_of(settings, chain), sums, outside, explicit, chain.network)


@loops
def draw_outside(settings, stream, work):  # type: ignore[no-untyped-def]
    """Fill F S of each block, with Bartlett's S, as far as the factor F has columns: one for each sample, at most p.

    The normals continue those of the first sample; S_jj is drawn in the stream of sample j.
    """
    outside, frame, lengths, F = work.outside, settings.frame, work.chain.lengths, work.sums.factor
    p, n_b, samples, z, S = settings.p, settings.batch_size, outside.stream, outside.z, outside.S
    lanes, row = S.shape[2], frame.draws[-1] + 1
    begin_batches(stream, n_b, samples)
    draw_normals(samples.step, samples.seed, samples.key, z)
    for b in range(frame.factored.size):
        if not frame.factored[b]:
            continue
        degrees, scale, width = outside.degrees[b], outside.scale[b], outside.width[b]
        begin_batches(stream, n_b, samples)
        for lane in range(lanes):
            samples.key[lane] += np.uint64(b) * OTHER_KEY
        for j in range(min(p, n_b)):
            length = Length(S[j, j], degrees[j], scale[j], width[j], lengths.sure, lengths.four)
            draw_length(samples, length, z[row])
            row += 1
            for i in range(j + 1, p):
                for lane in range(lanes):
                    # columns from m on are zero
                    S[i, j, lane] = z[row, lane] if degrees[j, lane] > 0.0 else 0.0
                row += 1
            for lane in range(lanes):
                samples.step[lane] += np.uint64(1)
        multiply(F, S, outside.root[b], outside.across[b])


@kernel
def multiply(F, S, root, out):  # type: ignore[no-untyped-def]
    """Fill out (p, p, lanes) with the product F S of lower triangular matrices (p, p, lanes), times root (lanes,)."""
    p, _, lanes = F.shape
    for i in range(p):
        for j in range(i + 1):
            out[i, j, :] = 0.0
            for l in range(j, i + 1):  # noqa: E741
                for lane in range(lanes):
                    out[i, j, lane] += F[i, l, lane] * S[l, j, lane]
            for lane in range(lanes):
                out[i, j, lane] *= root[lane]


@kernel
def shorten_slack_of_moves(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f: (L/p) Σ_i |a_i| √(Σ_b λ_b |Δw_i,b|²/d), twice on the sphere.

    L is σ's Lipschitz constant `lipschitz`; |Δw_i,b|²/d is the sum of the squares of the moves and of F S.
    """
    chain, moves, frame, slack = work.chain, work.sums.moves, settings.frame, work.network.slack
    if not needs_slack(settings, lipschitz, work.network):
        return
    p, _, lanes = moves.shape
    factor = (2.0 if settings.spherical else 1.0) * lipschitz / p
    square, of_block = chain.rotations.tail, chain.rotations.spill
    for i in range(p):
        square[:] = 0.0
        for b in range(frame.factored.size):
            root = chain.constants.teacher[chain.frame.teachers[b]]
            of_block[:] = 0.0
            for s in range(frame.draws[b], frame.draws[b + 1]):
                for lane in range(lanes):
                    of_block[lane] += moves[i, s, lane] * moves[i, s, lane]
            if frame.factored[b]:
                for j in range(i + 1):
                    for lane in range(lanes):
                        of_block[lane] += work.outside.across[b, i, j, lane] * work.outside.across[b, i, j, lane]
            for lane in range(lanes):
                square[lane] += root[lane] * root[lane] * of_block[lane]
        for lane in range(lanes):
            slack[lane] -= factor * abs(chain.a[i, lane]) * math.sqrt(square[lane])


@loops
def add_moves(settings, work):  # type: ignore[no-untyped-def]
    """Add the moves of a plain step to A and B of all blocks, and train the second layer."""
    p, n_b, frame, chain, sums = settings.p, settings.batch_size, settings.frame, work.chain, work.sums
    numbers, column, rotations, lanes = chain.constants.numbers, chain.fields.c, chain.rotations, chain.a.shape[1]
    for b in range(frame.factored.size):
        A, B = rows_of(chain, b)
        first, r, across = frame.draws[b], A.shape[1], work.outside.across[b]
        for i in range(p):
            for s in range(r):
                for lane in range(lanes):
                    A[i, s, lane] += sums.moves[i, first + s, lane]
        if B.shape[0] == 0:
            continue
        for j in range(p):
            for i in range(p):
                for lane in range(lanes):
                    column[i, lane] = sums.moves[i, first + r + j, lane]
                    if i >= j:
                        column[i, lane] += B[i, j, lane]
            # F S is triangular: only the p columns of B + C Wᵀ are left to absorb
            absorb(across, column, rotations.cosine, rotations.sine)
        for i in range(p):
            for j in range(i + 1):
                for lane in range(lanes):
                    B[i, j, lane] = across[i, j, lane]
    if settings.trained:
        for i in range(p):
            for lane in range(lanes):
                force = sums.layer[i, lane] / n_b - numbers.second_layer_decay[lane] * chain.a[i, lane]
                chain.a[i, lane] += numbers.second_layer_rate[lane] * numbers.T[lane] * force


@loops
def fill_moves(settings, work):  # type: ignore[no-untyped-def]
    """Fill the moves of a plain step in the explicit frame, and what the batch adds to the second layer over ε."""
    frame, sums, explicit = settings.frame, work.sums, work.explicit
    numbers, (p, _, lanes) = work.chain.constants.numbers, sums.moves.shape
    for b in range(frame.factored.size):
        first, count, to = frame.draws[b], frame.draws[b + 1] - frame.draws[b], explicit.columns[b]
        for i in range(p):
            for s in range(count):
                for lane in range(lanes):
                    explicit.moves[i, to + s, lane] = sums.moves[i, first + s, lane]
            for j in range(explicit.columns[b + 1] - to - count):
                for lane in range(lanes):
                    # F S is lower triangular
                    explicit.moves[i, to + count + j, lane] = work.outside.across[b, i, j, lane] if j <= i else 0.0
    for i in range(p):
        for lane in range(lanes):
            explicit.layer[i, lane] = numbers.T[lane] * sums.layer[i, lane] / settings.batch_size


@kernel
def batch_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step: A += C U*ᵀ, B a factor of [B + C Wᵀ, F S], a += ε T [Σ σ(λ) E/n_b − λ_a a]; project.

    The weights decay first.
    """
    chain, rule = work.chain, functions.rule
    # the moves of a plain step: C times coordinates, and F S out of the frames
    sum_batches(settings, functions, stream, work, broken)
    for lane in range(broken.shape[0]):
        broken[lane] |= work.sums.overflow[lane]
    draw_outside(settings, stream, work)
    if settings.mixes:
        begin_round(chain, work.explicit)
        fill_moves(settings, work)
        step_in_frame(settings, rule, chain, work.explicit)
        shorten_slack(settings, functions.lipschitz, chain, work.explicit)
        # F S is triangular, unless a spectral step mixes its rows
        finish_round(chain, work.explicit, 0 if rule.is_spectral else settings.p)
        return
    decay(settings, functions.lipschitz, chain)
    shorten_slack_of_moves(settings, functions.lipschitz, work)
    add_moves(settings, work)
    if settings.spherical:
        project(chain)
