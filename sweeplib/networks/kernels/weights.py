"""The steps of SGD on the weights of one replica: one fresh sample per step, in blocks of steps.

`replica` is the run, `room` its work arrays (`sample_blocks.Room`), `exits` its `Exits`, and `functions` are called by
address. T is the ODE time of a step, γ ξ/(pd). With λ_i = w_i·x, the offsets b and the displacement E, or the force of
another loss in its place, a step adds c_i d x to w_i, c_i = T a_i σ'(λ_i + b_i) E.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.disturbances import OF_MASKS, fill_masks
from sweeplib.networks.kernels.lanes import OVERFLOW
from sweeplib.networks.kernels.row_products import inner_product
from sweeplib.networks.kernels.sample_blocks import BLOCK, called_once, draw_block, room_of
from sweeplib.networks.kernels.schedules import label_deviation, step_time
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS, OPTIMISED_APART

SMALL = 1e-30
"""The deferred factor of a row at which steps end: its inverse, which is in the stored row, would overflow."""
MOST_GROWTH = 32.0
"""How much the deferred factor of a projected row may grow until steps end: errors grow with its square."""

GOING, DIVERGED, STOPPED = 0, 1, 2
"""The fate of a run: it continues, has diverged, or stopped at its last exit."""

_kernel = numba.njit(error_model="numpy", fastmath={"contract"}, _nrt=False, **FOR_KERNELS)
"""For functions that neither allocate nor return arrays: without reference counts."""


class ReplayedTasks(NamedTuple):
    """Tasks of which the samples of a batch are drawn; without rows if all are of the present task.

    ends (T,) : the end of the share of each of T tasks in [0, 1].
    a_star (T, k), heads (H, p) : second layers of the teacher and, part of the state, of the student: of each task, or
        one of all.
    """

    ends: Array
    a_star: Array
    heads: Array


class Replica(NamedTuple):
    """One run: its state and constants.

    W (p, d), a (p,), b (p,) : the state: weights, second layer and offsets.
    W_star (k, d), a_star (k,), numbers, spherical : the teacher, `Numbers`, and whether rows stay on their sphere.
    velocities (p, d), memory (1,) : of the rule of the steps; no velocities (0, 0) without momentum.
    averages (p, d) : averages of W; (0, 0) without any.
    key, seed : the name of the stream of its samples.
    inputs, law, law_key : the function of the data law, its parameters, and the name of a stream of its own.
    tasks : the `ReplayedTasks` of batches; a and a_star are then not read.
    """

    W: Array
    a: Array
    b: Array
    W_star: Array
    a_star: Array
    numbers: Any
    spherical: bool
    velocities: Array
    averages: Array
    memory: Array
    key: Any
    seed: Any
    inputs: Any
    law: Array
    law_key: Any
    tasks: ReplayedTasks


class Exits(NamedTuple):
    """The exits of one run, and the overlaps that the risk needs while one is pending.

    targets, exits (thresholds,) : targets of the risk, and steps of the exits, negative before.
    stop : whether the run ends at its last exit.
    Q (p, p, 1), M (p, k, 1), P (k, k, 1) : the current overlaps; rules for risks take systems along a last axis.
    """

    targets: Array
    exits: NDArray[np.int64]
    stop: bool
    Q: Array
    M: Array
    P: Array


@_kernel
def drop_units(replica, a, number, use, room):  # type: ignore[no-untyped-def]
    """Fill room.masks with b_i/π and room.layer with b_i a_i/π, for the sample `number` in a use of its batch, from 0.

    b_i is 1 with the probability π, otherwise 0. a (p,) : the second layer.
    """
    key = replica.key + OF_MASKS * np.uint64(use)
    fill_masks(replica.numbers.keep_probability, np.uint64(number), replica.seed, key, room.masks)
    for i in range(len(a)):
        room.layer[i] = room.masks[i] * a[i]


@_kernel
def displacement(replica, layer, label, functions, room):  # type: ignore[no-untyped-def]
    """Fill room.field with λ + b and room.value with σ(λ + b); return E = label − (1/p) Σ a_i σ(λ_i + b_i).

    layer (p,) : the second layer a, or that with dropout. room.lam has λ.
    """
    for i in range(len(replica.b)):
        room.field[i] = room.lam[i] + replica.b[i]
    functions.value(room.field, room.value)
    return label - inner_product(layer, room.value) / len(layer)


@numba.njit(_nrt=False, error_model="numpy", **OPTIMISED_APART)
def force(function, numbers, E, label, sample):  # type: ignore[no-untyped-def]
    """The force −∂L/∂f of a sample with the displacement E and this label.

    function : the address of a function (numbers, E, y) that replaces displacements E (n,) by forces at labels y (n,).
    numbers : the parameters of the loss. sample (2, 1) : a work array, as this function does not allocate.
    """
    # functions by address have arrays as arguments
    sample[0, 0], sample[1, 0] = E, label
    function(numbers, sample[0], sample[1])
    return sample[0, 0]


@_kernel
def fill_moves(replica, layer, E, T, functions, room):  # type: ignore[no-untyped-def]
    """Fill room.c with c_i = T a_i σ'(λ_i + b_i) E; with dropout multiply room.value, which trains a, by b_i/π.

    layer (p,) : the second layer a, or that with dropout. E : the displacement or the force.
    """
    functions.slope(room.field, room.c)
    for i in range(len(room.c)):
        room.c[i] *= T * E * layer[i]
    if replica.numbers.keep_probability < 1.0:
        for i in range(len(room.c)):
            room.value[i] *= room.masks[i]


@_kernel
def rescale(replica, rule, square, T, room):  # type: ignore[no-untyped-def]
    """Multiply c by the rule's factor of a gradient with ‖g‖² = ‖x‖² Σ c_i²/T².

    square : d ‖x‖² of the sample x.
    """
    square *= inner_product(room.c, room.c) / (replica.W.shape[1] * T * T) if T > 0.0 else 0.0
    factor = factor_of(rule, square, T, replica.memory, room.sample)
    for i in range(len(room.c)):
        room.c[i] *= factor


@numba.njit(_nrt=False, error_model="numpy", **OPTIMISED_APART)
def factor_of(rule, square, T, memory, sample):  # type: ignore[no-untyped-def]
    """The factor that a rule gives to a gradient with the squared norm `square`, in a step of the time T.

    memory (1,) : of the rule, which may change. sample (2, 1) : a work array.
    """
    sample[0, 0], sample[1, 0] = square, T
    rule.factor(rule.numbers, sample[1], sample[0], memory)
    return sample[0, 0]


@_kernel
def train_layer_and_offsets(replica, E, T, room):  # type: ignore[no-untyped-def]
    """Add ε T [σ(λ_i + b_i) E − λ_a a_i] to a_i and β c_i to b_i, with c of a plain step of the weights.

    ε, λ_a, β : rate and decay of the second layer, and rate of the offsets.
    """
    numbers = replica.numbers
    if numbers.offset_rate > 0.0:
        for i in range(len(replica.b)):
            replica.b[i] += numbers.offset_rate * room.c[i]
    if numbers.second_layer_rate > 0.0:
        for i in range(len(replica.a)):
            force = E * room.value[i] - numbers.second_layer_decay * replica.a[i]
            replica.a[i] += numbers.second_layer_rate * T * force


@_kernel
def decay_factor(numbers, T):  # type: ignore[no-untyped-def]
    """The factor 1 − λT by which weights decay in a step, λ the weight decay in the run's `Numbers`."""
    return 1.0 - numbers.weight_decay * T


