"""Samples of a training set, a chunk at a time: products with the weights, dropout and noise of inputs, gradients.

Samples are taken four at a time, and rows of weights two at a time, in chunks that stay in the second cache between the
products with the weights and the gradient: the training set is read once a step. `replica` is the run
(`weights.Replica`), `data` has the labels y of all samples, `chunk` is a `Chunk` of work arrays; `functions` are called
by address; x0, x1, x2, x3 are four samples (d,), and W (p, d) the weights.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.disturbances import OF_INPUTS, OF_MASKS, disturb_input, fill_masks
from sweeplib.networks.kernels.lanes import OVERFLOW
from sweeplib.networks.kernels.row_products import inner_product, loop, products
from sweeplib.networks.kernels.sample_blocks import MULTIPLE, allocating_apart, called_once
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS

FOUR = 4
"""Number of samples whose products are computed at once."""

# decisions: Batches of a training set are taken by our kernel, not by BLAS
CHUNK_NUMBERS, LONGEST_CHUNK = 2**15, 256
"""A chunk has about this number of numbers, and at most so many samples."""

kernel_without_arrays = numba.njit(error_model="numpy", fastmath={"contract"}, _nrt=False, **FOR_KERNELS)
"""For functions that neither allocate nor return arrays: without reference counts."""


class Chunk(NamedTuple):
    """Work arrays of the samples of a chunk, `size` of them at most.

    lam, value, factors (size p,) : λ + b, σ(λ + b) and the factors of the inputs, p of each sample in turn.
    E, force, label (size,) : displacements, forces and labels.
    risk (1,), sample (2, 1) : the population risk, and a work array.
    """

    lam: Array
    value: Array
    factors: Array
    E: Array
    force: Array
    label: Array
    risk: Array
    sample: Array


class Inputs(NamedTuple):
    """What a student sees of the samples of a chunk.

    x (n, d), places (filled,) : inputs times √d, and the rows of them that are those of the samples.
    masks (filled p,) : with dropout b_i/π, p of each sample in turn; none otherwise.
    """

    x: Any
    places: NDArray[np.int64]
    masks: Array


class Disturbed(NamedTuple):
    """Work arrays of dropout and noise of inputs for a chunk of `size` samples; empty for what a run does not have.

    x (size, d), places (size,) : inputs with noise, and their numbers. masks (size p,) : b_i/π. xi (padded,) : ξ.
    """

    x: Any
    places: NDArray[np.int64]
    masks: Array
    xi: Array


@allocating_apart
def chunk_of(replica, n):  # type: ignore[no-untyped-def]
    """The `Chunk` for training sets of n samples; it has a multiple of four samples unless it has all n."""
    p, d = replica.W.shape
    most = max(FOUR, min(LONGEST_CHUNK, CHUNK_NUMBERS // d // FOUR * FOUR))
    size = min(n, most)
    # lam, value, factors; E, force, label; risk, sample
    of_units = np.empty(size * p), np.empty(size * p), np.empty(size * p)
    return Chunk(*of_units, np.empty(size), np.empty(size), np.empty(size), np.empty(1), np.empty((2, 1)))


@allocating_apart
def disturbed_of(replica, size):  # type: ignore[no-untyped-def]
    """The `Disturbed` for chunks of `size` samples."""
    (p, d), numbers = replica.W.shape, replica.numbers
    noisy, masked = size if numbers.input_noise > 0.0 else 0, size if numbers.keep_probability < 1.0 else 0
    # of the precision of the training set
    x = np.empty((noisy, d), replica.W.dtype)
    return Disturbed(x, np.arange(size), np.empty(masked * p), np.empty(MULTIPLE * (d // MULTIPLE + 1)))


@kernel_without_arrays
def disturb(rows, first, use, replica, x, work):  # type: ignore[no-untyped-def]
    """Fill the masks, and the inputs with noise, of the samples with numbers `rows` of x (n, d), for a use of them.

    first : the number that the first would have in a stream of fresh batches, which names its random numbers.
    work : the `Disturbed`.
    """
    p, numbers = len(replica.a), replica.numbers
    for s in range(len(rows)):
        number = np.uint64(first + s)
        if numbers.keep_probability < 1.0:
            key, masks = replica.key + OF_MASKS * np.uint64(use), work.masks[s * p : s * p + p]
            fill_masks(numbers.keep_probability, number, replica.seed, key, masks)
        if numbers.input_noise > 0.0:
            for j in range(x.shape[1]):
                work.x[s, j] = x[rows[s], j]
            key = replica.key + OF_INPUTS * np.uint64(use)
            disturb_input(numbers.input_noise, number, replica.seed, key, work.xi, work.x[s])


@loop
def products_of_two(w, v, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """The inner products of two rows of weights (d,) with four samples (d,): four of w, then four of v."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    u0, u1, u2, u3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        a, b = np.float64(w[j]), np.float64(v[j])
        z0, z1, z2, z3 = np.float64(x0[j]), np.float64(x1[j]), np.float64(x2[j]), np.float64(x3[j])
        t0 += a * z0
        t1 += a * z1
        t2 += a * z2
        t3 += a * z3
        u0 += b * z0
        u1 += b * z1
        u2 += b * z2
        u3 += b * z3
    return t0, t1, t2, t3, u0, u1, u2, u3


