"""A round of the overlap chain, r steps that use one batch, for a group of replicas in vector lanes.

In a block of inputs the components of the n_b samples out of the frame of the chain have a Gram matrix S Sᵀ with
Bartlett's lower triangular S: S_νν² ~ χ²(m − ν), S_νj ~ N(0, 1) for j < ν, m = d_b − k − rows, and zero columns from m
on. In the explicit frame with these n_b columns more (`chain_frames`) the samples are x = (u*_b, w_b, S_ν) times √λ_b,
and the round is r steps of SGD, exact in law.

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `Reuse` of the group.
"""

from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.averages import share_of
from sweeplib.networks.kernels.batch_sums import begin_batches
from sweeplib.networks.kernels.chain import displace
from sweeplib.networks.kernels.chain_frames import (
    Explicit,
    begin_round,
    empty_frame,
    finish_round,
    shorten_slack,
    step_in_frame,
)
from sweeplib.networks.kernels.chain_rows import OTHER_KEY
from sweeplib.networks.kernels.chain_state import Chain, chain_work, teacher_of
from sweeplib.networks.kernels.disturbances import drop_units, take_units_back
from sweeplib.networks.kernels.lanes import Network, Stream, allocating, draw_normals, empty_stream, kernel, loops
from sweeplib.networks.kernels.lengths import Length, draw_length, lengths_of_S
from sweeplib.networks.kernels.local_fields import put_teacher_fields
from sweeplib.networks.kernels.noisy_labels import add_noise


class Reuse(NamedTuple):
    """The data of a group: the chain; rows and samples in the explicit frame; work arrays.

    x (n_b, D + 1 or more, lanes) : the samples, then the normals of their labels.
    label (n_b, lanes) : the labels.
    degrees, scale, width (L, n_b, lanes) : of each S_νν², as in `Length`.
    """

    chain: Chain
    explicit: Explicit
    stream: Stream
    x: Array
    label: Array
    degrees: Array
    scale: Array
    width: Array
    network: Network


