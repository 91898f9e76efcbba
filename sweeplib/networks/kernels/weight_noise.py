"""Steps of the overlap chain and of the SDE with noise of the weights: the step without, and the noise after it.

A step adds s ξ_i to each row over √d, with s = √(2 T_w T/d) and ξ_i ~ N(0, I_d). In the frame of the rows after the
gradient, ξ_i has N(0, 1) numbers beside those of A and B, and m more out of the span of the rows. The products of the
latter are those of Bartlett's lower triangular S (`chain_batches`). So A += s N_A, and B becomes a factor of
[B + s N_B, s S], in each block of inputs too. Rows of velocities have no noise.

The step within does not know of the noise and does not project rows on their sphere: that is done after the noise.
`noisy` binds the functions of the step to `inner_*`, and those of the noise to `add_noise` and `project_rows`. The
arguments are those of steps: `settings`, `functions` by address, `stream` of random numbers, `work`, and `broken`.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.disturbances import OF_WEIGHTS
from sweeplib.networks.kernels.lanes import Steps, Stream, allocating, empty_stream, kernel
from sweeplib.networks.kernels.lengths import Length
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import inlined, without_references


class Noise(NamedTuple):
    """Work arrays of the noise.

    stream, scale (lanes,) : names of its random numbers, and s.
    z (draws, lanes), length : N(0, 1) numbers, and the length of a row of S.
    factor (rows, rows, lanes), column (rows, lanes) : the next B, and one of its columns.
    cosine, sine (lanes,) : of rotations.
    """

    stream: Stream
    scale: Array
    z: Array
    length: Length
    factor: Array
    column: Array
    cosine: Array
    sine: Array


class Noisy(NamedTuple):
    """The data of a group: `inner` of the step without noise, its network, and what the noise needs."""

    inner: Any
    network: Any
    noise: Noise


inner_work = inner_prepare = inner_step = inner_network = add_noise = project_rows = unbound
"""Bound by `noisy`."""
ROWS_OF_UNITS = 1
"""The rows of B for each unit: with velocities two."""


def noisy_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Noisy` of a group, from its flat blocks of state and constants."""
    inner = inner_work(settings, state, constants)
    # with velocities B has 2p rows; the noise is that of the last p of them
    return Noisy(inner, inner.network, empty_noise(settings.p, settings.k, ROWS_OF_UNITS * settings.p, inner.network.a))


@allocating
def empty_noise(p, k, rows, a):  # type: ignore[no-untyped-def]
    """Work arrays for the noise of the last p of `rows` rows; a (p, lanes) says how many lanes there are."""
    lanes, lines = a.shape[1], np.empty((7, a.shape[1]))
    # a block of inputs without a B has up to p + k coordinates
    z = np.empty((4 * ((p * (p + k + 2 * rows) + 3) // 4), lanes))
    length = Length(lines[0], lines[1], lines[2], lines[3], np.empty(lanes, np.bool_), np.empty((4, 1)))
    factor, column = np.empty((rows, rows, lanes)), np.empty((rows, lanes))
    return Noise(empty_stream(lanes), lines[4], z, length, factor, column, lines[5], lines[6])


def prepare_inner(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Do what a step needs before the first one whose data are `work.inner`, inside of another."""
    inner_prepare(settings, functions, work.inner, broken)


def noisy_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step without noise, and add the noise; no bound of its change of f is known, so that the slack is zero."""
    inner_step(settings, functions, stream, work.inner, broken)
    add_noise(settings, functions, stream, work, broken)
    work.network.slack[:] = 0.0


def fill_inner_network(work):  # type: ignore[no-untyped-def]
    """Fill the current overlaps of a step inside of another."""
    inner_network(work.inner)


@kernel
def begin_noise(settings, stream, numbers, noise):  # type: ignore[no-untyped-def]
    """Go to the first of the p draws of a step in the stream of the noise, and fill s, `noise.scale`.

    stream : of the steps. numbers : the `Numbers` of the group.
    """
    for lane in range(noise.scale.shape[0]):
        noise.stream.key[lane], noise.stream.seed[lane] = stream.key[lane] + OF_WEIGHTS, stream.seed[lane]
        noise.stream.step[lane] = stream.step[lane] * np.uint64(settings.p)
        noise.scale[lane] = math.sqrt(2.0 * numbers.temperature[lane] * numbers.T[lane] / numbers.d[lane])


@kernel
def leave_rows(*rows):  # type: ignore[no-untyped-def]
    """Do nothing, in place of a projection: there is no sphere."""


class NoiseKind(NamedTuple):
    """What noise needs of a kind of step: its preparation, its network, the noise, and the projection of rows."""

    prepare: Any
    network: Any
    add: Any
    project: Any = leave_rows


@cache
def noisy(kind: NoiseKind, work: Any, step: Any, *, spherical: bool, rows_of_units: int = 1) -> Steps:
    """The functions of steps with noise after each.

    work, step : of the steps without noise. spherical : whether rows are to be projected after the noise.
    rows_of_units : rows of B for each unit, two with velocities.
    """
    added = without_references(bound(kind.add, project_rows=kind.project if spherical else leave_rows))
    return Steps(
        inlined(bound(noisy_work, inner_work=work, ROWS_OF_UNITS=rows_of_units)),
        without_references(bound(prepare_inner, inner_prepare=kind.prepare)),
        without_references(bound(noisy_step, inner_step=step, add_noise=added)),
        without_references(bound(fill_inner_network, inner_network=kind.network)),
    )
