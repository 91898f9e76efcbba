"""What steps of the overlap chain do with samples and rows in all blocks of inputs: lengths, fields, norms, overlaps.

`work` is the `Chain` of a group of replicas in lanes, `stream` names each lane's random numbers. z are the coordinates
of a sample, (A_b, B_b) the rows of block b, as `chain_state` has them; the last axis of all arrays is the lane.

What each step does is written out for the first block, which most inputs have alone; a function of its own does it with
the other blocks (`other`), since all that is compiled into a step takes registers from it.
"""

import math

import numpy as np

from sweeplib.networks.kernels.chain_state import add_products, length_of, rows_of, teacher_of
from sweeplib.networks.kernels.lanes import kernel, loops
from sweeplib.networks.kernels.lengths import draw_length
from sweeplib.networks.kernels.local_fields import put, put_student_fields, put_teacher_fields

OTHER_KEY = np.uint64(0x9E3779B97F4A7C15)
"""Keys of the streams of blocks differ by multiples of this, so that each block draws its length independently."""


@kernel
def draw_lengths(stream, work):  # type: ignore[no-untyped-def]
    """Fill the lengths s_b of a sample, from streams of their own and their normal numbers in z."""
    if work.frame.factored[0]:
        draw_length(stream, length_of(work.lengths, 0), work.z[work.frame.draws[-1] + 1])
    if work.frame.factored.size > 1:
        draw_other_lengths(stream, work)


@loops
def draw_other_lengths(stream, work):  # type: ignore[no-untyped-def]
    """Fill the lengths s_b of a sample in all blocks of inputs but the first."""
    frame, other = work.frame, work.lengths.stream
    for b in range(1, frame.factored.size):
        if frame.factored[b]:
            for lane in range(stream.step.shape[0]):
                other.key[lane] = stream.key[lane] + np.uint64(b) * OTHER_KEY
                other.seed[lane], other.step[lane] = stream.seed[lane], stream.step[lane]
            draw_length(other, length_of(work.lengths, b), work.z[frame.draws[-1] + 1 + b])


@loops
def weight_coordinates(work, z):  # type: ignore[no-untyped-def]
    """Multiply the coordinates z of samples by √λ_b, in all blocks of inputs; `work` may be `Samples` of a batch."""
    for b in range(work.frame.factored.size):
        root = work.constants.teacher[work.frame.teachers[b]]
        for row in range(work.frame.draws[b], work.frame.draws[b + 1]):
            for lane in range(root.shape[0]):
                z[row, lane] *= root[lane]


@loops
def weight_lengths(work, s):  # type: ignore[no-untyped-def]
    """Multiply lengths s (L, lanes) out of the frame by √(λ_b + ϱ), in all blocks of inputs; ϱ is the inputs' noise."""
    noise = work.constants.numbers.input_noise
    for b in range(work.frame.factored.size):
        root = work.constants.teacher[work.frame.teachers[b]]
        for lane in range(noise.shape[0]):
            s[b, lane] *= math.sqrt(root[lane] * root[lane] + noise[lane])


@loops
def fill_squared_length(work, weighted, square):  # type: ignore[no-untyped-def]
    """Fill square (lanes,) with Σ_b |x_b|² d of samples x, or with Σ_b λ_b |x_b|² d if `weighted`."""
    frame, z, s, of_block = work.frame, work.z, work.lengths.s, work.rotations.spill
    lanes = square.shape[0]
    square[:] = 0.0
    for b in range(frame.factored.size):
        root = work.constants.teacher[work.frame.teachers[b]]
        of_block[:] = 0.0
        if frame.factored[b]:
            for lane in range(lanes):
                of_block[lane] = s[b, lane] * s[b, lane]
        for row in range(frame.draws[b], frame.draws[b + 1]):
            for lane in range(lanes):
                of_block[lane] += z[row, lane] * z[row, lane]
        for lane in range(lanes):
            square[lane] += root[lane] * root[lane] * of_block[lane] if weighted else of_block[lane]


