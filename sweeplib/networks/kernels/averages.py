"""Averages of the iterates, for steps of weights and of the chain: w̄ ← (1 − b) w̄ + b w, b = min(1, κ γ/(pd) + η/n).

n counts steps from one; κ and η are the problem's `averaging_rate` and `averaging_order`. Steps do not depend on the
averages. In the chain these are the first p rows of A and B, which a step turns with its frame. The average after a
step is a combination of rows, of which B becomes a lower triangular factor, by rotations.

`averaged` makes steps of the chain, bound to the names `inner_*`, into steps with averages. Arguments: `settings` of
the run; `functions` by address; `stream`, names of each lane's random numbers; `work`, the data of a group; `broken`
(lanes,), set where a lane diverges.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import absorb
from sweeplib.networks.kernels.chain_state import rows_of
from sweeplib.networks.kernels.lanes import Steps, allocating, kernel, loops
from sweeplib.networks.kernels.weight_noise import fill_inner_network, prepare_inner
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import inlined, without_references


class Averaged(NamedTuple):
    """The data of a group: the data `inner` of the step, with its network and its chain, and work arrays.

    factor (rows, rows, lanes), column (rows, lanes) : the next B, and one of its columns.
    coefficients (3, lanes) : cosines and sines of rotations, and b.
    """

    inner: Any
    network: Any
    chain: Any
    factor: Array
    column: Array
    coefficients: Array


inner_work = inner_step = chain_within = unbound
"""Bound by `averaged`."""


def chain_of_step(inner):  # type: ignore[no-untyped-def]
    """The chain in the data `inner` of a step, in which `averaged` finds A and B."""
    return inner.chain


def chain_of_noisy_step(inner):  # type: ignore[no-untyped-def]
    """The chain in the data `inner` of a step with noise of the weights after it."""
    return inner.inner.chain


def averaged_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The data of a group, from its flat blocks of state and constants."""
    inner = inner_work(settings, state, constants)
    factor, column, coefficients = empty_rows(settings.rows, inner.network.a.shape[1])
    return Averaged(inner, inner.network, chain_within(inner), factor, column, coefficients)


@allocating
def empty_rows(rows, lanes):  # type: ignore[no-untyped-def]
    """Work arrays for the average of `rows` rows: `factor`, `column` and `coefficients` of `Averaged`."""
    return np.empty((rows, rows, lanes)), np.empty((rows, lanes)), np.empty((3, lanes))


def averaged_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step, and let the averages follow."""
    inner_step(settings, functions, stream, work.inner, broken)
    numbers, share = work.chain.constants.numbers, work.coefficients[2]
    for lane in range(share.shape[0]):
        # not `numbers.T`, which a schedule changes
        time = numbers.gamma[lane] / (settings.p * numbers.d[lane])
        share[lane] = share_of(numbers.averaging_rate[lane], numbers.averaging_order[lane], time, stream.step[lane] + 1)
    for b in range(settings.frame.factored.size):
        A, B = rows_of(work.chain, b)
        add_to_averages(A, B, settings.p, work.factor, work.column, work.coefficients)


@kernel
def share_of(rate, order, time, number):  # type: ignore[no-untyped-def]
    """The share b of the weights in their average after step `number` (from 1 on) of the `time` γ/(pd).

    rate, order : κ and η.
    """
    return min(1.0, rate * time + order / number)


@loops
def add_to_averages(A, B, p, factor, column, coefficients):  # type: ignore[no-untyped-def]
    """Replace the first p rows of A and B by their averages with the last p rows; B becomes lower triangular again.

    A (rows, r, lanes), B (rows, rows, lanes), without rows if A has the weights themselves. factor (rows, rows, lanes),
    column (rows, lanes) : work arrays. coefficients (3, lanes) : two work arrays, and b.
    """
    (rows, r, lanes), share = A.shape, coefficients[2]
    first = rows - p
    for i in range(p):
        for s in range(r):
            for lane in range(lanes):
                A[i, s, lane] += share[lane] * (A[first + i, s, lane] - A[i, s, lane])
    if B.shape[0] == 0:
        return
    # columns of B after the average, one after the other, into a new triangular factor
    factor[:] = 0.0
    for j in range(rows):
        for i in range(rows):
            for lane in range(lanes):
                column[i, lane] = B[i, j, lane] if j <= i else 0.0
        for i in range(p):
            for lane in range(lanes):
                column[i, lane] += share[lane] * (column[first + i, lane] - column[i, lane])
        absorb(factor, column, coefficients[0], coefficients[1])
    for i in range(rows):
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] = factor[i, j, lane]


@cache
def averaged(steps: Steps, *, noisy: bool) -> Steps:
    """The steps of the chain with averages after each.

    `noisy` steps have noise of the weights, which wraps the chain.
    """
    chain = inlined(chain_of_noisy_step if noisy else chain_of_step)
    return Steps(
        inlined(bound(averaged_work, inner_work=steps.work_space, chain_within=chain)),
        without_references(bound(prepare_inner, inner_prepare=steps.prepare)),
        without_references(bound(averaged_step, inner_step=steps.take_step)),
        without_references(bound(fill_inner_network, inner_network=steps.fill_network)),
    )


@kernel
def average_weights(replica, number):  # type: ignore[no-untyped-def]
    """Let the averages (p, d) of a replica, without rows if it has none, follow its weights after step `number`."""
    averages, W, numbers = replica.averages, replica.W, replica.numbers
    if averages.shape[0] == 0:
        return
    # not that of the step, which a schedule changes
    time = numbers.gamma / (W.shape[0] * numbers.d)
    share = share_of(numbers.averaging_rate, numbers.averaging_order, time, number)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            averages[i, j] += share * (W[i, j] - averages[i, j])
