"""The steps of SGD on the weights of one replica with batches from a finite training set, and means over the set.

Samples are taken four at a time, and rows of weights two at a time, in chunks that stay in the second cache between the
products with the weights and the gradient: the training set is read once a step. `replica` is the run
(`weights.Replica`), `data` its `TrainingSet`, `chunk` a `Chunk` of work arrays; `functions` are called by address; x0,
x1, x2, x3 are four samples (d,), and W (p, d) the weights.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.averages import average_weights
from sweeplib.networks.kernels.batches import apply_rule, mixing_of, row_factor
from sweeplib.networks.kernels.disturbances import add_noise_of_weights
from sweeplib.networks.kernels.lanes import OVERFLOW
from sweeplib.networks.kernels.noisy_labels import stretched
from sweeplib.networks.kernels.row_products import inner_product, loop, products
from sweeplib.networks.kernels.sample_blocks import MULTIPLE, allocating_apart, called_once
from sweeplib.networks.kernels.schedules import step_time
from sweeplib.networks.kernels.weights import (
    DIVERGED,
    GOING,
    STOPPED,
    decay_factor,
    fill_overlaps,
    is_waiting,
    move_layer_and_offsets,
    note_exits,
)
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS
from sweeplib.networks.numerics.random import fill_normals, random_words, whole_number

FOUR = 4
"""Number of samples whose products are computed at once."""

# decisions: Batches of a training set are taken by our kernel, not by BLAS
CHUNK_NUMBERS, LONGEST_CHUNK = 2**15, 256
"""A chunk has about this number of numbers, and at most so many samples."""

_kernel = numba.njit(error_model="numpy", fastmath={"contract"}, _nrt=False, **FOR_KERNELS)
"""For functions that neither allocate nor return arrays: without reference counts."""


class TrainingSet(NamedTuple):
    """The n samples of a training set, and the state of the choice of batches.

    x (n, d) : inputs times √d.
    y (n,) : noisy labels.
    order (n,) : numbers of the samples; between steps in ascending order, or in that of the present pass.
    swaps (n,) : work array of a choice.
    current (1,) : number of the present pass, negative before the first.
    key : name of the stream of choices.
    epochs : whether steps pass through the set.
    """

    x: Any
    y: Array
    order: NDArray[np.int64]
    swaps: NDArray[np.int64]
    current: NDArray[np.int64]
    key: Any
    epochs: bool


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


class Means(NamedTuple):
    """Means over the training set, with c_i = a_i σ'(λ_i) g, g the force.

    loss (1,) : of ½E². square (1,) : of Σ_i c_i² ‖x‖². gradient (p, d) : of c_i x times √d.
    """

    loss: Array
    square: Array
    gradient: Array


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


@_kernel
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


@_kernel
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
def fill_chunk(rows, replica, functions, data, chunk):  # type: ignore[no-untyped-def]
    """Fill a chunk for the samples with numbers `rows`; return whether all their E are finite.

    It gets λ + b, σ(λ + b), E, the force g, and as factors c_i = a_i σ'(λ_i + b_i) g.
    """
    p, filled = len(replica.a), len(rows)
    lam, value, factors = chunk.lam[: filled * p], chunk.value[: filled * p], chunk.factors[: filled * p]
    fill_fields(rows, data.x, replica.W, lam)
    for s in range(filled):
        for i in range(p):
            lam[s * p + i] += replica.b[i]
    functions.value(lam, value)
    functions.slope(lam, factors)
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


@_kernel
def shuffle(count, step, seed, data):  # type: ignore[no-untyped-def]
    """Put `count` samples to the first places of data.order, by random swaps named by step, seed and data.key."""
    n = len(data.order)
    for s in range(count):
        high, low, _, _ = random_words(np.uint64(s), np.uint64(step), seed, data.key)
        place = s + whole_number(n - s, high, low)
        data.swaps[s] = place
        data.order[s], data.order[place] = data.order[place], data.order[s]


@_kernel
def choose(step, batch_size, seed, data, batch):  # type: ignore[no-untyped-def]
    """Fill batch (batch_size,) with the numbers of the samples of a step; return how many they are.

    They are a function of the number of the step, by the stream `seed`. The last batch of a pass may be smaller.
    """
    n, order = len(data.order), data.order
    if batch_size == n:
        for s in range(n):
            batch[s] = s
        return n
    if data.epochs:
        steps = -(-n // batch_size)
        number, place = step // steps, step % steps * batch_size
        if data.current[0] != number:
            for m in range(n):
                order[m] = m
            shuffle(n, number, seed, data)
            data.current[0] = number
        size = min(batch_size, n - place)
        for s in range(size):
            batch[s] = order[place + s]
        return size
    shuffle(batch_size, step, seed, data)
    for s in range(batch_size):
        batch[s] = order[s]
    # swaps are undone, the last first: a batch is a function of the number of its step alone
    for s in range(batch_size - 1, -1, -1):
        place = data.swaps[s]
        order[s], order[place] = order[place], order[s]
    return batch_size


@_kernel
def project(W):  # type: ignore[no-untyped-def]
    """Divide the rows of W (p, d) by their norms over √d."""
    p, d = W.shape
    for i in range(p):
        shrink = math.sqrt(d / inner_product(W[i], W[i]))
        for j in range(d):
            W[i, j] *= shrink


@allocating_apart
def chunk_of(replica, n):  # type: ignore[no-untyped-def]
    """The `Chunk` for training sets of n samples; it has a multiple of four samples unless it has all n."""
    p, d = replica.W.shape
    most = max(FOUR, min(LONGEST_CHUNK, CHUNK_NUMBERS // d // FOUR * FOUR))
    size = min(n, most)
    # lam, value, factors; E, force, label; risk, sample
    of_units = np.empty(size * p), np.empty(size * p), np.empty(size * p)
    return Chunk(*of_units, np.empty(size), np.empty(size), np.empty(size), np.empty(1), np.empty((2, 1)))


@called_once
def move(batch, number, T, replica, functions, data, chunk, moves, layer_moves, mixing):  # type: ignore[no-untyped-def]
    """Take a step of the time T with the samples `batch`; return whether all their E are finite, else nothing moves.

    A few samples are added to W itself; more are first added up in `moves` (p, d), so that a step rounds a weight once.
    number : (round, use of its batch), which names the noise of the weights.
    layer_moves (3, p) : a work array, of a, of b and of Σ c_i λ_i; so are those of `mixing`.
    """
    W, numbers, size, chunk_size = replica.W, replica.numbers, len(batch), len(chunk.E)
    p, d = W.shape
    # inputs are stored times √d: this adds c_i d x
    scale, layer_scale = math.sqrt(d) * T / size, numbers.second_layer_rate * T / size
    offset_scale = numbers.offset_rate * T / size
    rule, shrinkage = functions.rule, decay_factor(numbers, T)
    # all in one chunk: another one would meet weights that have moved already
    together = rule.rescales or rule.has_velocities or rule.is_tangent or numbers.temperature > 0.0
    # then no sum is needed: samples are added to W as they come
    at_once = size <= min(FOUR, chunk_size) and not together
    layer_moves[:] = 0.0
    if not at_once:
        moves[:] = 0.0
    for first in range(0, size, chunk_size):
        rows = batch[first : min(first + chunk_size, size)]
        if not fill_chunk(rows, replica, functions, data, chunk):
            return False
        for s in range(len(rows)):
            for i in range(p):
                layer_moves[0, i] += layer_scale * chunk.force[s] * chunk.value[s * p + i]
                layer_moves[1, i] += offset_scale * chunk.factors[s * p + i]
                layer_moves[2, i] += T / size * chunk.factors[s * p + i] * chunk.lam[s * p + i]
                chunk.factors[s * p + i] *= scale
        if at_once:
            if shrinkage != 1.0:
                for i in range(p):
                    for j in range(d):
                        W[i, j] *= shrinkage
            add_samples(rows, data.x, chunk.factors, W)
        else:
            add_samples(rows, data.x, chunk.factors, moves)
    move_layer_and_offsets(replica, T, layer_moves)
    if not at_once:
        if rule.rescales or rule.has_velocities:
            apply_rule(replica, rule, T, moves, mixing, chunk.sample)
        if numbers.temperature > 0.0:
            add_noise_of_weights(replica, number, T, mixing.xi, moves)
        for i in range(p):
            shrinkage = row_factor(replica, rule, T, layer_moves[2, i])
            for j in range(d):
                W[i, j] = shrinkage * W[i, j] + moves[i, j]
    return True


def training_steps(count, step, batch_size, uses, replica, rates, functions, exits, data):  # type: ignore[no-untyped-def]
    """Take up to `count` rounds from number `step` on; return how many were taken, and the fate of the run.

    A round is a step for each of the `uses` of one batch of `batch_size`, (first, end). rates : the schedules. W, a,
    the exits and the order of the training set change in place.
    """
    p, d = replica.W.shape
    chunk, batch = chunk_of(replica, batch_size), np.empty(batch_size, np.int64)
    moves, layer_moves, clock = np.empty((p, d)), np.empty((3, p)), np.empty((2, 1))
    mixing = mixing_of(replica, functions.rule)
    for step_number in range(count):
        T = step_time(step + step_number, replica.numbers.T, rates, clock)
        size = choose(step + step_number, batch_size, replica.seed, data, batch)
        for use in range(uses[0], uses[1]):
            number = step + step_number, use  # names the random numbers of the step
            if not move(batch[:size], number, T, replica, functions, data, chunk, moves, layer_moves, mixing):
                return step_number, DIVERGED
            if replica.spherical:
                project(replica.W)
            average_weights(replica, rates.stride * (step + step_number) + use + 1)
        if is_waiting(exits):
            fill_overlaps(replica, exits)
            if note_exits(replica, exits, functions, step + step_number + 1, chunk):
                return step_number + 1, STOPPED
    return count, GOING


def training_means(replica, functions, data, with_gradient, out):  # type: ignore[no-untyped-def]
    """Fill means over the training set: out.loss and, `with_gradient`, out.square and out.gradient."""
    n = len(data.y)
    p, d = replica.W.shape
    chunk = chunk_of(replica, n)
    every, loss, square = np.arange(n), 0.0, 0.0
    out.gradient[:] = 0.0
    for first in range(0, n, len(chunk.E)):
        rows = every[first : min(first + len(chunk.E), n)]
        fill_chunk(rows, replica, functions, data, chunk)
        for s in range(len(rows)):
            loss += 0.5 * chunk.E[s] * chunk.E[s] / n
            if with_gradient:
                factors = chunk.factors[s * p : s * p + p]
                x = data.x[rows[s]]
                square += inner_product(factors, factors) * inner_product(x, x) / (n * d)
                for i in range(p):
                    # the sum over samples becomes a mean
                    factors[i] /= n
        if with_gradient:
            add_samples(rows, data.x, chunk.factors, out.gradient)
    out.loss[0], out.square[0] = loss, square


def draw_samples(replica, functions, x, lam_star, shift, z):  # type: ignore[no-untyped-def]
    """Fill inputs x (n, d) times √d, the teacher's fields lam_star (k, n), and two parts of the labels, all (n,).

    They are those of the first n samples of the stream. `shift` comes with the inputs, by the data law; z is the noise.
    """
    n, d = x.shape
    # more than d numbers: one is the noise of the label
    draws = np.zeros(MULTIPLE * (d // MULTIPLE + 1))
    for m in range(n):
        fill_normals(replica.key, replica.seed, np.uint64(m), draws)
        shift[m] = replica.inputs(replica.law, replica.law_key, replica.seed, np.uint64(m), draws[:d])
        for j in range(d):  # a slice has a message on other lengths, for which numba compiles 2 s
            x[m, j] = draws[j]
        z[m] = stretched(functions, draws[d], np.uint64(m), replica.seed, replica.key)
        for r in range(len(replica.W_star)):
            lam_star[r, m] = inner_product(replica.W_star[r], draws[:d]) / math.sqrt(d)
