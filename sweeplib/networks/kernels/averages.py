"""Averages of the iterates: w̄ ← (1 − b) w̄ + b w after step n, b = min(1, κ γ/(pd) + η/n), of weights and of the chain.

Steps do not depend on them. In the chain they are the first p rows of A and B, which a step turns with its frame.
The average after it is a combination of rows, of which B becomes a lower triangular factor, by rotations.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import absorb
from sweeplib.networks.kernels.lanes import Steps, allocating, kernel, loops
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined, without_references


class Averaged(NamedTuple):
    """The data of a group: those of the step, with its network and its chain, and work arrays.

    factor (rows, rows, lanes), column (rows, lanes) : the next B, and one of its columns.
    few (3, lanes) : cosines and sines of rotations, and b.
    """

    inner: Any
    network: Any
    chain: Any
    factor: Array
    column: Array
    few: Array


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `averaged`")


inner_work = inner_prepare = inner_step = inner_network = chain_within = _unbound


def chain_of_step(inner):  # type: ignore[no-untyped-def]
    """The chain in the data of a step."""
    return inner.chain


def chain_of_noisy_step(inner):  # type: ignore[no-untyped-def]
    """The chain in the data of a step with noise of the weights after it."""
    return inner.inner.chain


def averaged_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The data of a group, from its flat blocks of state and constants."""
    inner = inner_work(settings, state, constants)
    factor, column, few = empty_rows(settings.rows, inner.network.a.shape[1])
    return Averaged(inner, inner.network, chain_within(inner), factor, column, few)


@allocating
def empty_rows(rows, lanes):  # type: ignore[no-untyped-def]
    """Work arrays of the average."""
    return np.empty((rows, rows, lanes)), np.empty((rows, lanes)), np.empty((3, lanes))


def averaged_prepare(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Do what the step needs before the first one."""
    inner_prepare(settings, functions, work.inner, broken)


def averaged_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """A step, and the average after it."""
    inner_step(settings, functions, stream, work.inner, broken)
    numbers, share = work.chain.constants.numbers, work.few[2]
    for lane in range(share.shape[0]):
        time = numbers.gamma[lane] / (settings.p * numbers.d[lane])
        share[lane] = share_of(numbers.averaging_rate[lane], numbers.averaging_order[lane], time, stream.step[lane] + 1)
    add_to_averages(work.chain.A, work.chain.B, settings.p, work.factor, work.column, work.few)


def averaged_network(work):  # type: ignore[no-untyped-def]
    """Fill the current overlaps."""
    inner_network(work.inner)


@kernel
def share_of(rate, order, time, number):  # type: ignore[no-untyped-def]
    """The share b of the weights in their average after step `number`, of the first on, of a `time`."""
    return min(1.0, rate * time + order / number)


@loops
def add_to_averages(A, B, p, factor, column, few):  # type: ignore[no-untyped-def]
    """Replace the first p rows of A and B by averages of them and the last p rows; B becomes lower triangular again."""
    (rows, k, lanes), share = A.shape, few[2]
    first = rows - p
    for i in range(p):
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] += share[lane] * (A[first + i, s, lane] - A[i, s, lane])
    factor[:] = 0.0
    for j in range(rows):
        for i in range(rows):
            for lane in range(lanes):
                column[i, lane] = B[i, j, lane] if j <= i else 0.0
        for i in range(p):
            for lane in range(lanes):
                column[i, lane] += share[lane] * (column[first + i, lane] - column[i, lane])
        absorb(factor, column, few[0], few[1])
    for i in range(rows):
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] = factor[i, j, lane]


@cache
def averaged(steps: Steps, *, noisy: bool) -> Steps:
    """Steps of the chain and the average after each; `noisy` are those with noise of the weights."""
    chain = inlined(chain_of_noisy_step if noisy else chain_of_step)
    return Steps(
        inlined(bound(averaged_work, inner_work=steps.work_space, chain_within=chain)),
        without_references(bound(averaged_prepare, inner_prepare=steps.prepare)),
        without_references(bound(averaged_step, inner_step=steps.take_step)),
        without_references(bound(averaged_network, inner_network=steps.fill_network)),
    )


@kernel
def average_weights(replica, number):  # type: ignore[no-untyped-def]
    """Let the averages (p, d) of a replica, if it has any, follow its weights after step `number`."""
    averages, W, numbers = replica.averages, replica.W, replica.numbers
    if averages.shape[0] == 0:
        return
    # not that of the step, which a schedule changes
    time = numbers.gamma / (W.shape[0] * numbers.d)
    share = share_of(numbers.averaging_rate, numbers.averaging_order, time, number)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            averages[i, j] += share * (W[i, j] - averages[i, j])
