"""Steps of the overlap chain and of the SDE with noise of the weights: the step without, and the noise after it.

A step adds s ξ_i to each row over √d, with s = √(2 T_w T/d) and ξ_i ~ N(0, I_d). In the frame of the rows after the
gradient, ξ_i has N(0, 1) numbers beside those of A and B, and m more out of the span of the rows. The products of the
latter are those of Bartlett's lower triangular S (`chain_batches`). So A += s N_A, and B becomes a factor of
[B + s N_B, s S], in each block of inputs too. Rows of velocities have no noise.

The step within does not know of the noise and does not project rows on their sphere: that is done after the noise.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import absorb, begin_batches
from sweeplib.networks.kernels.chain import chain_network, chain_prepare, project
from sweeplib.networks.kernels.chain_blocks import (
    OTHER_KEY,
    block_network,
    block_of,
    project_blocks,
)
from sweeplib.networks.kernels.disturbances import OF_WEIGHTS
from sweeplib.networks.kernels.lanes import (
    Stream,
    allocating,
    draw_normals,
    empty_stream,
    kernel,
    loops,
    round_of,
)
from sweeplib.networks.kernels.lengths import Length, draw_length
from sweeplib.networks.kernels.sde import sde_network, sde_prepare
from sweeplib.networks.kernels.sde_moves import project as project_overlaps
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import OneSignature, inlined, without_references
from sweeplib.networks.numerics.random import gamma_constants


class Noise(NamedTuple):
    """Work arrays: the stream of the noise, s (lanes,), normals, a length, the next B, and one of its columns.

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
    """The data of a group: those of the step without noise, with its network, and what the noise needs."""

    inner: Any
    network: Any
    noise: Noise


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `noisy_round`")


inner_work = inner_prepare = inner_step = inner_network = add_noise = project_rows = _unbound
ROWS_OF_UNITS = 1
"""The rows of B for each unit: with velocities two."""


def noisy_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The data of a group, from its flat blocks of state and constants."""
    inner = inner_work(settings, state, constants)
    return Noisy(inner, inner.network, empty_noise(settings.p, settings.k, ROWS_OF_UNITS * settings.p, inner.network.a))


@allocating
def empty_noise(p, k, rows, a):  # type: ignore[no-untyped-def]
    """Room for the noise of p rows, the last ones, of the second layer a (p, lanes)."""
    lanes, few = a.shape[1], np.empty((7, a.shape[1]))
    # a block of inputs without a B has up to p + k coordinates
    z = np.empty((4 * ((p * (p + k + 2 * rows) + 3) // 4), lanes))
    length = Length(few[0], few[1], few[2], few[3], np.empty(lanes, np.bool_), np.empty((4, 1)))
    factor, column = np.empty((rows, rows, lanes)), np.empty((rows, lanes))
    return Noise(empty_stream(lanes), few[4], z, length, factor, column, few[5], few[6])


def noisy_prepare(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Do what the step without noise needs before the first one."""
    inner_prepare(settings, functions, work.inner, broken)


def noisy_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """A step without noise, and the noise, of which no bound of the change of f is known."""
    inner_step(settings, functions, stream, work.inner, broken)
    add_noise(settings, functions, stream, work, broken)
    work.network.slack[:] = 0.0


def noisy_network(work):  # type: ignore[no-untyped-def]
    """Fill the current overlaps."""
    inner_network(work.inner)


@kernel
def begin_noise(settings, stream, numbers, noise):  # type: ignore[no-untyped-def]
    """Go to the first of the p draws of a step in the stream of the noise, and fill s."""
    begin_batches(stream, settings.p, noise.stream)
    for lane in range(noise.scale.shape[0]):
        noise.stream.key[lane] += OF_WEIGHTS
        noise.scale[lane] = math.sqrt(2.0 * numbers.temperature[lane] * numbers.T[lane] / numbers.d[lane])


