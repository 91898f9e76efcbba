"""The step of the overlap chain with a batch of fresh samples, for a group of replicas in vector lanes.

With C = (T/n_b) [c¹ ... c^{n_b}], U* and W the coordinates of the samples in the span of the weights, and G (n_b, m)
those out of it, m = d − p − k, a step is A += C U*ᵀ and B ← a factor of [B + C Wᵀ, C G]. The columns of C G are
independent N(0, CCᵀ): C G = F N with F a factor of CCᵀ and N (p, m) of N(0, 1) entries, and N Nᵀ = S Sᵀ with Bartlett's
lower triangular S, S_jj² ~ χ²(m − j), S_ij ~ N(0, 1) for j < i. Hence B ← a factor of [B + C Wᵀ, F S].

A rule that rescales gradients multiplies C U*ᵀ, C Wᵀ and F S, whose squares add up to T² d ‖g‖² of the mean gradient g.
Tangent steps first multiply row i by 1 − Σ c_i λ_i, a product of C U*ᵀ and C Wᵀ with A and B.

Nothing is squared: F is updated by rotations with each sample, or by reflections with many. All ranks are covered. If
n_b < p, the columns of F from n_b on are zero; if m < p, those of S from m on.

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `Batch` of the group; of its arrays, `moves` (p, k + rows, lanes)
are [C U*ᵀ, C Wᵀ], and `across` (p, p, lanes) is F S.
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
from sweeplib.networks.kernels.chain import (
    Chain,
    chain_work,
    decay,
    needs_slack,
    project,
)
from sweeplib.networks.kernels.lanes import Network, Stream, allocating, draw_normals, empty_stream, kernel, loops
from sweeplib.networks.kernels.lengths import Length, draw_length, lengths_of_S
from sweeplib.networks.kernels.spectral import Spectrum, empty_spectrum, fill_spectral_matrix


class Outside(NamedTuple):
    """What a step adds out of the span of the weights: F S `across` (p, p, lanes), with S made of normals z.

    degrees, scale, width (p, lanes) : of each S_jj², as in `Length`.
    """

    stream: Stream
    z: Array
    S: Array
    across: Array
    degrees: Array
    scale: Array
    width: Array


class Mixture(NamedTuple):
    """Work arrays of steps that mix units, or keep velocities; without rows for others.

    V (p, k + rows + p, lanes) : gradients, or velocities, in the span of the weights, and out of it.
    factor (rows, rows, lanes) : the next B.
    spectrum : work arrays for h(S).
    share (lanes,) : the factor that makes moves to rows of V.
    """

    V: Array
    factor: Array
    spectrum: Spectrum
    share: Array


class Batch(NamedTuple):
    """The data of a group: chain, `samples` in lanes, their `sums` for each replica, and what is `outside` of the span.

    mixture : work arrays of rules that mix units. network : that of the chain.
    """

    chain: Chain
    samples: Samples
    sums: Sums
    outside: Outside
    mixture: Mixture
    network: Network


@allocating
def batch_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Batch` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, k, rows = settings.p, settings.k, settings.rows
    chain = chain_work(settings, state, constants)
    lanes = chain.B.shape[2]
    sums, (degrees, scale, width) = empty_sums(p, k + rows, lanes), lengths_of_S(chain.length, p)
    z = np.empty((4 * ((k + rows + 1 + p * (p + 1) // 2 + 3) // 4), lanes))
    # without a mixture nothing writes above the diagonal
    S, across = np.zeros((p, p, lanes)), np.zeros((p, p, lanes))
    outside = Outside(empty_stream(lanes), z, S, across, degrees, scale, width)
    # arrays without rows if no step mixes units
    mixes = 1 if settings.mixes else 0
    V, factor = np.empty((mixes * p, k + rows + p, lanes)), np.empty((mixes * rows, rows, lanes))
    mixture = Mixture(V, factor, empty_spectrum(mixes * p, lanes), np.empty(lanes))
    return Batch(chain, samples_of(settings, chain), sums, outside, mixture, chain.network)


@loops
def draw_outside(settings, stream, outside, length):  # type: ignore[no-untyped-def]
    """Fill Bartlett's S, `outside.S`, by columns, as far as the factor F has columns: one for each sample, at most p.

    The normals continue those of the first sample; S_jj is drawn in the stream of sample j. The work arrays of the
    chain's `length` are used.
    """
    p, n_b = settings.p, settings.batch_size
    samples, z, S, degrees = outside.stream, outside.z, outside.S, outside.degrees
    lanes = degrees.shape[1]
    begin_batches(stream, n_b, samples)
    draw_normals(samples.step, samples.seed, samples.key, z)
    row = settings.rows + settings.k + 1
    for j in range(min(p, n_b)):
        length_j = Length(S[j, j], degrees[j], outside.scale[j], outside.width[j], length.sure, length.four)
        draw_length(samples, length_j, z[row])
        row += 1
        for i in range(j + 1, p):
            for lane in range(lanes):
                # columns from m on are zero
                S[i, j, lane] = z[row, lane] if degrees[j, lane] > 0.0 else 0.0
            row += 1
        for lane in range(lanes):
            samples.step[lane] += np.uint64(1)


@kernel
def multiply(F, S, out):  # type: ignore[no-untyped-def]
    """Fill out (p, p, lanes) with the product F S of lower triangular matrices (p, p, lanes)."""
    p, _, lanes = F.shape
    for i in range(p):
        for j in range(i + 1):
            out[i, j, :] = 0.0
            for l in range(j, i + 1):  # noqa: E741
                for lane in range(lanes):
                    out[i, j, lane] += F[i, l, lane] * S[l, j, lane]


@kernel
def shorten_slack(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f: (L/p) Σ_i |a_i| |Δw_i|/√d, twice that on the sphere.

    L is σ's Lipschitz constant `lipschitz`; |Δw_i|²/d is the sum of the squares of the moves and of F S.
    """
    chain, moves, across, slack = work.chain, work.sums.moves, work.outside.across, work.network.slack
    if not needs_slack(settings, lipschitz, work.network):
        return
    p, width, lanes = moves.shape
    factor = (2.0 if settings.spherical else 1.0) * lipschitz / p
    square = chain.rotations.tail
    for i in range(p):
        square[:] = 0.0
        for s in range(width):
            for lane in range(lanes):
                square[lane] += moves[i, s, lane] * moves[i, s, lane]
        for j in range(p if settings.mixes else i + 1):
            for lane in range(lanes):
                square[lane] += across[i, j, lane] * across[i, j, lane]
        for lane in range(lanes):
            slack[lane] -= factor * abs(chain.a[i, lane]) * math.sqrt(square[lane])


