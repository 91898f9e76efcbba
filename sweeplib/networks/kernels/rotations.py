"""Lower triangular factors in vector lanes after a step, by rotations of columns.

A rotation turns columns (x, y) to (c x + s y, c y − s x) in each lane, with c `cosine` and s `sine` (lanes,).
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.lanes import allocating, loops


class Rotations(NamedTuple):
    """Work arrays (lanes,) for rotations of columns.

    cosine, sine : c and s. spill : the last row of a column after the last one. tail : the length gathered so far.
    """

    spill: Array
    cosine: Array
    sine: Array
    tail: Array


@allocating
def empty_rotations(lanes):  # type: ignore[no-untyped-def]
    """Work arrays for rotations of columns in so many lanes."""
    return Rotations(np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes))


@loops
def fill_rotations(x, y, length, cosine, sine):  # type: ignore[no-untyped-def]
    """Fill c and s of the rotations of (x, y) to (length, 0), and the length; all are (lanes,).

    y may be the same array as `length`. Where x and y are zero the rotation is the identity.
    """
    # decisions: Loops over lanes that write three arrays and read two are not vectorised
    for lane in range(length.shape[0]):
        sine[lane] = y[lane]
    for lane in range(length.shape[0]):
        norm = math.sqrt(x[lane] * x[lane] + sine[lane] * sine[lane])
        inverse = 1.0 / norm if norm > 0.0 else 0.0
        cosine[lane] = x[lane] * inverse if norm > 0.0 else 1.0
        sine[lane] *= inverse
        length[lane] = norm


@loops
def rotate_columns(B, j, spill, cosine, sine):  # type: ignore[no-untyped-def]
    """Rotate columns j and j + 1 of a lower triangular B (p, p, lanes), from row j on.

    After the last column comes `spill` (lanes,), of which only the last row is not zero.
    """
    p, _, lanes = B.shape
    for i in range(j, p):
        if j + 1 < p:
            for lane in range(lanes):
                left, right = B[i, j, lane], B[i, j + 1, lane]
                B[i, j, lane] = cosine[lane] * left + sine[lane] * right
                B[i, j + 1, lane] = cosine[lane] * right - sine[lane] * left
        else:
            for lane in range(lanes):
                left, right = B[i, j, lane], spill[lane]
                B[i, j, lane] = cosine[lane] * left + sine[lane] * right
                spill[lane] = cosine[lane] * right - sine[lane] * left


@loops
def refactor(B, c, w, outside, rotations):  # type: ignore[no-untyped-def]
    """Replace B (p, p, lanes) by a lower triangular factor of [B + c wᵀ, s c], with s `outside` (lanes,), by rotations.

    c, w (p, lanes) : what the step adds, and the sample's coordinates, which are used up. rotations : the work arrays.
    First, rotations from the last column on turn (w, s) into its first axis. B becomes Hessenberg; the column after its
    last one, `spill`, is zero except in the last row. Then c times the length of (w, s) is added to the first column,
    and rotations from the first column on make B triangular again. For a single row the factor is its length.
    """
    p, _, lanes = B.shape
    spill, cosine, sine, tail = rotations.spill, rotations.cosine, rotations.sine, rotations.tail
    if p == 1:
        for lane in range(lanes):
            along = B[0, 0, lane] + c[0, lane] * w[0, lane]
            across = c[0, lane] * outside[lane]
            B[0, 0, lane] = math.sqrt(along * along + across * across)
        return
    for lane in range(lanes):
        tail[lane] = outside[lane]
        spill[lane] = 0.0
    for j in range(p - 1, -1, -1):
        # w[j] is only read: the length goes to `tail`
        fill_rotations(w[j], tail, tail, cosine, sine)
        rotate_columns(B, j, spill, cosine, sine)
    for i in range(p):
        for lane in range(lanes):
            B[i, 0, lane] += c[i, lane] * tail[lane]
    for j in range(p):
        fill_rotations(B[j, j], B[j, j + 1] if j + 1 < p else spill, tail, cosine, sine)
        rotate_columns(B, j, spill, cosine, sine)
