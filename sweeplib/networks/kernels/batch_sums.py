"""Sums over the samples of a batch, for the overlap chain.

Small batches have one replica per lane and one sample after the other. In large ones the lanes are samples of one
replica, whose sums are inner products of rows of samples: a replica alone takes no longer than one of many.

C is the matrix (p, n_b) whose column of a sample is T a_i σ'(λ_i) E/n_b: it adds C times the samples to the weights.
A sample has coordinates z in the frames of all blocks of inputs, `frame.draws[-1]` of them. `chain` is the `Chain` of a
group of replicas and `settings` its `Settings`, `functions` are called by address, `stream` names each lane's random
numbers.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.chain import displace
from sweeplib.networks.kernels.chain_rows import fill_student_fields, fill_teacher_fields, weight_coordinates
from sweeplib.networks.kernels.chain_state import Fields, Frame, empty_fields, rows_of, views_of
from sweeplib.networks.kernels.disturbances import (
    Disturbed,
    disturb_coordinates,
    disturbed_work,
    drop_units,
    take_units_back,
)
from sweeplib.networks.kernels.lanes import (
    Constants,
    Stream,
    allocating,
    any_of,
    constants_of,
    draw_normals,
    empty_stream,
    filled_lanes,
    group_width,
    inner_product,
    kernel,
    loops,
)
from sweeplib.networks.kernels.local_fields import add_fields_of_replica
from sweeplib.networks.kernels.noisy_labels import add_noise
from sweeplib.networks.kernels.numbers import COUNT
from sweeplib.networks.kernels.rotations import fill_rotations

# decisions: The chain's factor F of CCᵀ is updated sample by sample
LARGE = 32
"""From this size on, the lanes are the samples of a batch."""


class Sums(NamedTuple):
    """Sums over the samples of a batch, for the replicas in lanes.

    moves (p, draws, lanes) : C times the coordinates of all samples.
    layer (p, lanes) : the sum of σ(λ) E.
    factor (p, p, lanes) : lower triangular factor of CCᵀ.
    overflow (lanes,) : whether an E is beyond OVERFLOW, or NaN.
    """

    moves: Array
    layer: Array
    factor: Array
    overflow: Array


class Samples(NamedTuple):
    """Samples in lanes, with what they need of the lane's replica, and work arrays.

    a (p, lanes), frame, constants, stream : second layer, `Frame`, `Constants`, and name of the random numbers.
    L_star : a view of L* of the first block of inputs.
    z (draws + 1 or more, lanes), fields : the normal numbers of a sample, and its `Fields`.
    column (p, lanes) : the column of C of each sample.
    overflow (lanes,) : whether E is beyond OVERFLOW, or NaN.
    disturbed : work arrays of dropout and noise of inputs.
    """

    a: Array
    frame: Frame
    constants: Constants
    L_star: Array
    stream: Stream
    z: Array
    fields: Fields
    column: Array
    overflow: Array
    disturbed: Disturbed


@allocating
def empty_sums(p, width, lanes):  # type: ignore[no-untyped-def]
    """Sums at zero, over samples with `width` coordinates, for students of p units."""
    overflow = np.zeros(lanes, np.bool_)
    return Sums(np.zeros((p, width, lanes)), np.zeros((p, lanes)), np.zeros((p, p, lanes)), overflow)


@kernel
def begin_batches(stream, n_b, samples):  # type: ignore[no-untyped-def]
    """Set the stream `samples` to the first sample of each lane's batch of n_b.

    Sample s of step ν is sample ν n_b + s; `stream` is at step ν.
    """
    for lane in range(samples.step.shape[0]):
        samples.key[lane], samples.seed[lane] = stream.key[lane], stream.seed[lane]
        samples.step[lane] = stream.step[lane] * np.uint64(n_b)


@allocating
def empty_samples(settings, a, constants, fields):  # type: ignore[no-untyped-def]
    """A `Samples` to be filled; a (p, lanes), constants, fields : those of the lanes, which it shares."""
    lanes, frame = a.shape[1], settings.frame
    # one normal more, for the noise of the label, in whole draws of four
    z, overflow = np.empty((4 * ((frame.draws[-1] + 4) // 4), lanes)), np.zeros(lanes, np.bool_)
    stream, column, disturbed = empty_stream(lanes), np.empty(a.shape), disturbed_work(settings, lanes)
    _, _, L_star = views_of(frame, np.empty((0, lanes)), constants.teacher, 0, constants.a_star.shape[0], 0)
    return Samples(a, frame, constants, L_star, stream, z, fields, column, overflow, disturbed)


@allocating
def samples_of(settings, chain):  # type: ignore[no-untyped-def]
    """The `Samples` in lanes, to be filled: samples of a large batch of one replica, or one sample of each replica."""
    p, k = settings.p, settings.k
    if settings.batch_size < LARGE:
        return empty_samples(settings, chain.a, chain.constants, chain.fields)
    lanes = group_width(settings.batch_size)
    constants = constants_of(np.empty((k + COUNT + settings.frame.teachers[-1]) * lanes), k, lanes)
    fields = empty_fields(np.empty((p, lanes)), k, np.empty(lanes))
    return empty_samples(settings, np.empty((p, lanes)), constants, fields)


@loops
def absorb(factor, column, cosine, sine):  # type: ignore[no-untyped-def]
    """Replace the lower triangular factors (p, p, lanes) by factors of [factor, column], by rotations.

    column (p, lanes) : one more column, overwritten. cosine, sine (lanes,) : work arrays.
    """
    p, _, lanes = factor.shape
    for j in range(p):
        fill_rotations(factor[j, j], column[j], column[j], cosine, sine)
        for lane in range(lanes):
            factor[j, j, lane] = column[j, lane]
        for i in range(j + 1, p):
            for lane in range(lanes):
                left, right = factor[i, j, lane], column[i, lane]
                factor[i, j, lane] = cosine[lane] * left + sine[lane] * right
                column[i, lane] = cosine[lane] * right - sine[lane] * left


@loops
def absorb_block(factor, replica, columns):  # type: ignore[no-untyped-def]
    """Replace the factor of one replica, in factor (p, p, replicas), by a factor of [factor, columns], by reflections.

    columns (p, lanes) : columns to add, which are overwritten.
    """
    p, lanes = columns.shape
    for j in range(p):
        head, row = factor[j, j, replica], columns[j]
        norm = math.sqrt(head * head + inner_product(row, row))
        if norm == 0.0:
            continue
        for i in range(j + 1, p):
            entry, below = factor[i, j, replica], columns[i]
            turned = (head * entry + inner_product(row, below)) / norm
            # the reflection to −norm, whose column gets the other sign: as head ≥ 0, nothing cancels in head + norm
            share = (entry + turned) / (head + norm)
            for lane in range(lanes):
                below[lane] -= share * row[lane]
            factor[i, j, replica] = turned
        factor[j, j, replica] = norm


@kernel
def clear_sums(sums):  # type: ignore[no-untyped-def]
    """Set the sums to zero."""
    sums.moves[:], sums.layer[:], sums.factor[:] = 0.0, 0.0, 0.0
    sums.overflow[:] = False


@kernel
def copy_replica(chain, replica, samples):  # type: ignore[no-untyped-def]
    """Copy the second layer and the constants of one replica, by its lane in the chain, to all lanes of `samples`."""
    source, to, (width, lanes) = chain.constants.block, samples.constants.block, (chain.a.shape[1], samples.a.shape[1])
    for i in range(samples.a.shape[0]):
        samples.a[i, :] = chain.a[i, replica]
    for row in range(source.shape[0] // width):
        # blocks are flat: a row of each has the width of its own lanes
        to[row * lanes : (row + 1) * lanes] = source[row * width + replica]
    samples.fields.deviation[:] = chain.fields.deviation[replica]


@kernel
def draw_sample(settings, samples):  # type: ignore[no-untyped-def]
    """Draw a sample in each lane, and fill its fields λ*; its coordinates are those of noisy inputs, if any."""
    draw_normals(samples.stream.step, samples.stream.seed, samples.stream.key, samples.z)
    if settings.has_spectrum:
        weight_coordinates(samples, samples.z)
    fill_teacher_fields(samples, samples.z, samples.fields.lam_star)
    if settings.has_input_noise:
        disturb_coordinates(samples.stream, samples, samples.z)


@kernel
def fill_columns(settings, functions, samples, filled):  # type: ignore[no-untyped-def]
    """Fill E, σ(λ) and the columns of C of `samples`, whose fields λ, λ* are there; E is zero from lane `filled` on."""
    _, lam_star, _, c, E, deviation, _ = samples.fields
    lanes, share, T = E.shape[0], 1.0 / settings.batch_size, samples.constants.numbers.T
    functions.labels(lam_star, samples.constants.a_star, E)
    add_noise(functions, samples.stream, deviation, samples.z[samples.frame.draws[-1]], E)
    if settings.drops:
        drop_units(samples.stream, samples)
    displace(functions, samples.a, samples.fields, samples.overflow)
    # these lanes have drawn samples beyond the end of the batch
    for lane in range(filled, lanes):
        E[lane], samples.overflow[lane] = 0.0, False
    for i in range(settings.p):
        for lane in range(lanes):
            samples.column[i, lane] = share * T[lane] * samples.a[i, lane] * E[lane] * c[i, lane]
    if settings.drops:
        take_units_back(samples)


@kernel
def add_to_replicas(settings, functions, chain, samples, sums):  # type: ignore[no-untyped-def]
    """Draw a sample of each replica, one in each lane, and add it to the sums over the replica's batch."""
    lam, _, value, _, E, _, _ = samples.fields
    column, z, rotations = samples.column, samples.z, chain.rotations
    p, width, lanes = sums.moves.shape
    draw_sample(settings, samples)
    fill_student_fields(chain, z, lam)
    fill_columns(settings, functions, samples, lanes)
    for lane in range(lanes):
        sums.overflow[lane] |= samples.overflow[lane]
    for i in range(p):
        for s in range(width):
            for lane in range(lanes):
                sums.moves[i, s, lane] += column[i, lane] * z[s, lane]
        if settings.trained:
            for lane in range(lanes):
                sums.layer[i, lane] += value[i, lane] * E[lane]
    absorb(sums.factor, column, rotations.cosine, rotations.sine)