@kernel
def rescale_batch(rule, work):  # type: ignore[no-untyped-def]
    """Multiply moves and F S by the rule's factor of the gradient g, ‖g‖² = Σ (moves² + (F S)²)/(T² d)."""
    chain, moves, across = work.chain, work.sums.moves, work.outside.across
    numbers, square = chain.constants.numbers, chain.rotations.cosine
    p, width, lanes = moves.shape
    square[:] = 0.0
    for i in range(p):
        for s in range(width):
            for lane in range(lanes):
                square[lane] += moves[i, s, lane] * moves[i, s, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                square[lane] += across[i, j, lane] * across[i, j, lane]
    for lane in range(lanes):
        T = numbers.T[lane]
        square[lane] *= 1.0 / (numbers.d[lane] * T * T) if T > 0.0 else 0.0
    # in: squared norms of gradients; out: their factors
    rule.factor(rule.numbers, numbers.T, square, chain.memory)
    for i in range(p):
        for s in range(width):
            for lane in range(lanes):
                moves[i, s, lane] *= square[lane]
        for j in range(i + 1):
            for lane in range(lanes):
                across[i, j, lane] *= square[lane]


@loops
def mix_batch(rule, work):  # type: ignore[no-untyped-def]
    """Replace the moves and F S by T d h(S) V, or by V itself for a rule without a spectrum.

    V (p, k + rows + p, lanes) is [G_A, G_B, G_out]: the gradient G over √d in the span of the weights, along A and B,
    and out of it; with velocities β V of the step before is added. S = d V Vᵀ here. Without a spectrum V is the sum of
    the moves. Rows of velocities in A become those of V.
    """
    chain, moves, across, (V, _, spectrum, share) = work.chain, work.sums.moves, work.outside.across, work.mixture
    A, B, numbers, column, rotations = chain.A, chain.B, chain.constants.numbers, chain.fields.c, chain.rotations
    p, width, lanes = moves.shape
    k, H, first = A.shape[1], spectrum.R, A.shape[0] - 2 * p
    # V of the moves, to which velocities are added: the p rows from `first` on, before those of the weights
    for lane in range(lanes):
        length = numbers.T[lane] * numbers.d[lane] if rule.is_spectral else 1.0
        share[lane] = 1.0 / length if length > 0.0 else 0.0
    for i in range(p):
        for s in range(width + p):
            for lane in range(lanes):
                # F S is lower triangular
                outside = across[i, s - width, lane] if 0 <= s - width <= i else 0.0
                V[i, s, lane] = share[lane] * (moves[i, s, lane] if s < width else outside)
        if rule.has_velocities:
            for s in range(k + first + i + 1):
                for lane in range(lanes):
                    V[i, s, lane] += rule.momentum * (A[first + i, s, lane] if s < k else B[first + i, s - k, lane])
            for s in range(k):
                for lane in range(lanes):
                    A[first + i, s, lane] = V[i, s, lane]
    # h(S): of a factor of V Vᵀ, column by column
    H[:] = 0.0
    if rule.is_spectral:
        for s in range(width + p):
            for i in range(p):
                for lane in range(lanes):
                    column[i, lane] = V[i, s, lane]
            absorb(H, column, rotations.cosine, rotations.sine)
        fill_spectral_matrix(rule, numbers.d, spectrum)
    # T d h(S) V
    for i in range(p):
        moves[i], across[i] = 0.0, 0.0
        for m in range(p):
            for lane in range(lanes):
                if rule.is_spectral:
                    H[i, m, lane] *= numbers.T[lane] * numbers.d[lane]
                # without a spectrum the matrix is the identity
                elif i == m:
                    H[i, m, lane] = 1.0
            for s in range(width):
                for lane in range(lanes):
                    moves[i, s, lane] += H[i, m, lane] * V[m, s, lane]
            for s in range(p):
                for lane in range(lanes):
                    across[i, s, lane] += H[i, m, lane] * V[m, width + s, lane]


@loops
def refactor_mixture(rule, work):  # type: ignore[no-untyped-def]
    """Replace B by a lower triangular factor of its rows with the moves added; V replaces rows of velocities."""
    chain, moves, across, (V, factor, _, _) = work.chain, work.sums.moves, work.outside.across, work.mixture
    A, B, column, rotations = chain.A, chain.B, chain.push, chain.rotations
    p, _, lanes = moves.shape
    k, rows, first = A.shape[1], B.shape[0], B.shape[0] - p
    velocities = first - p if rule.has_velocities else first
    factor[:] = 0.0
    for j in range(rows + p):
        for i in range(rows):
            for lane in range(lanes):
                if i < velocities:
                    # rows of averages, of velocities, then of the weights
                    column[i, lane] = B[i, j, lane] if j <= i else 0.0
                elif i < first:
                    column[i, lane] = V[i - velocities, k + j, lane]
                elif j < rows:
                    column[i, lane] = moves[i - first, k + j, lane] + (B[i, j, lane] if j <= i else 0.0)
                else:
                    column[i, lane] = across[i - first, j - rows, lane]
        absorb(factor, column, rotations.cosine, rotations.sine)
    for i in range(rows):
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] = factor[i, j, lane]


