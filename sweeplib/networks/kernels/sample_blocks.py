"""The samples of a block of steps of SGD: drawn, and multiplied with the weights of a replica."""

import math

import numba
import numpy as np

from sweeplib.networks.kernels.disturbances import disturb_input
from sweeplib.networks.kernels.noisy_labels import stretched
from sweeplib.networks.kernels.row_products import add_gram, inner_product, loop, moved_products, products
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS
from sweeplib.networks.numerics.random import fill_normals

BLOCK = 4
"""Number of steps whose samples are drawn and multiplied with the weights at once."""

# two blocks of four samples, of so many doubles, are 24 kB of a cache of 32
COLUMNS = 384
"""With this number of columns, the samples of two blocks stay in the first cache during a pass over the weights."""

MULTIPLE = 32
"""Samples are padded to a multiple of this: pairs of draws of four numbers each, in vectors of four."""

called_once = numba.njit(error_model="numpy", fastmath={"contract"}, _nrt=False, forceinline=True, **FOR_KERNELS)
"""For what a step calls in one place: a call with all fields of its arguments takes a tenth of a microsecond."""


@loop
def pass_by(replica, room, before, x, first, last):  # type: ignore[no-untyped-def]
    """Update some columns of W by the previous samples times their factors; add the products with the samples x.

    before, x (BLOCK, padded) : the previous samples, and the present ones. first, last : the columns.
    Products, in `room`, are those of W, of W*, and of the samples with each other.
    """
    W, W_star, factors, along, along_star = replica.W, replica.W_star, room.factors, room.along, room.along_star
    b0, b1, b2, b3 = before[0][first:last], before[1][first:last], before[2][first:last], before[3][first:last]
    x0, x1, x2, x3 = x[0][first:last], x[1][first:last], x[2][first:last], x[3][first:last]
    for i in range(W.shape[0]):
        moves = factors[0, i], factors[1, i], factors[2, i], factors[3, i]
        t0, t1, t2, t3 = moved_products(W[i][first:last], moves, (b0, b1, b2, b3), (x0, x1, x2, x3))
        along[0, i] += t0
        along[1, i] += t1
        along[2, i] += t2
        along[3, i] += t3
    for r in range(W_star.shape[0]):
        t0, t1, t2, t3 = products(W_star[r][first:last], x0, x1, x2, x3)
        along_star[r, 0] += t0
        along_star[r, 1] += t1
        along_star[r, 2] += t2
        along_star[r, 3] += t3
    add_gram(x0, x1, x2, x3, room.gram)


@called_once
def draw_block(count, step, replica, functions, samples, room):  # type: ignore[no-untyped-def]
    """Draw the `count` samples from number `step` on, and fill their products with the weights and their labels.

    samples : which of both halves of room.normals they go to; the other half has the previous ones.
    With noise of inputs all but the labels is of those with noise.
    """
    d = replica.W.shape[1]
    k, size = room.along_star.shape
    before = room.normals[0] if samples == 1 else room.normals[1]
    x = room.normals[samples]
    for s in range(count):
        fill_normals(replica.key, replica.seed, np.uint64(step + s), x[s])
        room.shift[s] = replica.inputs(replica.law, replica.law_key, replica.seed, np.uint64(step + s), x[s][:d])
    noise = replica.numbers.input_noise
    if noise > 0.0:
        for s in range(count):
            for r in range(k):
                room.clean_star[r, s] = inner_product(replica.W_star[r], x[s][:d]) / math.sqrt(d)
            disturb_input(noise, np.uint64(step + s), replica.seed, replica.key, room.xi, x[s][:d])
    for s in range(BLOCK):
        for i in range(room.along.shape[1]):
            room.along[s, i] = 0.0
        for t in range(BLOCK):
            room.gram[s, t] = 0.0
        for r in range(k):
            room.along_star[r, s] = 0.0
    # the last block of a call may be shorter: its last rows are old samples, whose products nobody reads
    for first in range(0, d, COLUMNS):
        pass_by(replica, room, before, x, first, min(first + COLUMNS, d))
    root = 1.0 / math.sqrt(d)
    for r in range(k):
        for s in range(size):
            room.along_star[r, s] *= root
    functions.labels(room.clean_star if noise > 0.0 else room.along_star, room.a_star, room.label)
    for s in range(count):
        room.label[s] += room.shift[s]
        # each draw has one normal more than d, for the noise of the label
        z = stretched(functions, x[s, d], np.uint64(step + s), replica.seed, replica.key)
        room.label[s] += room.deviation[s] * z
    for s in range(BLOCK):
        for i in range(room.factors.shape[1]):
            room.factors[s, i] = 0.0