@loop
def add_to_two(f, g, x0, x1, x2, x3, w, v):  # type: ignore[no-untyped-def]
    """Add four samples x (d,) times their factors f (4 numbers) to the row w (d,), times g to the row v (d,)."""
    f0, f1, f2, f3 = f
    g0, g1, g2, g3 = g
    for j in range(w.shape[0]):
        z0, z1, z2, z3 = np.float64(x0[j]), np.float64(x1[j]), np.float64(x2[j]), np.float64(x3[j])
        w[j] += (f0 * z0 + f1 * z1) + (f2 * z2 + f3 * z3)
        v[j] += (g0 * z0 + g1 * z1) + (g2 * z2 + g3 * z3)


@loop
def add_to_one(f, x0, x1, x2, x3, w):  # type: ignore[no-untyped-def]
    """Add four samples x (d,) times their factors f (4 numbers) to the row w (d,)."""
    f0, f1, f2, f3 = f
    for j in range(w.shape[0]):
        w[j] += (f0 * x0[j] + f1 * x1[j]) + (f2 * x2[j] + f3 * x3[j])


@loop
def add_sample(f, x, w):  # type: ignore[no-untyped-def]
    """Add a sample x (d,) times its factor f, a number, to a row w (d,)."""
    for j in range(w.shape[0]):
        w[j] += f * x[j]


@kernel_without_arrays
def fill_fields(rows, x, W, lam):  # type: ignore[no-untyped-def]
    """Fill lam (samples p,) with λ, one sample after another, for the samples with numbers `rows` of x (n, d)."""
    p, d = W.shape
    root, in_fours = 1.0 / math.sqrt(d), len(rows) // FOUR * FOUR
    for s in range(0, in_fours, FOUR):
        x0, x1, x2, x3 = x[rows[s]], x[rows[s + 1]], x[rows[s + 2]], x[rows[s + 3]]
        at0, at1, at2, at3 = s * p, s * p + p, s * p + 2 * p, s * p + 3 * p
        for i in range(0, p - 1, 2):
            t0, t1, t2, t3, u0, u1, u2, u3 = products_of_two(W[i], W[i + 1], x0, x1, x2, x3)
            lam[at0 + i], lam[at1 + i], lam[at2 + i], lam[at3 + i] = root * t0, root * t1, root * t2, root * t3
            lam[at0 + i + 1], lam[at1 + i + 1] = root * u0, root * u1
            lam[at2 + i + 1], lam[at3 + i + 1] = root * u2, root * u3
        if p % 2:
            i = p - 1
            t0, t1, t2, t3 = products(W[i], x0, x1, x2, x3)
            lam[at0 + i], lam[at1 + i], lam[at2 + i], lam[at3 + i] = root * t0, root * t1, root * t2, root * t3
    for s in range(in_fours, len(rows)):
        for i in range(p):
            lam[s * p + i] = root * inner_product(W[i], x[rows[s]])


@kernel_without_arrays
def add_samples(rows, x, factors, out):  # type: ignore[no-untyped-def]
    """Add the samples with numbers `rows` of x (n, d), times `factors` (samples p,), to the rows of `out` (p, d)."""
    p, in_fours = len(out), len(rows) // FOUR * FOUR
    for s in range(0, in_fours, FOUR):
        x0, x1, x2, x3 = x[rows[s]], x[rows[s + 1]], x[rows[s + 2]], x[rows[s + 3]]
        f0, f1 = factors[s * p : s * p + p], factors[s * p + p : s * p + 2 * p]
        f2, f3 = factors[s * p + 2 * p : s * p + 3 * p], factors[s * p + 3 * p : s * p + 4 * p]
        for i in range(0, p - 1, 2):
            of_i, of_next = (f0[i], f1[i], f2[i], f3[i]), (f0[i + 1], f1[i + 1], f2[i + 1], f3[i + 1])
            add_to_two(of_i, of_next, x0, x1, x2, x3, out[i], out[i + 1])
        if p % 2:
            add_to_one((f0[p - 1], f1[p - 1], f2[p - 1], f3[p - 1]), x0, x1, x2, x3, out[p - 1])
    for s in range(in_fours, len(rows)):
        for i in range(p):
            add_sample(factors[s * p + i], x[rows[s]], out[i])


@called_once
def fill_chunk(rows, inputs, replica, functions, data, chunk):  # type: ignore[no-untyped-def]
    """Fill a chunk for the samples with numbers `rows`, seen as `inputs`; return whether all their E are finite.

    It gets λ + b, σ(λ + b), E, the force g, and as factors c_i = a_i σ'(λ_i + b_i) g. With dropout σ and c have the
    factors b_i/π.
    """
    p, filled = len(replica.a), len(rows)
    lam, value, factors = chunk.lam[: filled * p], chunk.value[: filled * p], chunk.factors[: filled * p]
    fill_fields(inputs.places, inputs.x, replica.W, lam)
    for s in range(filled):
        for i in range(p):
            lam[s * p + i] += replica.b[i]
    functions.value(lam, value)
    functions.slope(lam, factors)
    for i in range(len(inputs.masks)):
        value[i] *= inputs.masks[i]
        factors[i] *= inputs.masks[i]
    finite = True
    for s in range(filled):
        f = 0.0
        for i in range(p):
            f += replica.a[i] * value[s * p + i]
        E = data.y[rows[s]] - f / p
        finite &= abs(E) < OVERFLOW
        chunk.E[s] = chunk.force[s] = E
    # the plain force is E
    if not functions.is_plain:
        for s in range(filled):
            chunk.label[s] = data.y[rows[s]]
        functions.force(functions.numbers, chunk.force[:filled], chunk.label[:filled])
    for s in range(filled):
        for i in range(p):
            factors[s * p + i] *= replica.a[i] * chunk.force[s]
    return finite