@kernel
def turn_batch_along_sphere(chain, moves):  # type: ignore[no-untyped-def]
    """Multiply row i of A and B by 1 − Σ c_i λ_i: with the moves added, it moves by their part orthogonal to w_i.

    moves (p, k + rows, lanes) : what the step adds.
    """
    A, B, along, (rows, k, lanes) = chain.A, chain.B, chain.rotations.cosine, chain.A.shape
    first = rows - moves.shape[0]
    for i in range(first, rows):
        along[:] = 1.0
        for s in range(k):
            for lane in range(lanes):
                along[lane] -= moves[i - first, s, lane] * A[i, s, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                along[lane] -= moves[i - first, k + j, lane] * B[i, j, lane]
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] *= along[lane]
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] *= along[lane]


@kernel
def batch_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step: A += C U*ᵀ, B a factor of [B + C Wᵀ, F S], a += ε T [Σ σ(λ) E/n_b − λ_a a]; project.

    A and B decay first; the rule changes C U*ᵀ, C Wᵀ and F S.
    """
    p, k, n_b, first = settings.p, settings.k, settings.batch_size, settings.rows - settings.p
    chain, sums, outside = work.chain, work.sums, work.outside
    A, B, numbers, rotations = chain.A, chain.B, chain.constants.numbers, chain.rotations
    lanes = broken.shape[0]
    # the moves of a plain step: [C U*ᵀ, C Wᵀ], and F S out of the span
    sum_batches(settings, functions, stream, work, broken)
    for lane in range(lanes):
        broken[lane] |= sums.overflow[lane]
    draw_outside(settings, stream, outside, chain.length)
    multiply(sums.factor, outside.S, outside.across)
    decay(settings, functions.lipschitz, chain)
    # the rule's moves
    if functions.rule.is_spectral or functions.rule.has_velocities:
        mix_batch(functions.rule, work)
    elif functions.rule.rescales:
        rescale_batch(functions.rule, work)
    if functions.rule.is_tangent:
        turn_batch_along_sphere(chain, sums.moves)
    shorten_slack(settings, functions.lipschitz, work)
    # A and a, then B; rows before `first` are those of velocities and averages
    for i in range(p):
        for s in range(k):
            for lane in range(lanes):
                A[first + i, s, lane] += sums.moves[i, s, lane]
        if settings.trained:
            for lane in range(lanes):
                force = sums.layer[i, lane] / n_b - numbers.second_layer_decay[lane] * chain.a[i, lane]
                chain.a[i, lane] += numbers.second_layer_rate[lane] * numbers.T[lane] * force
    if settings.mixes:
        refactor_mixture(functions.rule, work)
    else:
        for j in range(p):
            column = chain.fields.c
            for i in range(p):
                for lane in range(lanes):
                    column[i, lane] = sums.moves[i, k + j, lane]
                    if i >= j:
                        column[i, lane] += B[i, j, lane]
            # F S is triangular: only the p columns of B + C Wᵀ are left to absorb
            absorb(outside.across, column, rotations.cosine, rotations.sine)
        for i in range(p):
            for j in range(i + 1):
                for lane in range(lanes):
                    B[i, j, lane] = outside.across[i, j, lane]
    if settings.spherical:
        project(A, B, first, rotations.cosine)
