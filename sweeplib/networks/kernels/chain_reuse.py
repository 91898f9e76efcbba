"""A round of the overlap chain, r steps that use one batch, for a group of replicas in vector lanes.

The components of the n_b samples out of the span of the weights have a Gram matrix S Sᵀ with Bartlett's lower
triangular S: S_νν² ~ χ²(m − ν), S_νj ~ N(0, 1) for j < ν, m = d − p − k, and zero columns from m on. In the frame of
the weights and of these components, of dimension D = k + p + n_b, the weights are rows V = [A, B, 0] and the samples
x = (u*, w, S_ν). The round is r steps of SGD in this frame, projections included, exact in law. Then A is the first
part of V, and B becomes a lower triangular factor of the others.

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `Reuse` of the group.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import absorb, begin_batches
from sweeplib.networks.kernels.chain import Chain, chain_work, displace, needs_slack
from sweeplib.networks.kernels.lanes import Network, Stream, allocating, draw_normals, empty_stream, kernel, loops
from sweeplib.networks.kernels.lengths import Length, draw_length, lengths_of_S
from sweeplib.networks.kernels.local_fields import teacher_fields
from sweeplib.networks.kernels.noisy_labels import add_noise


class Reuse(NamedTuple):
    """The data of a group: the chain; weights and samples in the frame of both; work arrays.

    V, moves (p, D, lanes) : the weights, and the change of a step.
    layer (p, lanes) : the sum of σ(λ) E over the batch.
    x (n_b, D + 1 or more, lanes) : the samples, then the normals of their labels.
    label (n_b, lanes) : the labels.
    degrees, scale, width (n_b, lanes) : of each S_νν², as in `Length`.
    """

    chain: Chain
    V: Array
    moves: Array
    layer: Array
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
    p, n_b = settings.p, settings.batch_size
    chain = chain_work(settings, state, constants)
    lanes, width = chain.B.shape[2], settings.k + p + n_b
    V, moves, layer = np.empty((p, width, lanes)), np.empty((p, width, lanes)), np.empty((p, lanes))
    # normals come in fours: the coordinates of a sample, then that of its label
    x, label = np.empty((n_b, 4 * ((width + 4) // 4), lanes)), np.empty((n_b, lanes))
    degrees, scales, widths = lengths_of_S(chain.length, n_b)
    return Reuse(chain, V, moves, layer, empty_stream(lanes), x, label, degrees, scales, widths, chain.network)


@loops
def draw_batch(settings, functions, stream, work):  # type: ignore[no-untyped-def]
    """Fill the samples `work.x` of a batch, in the frame of the weights, and their labels.

    A sample's coordinates after the one of S_ss are not read (`use_batch`): random numbers stay in them.
    """
    first, n_b = settings.k + settings.p, settings.batch_size
    chain, samples, label, degrees = work.chain, work.stream, work.label, work.degrees
    length, lam_star = chain.length, chain.fields.lam_star
    lanes = label.shape[1]
    begin_batches(stream, n_b, samples)
    for s in range(n_b):
        x = work.x[s]
        draw_normals(samples.step, samples.seed, samples.key, x)
        length_s = Length(length.s, degrees[s], work.scale[s], work.width[s], length.sure, length.four)
        # the N(0, 1) number in the place of S_ss is what its proposal is made of; then S_ss replaces it
        draw_length(samples, length_s, x[first + s])
        for lane in range(lanes):
            x[first + s, lane] = length.s[lane]
        for j in range(s):
            for lane in range(lanes):
                # columns of S from m on are zero
                x[first + j, lane] *= 1.0 if degrees[j, lane] > 0.0 else 0.0
        teacher_fields(chain.constants.L_star, x, lam_star)
        functions.labels(lam_star, chain.constants.a_star, label[s])
        # the row behind all coordinates is the normals of the labels
        add_noise(functions, samples, chain.fields.deviation, x[first + n_b], label[s])
        for lane in range(lanes):
            samples.step[lane] += np.uint64(1)


@kernel
def begin_round(A, B, V):  # type: ignore[no-untyped-def]
    """Set V (p, D, lanes) to [A, B, 0], the weights in the frame before the first step of a round."""
    p, k, lanes = A.shape
    V[:] = 0.0
    for i in range(p):
        for s in range(k):
            for lane in range(lanes):
                V[i, s, lane] = A[i, s, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                V[i, k + j, lane] = B[i, j, lane]


@loops
def use_batch(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Take a step of SGD in the frame: V ← (1 − λ T) V + (T/n_b) Σ c xᵀ, a += ε T [Σ σ(λ) E/n_b − λ_a a]; project."""
    chain, V, moves, layer = work.chain, work.V, work.moves, work.layer
    a, numbers, norm = chain.a, chain.constants.numbers, chain.rotations.tail
    lam, _, value, c, E, _, _ = chain.fields
    p, width, lanes = V.shape
    share = 1.0 / settings.batch_size
    # sums over the batch, at V before the step
    moves[:], layer[:] = 0.0, 0.0
    for s in range(settings.batch_size):
        # S is lower triangular: a sample has no components beyond its own
        x, filled = work.x[s], settings.k + p + s + 1
        lam[:] = 0.0
        for i in range(p):
            for j in range(filled):
                for lane in range(lanes):
                    lam[i, lane] += V[i, j, lane] * x[j, lane]
        for lane in range(lanes):
            E[lane] = work.label[s, lane]
        displace(functions, a, chain.fields, broken)
        for i in range(p):
            for lane in range(lanes):
                c[i, lane] *= share * numbers.T[lane] * a[i, lane] * E[lane]
                layer[i, lane] += share * numbers.T[lane] * value[i, lane] * E[lane]
            for j in range(filled):
                for lane in range(lanes):
                    moves[i, j, lane] += c[i, lane] * x[j, lane]
    # the step: decay, moves and projection of each row, then a
    for i in range(p):
        norm[:] = 0.0
        for j in range(width):
            for lane in range(lanes):
                shrinkage = 1.0 - numbers.weight_decay[lane] * numbers.T[lane]
                V[i, j, lane] = shrinkage * V[i, j, lane] + moves[i, j, lane]
                norm[lane] += V[i, j, lane] * V[i, j, lane]
        if settings.spherical:
            for lane in range(lanes):
                norm[lane] = 1.0 / math.sqrt(norm[lane])
            for j in range(width):
                for lane in range(lanes):
                    V[i, j, lane] *= norm[lane]
        if settings.trained:
            for lane in range(lanes):
                rate = numbers.second_layer_rate[lane]
                a[i, lane] *= 1.0 - rate * numbers.T[lane] * numbers.second_layer_decay[lane]
                a[i, lane] += rate * layer[i, lane]


