"""Sums over the samples of a batch, for the overlap chain.

Small batches have one replica per lane and one sample after the other; in large ones the lanes are samples of one
replica, so that a replica alone takes no longer than one of many.
"""

from typing import NamedTuple

import numpy as np

from sweeplib.kernels.chain import Fields, displace, fill_rotations
from sweeplib.kernels.lanes import (
    FEWEST_LANES,
    Array,
    Constants,
    Stream,
    allocating,
    draw_normals,
    filled_lanes,
    group_width,
    kernel,
    loops,
)
from sweeplib.kernels.local_fields import fields

LARGE = 32
"""From this size on, the lanes are the samples of a batch."""

WIDE = 16
"""Students of more units have the fewest lanes: in more, the factors of all lanes would not stay in the cache."""


class Sums(NamedTuple):
    """Sums over the samples of a batch, in lanes.

    moves (p, k + p, lanes) : C (U*, W)ᵀ.
    layer (p, lanes) : the sum of σ(λ) E.
    factor (p, p, lanes) : lower triangular factor of CCᵀ.
    overflow (lanes,) : whether an E is beyond OVERFLOW, or NaN.
    """

    moves: Array
    layer: Array
    factor: Array
    overflow: Array


class Samples(NamedTuple):
    """Samples in lanes: the weights of the lane's replica, the name of its random numbers, and work arrays."""

    A: Array
    B: Array
    a: Array
    constants: Constants
    stream: Stream
    z: Array
    fields: Fields
    column: Array
    cosine: Array
    sine: Array
    sums: Sums


@allocating
def empty_sums(p, k, lanes):  # type: ignore[no-untyped-def]
    """Zero sums."""
    overflow = np.zeros(lanes, np.bool_)
    return Sums(np.zeros((p, k + p, lanes)), np.zeros((p, lanes)), np.zeros((p, p, lanes)), overflow)


@allocating
def empty_stream(lanes):  # type: ignore[no-untyped-def]
    """Room for keys, seeds and numbers of samples."""
    return Stream(np.empty(lanes, np.uint64), np.empty(lanes, np.uint64), np.empty(lanes, np.uint64))


