"""What the rule of the steps (signs, a factor of the gradient, velocities, a tangent) makes of a step of the chain.

c_i x is what a step adds to row i of the weights, by a sample x; c (p, lanes) is `work.fields.c`. `work` is the `Chain`
of a group of replicas in lanes, `settings` are its `Settings`, `rule` is the `StepRule`. What is said of A and B is
done in all blocks of inputs.
"""

import math

import numpy as np

from sweeplib.networks.kernels.chain_rows import fill_squared_length, multiply_row
from sweeplib.networks.kernels.chain_state import rows_of
from sweeplib.networks.kernels.lanes import draw_normals, kernel, loops

OF_SIGNS = np.uint64(0xC2B2AE3D27D4EB4F)
"""What the key of the stream of signs has beyond the key of the samples: other keys give independent numbers."""
OVERLAP = math.sqrt(2.0 / math.pi)
"""The overlap E[u sgn(u)] of a N(0, 1) number u with its sign."""


@loops
def take_signs(settings, stream, work):  # type: ignore[no-untyped-def]
    """Replace a sample √d x by its signs, in law if all rows are delocalised, and c by T sgn(c).

    A coordinate u along a row of many entries of one size becomes c₀ u + √(1 − c₀²) N, c₀ = √(2/π), N of N(0, 1); all d
    signs have the length √d. Without a factor coordinates are entries of x. stream : names of each lane's random
    numbers.
    """
    z, s, c, numbers, (_, _, xi, key) = work.z, work.lengths.s[0], work.fields.c, work.constants.numbers, work.disturbed
    for i in range(c.shape[0]):
        for lane in range(s.shape[0]):
            c[i, lane] = numbers.T[lane] * np.sign(c[i, lane])
    if not work.frame.factored[0]:
        for row in range(work.frame.draws[1]):
            for lane in range(s.shape[0]):
                z[row, lane] = np.sign(z[row, lane])
        return
    for lane in range(s.shape[0]):
        # s is d, less the squares of all coordinates, until its root is taken
        key[lane], s[lane] = stream.key[lane] + OF_SIGNS, numbers.d[lane]
    draw_normals(stream.step, stream.seed, key, xi)
    for row in range(settings.k + settings.rows):
        for lane in range(s.shape[0]):
            z[row, lane] = OVERLAP * z[row, lane] + math.sqrt(1.0 - OVERLAP * OVERLAP) * xi[row, lane]
            s[lane] -= z[row, lane] * z[row, lane]
    for lane in range(s.shape[0]):
        s[lane] = math.sqrt(max(s[lane], 0.0))


@loops
def rescale(rule, work):  # type: ignore[no-untyped-def]
    """Multiply c by the rule's factor of a gradient g, which has ‖g‖² = ‖x‖² Σ c_i²/T²."""
    c, numbers = work.fields.c, work.constants.numbers
    # the rotations of the step come later: until then their arrays are free
    square, total = work.rotations.cosine, work.rotations.sine
    p, lanes = c.shape
    fill_squared_length(work, False, square)
    total[:] = 0.0
    for i in range(p):
        for lane in range(lanes):
            total[lane] += c[i, lane] * c[i, lane]
    for lane in range(lanes):
        T = numbers.T[lane]
        square[lane] *= total[lane] / (numbers.d[lane] * T * T) if T > 0.0 else 0.0
    # in: squared norms of gradients; out: their factors
    rule.factor(rule.numbers, numbers.T, square, work.memory)
    for i in range(p):
        for lane in range(lanes):
            c[i, lane] *= square[lane]


@loops
def move_by_velocities(work, momentum):  # type: ignore[no-untyped-def]
    """Multiply the velocities by β `momentum`, add them to the weights, and repeat c for both: v ← β v, w ← w + v.

    Rows of velocities are before those of the weights. No bound of the change of f is known, so that the slack is zero.
    """
    push, (p, lanes) = work.push, work.fields.c.shape
    first = push.shape[0] - 2 * p
    for b in range(work.frame.factored.size):
        A, B = rows_of(work, b)
        for i in range(first, first + p):
            for s in range(A.shape[1]):
                for lane in range(lanes):
                    A[i, s, lane] *= momentum
                    A[p + i, s, lane] += A[i, s, lane]
            if B.shape[0] > 0:
                for j in range(i + 1):
                    for lane in range(lanes):
                        B[i, j, lane] *= momentum
                        B[p + i, j, lane] += B[i, j, lane]
    for i in range(first, first + p):
        for lane in range(lanes):
            push[i, lane] = push[p + i, lane]
    work.network.slack[:] = 0.0


@kernel
def turn_along_sphere(work):  # type: ignore[no-untyped-def]
    """Multiply row i of A and B by 1 − c_i λ_i: with c_i x added, it moves by the part of c_i x orthogonal to w_i."""
    (p, lanes), lam, c, factor = work.fields.c.shape, work.fields.lam, work.fields.c, work.rotations.cosine
    for i in range(p):
        for lane in range(lanes):
            factor[lane] = 1.0 - c[i, lane] * lam[i, lane]
        multiply_row(work, work.push.shape[0] - p + i, factor)
