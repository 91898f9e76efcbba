"""The steps of SGD on the weights of one replica with batches from a finite training set, and means over the set.

`replica` is the run (`weights.Replica`), `data` its `TrainingSet`, `chunk` a `Chunk` of work arrays; `functions` are
called by address; W (p, d) are the weights.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.averages import average_weights
from sweeplib.networks.kernels.batches import apply_rule, mixing_of, row_factor
from sweeplib.networks.kernels.disturbances import add_noise_of_weights
from sweeplib.networks.kernels.noisy_labels import stretched
from sweeplib.networks.kernels.row_products import inner_product
from sweeplib.networks.kernels.sample_blocks import MULTIPLE, called_once
from sweeplib.networks.kernels.schedules import step_time
from sweeplib.networks.kernels.training_chunks import (
    FOUR,
    Inputs,
    add_samples,
    chunk_of,
    disturb,
    disturbed_of,
    fill_chunk,
    kernel_without_arrays,
)
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
from sweeplib.networks.numerics.random import fill_normals, random_words, whole_number


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


class Means(NamedTuple):
    """Means over the training set, with c_i = a_i σ'(λ_i) g, g the force.

    loss (1,) : of ½E². square (1,) : of Σ_i c_i² ‖x‖². gradient (p, d) : of c_i x times √d.
    """

    loss: Array
    square: Array
    gradient: Array


@kernel_without_arrays
def shuffle(count, step, seed, data):  # type: ignore[no-untyped-def]
    """Put `count` samples to the first places of data.order, by random swaps named by step, seed and data.key."""
    n = len(data.order)
    for s in range(count):
        high, low, _, _ = random_words(np.uint64(s), np.uint64(step), seed, data.key)
        place = s + whole_number(n - s, high, low)
        data.swaps[s] = place
        data.order[s], data.order[place] = data.order[place], data.order[s]


@kernel_without_arrays
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


@kernel_without_arrays
def project(W):  # type: ignore[no-untyped-def]
    """Divide the rows of W (p, d) by their norms over √d."""
    p, d = W.shape
    for i in range(p):
        shrink = math.sqrt(d / inner_product(W[i], W[i]))
        for j in range(d):
            W[i, j] *= shrink


@called_once
def move(batch, begin, number, T, replica, functions, data, chunk, moves, layer_moves, mixing, disturbed):  # type: ignore[no-untyped-def]
    """Take a step of the time T with the samples `batch`; return whether all their E are finite, else nothing moves.

    A few samples are added to W itself; more are first added up in `moves` (p, d), so that a step rounds a weight once.
    begin : the number that the first sample would have in a stream of fresh batches.
    number : (round, use of its batch), which names the noise of the weights, and with `begin` that of the samples.
    layer_moves (3, p) : a work array, of a, of b and of Σ c_i λ_i; so are those of `mixing` and `disturbed`.
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
        inputs = Inputs(data.x, rows, disturbed.masks[: len(rows) * p])
        if numbers.keep_probability < 1.0 or numbers.input_noise > 0.0:
            disturb(rows, begin + first, number[1], replica, data.x, disturbed)
            if numbers.input_noise > 0.0:
                inputs = Inputs(disturbed.x, disturbed.places[: len(rows)], inputs.masks)
        if not fill_chunk(rows, inputs, replica, functions, data, chunk):
            return False
        for s in range(len(rows)):
            for i in range(p):
                layer_moves[0, i] += layer_scale * chunk.force[s] * chunk.value[s * p + i]
                layer_moves[1, i] += offset_scale * chunk.factors[s * p + i]
                # fields without offsets: tangent steps are along the sphere of the weights
                layer_moves[2, i] += T / size * chunk.factors[s * p + i] * (chunk.lam[s * p + i] - replica.b[i])
                chunk.factors[s * p + i] *= scale
        if at_once:
            if shrinkage != 1.0:
                for i in range(p):
                    for j in range(d):
                        W[i, j] *= shrinkage
            add_samples(inputs.places, inputs.x, chunk.factors, W)
        else:
            add_samples(inputs.places, inputs.x, chunk.factors, moves)
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
    mixing, disturbed = mixing_of(replica, functions.rule), disturbed_of(replica, len(chunk.E))
    for step_number in range(count):
        T = step_time(step + step_number, replica.numbers.T, rates, clock)
        size = choose(step + step_number, batch_size, replica.seed, data, batch)
        begin = (step + step_number) * batch_size
        for use in range(uses[0], uses[1]):
            number = step + step_number, use  # names the random numbers of the step
            # one by one: a tuple of arrays would count references at each step, for .5 µs
            if not move(
                batch[:size], begin, number, T, replica, functions, data, chunk, moves, layer_moves, mixing, disturbed
            ):
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
        # the risk is that of all units, and of inputs without noise
        fill_chunk(rows, Inputs(data.x, rows, chunk.E[:0]), replica, functions, data, chunk)
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