@_kernel
def move_layer_and_offsets(replica, T, moves):  # type: ignore[no-untyped-def]
    """Let a decay in a step of the time T, and add to a and b their moves, the first two rows of moves (2 or 3, p)."""
    rate = replica.numbers.second_layer_rate
    for i in range(len(replica.a)):
        replica.a[i] *= 1.0 - rate * T * replica.numbers.second_layer_decay
        replica.a[i] += moves[0, i]
        replica.b[i] += moves[1, i]


@_kernel
def is_waiting(exits):  # type: ignore[no-untyped-def]
    """Whether a target is pending: one of the exits is negative."""
    waiting = False
    for t in range(exits.targets.shape[0]):
        waiting |= exits.exits[t] < 0
    return waiting


@_kernel
def note_exits(replica, exits, functions, step, room):  # type: ignore[no-untyped-def]
    """Record `step` as exit of the thresholds that the risk has reached; return whether the run stops.

    room : work arrays with a `risk` (1,). The overlaps in `exits` are those of now.
    """
    p, k = len(replica.a), len(replica.a_star)
    # rules for risks take systems along a last axis
    second_layers = replica.a.reshape((p, 1)), replica.a_star.reshape((k, 1))
    functions.risk(functions.pair, exits.Q, exits.M, exits.P, second_layers[0], second_layers[1], room.risk)
    for t in range(exits.targets.shape[0]):
        if exits.exits[t] < 0 and room.risk[0] <= exits.targets[t]:
            exits.exits[t] = step
    return exits.stop and not is_waiting(exits)