@allocating
def of_samples(settings, lanes):  # type: ignore[no-untyped-def]
    """Room for samples of one replica in lanes."""
    p, k = settings.p, settings.k
    constants = Constants(
        np.empty((k, k, lanes)),
        np.empty((k, lanes)),
        np.empty(lanes),
        np.empty(lanes),
        np.empty(lanes),
        np.empty(lanes),
        np.empty(lanes),
    )
    wide, rows = np.empty((3, p, lanes)), np.empty((4, lanes))
    return Samples(
        np.empty((p, k, lanes)),
        np.empty((p, p, lanes)),
        np.empty((p, lanes)),
        constants,
        empty_stream(lanes),
        np.empty((4 * ((p + k + 4) // 4), lanes)),
        Fields(wide[0], np.empty((k, lanes)), wide[1], wide[2], rows[0], rows[1]),
        np.empty((p, lanes)),
        rows[2],
        rows[3],
        empty_sums(p, k, lanes),
    )


@allocating
def of_replicas(settings, chain, sums):  # type: ignore[no-untyped-def]
    """Room for a sample of each replica: the weights are those of the chain."""
    lanes = chain.B.shape[2]
    return Samples(
        chain.A,
        chain.B,
        chain.a,
        chain.constants,
        empty_stream(lanes),
        np.empty((4 * ((settings.p + settings.k + 4) // 4), lanes)),
        chain.fields,
        np.empty((settings.p, lanes)),
        chain.rotations.cosine,
        chain.rotations.sine,
        sums,
    )


@allocating
def samples_of(settings, chain, sums):  # type: ignore[no-untyped-def]
    """Room for samples in lanes: those of a large batch, or one of each replica."""
    width = group_width(settings.batch_size) if settings.p <= WIDE else FEWEST_LANES
    return of_samples(settings, width) if settings.batch_size >= LARGE else of_replicas(settings, chain, sums)


@loops
def absorb(factor, column, first, lanes, cosine, sine):  # type: ignore[no-untyped-def]
    """Replace lower triangular factors (p, p, ·) by those of [factor, column], the column zero above row `first`.

    In the first `lanes` lanes, by rotations; the column is used up.
    """
    p = factor.shape[0]
    for j in range(first, p):
        head = column[j][:lanes]
        fill_rotations(factor[j, j][:lanes], head, head, cosine[:lanes], sine[:lanes])
        for lane in range(lanes):
            factor[j, j, lane] = head[lane]
        for i in range(j + 1, p):
            for lane in range(lanes):
                left, right = factor[i, j, lane], column[i, lane]
                factor[i, j, lane] = cosine[lane] * left + sine[lane] * right
                column[i, lane] = cosine[lane] * right - sine[lane] * left


@kernel
def clear(sums):  # type: ignore[no-untyped-def]
    """Set the sums to zero."""
    sums.moves[:], sums.layer[:], sums.factor[:] = 0.0, 0.0, 0.0
    sums.overflow[:] = False


@kernel
def load(chain, lane, samples):  # type: ignore[no-untyped-def]
    """Copy the weights and constants of a replica to all lanes of its samples."""
    p, k, _ = samples.A.shape
    given, to = chain.constants, samples.constants
    for i in range(p):
        samples.a[i, :] = chain.a[i, lane]
        for s in range(k):
            samples.A[i, s, :] = chain.A[i, s, lane]
        for j in range(i + 1):
            samples.B[i, j, :] = chain.B[i, j, lane]
    for r in range(k):
        to.a_star[r, :] = given.a_star[r, lane]
        for s in range(r + 1):
            to.L_star[r, s, :] = given.L_star[r, s, lane]
    to.T[:], samples.fields.deviation[:] = given.T[lane], chain.fields.deviation[lane]


@kernel
def add_samples(settings, functions, samples, filled):  # type: ignore[no-untyped-def]
    """Draw the sample of each lane, and add it to the sums in the first `filled` lanes."""
    p, k = settings.p, settings.k
    sums, stream, z, column = samples.sums, samples.stream, samples.z, samples.column
    lam, lam_star, value, c, E, deviation = samples.fields
    lanes, share = E.shape[0], 1.0 / settings.batch_size
    draw_normals(stream.step, stream.seed, stream.key, z)
    fields(samples.A, samples.B, samples.constants.L_star, z, lam, lam_star)
    functions.labels(lam_star, samples.constants.a_star, E)
    for lane in range(lanes):
        E[lane] += deviation[lane] * z[k + p, lane]
    for lane in range(filled, lanes):
        lam[:, lane], E[lane] = 0.0, 0.0
    displace(functions, samples.a, samples.fields, sums.overflow)
    for i in range(p):
        for lane in range(lanes):
            column[i, lane] = share * samples.constants.T[lane] * samples.a[i, lane] * E[lane] * c[i, lane]
        for lane in range(filled, lanes):
            column[i, lane] = 0.0
        for s in range(k + p):
            for lane in range(lanes):
                sums.moves[i, s, lane] += column[i, lane] * z[s, lane]
        if settings.trained:
            for lane in range(filled):
                sums.layer[i, lane] += value[i, lane] * E[lane]
    absorb(sums.factor, column, 0, lanes, samples.cosine, samples.sine)


@loops
def fold(sums, column, cosine, sine):  # type: ignore[no-untyped-def]
    """Add the sums of all lanes to those of the first: the upper half of the lanes to the lower, again and again."""
    p, width, left = sums.moves.shape
    while left > 1:
        half = left // 2
        upper = left - half
        for i in range(p):
            for s in range(width):
                for lane in range(half):
                    sums.moves[i, s, lane] += sums.moves[i, s, upper + lane]
            for lane in range(half):
                sums.layer[i, lane] += sums.layer[i, upper + lane]
        for j in range(p):
            for i in range(j, p):
                for lane in range(half):
                    column[i, lane] = sums.factor[i, j, upper + lane]
            absorb(sums.factor, column, j, half, cosine, sine)
        for lane in range(half):
            sums.overflow[lane] |= sums.overflow[upper + lane]
        left = upper


@kernel
def store(found, sums, lane):  # type: ignore[no-untyped-def]
    """Copy the sums of the first lane to those of a replica."""
    p, width, _ = sums.moves.shape
    for i in range(p):
        sums.layer[i, lane] = found.layer[i, 0]
        for s in range(width):
            sums.moves[i, s, lane] = found.moves[i, s, 0]
        for j in range(i + 1):
            sums.factor[i, j, lane] = found.factor[i, j, 0]
    sums.overflow[lane] = found.overflow[0]


@kernel
def sum_batches(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Fill the sums over the batch of each replica; sample s of step ν is sample ν n_b + s of the stream."""
    samples, n_b = work.samples, settings.batch_size
    own, lanes = samples.stream, samples.stream.step.shape[0]
    one_replica = n_b >= LARGE
    at_once = lanes if one_replica else 1
    for replica in range(filled_lanes(broken) if one_replica else 1):
        clear(samples.sums)
        if one_replica:
            load(work.chain, replica, samples)
        for lane in range(lanes):
            of, offset = (replica, lane) if one_replica else (lane, 0)
            own.key[lane], own.seed[lane] = stream.key[of], stream.seed[of]
            own.step[lane] = stream.step[of] * np.uint64(n_b) + np.uint64(offset)
        for drawn in range(0, n_b, at_once):
            add_samples(settings, functions, samples, min(lanes, n_b - drawn) if one_replica else lanes)
            for lane in range(lanes):
                own.step[lane] += np.uint64(at_once)
        if one_replica:
            fold(samples.sums, samples.column, samples.cosine, samples.sine)
            store(samples.sums, work.sums, replica)