@allocating
def reuse_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Reuse` of a group: views of its flat blocks of state and constants, and work arrays."""
    n_b, chain = settings.batch_size, chain_work(settings, state, constants)
    lanes = chain.a.shape[1]
    explicit = empty_frame(settings, n_b, lanes)
    # normals come in fours: the coordinates of a sample, then that of its label
    x, label = np.empty((n_b, 4 * ((explicit.columns[-1] + 4) // 4), lanes)), np.empty((n_b, lanes))
    of_S = lengths_of_S(chain.lengths.degrees, n_b)
    return Reuse(chain, explicit, empty_stream(lanes), x, label, of_S[0], of_S[1], of_S[2], chain.network)


@loops
def draw_batch(settings, functions, stream, work):  # type: ignore[no-untyped-def]
    """Fill the samples `work.x` of a batch, in the explicit frame, and their labels.

    A sample's coordinates after the one of S_ss are not read (`use_batch`): random numbers stay in them.
    """
    n_b, frame, columns = settings.batch_size, settings.frame, work.explicit.columns
    chain, samples, label = work.chain, work.stream, work.label
    lengths, lam_star, of_block = chain.lengths, chain.fields.lam_star, chain.lengths.stream
    lanes = label.shape[1]
    begin_batches(stream, n_b, samples)
    for s in range(n_b):
        x = work.x[s]
        draw_normals(samples.step, samples.seed, samples.key, x)
        for b in range(frame.factored.size):
            root, L_star = teacher_of(chain, b)
            first = columns[b] + frame.draws[b + 1] - frame.draws[b]
            if frame.factored[b]:
                for lane in range(lanes):
                    of_block.key[lane] = samples.key[lane] + np.uint64(b) * OTHER_KEY
                    of_block.seed[lane], of_block.step[lane] = samples.seed[lane], samples.step[lane]
                degrees = work.degrees[b]
                length = Length(
                    lengths.s[b], degrees[s], work.scale[b, s], work.width[b, s], lengths.sure, lengths.four
                )
                # the N(0, 1) number in the place of S_ss is what its proposal is made of; then S_ss replaces it
                draw_length(of_block, length, x[first + s])
                for lane in range(lanes):
                    x[first + s, lane] = lengths.s[b, lane]
                for j in range(s):
                    for lane in range(lanes):
                        # columns of S from m on are zero
                        x[first + j, lane] *= 1.0 if degrees[j, lane] > 0.0 else 0.0
            for row in range(columns[b], columns[b + 1]):
                for lane in range(lanes):
                    x[row, lane] *= root[lane]
            put_teacher_fields(b > 0, L_star, x, columns[b], frame.factored[b], lam_star)
        functions.labels(lam_star, chain.constants.a_star, label[s])
        # the row behind all coordinates is the normals of the labels
        add_noise(functions, samples, chain.fields.deviation, x[columns[-1]], label[s])
        for lane in range(lanes):
            samples.step[lane] += np.uint64(1)


@loops
def use_batch(settings, functions, stream, use, work, broken):  # type: ignore[no-untyped-def]
    """Take a step of SGD with the batch in the explicit frame; units are dropped anew at each `use`, from 0 on."""
    chain, explicit, frame = work.chain, work.explicit, settings.frame
    V, moves, layer, columns = explicit.V, explicit.moves, explicit.layer, explicit.columns
    numbers = chain.constants.numbers
    lam, _, value, c, E, _, _ = chain.fields
    (p, _, lanes), share = moves.shape, 1.0 / settings.batch_size
    weights = V[V.shape[0] - p :]
    if settings.drops:
        begin_batches(stream, settings.batch_size, work.stream)
        for lane in range(lanes):
            work.stream.key[lane] += np.uint64(use) * OTHER_KEY
    # sums over the batch, at V before the step
    moves[:], layer[:] = 0.0, 0.0
    for s in range(settings.batch_size):
        x = work.x[s]
        lam[:] = 0.0
        for b in range(frame.factored.size):
            # S is lower triangular: a sample has no components beyond its own
            filled = columns[b] + frame.draws[b + 1] - frame.draws[b] + (s + 1 if frame.factored[b] else 0)
            for i in range(p):
                for j in range(columns[b], filled):
                    for lane in range(lanes):
                        lam[i, lane] += weights[i, j, lane] * x[j, lane]
        for lane in range(lanes):
            E[lane] = work.label[s, lane]
        if settings.drops:
            drop_units(work.stream, chain)
        displace(functions, chain.a, chain.fields, broken)
        for i in range(p):
            for lane in range(lanes):
                c[i, lane] *= share * numbers.T[lane] * chain.a[i, lane] * E[lane]
        if settings.drops:
            take_units_back(chain)
            for lane in range(lanes):
                work.stream.step[lane] += np.uint64(1)
        for i in range(p if settings.trained else 0):
            for lane in range(lanes):
                layer[i, lane] += share * numbers.T[lane] * value[i, lane] * E[lane]
        for b in range(frame.factored.size):
            filled = columns[b] + frame.draws[b + 1] - frame.draws[b] + (s + 1 if frame.factored[b] else 0)
            for i in range(p):
                for j in range(columns[b], filled):
                    for lane in range(lanes):
                        moves[i, j, lane] += c[i, lane] * x[j, lane]
    step_in_frame(settings, functions.rule, chain, explicit)


@loops
def average_rows(settings, stream, use, work):  # type: ignore[no-untyped-def]
    """Let the averages follow the weights after a `use` of the batch, from 0 on."""
    V, numbers, share, p = work.explicit.V, work.chain.constants.numbers, work.explicit.square, settings.p
    first = V.shape[0] - p
    for lane in range(share.shape[0]):
        # not `numbers.T`, which a schedule changes
        time = numbers.gamma[lane] / (p * numbers.d[lane])
        number = stream.step[lane] * np.uint64(settings.stride) + np.uint64(use + 1)
        share[lane] = share_of(numbers.averaging_rate[lane], numbers.averaging_order[lane], time, number)
    for i in range(p):
        for s in range(V.shape[1]):
            for lane in range(share.shape[0]):
                V[i, s, lane] += share[lane] * (V[first + i, s, lane] - V[i, s, lane])


@kernel
def reuse_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a round: r = `settings.repeats` steps of SGD with one batch."""
    draw_batch(settings, functions, stream, work)
    begin_round(work.chain, work.explicit)
    for use in range(settings.repeats):
        use_batch(settings, functions, stream, use, work, broken)
        if settings.averages:
            average_rows(settings, stream, use, work)
    shorten_slack(settings, functions.lipschitz, work.chain, work.explicit)
    finish_round(work.chain, work.explicit, 0)
