"""Noise of the weights in the factor [A, B] of the chain, and in the factors of blocks of inputs (`weight_noise`).

The noise s ξ_i of a row has N(0, 1) numbers along the frame of A and B, and Bartlett's S out of it. Arguments:
`settings` of the run, `stream` naming each lane's random numbers, and `work`, the `Noisy` of the group; `functions` and
`broken` are not read.
"""

import numpy as np

from sweeplib.networks.kernels.batch_sums import absorb
from sweeplib.networks.kernels.chain_rows import OTHER_KEY, chain_network, project
from sweeplib.networks.kernels.chain_state import chain_prepare, rows_of
from sweeplib.networks.kernels.lanes import draw_normals, loops
from sweeplib.networks.kernels.lengths import draw_length
from sweeplib.networks.kernels.weight_noise import NoiseKind, begin_noise
from sweeplib.networks.numerics.binding import unbound
from sweeplib.networks.numerics.random import gamma_constants

project_rows = unbound
"""Bound by `noisy`."""


@loops
def add_to_rows(A, B, p, degrees, noise):  # type: ignore[no-untyped-def]
    """Add noise to the last p rows of A (count, r, lanes) and of B (rows, rows, lanes), which stays lower triangular.

    degrees (lanes,) : dimensions out of the frame. noise : the `Noise`, at the first draw of the step. B without rows,
    of a block of inputs that has no factor, has no noise.
    """
    (count, r, lanes), rows, scale, factor, column = A.shape, B.shape[0], noise.scale, noise.factor, noise.column
    stream, length, at = noise.stream, noise.length, p * r
    # normals, which come in fours: N_A; S, column by column; N_B. `at` is the number of the next one
    z = noise.z[: 4 * ((at + (p * (p + 1) // 2 + p * rows if rows > 0 else 0) + 3) // 4)]
    draw_normals(stream.step, stream.seed, stream.key, z)
    for i in range(p):
        for s in range(r):
            for lane in range(lanes):
                A[count - p + i, s, lane] += scale[lane] * z[i * r + s, lane]
    if rows == 0:
        return
    # the factor of [B + s N_B, s S]: first s S, then the columns of B + s N_B
    factor[:] = 0.0
    for j in range(p):
        for lane in range(lanes):
            length.degrees[lane] = max(degrees[lane] - j, 0.0)
            length.scale[lane], length.width[lane] = gamma_constants(length.degrees[lane])
        draw_length(stream, length, z[at])
        for i in range(j, p):
            for lane in range(lanes):
                entry = length.s[lane] if i == j else z[at, lane]
                entry = entry if length.degrees[lane] > 0.0 else 0.0
                factor[rows - p + i, rows - p + j, lane] = scale[lane] * entry
            at += 1
        for lane in range(lanes):
            stream.step[lane] += np.uint64(1)
    for j in range(rows):
        for i in range(rows):
            for lane in range(lanes):
                column[i, lane] = B[i, j, lane] if j <= i else 0.0
        for i in range(p):
            for lane in range(lanes):
                column[rows - p + i, lane] += scale[lane] * z[at, lane]
            at += 1
        absorb(factor, column, noise.cosine, noise.sine)
    for i in range(rows):
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] = factor[i, j, lane]


def add_to_chain(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Add noise to A_b and B_b of all blocks of inputs in `work`, a `Noisy`, and project rows if they are spherical."""
    chain, noise = work.inner.chain, work.noise
    for b in range(settings.frame.factored.size):
        begin_noise(settings, stream, chain.constants.numbers, noise)
        for lane in range(noise.scale.shape[0]):
            noise.stream.key[lane] += np.uint64(b) * OTHER_KEY
        A, B = rows_of(chain, b)
        add_to_rows(A, B, settings.p, chain.lengths.degrees[b], noise)
    project_rows(chain)


OF_CHAIN = NoiseKind(chain_prepare, chain_network, add_to_chain, project)
"""The noise of steps of the chain."""
