"""The samples of a block of steps of SGD: drawn, and multiplied with the weights of a replica.

`replica` is the run (`weights.Replica`), `room` its work arrays. Inputs are stored times √d, as N(0, 1) numbers x.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.disturbances import OF_INPUTS, disturb_input
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

allocating_apart = numba.njit(error_model="numpy", fastmath={"contract"}, **FOR_KERNELS)
"""For what allocates arrays, once in a call of many steps."""


class Room(NamedTuple):
    """Work arrays of a block of steps.

    normals (2, BLOCK, padded) : the samples of the block and of the one before.
    factors, along (BLOCK, p), along_star (k, BLOCK) : of each sample, factors of its update, products with W and W*.
    a_star (k, BLOCK), label, shift, deviation (BLOCK,) : of the labels; shift is the part that comes with inputs.
    gram (BLOCK, BLOCK) : products of samples with each other.
    xi (padded,), clean_star (k, BLOCK) : with noise of inputs, ξ and the products of W* with samples without it.
    sample (2, 1), risk (1,) : E or the force, and the label, of one sample; the risk.
    lam, field, value, c (p,) : λ, λ + b, σ and c of one step.
    masks, layer (p,) : with dropout b_i/π and b_i a_i/π.
    shrink, norm, least_norm (p,) : factors by which projection shrinks rows, in this step, in total, the least total.
    squared_norm (p,) : |w_i|²/d.
    """

    normals: Array
    factors: Array
    along: Array
    along_star: Array
    a_star: Array
    label: Array
    shift: Array
    gram: Array
    deviation: Array
    xi: Array
    clean_star: Array
    sample: Array
    lam: Array
    field: Array
    value: Array
    c: Array
    masks: Array
    layer: Array
    shrink: Array
    norm: Array
    least_norm: Array
    squared_norm: Array
    risk: Array


@allocating_apart
def room_of(replica):  # type: ignore[no-untyped-def]
    """The `Room` of a replica, with the constants of its labels filled in."""
    p, d = replica.W.shape
    k = replica.W_star.shape[0]
    a_star, padded = np.empty((k, BLOCK)), MULTIPLE * (d // MULTIPLE + 1)
    for r in range(k):
        a_star[r, :] = replica.a_star[r]
    return Room(
        # zeros, not empty: the first pass adds zero times the samples of a block before, where NaN would stay
        np.zeros((2, BLOCK, padded)),
        np.zeros((BLOCK, p)),
        np.empty((BLOCK, p)),
        np.empty((k, BLOCK)),
        a_star,
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty((BLOCK, BLOCK)),
        np.full(BLOCK, replica.numbers.deviation),
        np.empty(padded if replica.numbers.input_noise > 0.0 else 0),
        np.zeros((k, BLOCK)),
        np.empty((2, 1)),
        lam=np.empty(p),
        field=np.empty(p),
        value=np.empty(p),
        c=np.empty(p),
        masks=np.empty(p),
        layer=np.empty(p),
        # ones, as off the sphere nothing writes these
        shrink=np.ones(p),
        norm=np.ones(p),
        least_norm=np.ones(p),
        squared_norm=np.ones(p),
        risk=np.empty(1),
    )


@loop
def pass_by(replica, room, before, x, first, last):  # type: ignore[no-untyped-def]
    """Update some columns of W by the previous samples times their factors; add the products with the samples x.

    before, x (BLOCK, padded) : the previous samples, and the present ones. first, last : the columns.
    The products, in `room`, are those of W (along), of W* (along_star), and of the samples with each other (gram).
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
def draw_block(count, step, use, replica, functions, samples, room):  # type: ignore[no-untyped-def]
    """Draw the `count` samples from number `step` on, and fill their products with the weights and their labels.

    use : of the batch, from 0; each has its own noise of inputs, with which the labels alone are by inputs without it.
    samples : which half of room.normals they go to; the other one has the previous samples, whose updates are made now.
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
            key = replica.key + OF_INPUTS * np.uint64(use)
            disturb_input(noise, np.uint64(step + s), replica.seed, key, room.xi, x[s][:d])
    # the sums of `pass_by` begin at zero
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
    # the updates of the previous samples are made, those of the present ones not known
    for s in range(BLOCK):
        for i in range(room.factors.shape[1]):
            room.factors[s, i] = 0.0