@loops
def add_to_rows(A, B, p, degrees, noise):  # type: ignore[no-untyped-def]
    """Add noise to the last p rows of A, and of B with its lengths out of the span, unless it has no rows."""
    (count, r, lanes), rows, scale, factor, column = A.shape, B.shape[0], noise.scale, noise.factor, noise.column
    stream, length, at = noise.stream, noise.length, p * r
    z = noise.z[: 4 * ((at + (p * (p + 1) // 2 + p * rows if rows > 0 else 0) + 3) // 4)]
    draw_normals(stream.step, stream.seed, stream.key, z)
    for i in range(p):
        for s in range(r):
            for lane in range(lanes):
                A[count - p + i, s, lane] += scale[lane] * z[i * r + s, lane]
    if rows == 0:
        return
    factor[:] = 0.0
    for j in range(p):
        for lane in range(lanes):
            length.degrees[lane] = max(degrees[lane] - j, 0.0)
            length.scale[lane], length.width[lane] = gamma_constants(length.degrees[lane])
        draw_length(stream, length, z[at])
        for i in range(j, p):
            for lane in range(lanes):
                entry = length.s[lane] if i == j else z[at, lane]
                entry = entry if length.degrees[lane] > 0.0 else 0.0
                factor[rows - p + i, rows - p + j, lane] = scale[lane] * entry
            at += 1
        for lane in range(lanes):
            stream.step[lane] += np.uint64(1)
    for j in range(rows):
        for i in range(rows):
            for lane in range(lanes):
                column[i, lane] = B[i, j, lane] if j <= i else 0.0
        for i in range(p):
            for lane in range(lanes):
                column[rows - p + i, lane] += scale[lane] * z[at, lane]
            at += 1
        absorb(factor, column, noise.cosine, noise.sine)
    for i in range(rows):
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] = factor[i, j, lane]


def add_to_chain(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Add noise to A and B, and project the rows."""
    chain, noise = work.inner.chain, work.noise
    begin_noise(settings, stream, chain.constants.numbers, noise)
    add_to_rows(chain.A, chain.B, settings.p, chain.length.degrees, noise)
    project_rows(chain.A, chain.B, settings.rows - settings.p, noise.cosine)


def add_to_blocks(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Add noise to A_b and B_b of all blocks of inputs, and project the rows."""
    chain, noise = work.inner, work.noise
    for b in range(settings.factored.size):
        begin_noise(settings, stream, chain.constants.numbers, noise)
        for lane in range(noise.scale.shape[0]):
            noise.stream.key[lane] += np.uint64(b) * OTHER_KEY
        _, degrees, _, A, B = block_of(chain, b)
        add_to_rows(A, B, settings.p, degrees, noise)
    project_rows(chain)


def add_to_overlaps(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Add s N L*ᵀ to M and s (N Lᵀ + L Nᵀ) to Q, L = [A, B]; the mean of the square of s N is in the drift."""
    diffusion, noise = work.inner, work.noise
    A, B, Q, M, L_star = diffusion.A, diffusion.B, diffusion.system.Q, diffusion.system.M, diffusion.constants.L_star
    (p, k, lanes), scale, z = A.shape, noise.scale, noise.z
    begin_noise(settings, stream, diffusion.constants.numbers, noise)
    draw_normals(noise.stream.step, noise.stream.seed, noise.stream.key, z)
    for lane in range(lanes):
        scale[lane] *= math.sqrt(settings.length)
    for i in range(p):
        first = i * (k + p)
        for r in range(k):
            for s in range(r + 1):
                for lane in range(lanes):
                    M[i, r, lane] += scale[lane] * z[first + s, lane] * L_star[r, s, lane]
        for j in range(p):
            for s in range(k + j + 1):
                for lane in range(lanes):
                    entry = A[j, s, lane] if s < k else B[j, s - k, lane]
                    Q[i, j, lane] += scale[lane] * z[first + s, lane] * entry
                    Q[j, i, lane] += scale[lane] * z[first + s, lane] * entry
    if settings.spherical:
        project_overlaps(Q, M, diffusion.fields.square)
    sde_prepare(settings, functions, diffusion, broken)


@kernel
def leave_rows(*rows):  # type: ignore[no-untyped-def]
    """Do nothing: there is no sphere."""


PARTS: dict[str, Any] = {
    "chain": (chain_prepare, chain_network, add_to_chain, project),
    "blocks": (chain_prepare, block_network, add_to_blocks, project_blocks),
    "sde": (sde_prepare, sde_network, add_to_overlaps, leave_rows),
}
"""What is done before steps, the network, the noise, and the projection of rows, of each kind of step."""


@cache
def noisy_round(kind: str, work: Any, step: Any, *, spherical: bool, rows_of_units: int = 1) -> OneSignature:
    """The kernel of rounds of a step and the noise after it; `spherical` are rows that the step does not project."""
    prepare, network, adding, project_these = PARTS[kind]
    added = without_references(bound(adding, project_rows=project_these if spherical else leave_rows))
    return round_of(
        inlined(bound(noisy_work, inner_work=work, ROWS_OF_UNITS=rows_of_units)),
        prepare=without_references(bound(noisy_prepare, inner_prepare=prepare)),
        take_step=without_references(bound(noisy_step, inner_step=step, add_noise=added)),
        fill_network=without_references(bound(noisy_network, inner_network=network)),
    )