@kernel
def shorten_slack(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f in a round: (L/p) Σ_i |a_i| ‖V_i − [A, B, 0]_i‖.

    L is σ's Lipschitz constant `lipschitz`; A and B are still those before the round.
    """
    chain, V, slack = work.chain, work.V, work.network.slack
    if not needs_slack(settings, lipschitz, work.network):
        return
    p, width, lanes = V.shape
    k, square = settings.k, chain.rotations.tail
    for i in range(p):
        square[:] = 0.0
        for j in range(width):
            for lane in range(lanes):
                before = chain.A[i, j, lane] if j < k else (chain.B[i, j - k, lane] if j <= k + i else 0.0)
                square[lane] += (V[i, j, lane] - before) * (V[i, j, lane] - before)
        for lane in range(lanes):
            # no factor 2 on the sphere: these are the moves of the whole round, projections included
            slack[lane] -= lipschitz / p * abs(chain.a[i, lane]) * math.sqrt(square[lane])


@kernel
def finish_round(V, A, B, column, cosine, sine):  # type: ignore[no-untyped-def]
    """Set A to the first k columns of V, and B to a lower triangular factor of the others.

    column (p, lanes), cosine, sine (lanes,) : work arrays.
    """
    p, k, lanes = A.shape
    B[:] = 0.0
    for j in range(V.shape[1]):
        for i in range(p):
            for lane in range(lanes):
                if j < k:
                    A[i, j, lane] = V[i, j, lane]
                else:
                    column[i, lane] = V[i, j, lane]
        if j >= k:
            absorb(B, column, cosine, sine)


@kernel
def reuse_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a round: r = `settings.repeats` steps of SGD with one batch."""
    chain = work.chain
    draw_batch(settings, functions, stream, work)
    begin_round(chain.A, chain.B, work.V)
    for _ in range(settings.repeats):
        use_batch(settings, functions, work, broken)
    shorten_slack(settings, functions.lipschitz, work)
    rotations = chain.rotations
    finish_round(work.V, chain.A, chain.B, chain.fields.c, rotations.cosine, rotations.sine)
