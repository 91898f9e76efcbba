"""The step of the overlap chain for inputs with several eigenvalues: a factor of the overlaps of each block of inputs.

In block b, of d_b coordinates with the eigenvalue λ_b, the rows of the weights are [L*_b, 0; A_b, B_b], in coordinates
u*_b and w_b of a sample; its component out of their span has the length s_b, s_b² ~ χ²(d_b − p − k). The fields are
Σ_b √λ_b L_b (u*_b, w_b), and a step is A_b += √λ_b c u*_bᵀ and B_b ← a factor of [B_b + √λ_b c w_bᵀ, √λ_b s_b c]. In a
block of d_b ≤ p + k coordinates these are u*_b, there is no B_b, and L*_b and A_b are the weights themselves.

The rows of a block of states are, for each block of inputs, √λ_b, d_b − p − k, L*_b (k, r), A_b (p, r) and, with a
factor, B_b (p, p); then a (p,). A step changes A_b, B_b and a alone.

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `BlockChain` of the group.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.chain import (
    Fields,
    add_products,
    displace,
    empty_fields,
    empty_network,
    needs_slack,
    train_second_layer,
)
from sweeplib.networks.kernels.lanes import (
    Constants,
    Network,
    Stream,
    allocating,
    constants_of,
    draw_normals,
    empty_stream,
    kernel,
    loops,
)
from sweeplib.networks.kernels.lengths import Length, draw_length, empty_length
from sweeplib.networks.kernels.noisy_labels import add_noise
from sweeplib.networks.kernels.rotations import Rotations, empty_rotations, refactor
from sweeplib.networks.numerics.random import gamma_constants

OTHER_KEY = np.uint64(0x9E3779B97F4A7C15)
"""Keys of the streams of blocks differ by multiples of this, so that each block draws its length independently."""


class BlockSettings(NamedTuple):
    """The settings of a run with L blocks of inputs.

    p, k, spherical, trained, decays : as in `chain.Settings`.
    coordinates, factored (L,) : the number r of coordinates u*_b of each block, and whether it has a factor B_b.
    rows, draws (L + 1,) : first row of each block in the state, and among the normals of a sample; last, their numbers.
    """

    p: int
    k: int
    spherical: bool
    trained: bool
    decays: bool
    coordinates: NDArray[np.int64]
    factored: NDArray[np.bool_]
    rows: NDArray[np.int64]
    draws: NDArray[np.int64]


class BlockChain(NamedTuple):
    """The data of a group: the state, the constants, and work arrays of a step.

    settings : the `BlockSettings`, which say where a block begins.
    state (rows, lanes), a (p, lanes) : the whole state, and its last rows.
    z (draws, lanes) : normals of a sample: those of the blocks, of the label, and of the lengths.
    block_stream : draws the length of a block.
    push, norm (p, lanes) : √λ_b c, and norms of rows.
    square (lanes,) : sums over blocks, such as Σ_b λ_b² |x_b|² d.
    length, fields, rotations, network : as in `chain.Chain`.
    """

    settings: Any
    state: Array
    a: Array
    constants: Constants
    z: Array
    length: Length
    block_stream: Stream
    fields: Fields
    rotations: Rotations
    push: Array
    norm: Array
    square: Array
    network: Network


@allocating
def block_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `BlockChain` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, k, size = settings.p, settings.k, settings.rows[-1]
    lanes = state.shape[0] // (size + p)
    fixed, rows = constants_of(constants, k), state.reshape((size + p, lanes))
    work = BlockChain(
        settings,
        rows,
        rows[size:],
        fixed,
        np.empty((4 * ((settings.draws[-1] + settings.factored.size + 4) // 4), lanes)),
        empty_length(lanes),
        empty_stream(lanes),
        empty_fields(np.empty((p, lanes)), k, fixed.numbers.deviation),
        empty_rotations(lanes),
        np.empty((p, lanes)),
        np.empty((p, lanes)),
        np.empty(lanes),
        empty_network(fixed, rows[size:]),
    )
    fill_teacher(work)
    return work


@kernel
def block_of(work, b):  # type: ignore[no-untyped-def]
    """Views of block b: √λ_b, the degrees of s_b² (lanes,), L*_b, A_b and B_b, without rows if there is no factor."""
    settings, state = work.settings, work.state
    p, k, r, at, lanes = settings.p, settings.k, settings.coordinates[b], settings.rows[b], state.shape[1]
    size = p if settings.factored[b] else 0
    after = at + 2 + k * r
    L_star = state[at + 2 : after].reshape((k, r, lanes))
    A = state[after : after + p * r].reshape((p, r, lanes))
    B = state[after + p * r : after + p * r + size * size].reshape((size, size, lanes))
    return state[at], state[at + 1], L_star, A, B


@loops
def fill_teacher(work):  # type: ignore[no-untyped-def]
    """Fill P = Σ_b λ_b L*_b L*_bᵀ of the network, the covariance of the teacher's fields."""
    P, square = work.network.P, work.square
    for b in range(work.settings.factored.size):
        root, _, L_star, _, _ = block_of(work, b)
        for r in range(L_star.shape[0]):
            for s in range(L_star.shape[0]):
                square[:] = 0.0
                add_products(L_star[r], L_star[s], L_star.shape[1], square)
                for lane in range(square.shape[0]):
                    P[r, s, lane] += root[lane] * root[lane] * square[lane]