@_kernel
def fill_overlaps(replica, exits):  # type: ignore[no-untyped-def]
    """Fill exits.Q with WWᵀ/d and exits.M with WW*ᵀ/d."""
    W, W_star = replica.W, replica.W_star
    p, d = W.shape
    for i in range(p):
        for j in range(i + 1):
            exits.Q[i, j, 0] = inner_product(W[i], W[j]) / d
            exits.Q[j, i, 0] = exits.Q[i, j, 0]
        for r in range(len(W_star)):
            exits.M[i, r, 0] = inner_product(W[i], W_star[r]) / d


@_kernel
def update_overlaps(exits, lam_star, square, shrinkage, room):  # type: ignore[no-untyped-def]
    """Update exits.Q and exits.M after a step w_i ← s_i (`shrinkage` w_i + c_i d x), s_i = room.shrink.

    lam_star (k,) : λ* of the sample. square : d ‖x‖². shrinkage : what decay leaves of a row.
    """
    Q, M, lam, c, shrink = exits.Q, exits.M, room.lam, room.c, room.shrink
    for i in range(len(c)):
        for j in range(len(c)):
            change = shrinkage * (c[i] * lam[j] + c[j] * lam[i]) + c[i] * c[j] * square
            Q[i, j, 0] = shrink[i] * shrink[j] * (shrinkage * shrinkage * Q[i, j, 0] + change)
        for r in range(len(lam_star)):
            M[i, r, 0] = shrink[i] * (shrinkage * M[i, r, 0] + c[i] * lam_star[r])


@_kernel
def shrink_rows(square, shrinkage, room):  # type: ignore[no-untyped-def]
    """Fill room.shrink, and update room.norm, for a step after which rows are divided by their norms.

    square : d ‖x‖² of the sample. shrinkage : what decay leaves of a row.
    """
    lam, c = room.lam, room.c
    for i in range(len(c)):
        before = shrinkage * shrinkage * room.squared_norm[i]
        room.shrink[i] = 1.0 / math.sqrt(before + 2.0 * shrinkage * c[i] * lam[i] + c[i] * c[i] * square)
        room.squared_norm[i] = 1.0
        room.norm[i] *= room.shrink[i]
        room.least_norm[i] = min(room.least_norm[i], room.norm[i])


@called_once
def take_step(s, samples, step, T, replica, functions, exits, room):  # type: ignore[no-untyped-def]
    """Take step s of a block, number `step` of the run, of the time T; return the fate of the run.

    samples : which half of room.normals has the samples of the block.
    """
    x, lam, factors, norm = room.normals[samples][s], room.lam, room.factors, room.norm
    p, d = replica.W.shape
    root, shrinkage = 1.0 / math.sqrt(d), decay_factor(replica.numbers, T)
    for t in range(s):
        for i in range(p):
            # what earlier steps of the block will have added to W
            room.along[s, i] += factors[t, i] * room.gram[t, s]
    for i in range(p):
        lam[i] = norm[i] * root * room.along[s, i]
    # the second layer, with the masks of the step if units are dropped
    layer = replica.a
    if replica.numbers.keep_probability < 1.0:
        drop_units(replica, layer, step, 0, room)
        layer = room.layer
    E = displacement(replica, layer, room.label[s], functions, room)
    # not `>=`, which is false for NaN
    if not abs(E) < OVERFLOW:
        return DIVERGED
    if not functions.is_plain:
        E = force(functions.force, functions.numbers, E, room.label[s], room.sample)
    waiting = is_waiting(exits)
    square = inner_product(x[:d], x[:d]) if replica.spherical or waiting or functions.rule.rescales else 0.0
    fill_moves(replica, layer, E, T, functions, room)
    # before the rule changes c: the second layer and the offsets have plain steps
    train_layer_and_offsets(replica, E, T, room)
    if functions.rule.rescales:
        rescale(replica, functions.rule, square, T, room)
    for i in range(p):
        norm[i] *= shrinkage
        # the stored row is multiplied by `norm` at the end, and what is added to it now too
        factors[s, i] = room.c[i] / (norm[i] * root)
    if replica.spherical:
        shrink_rows(square, shrinkage, room)
    if waiting:
        update_overlaps(exits, room.along_star[:, s], square, shrinkage, room)
        if note_exits(replica, exits, functions, step + 1, room):
            return STOPPED
    return GOING


