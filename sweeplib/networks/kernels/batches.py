"""The steps of SGD on the weights of one replica with the mean gradient of a batch, used once or in several steps.

Arguments: `replica`, the run (`weights.Replica`); T, the ODE time of the step; `batch_size` n_b; `functions` by
address; `rule`, the `StepRule`; `room`, work arrays of a block of samples, `mixing`, those of the rule; `moves` (p, d),
what a step adds to W; `layer_moves` (3 + H, p), what it adds to a, to b, Σ c_i λ_i, and what it adds to the H heads of
replayed tasks, with c_i = T a_i σ'(λ_i + b_i) E over the batch.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.averages import average_weights
from sweeplib.networks.kernels.batch_sums import absorb_block
from sweeplib.networks.kernels.disturbances import add_noise_of_weights
from sweeplib.networks.kernels.lanes import OVERFLOW, allocating, kernel, loops
from sweeplib.networks.kernels.replay import task_of
from sweeplib.networks.kernels.row_products import inner_product
from sweeplib.networks.kernels.sample_blocks import BLOCK, MULTIPLE, draw_block, room_of
from sweeplib.networks.kernels.schedules import label_deviation, step_time
from sweeplib.networks.kernels.spectral import Spectrum, empty_spectrum, fill_spectral_matrix
from sweeplib.networks.kernels.weights import (
    DIVERGED,
    GOING,
    STOPPED,
    decay_factor,
    displacement,
    drop_units,
    factor_of,
    fill_moves,
    fill_overlaps,
    force,
    is_waiting,
    move_layer_and_offsets,
    note_exits,
)

COLUMNS = 256
"""The number of columns of a gradient that are copied into a work array at once."""


class Mixing(NamedTuple):
    """Work arrays of steps whose rule mixes units, and of noise of the weights.

    spectrum, columns (p, COLUMNS), unit (1,) : for spectra, without rows for other rules; `unit` is 1, a scale.
    xi (padded,) : the normal numbers of a row's noise; none without noise.
    """

    spectrum: Spectrum
    columns: Array
    unit: Array
    xi: Array


def batch_steps(count, step, batch_size, uses, replica, rates, functions, exits):  # type: ignore[no-untyped-def]
    """Take up to `count` rounds from number `step` on; return how many were taken, and the fate of the run.

    A round is a step for each of the `uses` of one batch, (first, end), whose samples are drawn again for each of them.
    Sample s of round ν is sample ν n_b + s of the stream: with n_b = 1 the samples are those of `sgd_steps`.
    rates : the schedules. exits : the run's `Exits`.
    """
    room, moves = room_of(replica), np.empty(replica.W.shape)
    layer_moves = np.empty((3 + replica.tasks.heads.shape[0], len(replica.a)))
    mixing = mixing_of(replica, functions.rule)
    clock = np.empty((2, 1))
    for step_number in range(count):
        T, first = step_time(step + step_number, replica.numbers.T, rates, clock), (step + step_number) * batch_size
        if rates.anneals:
            room.deviation[:] = label_deviation(step + step_number, replica.numbers, rates, clock)
        for use in range(uses[0], uses[1]):
            number = step + step_number, use
            if not take_step(first, batch_size, number, T, replica, functions, moves, layer_moves, mixing, room):
                return step_number, DIVERGED
            # the stride is the number of uses of a batch
            average_weights(replica, rates.stride * (step + step_number) + use + 1)
        if is_waiting(exits):
            fill_overlaps(replica, exits)
            if note_exits(replica, exits, functions, step + step_number + 1, room):
                return step_number + 1, STOPPED
    return count, GOING


@allocating
def mixing_of(replica, rule):  # type: ignore[no-untyped-def]
    """Work arrays for what a rule makes of the gradients of all units together, and for noise of the weights."""
    p, d = len(replica.a) if rule.is_spectral else 0, replica.W.shape[1]
    padded = MULTIPLE * (d // MULTIPLE + 1) if replica.numbers.temperature > 0.0 else 0
    return Mixing(empty_spectrum(p, 1), np.empty((p, COLUMNS)), np.ones(1), np.empty(padded))


@kernel
def head_of(replica, number):  # type: ignore[no-untyped-def]
    """The number of the task of a sample, and that of its head; tasks may share one head."""
    task = task_of(replica.tasks.ends, np.uint64(number), replica.seed, replica.key)
    return task, min(task, replica.tasks.heads.shape[0] - 1)


@kernel
def move_heads(replica, layer_moves):  # type: ignore[no-untyped-def]
    """Add to the heads of replayed tasks, if there are any, their moves, of which their decay is a part."""
    heads = replica.tasks.heads
    for h in range(heads.shape[0]):
        for i in range(heads.shape[1]):
            heads[h, i] += layer_moves[3 + h, i]


@loops
def take_step(first, batch_size, number, T, replica, functions, moves, layer_moves, mixing, room):  # type: ignore[no-untyped-def]
    """Take a step with the batch of samples from number `first` of the stream on; return False if it diverged.

    number : (round, use of its batch), which names the noise of the weights; each use has its own masks and noise of
    inputs too. moves, layer_moves, mixing : work arrays.
    """
    p, d = replica.W.shape
    # inputs are √d x: `root` makes fields of them
    share, root, numbers = 1.0 / batch_size, 1.0 / math.sqrt(d), replica.numbers
    # moves are sums over the batch at the weights before the step
    moves[:], layer_moves[:], replays = 0.0, 0.0, replica.tasks.ends.shape[0] > 0
    for done in range(0, batch_size, BLOCK):
        filled = min(BLOCK, batch_size - done)
        for s in range(filled if replays else 0):
            task, _ = head_of(replica, first + done + s)
            for r in range(room.a_star.shape[0]):
                room.a_star[r, s] = replica.tasks.a_star[task, r]
        draw_block(filled, first + done, number[1], replica, functions, 0, room)
        for s in range(filled):
            for i in range(p):
                room.lam[i] = root * room.along[s, i]
            a, row = replica.a, 0
            if replays:
                _, head = head_of(replica, first + done + s)
                a, row = replica.tasks.heads[head], 3 + head
                for i in range(p):
                    # a head decays by its own samples alone
                    layer_moves[row, i] -= share * numbers.second_layer_rate * T * numbers.second_layer_decay * a[i]
            layer = a
            if numbers.keep_probability < 1.0:
                drop_units(replica, a, first + done + s, number[1], room)
                layer = room.layer
            E = displacement(replica, layer, room.label[s], functions, room)
            if not abs(E) < OVERFLOW:
                return False
            if not functions.is_plain:
                E = force(functions.force, functions.numbers, E, room.label[s], room.sample)
            fill_moves(replica, layer, share * E, T, functions, room)
            for i in range(p):
                layer_moves[row, i] += share * E * numbers.second_layer_rate * T * room.value[i]
                layer_moves[1, i] += numbers.offset_rate * room.c[i]
                if functions.rule.is_tangent:
                    layer_moves[2, i] += room.c[i] * room.lam[i]
                for j in range(d):
                    moves[i, j] += room.c[i] / root * room.normals[0, s, j]
    move_layer_and_offsets(replica, T, layer_moves)
    move_heads(replica, layer_moves)
    # moves of the weights as the rule changes them, then their noise
    if functions.rule.rescales or functions.rule.has_velocities:
        apply_rule(replica, functions.rule, T, moves, mixing, room.sample)
    if numbers.temperature > 0.0:
        add_noise_of_weights(replica, number, T, mixing.xi, moves)
    # decay, moves and projection of each row
    for i in range(p):
        square, shrinkage = 0.0, row_factor(replica, functions.rule, T, layer_moves[2, i])
        for j in range(d):
            replica.W[i, j] = shrinkage * replica.W[i, j] + moves[i, j]
            square += replica.W[i, j] * replica.W[i, j]
        if replica.spherical:
            for j in range(d):
                replica.W[i, j] /= math.sqrt(square / d)
    return True


@kernel
def row_factor(replica, rule, T, along):  # type: ignore[no-untyped-def]
    """The factor of a row of W in a step, beside its move: 1 − λT, less `along` = Σ c_i λ_i in a tangent step.

    With momentum of plain steps the decay is in the move (`apply_rule`).
    """
    if rule.has_velocities and not rule.is_spectral:
        return 1.0
    shrinkage = decay_factor(replica.numbers, T)
    return shrinkage - along if rule.is_tangent else shrinkage


@loops
def apply_rule(replica, rule, T, moves, mixing, sample):  # type: ignore[no-untyped-def]
    """Replace the moves (p, d) of a plain step, T d times the gradient, by the moves of the rule's step.

    Velocities of plain steps take in the decay, as part of the gradient. sample (2, 1) : a work array.
    """
    if rule.is_spectral:
        apply_spectrum(replica, rule, T, moves, mixing)
        return
    p, d = moves.shape
    if rule.takes_signs:
        for i in range(p):
            for j in range(d):
                moves[i, j] = T * math.sqrt(d) * np.sign(moves[i, j])
        return
    if rule.rescales:
        # ‖g‖²: moves are T d g
        square = 0.0
        for i in range(p):
            square += inner_product(moves[i], moves[i])
        factor = factor_of(rule, square / (T * d) ** 2 if T > 0.0 else 0.0, T, replica.memory, sample)
        for i in range(p):
            for j in range(d):
                moves[i, j] *= factor
    if rule.has_velocities:
        decay = replica.numbers.weight_decay * T
        for i in range(p if decay > 0.0 else 0):
            for j in range(d):
                moves[i, j] -= decay * replica.W[i, j]
        for i in range(p):
            for j in range(d):
                moves[i, j] += rule.momentum * replica.velocities[i, j]
                replica.velocities[i, j] = moves[i, j]


@loops
def apply_spectrum(replica, rule, T, moves, work):  # type: ignore[no-untyped-def]
    """Replace the moves T d G (p, d) by T d h(GGᵀ) G; with velocities first N ← β N + G, and N in place of G.

    work : the `Mixing`.
    """
    (p, d), spectrum, columns, length = moves.shape, work.spectrum, work.columns, T * moves.shape[1]
    inverse, column = 1.0 / length if T > 0.0 else 0.0, spectrum.values[:, 0]
    spectrum.R[:] = 0.0
    # the moves become G, or N; a factor R of their products G Gᵀ takes in some columns at a time
    for first in range(0, d, columns.shape[1]):
        columns[:] = 0.0
        for i in range(p):
            for j in range(first, min(first + columns.shape[1], d)):
                moves[i, j] *= inverse
                if rule.has_velocities:
                    moves[i, j] += rule.momentum * replica.velocities[i, j]
                    replica.velocities[i, j] = moves[i, j]
                columns[i, j - first] = moves[i, j]
        absorb_block(spectrum.R, 0, columns)
    fill_spectral_matrix(rule, work.unit, spectrum)
    for j in range(d):
        for i in range(p):
            # h(GGᵀ) is in R now
            column[i], moves[i, j] = length * moves[i, j], 0.0
        for i in range(p):
            for m in range(p):
                moves[i, j] += spectrum.R[i, m, 0] * column[m]