@loops
def block_network(work):  # type: ignore[no-untyped-def]
    """Fill the network's covariances of fields, Q = Σ_b λ_b (A_b A_bᵀ + B_b B_bᵀ) and M = Σ_b λ_b A_b L*_bᵀ."""
    Q, M, square = work.network.Q, work.network.M, work.square
    Q[:], M[:] = 0.0, 0.0
    for b in range(work.settings.factored.size):
        root, _, L_star, A, B = block_of(work, b)
        for i in range(A.shape[0]):
            for j in range(i + 1):
                square[:] = 0.0
                add_products(A[i], A[j], A.shape[1], square)
                if B.shape[0] > 0:
                    add_products(B[i], B[j], j + 1, square)
                for lane in range(square.shape[0]):
                    Q[i, j, lane] += root[lane] * root[lane] * square[lane]
                    Q[j, i, lane] = Q[i, j, lane]
            for r in range(L_star.shape[0]):
                square[:] = 0.0
                add_products(A[i], L_star[r], A.shape[1], square)
                for lane in range(square.shape[0]):
                    M[i, r, lane] += root[lane] * root[lane] * square[lane]


@loops
def add_fields(root, rows, z, is_lower, out):  # type: ignore[no-untyped-def]
    """Add the fields by one block to out (n, lanes): √λ_b `root` (lanes,) times rows (n, r, lanes) times z (r, lanes).

    is_lower : whether rows are a lower triangle, of which the rest is not read.
    """
    n, r, lanes = rows.shape
    for i in range(n):
        for s in range(min(r, i + 1) if is_lower else r):
            for lane in range(lanes):
                out[i, lane] += root[lane] * rows[i, s, lane] * z[s, lane]


@loops
def draw_outside(stream, work, b, degrees):  # type: ignore[no-untyped-def]
    """Fill s_b of block b, ~ χ(degrees), from a stream of the block's own and its normal number in z.

    degrees (lanes,) : d_b − p − k.
    """
    length, block_stream = work.length, work.block_stream
    for lane in range(degrees.shape[0]):
        block_stream.key[lane] = stream.key[lane] + np.uint64(b) * OTHER_KEY
        block_stream.seed[lane], block_stream.step[lane] = stream.seed[lane], stream.step[lane]
        length.degrees[lane] = degrees[lane]
        length.scale[lane], length.width[lane] = gamma_constants(degrees[lane])
    draw_length(block_stream, length, work.z[work.settings.draws[-1] + 1 + b])


@loops
def move_block(stream, work, b):  # type: ignore[no-untyped-def]
    """Add √λ_b c times a sample to the rows of block b, and λ_b² times its squared length to `square`."""
    settings, c, push, z, square = work.settings, work.fields.c, work.push, work.z, work.square
    root, degrees, _, A, B = block_of(work, b)
    p, r, lanes = A.shape
    first = settings.draws[b]
    for i in range(p):
        for lane in range(lanes):
            push[i, lane] = root[lane] * c[i, lane]
        for s in range(r):
            for lane in range(lanes):
                A[i, s, lane] += push[i, lane] * z[first + s, lane]
    for s in range(first, settings.draws[b + 1]):
        for lane in range(lanes):
            square[lane] += root[lane] ** 4 * z[s, lane] * z[s, lane]
    # a small block has all of its coordinates in A, and no factor
    if B.shape[0] > 0:
        draw_outside(stream, work, b, degrees)
        for lane in range(lanes):
            square[lane] += root[lane] ** 4 * work.length.s[lane] * work.length.s[lane]
        refactor(B, push, z[first + r : first + r + p], work.length.s, work.rotations)


