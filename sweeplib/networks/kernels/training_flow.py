"""The gradient flow of the weights of one replica on its training set, compiled.

The state is W (p, d) row by row, a (p,), b (p,), and the time with a schedule. With c_i = a_i σ'(λ_i + b_i) g and the
force g, which is E for the square loss, and means over the n samples of the training set,

    ẇ_i = d mean(c_i x) − λ w_i,   ȧ_i = ε (mean(g σ_i) − λ_a a_i),   ḃ_i = β mean(c_i),

in the time t = νγ/(pd) of steps of the length γ/(pd) → 0; with a schedule all three have the factor ξ(t). Spherical
rows move along their spheres. `flow` has the constants of a replica, `room` its work arrays.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.functions import Functions
from sweeplib.networks.kernels.row_products import inner_product
from sweeplib.networks.kernels.training_chunks import Chunk, Inputs, add_samples, chunk_of, fill_chunk
from sweeplib.networks.kernels.weights import fill_overlaps
from sweeplib.networks.numerics.compiled import without_references


class Student(NamedTuple):
    """A student network, as work arrays: W (p, d), a (p,), b (p,), with the teacher's W* (k, d)."""

    W: Array
    a: Array
    b: Array
    W_star: Array


class Samples(NamedTuple):
    """A training set: inputs x (n, d) times √d, labels y (n,), and the numbers (n,) of all samples."""

    x: Array
    y: Array
    every: NDArray[np.int64]


class Fields(NamedTuple):
    """The overlaps Q (p, p, 1), M (p, k, 1), P (k, k, 1) of a network; Q and M are work arrays."""

    Q: Array
    M: Array
    P: Array


class Flow(NamedTuple):
    """The constants of a replica.

    functions, samples, a_star (k,), numbers : addresses of its functions, training set, teacher's second layer,
        `Numbers`.
    spherical : whether rows stay on their spheres.
    scheduled, rates, end : whether the learning rate has a schedule, the address of ξ, and the last time of the run.
    """

    functions: Functions
    samples: Samples
    a_star: Array
    numbers: Any
    spherical: bool
    scheduled: bool
    rates: Any
    end: float


class Room(NamedTuple):
    """Work arrays: the network, its overlaps, a chunk of samples, and a time with ξ there (2, 1)."""

    student: Student
    fields: Fields
    chunk: Chunk
    clock: Array


def new_chunk(student, n):  # type: ignore[no-untyped-def]
    """Return work arrays for the samples of a chunk of a training set of n samples, for a `Student`.

    Compiled by its caller.
    """
    return chunk_of(student, n)


@without_references
def unpack(state: Array, student: Student) -> None:
    """Fill W, a and b of the network with a flat state (size,)."""
    p, d = student.W.shape
    at = 0
    for i in range(p):
        for j in range(d):
            student.W[i, j] = state[at]
            at += 1
    for i in range(p):
        student.a[i], student.b[i] = state[at + i], state[at + p + i]


@without_references
def add_gradient(flow: Flow, room: Room, slope: Array) -> None:
    """Add the mean over the training set of what each loss pulls W, a and b by, without ε and β, to slope (size,)."""
    student, samples, chunk = room.student, flow.samples, room.chunk
    p, d = student.W.shape
    n, most, layer = len(samples.y), len(chunk.E), p * d
    # inputs are stored times √d: the moves are sums of d c_i x/n
    moves, scale = slope[:layer].reshape((p, d)), math.sqrt(d) / n
    for first in range(0, n, most):
        # a chunk of the training set, whose samples stay in the cache
        rows = samples.every[first : min(first + most, n)]
        # a network that diverged has slopes that are not finite, by which the integration fails
        fill_chunk(rows, Inputs(samples.x, rows, chunk.E[:0]), student, flow.functions, samples, chunk)
        for s in range(len(rows)):
            for i in range(p):
                slope[layer + i] += chunk.force[s] * chunk.value[s * p + i] / n
                slope[layer + p + i] += chunk.factors[s * p + i] / n
                chunk.factors[s * p + i] *= scale
        add_samples(rows, samples.x, chunk.factors, moves)


def fill_slope(i: int, state: Array, flow: Flow, room: Room, slope: Array) -> None:
    """Fill slope (size,), the time derivative of state (size,); i is not used, as there is one system."""
    student, numbers = room.student, flow.numbers
    unpack(state, student)
    p, d = student.W.shape
    layer = p * d
    for v in range(slope.shape[0]):
        slope[v] = 0.0
    add_gradient(flow, room, slope)
    for j in range(p):
        row = slope[j * d : (j + 1) * d]
        along = numbers.weight_decay
        if flow.spherical:
            # the part of the slope along the row, which the sphere takes away with the decay
            along = inner_product(student.W[j], row) / inner_product(student.W[j], student.W[j])
        for v in range(d):
            row[v] -= along * student.W[j, v]
        slope[layer + j] -= numbers.second_layer_decay * student.a[j]
        slope[layer + j] *= numbers.second_layer_rate
        slope[layer + p + j] *= numbers.offset_rate
    if flow.scheduled:
        room.clock[0, 0] = min(state[state.shape[0] - 1], flow.end)
        flow.rates(room.clock[0], room.clock[1])
        for v in range(slope.shape[0]):
            slope[v] *= room.clock[1, 0]
        slope[slope.shape[0] - 1] = 1.0


def state_level(i: int, state: Array, flow: Flow, room: Room) -> float:
    """Return the population risk of a state (size,), or the number that makes exits in its place; i is not used."""
    student, fields = room.student, room.fields
    unpack(state, student)
    fill_overlaps(student, fields)
    layers = student.a.reshape((student.a.shape[0], 1)), flow.a_star.reshape((flow.a_star.shape[0], 1))
    flow.functions.risk(flow.functions.pair, fields.Q, fields.M, fields.P, layers[0], layers[1], room.chunk.risk)
    return float(room.chunk.risk[0])
