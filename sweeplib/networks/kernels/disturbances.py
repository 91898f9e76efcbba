"""Dropout, noise of the student's inputs and of the weights: the random numbers of a step beside its sample.

A step with dropout is that of a student with the second layer b_i a_i/π, b_i = 1 with the probability π. With noise of
inputs the student has x + √ϱ ξ as input, ξ ~ N(0, I_d/d). After its gradient, a step of the time T at a temperature
T_w adds √(2 T_w T) ξ_i, ξ_i ~ N(0, I_d), to each row of the weights. All have streams of their own.

Functions of `work` are for the chain: `work` is its `Chain` or the `Samples` of a batch, with replicas or samples in
lanes, and `stream` names each lane's random numbers. The others are for SGD on the weights of one replica: step, seed
and key name the random numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.lanes import allocating, draw_normals, kernel, loops
from sweeplib.networks.numerics.random import fill_normals, random_words, uniform

OF_MASKS, OF_INPUTS = np.uint64(0xD1B54A32D192ED03), np.uint64(0xAEF17502108EF2D9)
OF_WEIGHTS = np.uint64(0x8CB92BA72F3D8DD7)
"""What the keys of the streams of b, of ξ and of ξ_i have beyond the key of the samples, once more for each use of a
batch: each has streams of its own."""


class Disturbed(NamedTuple):
    """Work arrays of dropout and noise of inputs, without rows if there is none.

    masks, layer (p, lanes) : b_i/π of the step, and a_i itself, which a step with dropout overwrites.
    xi (all u* or more, lanes), key (lanes,) : ξ*, and the keys of its streams; of steps of signs, numbers for all of z.
    """

    masks: Array
    layer: Array
    xi: Array
    key: Any


@allocating
def disturbed_work(settings, lanes):  # type: ignore[no-untyped-def]
    """The `Disturbed` of so many lanes, for the `Settings` of a chain."""
    masks = np.empty((2, settings.p if settings.drops else 0, lanes))
    # a step of signs has numbers for all coordinates of a sample
    count = settings.k + settings.rows if settings.takes_signs else 0
    if settings.has_input_noise and not settings.takes_signs:
        count = settings.frame.coordinates.sum()
    xi = np.empty((4 * ((count + 3) // 4), lanes))
    return Disturbed(masks[0], masks[1], xi, np.empty(lanes, np.uint64))


@kernel
def fill_masks(keep, step, seed, key, masks):  # type: ignore[no-untyped-def]
    """Fill masks (p,) with b_i/π of the step with the number `step`; `keep` is the probability π."""
    for first in range(0, masks.shape[0], 4):
        # a draw has four words
        words = random_words(np.uint64(first // 4), step, seed, key + OF_MASKS)
        for i in range(first, min(first + 4, masks.shape[0])):
            masks[i] = 1.0 / keep if uniform(words[i - first]) < keep else 0.0


@kernel
def drop_units(stream, work):  # type: ignore[no-untyped-def]
    """Multiply a_i by b_i/π for a step of the chain, and keep a in `work.disturbed.layer`."""
    a, masks, layer, keep = work.a, work.disturbed.masks, work.disturbed.layer, work.constants.numbers.keep_probability
    p, lanes = masks.shape
    for lane in range(lanes):
        fill_masks(keep[lane], stream.step[lane], stream.seed[lane], stream.key[lane], masks[:, lane])
    for i in range(p):
        for lane in range(lanes):
            layer[i, lane] = a[i, lane]
            # a step knows one second layer: it has the masks until `take_units_back`
            a[i, lane] *= masks[i, lane]


@kernel
def take_units_back(work):  # type: ignore[no-untyped-def]
    """Set a to what it was before `drop_units`, and multiply σ(λ_i), which trains a_i, by b_i/π."""
    p, lanes = work.a.shape
    for i in range(p):
        for lane in range(lanes):
            work.a[i, lane] = work.disturbed.layer[i, lane]
            work.fields.value[i, lane] *= work.disturbed.masks[i, lane]


@loops
def disturb_coordinates(stream, work, z):  # type: ignore[no-untyped-def]
    """Change the coordinates z of a sample √d x to those of √d (x + √ϱ ξ), √λ_b u*_b + √ϱ ξ* and √(λ_b + ϱ) w_b.

    The components w_b of x and of ξ add up in law. A loop apart: compiled into steps it would make plain ones 3 %
    slower.
    """
    frame, key, xi, noise, at = work.frame, work.disturbed.key, work.disturbed.xi, work.constants.numbers.input_noise, 0
    for lane in range(noise.shape[0]):
        key[lane] = stream.key[lane] + OF_INPUTS
    draw_normals(stream.step, stream.seed, key, xi)
    for b in range(frame.factored.size):
        root, first = work.constants.teacher[frame.teachers[b]], frame.draws[b]
        for row in range(first, first + frame.coordinates[b]):
            for lane in range(noise.shape[0]):
                z[row, lane] += math.sqrt(noise[lane]) * xi[at, lane]
            at += 1
        for row in range(first + frame.coordinates[b], frame.draws[b + 1]):
            for lane in range(noise.shape[0]):
                z[row, lane] *= math.sqrt(1.0 + noise[lane] / (root[lane] * root[lane]))


@kernel
def disturb_input(noise, step, seed, key, xi, x):  # type: ignore[no-untyped-def]
    """Add √ϱ ξ to the input √d x (d,) of sample number `step`; `noise` is the variance ϱ.

    xi (d or more,) : a work array.
    """
    fill_normals(key + OF_INPUTS, seed, step, xi)
    for j in range(x.shape[0]):
        # ξ √d has N(0, 1) entries
        x[j] += math.sqrt(noise) * xi[j]


@kernel
def add_noise_of_weights(replica, number, T, xi, moves):  # type: ignore[no-untyped-def]
    """Add √(2 T_w T) ξ_i to the moves (p, d) of a step of the time T.

    replica : the `Replica`. number : (round, use of its batch, from 0), which names the random numbers; each use has a
    stream of its own. xi (d or more,) : a work array.
    """
    (round_number, use), (p, d) = number, moves.shape
    scale, key = math.sqrt(2.0 * replica.numbers.temperature * T), replica.key + OF_WEIGHTS * np.uint64(use + 1)
    for i in range(p):
        fill_normals(key, replica.seed, np.uint64(round_number * p + i), xi)
        for j in range(d):
            moves[i, j] += scale * xi[j]