@loops
def fill_norms(work, weighted):  # type: ignore[no-untyped-def]
    """Fill `norm` with the squares Σ_b |(A_b, B_b)_i|² of the student's rows over d.

    weighted : whether blocks count λ_b times, for the variances of fields.
    """
    norm, square = work.norm, work.square
    norm[:] = 0.0
    for b in range(work.settings.factored.size):
        root, _, _, A, B = block_of(work, b)
        for i in range(A.shape[0]):
            square[:] = 0.0
            add_products(A[i], A[i], A.shape[1], square)
            if B.shape[0] > 0:
                add_products(B[i], B[i], i + 1, square)
            for lane in range(square.shape[0]):
                norm[i, lane] += square[lane] * (root[lane] * root[lane] if weighted else 1.0)


@loops
def multiply_rows(work):  # type: ignore[no-untyped-def]
    """Multiply the students' rows, in all blocks, by the factors in `work.norm` (p, lanes)."""
    for b in range(work.settings.factored.size):
        _, _, _, A, B = block_of(work, b)
        for i in range(A.shape[0]):
            for lane in range(work.norm.shape[1]):
                for s in range(A.shape[1]):
                    A[i, s, lane] *= work.norm[i, lane]
                for j in range(B.shape[1]):
                    B[i, j, lane] *= work.norm[i, lane]


@loops
def decay_blocks(settings, work):  # type: ignore[no-untyped-def]
    """Multiply A_b and B_b of all blocks by 1 − λ T, with the weight decay λ."""
    numbers = work.constants.numbers
    for i in range(settings.p):
        for lane in range(work.norm.shape[1]):
            work.norm[i, lane] = 1.0 - numbers.weight_decay[lane] * numbers.T[lane]
    multiply_rows(work)


@loops
def project_blocks(work):  # type: ignore[no-untyped-def]
    """Divide the students' rows by their norms."""
    fill_norms(work, False)
    for i in range(work.norm.shape[0]):
        for lane in range(work.norm.shape[1]):
            work.norm[i, lane] = 1.0 / math.sqrt(work.norm[i, lane])
    multiply_rows(work)


@loops
def shorten_slack(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f: (L/p) Σ_i |a_i c_i| √(Σ_b λ_b² |x_b|² d).

    L is σ's Lipschitz constant `lipschitz`. There is no bound on the sphere, where a projection changes fields by more,
    nor with decay: then the slack is zero, and the risk is computed after each step.
    """
    a, c, slack, size = work.a, work.fields.c, work.network.slack, work.rotations.sine
    if settings.spherical or settings.decays:
        slack[:] = 0.0
        return
    if not needs_slack(settings, lipschitz, work.network):
        return
    size[:] = 0.0
    for i in range(settings.p):
        for lane in range(slack.shape[0]):
            size[lane] += abs(a[i, lane] * c[i, lane])
    for lane in range(slack.shape[0]):
        slack[lane] -= lipschitz / settings.p * size[lane] * math.sqrt(work.square[lane])


@kernel
def block_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step of all blocks: A_b += √λ_b c u*_bᵀ, B_b a factor, a += ε T [σ(λ) E − λ_a a]; project.

    Rows decay first.
    """
    p, a, numbers, z = settings.p, work.a, work.constants.numbers, work.z
    lam, lam_star, _, c, E, deviation, _ = work.fields
    # z has the numbers of all blocks, one after the other from `draws`, and last that of the label
    lanes, label = E.shape[0], settings.draws[-1]
    draw_normals(stream.step, stream.seed, stream.key, z)
    lam[:], lam_star[:] = 0.0, 0.0
    for b in range(settings.factored.size):
        root, _, L_star, A, B = block_of(work, b)
        first, r = settings.draws[b], settings.coordinates[b]
        add_fields(root, L_star, z[first : first + r], settings.factored[b], lam_star)
        add_fields(root, A, z[first : first + r], False, lam)
        add_fields(root, B, z[first + r : settings.draws[b + 1]], True, lam)
    functions.labels(lam_star, work.constants.a_star, E)
    add_noise(functions, stream, deviation, z[label], E)
    displace(functions, a, work.fields, broken)
    if settings.decays:
        decay_blocks(settings, work)
    for i in range(p):
        for lane in range(lanes):
            c[i, lane] *= numbers.T[lane] * a[i, lane] * E[lane]
    if settings.trained:
        train_second_layer(a, work.fields, numbers)
    work.square[:] = 0.0
    for b in range(settings.factored.size):
        move_block(stream, work, b)
    shorten_slack(settings, functions.lipschitz, work)
    if settings.spherical:
        project_blocks(work)