@kernel
def add_to_replica(settings, functions, chain, replica, samples, filled, sums):  # type: ignore[no-untyped-def]
    """Draw a sample of one replica in each lane, and add the first `filled` of them to the sums of this replica."""
    lam, _, value, _, E, _, _ = samples.fields
    column, z, frame = samples.column, samples.z, samples.frame
    p, width, _ = sums.moves.shape
    draw_sample(settings, samples)
    lam[:] = 0.0
    for b in range(frame.factored.size):
        A, B = rows_of(chain, b)
        add_fields_of_replica(A, B, replica, z[frame.draws[b] : frame.draws[b + 1]], lam)
    fill_columns(settings, functions, samples, filled)
    sums.overflow[replica] |= any_of(samples.overflow)
    for i in range(p):
        for s in range(width):
            sums.moves[i, s, replica] += inner_product(column[i], z[s])
        if settings.trained:
            sums.layer[i, replica] += inner_product(value[i], E)
    absorb_block(sums.factor, replica, column)


@kernel
def sum_batches(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Fill `work.sums` with the sums over the batch of each replica; copies in the padding need no sums.

    work : the `Batch`. broken (lanes,) : marks copies, and lanes that have diverged.
    """
    chain, samples, sums, n_b = work.chain, work.samples, work.sums, settings.batch_size
    samples_stream, lanes = samples.stream, samples.stream.step.shape[0]
    clear_sums(sums)
    if n_b < LARGE:
        begin_batches(stream, n_b, samples_stream)
        for _ in range(n_b):
            add_to_replicas(settings, functions, chain, samples, sums)
            for lane in range(lanes):
                samples_stream.step[lane] += np.uint64(1)
        return
    # each copy in the padding would take as long as a batch
    for replica in range(filled_lanes(broken)):
        copy_replica(chain, replica, samples)
        for lane in range(lanes):
            samples_stream.key[lane], samples_stream.seed[lane] = stream.key[replica], stream.seed[replica]
            samples_stream.step[lane] = stream.step[replica] * np.uint64(n_b) + np.uint64(lane)
        for first in range(0, n_b, lanes):
            add_to_replica(settings, functions, chain, replica, samples, min(lanes, n_b - first), sums)
            for lane in range(lanes):
                samples_stream.step[lane] += np.uint64(lanes)
