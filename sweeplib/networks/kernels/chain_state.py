"""The state of the overlap chain in vector lanes: a factor of the overlaps in each block of inputs of one eigenvalue.

Inputs of one eigenvalue are one block. In block b, of d_b coordinates with the eigenvalue λ_b, the rows of the weights
are [L*_b, 0; A_b, B_b], in an orthonormal frame of the teacher's rows and of what is beyond them. A sample has the
N(0, 1) coordinates u*_b and w_b in this frame, and a length s_b out of it, s_b² ~ χ²(d_b − k − rows). In a block of few
coordinates (d_b ≤ k + rows with several blocks) these are u*_b, there is no B_b, and L*_b and A_b are the weights.

The rows of a block of states are, for each block of inputs, the entries of A_b (rows, r) and, with a factor, of B_b
(rows, rows); then the memory of a rule that has one, and a (p,). With momentum A_b and B_b have p rows of velocities
before the p of the weights; averages of the weights are p more rows, before all others. The rows of the teacher among
the constants are, for each block of inputs, √λ_b, d_b − k − rows, and L*_b (k, r).

The last axis of all arrays is the lane. z are coordinates of a sample times √λ_b, as fields and steps need them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.disturbances import Disturbed, disturbed_work
from sweeplib.networks.kernels.lanes import (
    Constants,
    Network,
    Stream,
    allocating,
    constants_of,
    empty_stream,
    kernel,
    loops,
)
from sweeplib.networks.kernels.lengths import Length
from sweeplib.networks.kernels.rotations import Rotations, empty_rotations
from sweeplib.networks.numerics.random import gamma_constants


class Frame(NamedTuple):
    """Where the L blocks of inputs are in the arrays of a run.

    coordinates, factored (L,) : the number r of coordinates u*_b, and whether there is a factor B_b.
    states, draws, teachers (L + 1,) : first row of each block in the state, among the coordinates of a sample, and
        among the rows of the teacher; last, their numbers.
    """

    coordinates: NDArray[np.int64]
    factored: NDArray[np.bool_]
    states: NDArray[np.int64]
    draws: NDArray[np.int64]
    teachers: NDArray[np.int64]


class Settings(NamedTuple):
    """The settings of a run.

    p, k, spherical : widths of student and teacher, and whether students stay on the sphere.
    trained, decays : whether the second layer is trained, and whether weights decay.
    batch_size, repeats : samples of a batch, and steps with each batch.
    rows : number of rows of A_b and B_b: p, with velocities and averages p more for each, before those of the weights.
    mixes, remembers : whether steps of batches mix units or keep other rows; whether the rule of steps has a memory.
    drops, has_input_noise : whether steps leave out units, and whether inputs have noise.
    takes_signs : whether steps take the sign of each entry of the gradient.
    tasks, heads : numbers of tasks and of second layers among which steps choose, zero if they do not.
    averages, stride : whether there are averages, and all steps of a round, of which `repeats` are taken.
    has_spectrum, frame : whether there are eigenvalues other than one, and the `Frame`.
    """

    p: int
    k: int
    spherical: bool
    trained: bool
    batch_size: int
    repeats: int
    decays: bool
    rows: int
    mixes: bool
    remembers: bool
    drops: bool
    has_input_noise: bool
    takes_signs: bool
    tasks: int
    heads: int
    averages: bool
    stride: int
    has_spectrum: bool
    frame: Frame


class Fields(NamedTuple):
    """What a step computes of a sample in each lane.

    lam, value, c (p, lanes) : λ, σ(λ), and c_i, where c_i x is added to row i of the weights.
    lam_star (k, lanes) : λ*.
    E, deviation, label (lanes,) : the displacement or the force, √Δ, and the label where a force needs it.
    """

    lam: Array
    lam_star: Array
    value: Array
    c: Array
    E: Array
    deviation: Array
    label: Array


class Lengths(NamedTuple):
    """The lengths s_b (L, lanes) of a sample out of the frame, times √λ_b, and what their sampler needs.

    degrees, scale, width (L, lanes) : of each s_b², as in `Length`. sure (lanes,), four (4, 1) : work arrays.
    stream : names of the random numbers of a block.
    """

    s: Array
    degrees: Array
    scale: Array
    width: Array
    sure: Array
    four: Array
    stream: Stream


class Chain(NamedTuple):
    """The data of a group: the state, the constants, and work arrays of a step.

    frame : the `Frame` of the run.
    state (rows, lanes), a (p, lanes) : the whole state, and its last rows.
    A, B, L_star : views of the first block of inputs.
    memory (lanes,) : that of the rule of the steps, zero without one.
    z (draws, lanes) : normals of a sample: those of the blocks, of the label, and of the lengths.
    push (rows, lanes) : what a sample adds to the rows, c for each of the weights and of the velocities, 0 of averages.
    lengths, fields : the s_b, and what a step computes of a sample. rotations, disturbed : work arrays.
    network : the overlaps, filled when the risk is to be computed.
    """

    frame: Frame
    state: Array
    A: Array
    B: Array
    L_star: Array
    a: Array
    memory: Array
    constants: Constants
    z: Array
    push: Array
    lengths: Lengths
    fields: Fields
    rotations: Rotations
    network: Network
    disturbed: Disturbed


@allocating
def chain_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Chain` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, k, frame = settings.p, settings.k, settings.frame
    size, remembered = frame.states[-1], 1 if settings.remembers else 0
    lanes = state.shape[0] // (size + remembered + p)
    lines = state.reshape((size + remembered + p, lanes))
    memory, a = lines[size] if settings.remembers else np.zeros(lanes), lines[size + remembered :]
    fixed, push = constants_of(constants, k, lanes), np.zeros((settings.rows, lanes))
    A, B, L_star = views_of(frame, lines, fixed.teacher, settings.rows, k, 0)
    work = Chain(
        frame,
        lines,
        A,
        B,
        L_star,
        a,
        memory,
        fixed,
        np.empty((4 * ((frame.draws[-1] + frame.factored.size + 4) // 4), lanes)),
        push,
        empty_lengths(frame.factored.size, lanes),
        empty_fields(push[settings.rows - p :], k, fixed.numbers.deviation),
        empty_rotations(lanes),
        empty_network(fixed, a),
        disturbed_work(settings, lanes),
    )
    begin_chain(work)
    return work


@allocating
def empty_lengths(blocks, lanes):  # type: ignore[no-untyped-def]
    """The `Lengths` of so many blocks of inputs, to be filled."""
    of_blocks = np.empty((4, blocks, lanes))
    sure, four = np.empty(lanes, np.bool_), np.empty((4, 1))
    return Lengths(of_blocks[0], of_blocks[1], of_blocks[2], of_blocks[3], sure, four, empty_stream(lanes))


@allocating
def empty_fields(c, k, deviation):  # type: ignore[no-untyped-def]
    """Work arrays for the fields of samples in lanes; c (p, lanes) and √Δ `deviation` (lanes,) are shared."""
    p, lanes = c.shape
    lam, lam_star, value = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((p, lanes))
    return Fields(lam, lam_star, value, c, np.empty(lanes), deviation, np.empty(lanes))


@allocating
def empty_network(constants, a):  # type: ignore[no-untyped-def]
    """The `Network` of a group with the second layers a (p, lanes) and these `Constants`.

    Its overlaps have to be filled.
    """
    (p, lanes), k = a.shape, constants.a_star.shape[0]
    Q, M, P = np.empty((p, p, lanes)), np.empty((p, k, lanes)), np.zeros((k, k, lanes))
    return Network(Q, M, P, a, constants.a_star, np.empty(lanes), np.empty(lanes), np.zeros(1, np.bool_))


@allocating
def views_of(frame, state, teacher, rows, k, b):  # type: ignore[no-untyped-def]
    """Views A_b (rows, r, lanes), B_b (rows, rows, lanes) of a state, and L*_b (k, r, lanes) of a teacher's rows.

    B_b has no rows if there is no factor.
    """
    first, r, lanes = frame.states[b], frame.coordinates[b], state.shape[1]
    size, middle, of_teacher = rows if frame.factored[b] else 0, first + rows * r, frame.teachers[b] + 2
    A = state[first:middle].reshape((rows, r, lanes))
    B = state[middle : middle + size * size].reshape((size, size, lanes))
    return A, B, teacher[of_teacher : of_teacher + k * r].reshape((k, r, lanes))


@kernel
def rows_of(work, b):  # type: ignore[no-untyped-def]
    """Views A_b (rows, r, lanes) and B_b (rows, rows, lanes) of the `Chain`, B_b without rows if there is no factor."""
    # a view of another shape takes as long as a step of few units: those of the first block are kept
    if b == 0:
        return work.A, work.B
    A, B, _ = views_of(
        work.frame, work.state, work.constants.teacher, work.push.shape[0], work.constants.a_star.shape[0], b
    )
    return A, B


@kernel
def teacher_of(work, b):  # type: ignore[no-untyped-def]
    """√λ_b (lanes,), and a view L*_b (k, r, lanes), of the `Chain` or of the `Samples` of a batch."""
    # decisions: Inputs of one eigenvalue are one block of the chain
    teacher, k = work.constants.teacher, work.constants.a_star.shape[0]
    _, _, L_star = views_of(work.frame, teacher, teacher, 0, k, b)
    return teacher[work.frame.teachers[b]], L_star


@loops
def begin_chain(work):  # type: ignore[no-untyped-def]
    """Fill the constants of lengths, and P = Σ_b λ_b L*_b L*_bᵀ of the network, the covariance of teachers' fields."""
    P, lengths, k, square = work.network.P, work.lengths, work.constants.a_star.shape[0], work.rotations.tail
    P[:] = 0.0
    for b in range(work.frame.factored.size):
        root, L_star = teacher_of(work, b)
        degrees = work.constants.teacher[work.frame.teachers[b] + 1]
        for lane in range(square.shape[0]):
            lengths.degrees[b, lane] = degrees[lane]
            lengths.scale[b, lane], lengths.width[b, lane] = gamma_constants(degrees[lane])
        for r in range(k):
            for s in range(k):
                square[:] = 0.0
                # rows of a factor are zero behind their diagonal
                add_products(L_star[r], L_star[s], L_star.shape[1], square)
                for lane in range(square.shape[0]):
                    P[r, s, lane] += root[lane] * root[lane] * square[lane]


@kernel
def length_of(lengths, b):  # type: ignore[no-untyped-def]
    """The `Length` of block b of inputs."""
    of_block = lengths.s[b], lengths.degrees[b], lengths.scale[b], lengths.width[b]
    return Length(*of_block, lengths.sure, lengths.four)


@kernel
def chain_prepare(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Do nothing: the chain needs no preparation before its first step."""


@kernel
def add_products(x, y, count, out):  # type: ignore[no-untyped-def]
    """Add Σ_s x_s y_s, over the first `count` rows of x and y (rows, lanes), to out (lanes,)."""
    lanes = out.shape[0]
    # two rows a pass: `out` is read and written half as often
    for s in range(0, count - 1, 2):
        for lane in range(lanes):
            out[lane] += x[s, lane] * y[s, lane] + x[s + 1, lane] * y[s + 1, lane]
    if count % 2:
        for lane in range(lanes):
            out[lane] += x[count - 1, lane] * y[count - 1, lane]