@_kernel
def fill_squared_norms(W, out):  # type: ignore[no-untyped-def]
    """Fill out (p,) with |w_i|²/d of the rows w_i of W (p, d)."""
    for i in range(len(out)):
        out[i] = inner_product(W[i], W[i]) / W.shape[1]


@_kernel
def finish(replica, before, room):  # type: ignore[no-untyped-def]
    """Apply the updates of the last block, of the samples `before` (BLOCK, padded), and divide rows by norms."""
    W, factors = replica.W, room.factors
    for i in range(W.shape[0]):
        f0, f1, f2, f3 = factors[0, i], factors[1, i], factors[2, i], factors[3, i]
        for j in range(W.shape[1]):
            W[i, j] += (f0 * before[0, j] + f1 * before[1, j]) + (f2 * before[2, j] + f3 * before[3, j])
            W[i, j] *= room.norm[i]


@_kernel
def must_finish(room):  # type: ignore[no-untyped-def]
    """Whether the deferred factor of a row is SMALL, or has grown so much that the row has left the sphere a little."""
    must = False
    for i in range(room.norm.shape[0]):
        must |= room.norm[i] < SMALL or room.norm[i] > MOST_GROWTH * room.least_norm[i]
    return must


@_kernel
def project_rows(W, square):  # type: ignore[no-untyped-def]
    """Divide the rows of W (p, d) by their norms over √d; `square` (p,) is a work array."""
    fill_squared_norms(W, square)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] /= math.sqrt(square[i])


def sgd_steps(count, step, replica, rates, functions, exits):  # type: ignore[no-untyped-def]
    """Take up to `count` steps from number `step` on; return how many were taken, and the fate of the run.

    rates : the schedules. W, a, Q, M and the exits change in place. Steps are taken in blocks. W and W* are multiplied
    with the samples of all steps of a block; the products of these samples with each other account for the updates of
    the weights within the block. The updates, `factors` times the samples of a block, are applied in the pass of the
    next block, so that W is read and written once per block. Projection and decay are deferred too: `norm` holds a
    row's factor, which is applied at the end. The steps end early where this `must_finish`; rows then are on the
    sphere, Q and M are not.
    """
    room, clock = room_of(replica), np.empty((2, 1))
    if replica.spherical:
        fill_squared_norms(replica.W, room.squared_norm)
    # `samples` is the number, 0 or 1, of the present block's samples: those of the block before are still needed
    done, fate, samples = 0, GOING, 0 * count  # functions would be compiled for the literal zero too
    while done < count and fate == GOING:
        fresh = min(BLOCK, count - done)
        if rates.anneals:
            for s in range(fresh):
                room.deviation[s] = label_deviation(step + done + s, replica.numbers, rates, clock)
        draw_block(fresh, step + done, 0, replica, functions, samples, room)
        for s in range(fresh):
            T = step_time(step + done, replica.numbers.T, rates, clock)
            fate = take_step(s, samples, step + done, T, replica, functions, exits, room)
            if fate != DIVERGED:
                done += 1
            if fate != GOING:
                break
        samples = 1 - samples
        if must_finish(room):
            break
    finish(replica, room.normals[1 - samples], room)
    if replica.spherical and must_finish(room):
        project_rows(replica.W, room.squared_norm)
    return done, fate