@kernel
def fill_teacher_fields(work, z, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* (k, lanes) of samples with the coordinates z; `work` may be `Samples` of a batch."""
    put_teacher_fields(False, work.L_star, z, 0, work.frame.factored[0], lam_star)
    if work.frame.factored.size > 1:
        add_other_teacher_fields(work, z, lam_star)


@loops
def add_other_teacher_fields(work, z, lam_star):  # type: ignore[no-untyped-def]
    """Add to λ* (k, lanes) what blocks of inputs other than the first add."""
    for b in range(1, work.frame.factored.size):
        _, L_star = teacher_of(work, b)
        put_teacher_fields(True, L_star, z, work.frame.draws[b], work.frame.factored[b], lam_star)


@kernel
def fill_student_fields(work, z, lam):  # type: ignore[no-untyped-def]
    """Fill λ (p, lanes) of samples with the coordinates z."""
    put_student_fields(False, work.A, work.B, z, 0, lam)
    if work.frame.factored.size > 1:
        add_other_student_fields(work, z, lam)


@loops
def add_other_student_fields(work, z, lam):  # type: ignore[no-untyped-def]
    """Add to λ (p, lanes) what blocks of inputs other than the first add."""
    for b in range(1, work.frame.factored.size):
        A, B = rows_of(work, b)
        put_student_fields(True, A, B, z, work.frame.draws[b], lam)


@kernel
def multiply_entries(A, B, i, factor):  # type: ignore[no-untyped-def]
    """Multiply row i of A and B by factor (lanes,)."""
    for s in range(A.shape[1]):
        for lane in range(factor.shape[0]):
            A[i, s, lane] *= factor[lane]
    for j in range(min(i + 1, B.shape[0])):
        for lane in range(factor.shape[0]):
            B[i, j, lane] *= factor[lane]


@kernel
def multiply_row(work, i, factor):  # type: ignore[no-untyped-def]
    """Multiply row i of A_b and B_b by factor (lanes,), in all blocks of inputs."""
    multiply_entries(work.A, work.B, i, factor)
    if work.frame.factored.size > 1:
        multiply_other_rows(work, i, factor)


@loops
def multiply_other_rows(work, i, factor):  # type: ignore[no-untyped-def]
    """Multiply row i of A_b and B_b by factor (lanes,), in all blocks of inputs but the first."""
    for b in range(1, work.frame.factored.size):
        A, B = rows_of(work, b)
        multiply_entries(A, B, i, factor)


@kernel
def put_squared_norm(adds, A, B, i, square):  # type: ignore[no-untyped-def]
    """Fill square (lanes,) with |(A, B)_i|², or add that to it."""
    is_factored = B.shape[0] > 0
    if is_factored:
        put(adds, B[i, 0], B[i, 0], square)
        for j in range(1, i + 1):
            for lane in range(square.shape[0]):
                square[lane] += B[i, j, lane] * B[i, j, lane]
    else:
        put(adds, A[i, 0], A[i, 0], square)
    for s in range(0 if is_factored else 1, A.shape[1]):
        for lane in range(square.shape[0]):
            square[lane] += A[i, s, lane] * A[i, s, lane]


@loops
def add_other_squared_norms(work, i, square):  # type: ignore[no-untyped-def]
    """Add |(A_b, B_b)_i|² of all blocks of inputs but the first to square (lanes,)."""
    for b in range(1, work.frame.factored.size):
        A, B = rows_of(work, b)
        put_squared_norm(True, A, B, i, square)


@kernel
def project(work):  # type: ignore[no-untyped-def]
    """Divide the student's rows by their norms."""
    rows, norm = work.push.shape[0], work.rotations.cosine
    for i in range(rows - work.a.shape[0], rows):
        put_squared_norm(False, work.A, work.B, i, norm)
        if work.frame.factored.size > 1:
            add_other_squared_norms(work, i, norm)
        for lane in range(norm.shape[0]):
            norm[lane] = 1.0 / math.sqrt(norm[lane])
        multiply_row(work, i, norm)


@kernel
def add_weighted(root, x, out):  # type: ignore[no-untyped-def]
    """Add λ_b x to out; all are (lanes,), and root is √λ_b."""
    for lane in range(out.shape[0]):
        out[lane] += root[lane] * root[lane] * x[lane]


@loops
def fill_variance(work, i, square):  # type: ignore[no-untyped-def]
    """Fill square (lanes,) with Σ_b λ_b |(A_b, B_b)_i|², the variance of the field of row i."""
    of_block = work.rotations.tail
    square[:] = 0.0
    for b in range(work.frame.factored.size):
        A, B = rows_of(work, b)
        root = work.constants.teacher[work.frame.teachers[b]]
        put_squared_norm(False, A, B, i, of_block)
        add_weighted(root, of_block, square)


@loops
def chain_network(work):  # type: ignore[no-untyped-def]
    """Fill the network's covariances of fields, Q = Σ_b λ_b (A_b A_bᵀ + B_b B_bᵀ) and M = Σ_b λ_b A_b L*_bᵀ.

    work : the data of a group of any kind of steps, with its `chain`.
    """
    chain = work.chain
    Q, M, square, blocks = chain.network.Q, chain.network.M, chain.rotations.tail, chain.frame.factored.size
    (p, k, lanes), first = M.shape, chain.push.shape[0] - M.shape[0]
    Q[:], M[:] = 0.0, 0.0
    for b in range(blocks):
        A, B = rows_of(chain, b)
        root, L_star = teacher_of(chain, b)
        for i in range(p):
            for j in range(i + 1):
                # one block has the eigenvalue one
                out = Q[i, j] if blocks == 1 else square
                out[:] = 0.0
                if B.shape[0] > 0:
                    add_products(B[first + i], B[first + j], first + j + 1, out)
                add_products(A[first + i], A[first + j], A.shape[1], out)
                if blocks > 1:
                    add_weighted(root, square, Q[i, j])
            for r in range(k):
                out = M[i, r] if blocks == 1 else square
                out[:] = 0.0
                # L* of a factor is lower triangular
                add_products(A[first + i], L_star[r], r + 1 if B.shape[0] > 0 else A.shape[1], out)
                if blocks > 1:
                    add_weighted(root, square, M[i, r])
    for i in range(p):
        for j in range(i):
            for lane in range(lanes):
                Q[j, i, lane] = Q[i, j, lane]
