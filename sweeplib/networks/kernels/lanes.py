"""Rounds of steps with replicas in vector lanes, for the chain and the SDE.

The last axis of an array is the lane: A (p, k, lanes), B (p, p, lanes), fields (p, lanes). Lanes never mix, and groups
are padded to whole vectors with copies of their last replica. The result of a replica thus does not depend on others.

State and constants of n replicas are blocks (rows, n). `order` (m,) are the replicas still to be moved; a group is its
`order[first:]`, up to as many as there are lanes. Dynamics access the state of a group by views with the names of the
theory, its `work`. Kernels call the functions of activations and target by address (`Functions`), so they are compiled
once for all of them. The slack of a lane is how far f can move, in L², before the risk can reach its next target.
`progress` is the `Progress` of all replicas, `settings` are those of the run, `rates` its schedules.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.numbers import COUNT, numbers_of_rows
from sweeplib.networks.kernels.schedules import clock_of, set_noise, set_rates
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import OneSignature, inlined
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS, OPTIMISED_APART
from sweeplib.networks.numerics.random import make_fours, random_words, two_draws
from sweeplib.networks.numerics.vectors import WIDTH

MOST_LANES = 128
"""With this number the start of a loop costs little; with more, the state of wide networks fills the cache."""

FEWEST_LANES = WIDTH
"""Whole vectors, of rules for expectations and of the compiler's loops: no replica is left to scalar code."""

LANES = (FEWEST_LANES, MOST_LANES)
"""The least and the largest number of lanes of a group."""

OVERFLOW = 1e100
"""A larger displacement, or NaN, is a divergence."""

ROUNDING = 1e-9
"""Relative and absolute margin of a bound of the risk, for rounding errors in the bound and in the risk."""

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
"""Options of numba for all kernels of lanes: division as in numpy, and fused products and sums."""

kernel = numba.njit(_nrt=False, forceinline=True, **_OPTIONS, **FOR_KERNELS)
"""For functions that neither allocate nor return arrays: without reference counts, which cost more than a loop."""

loops = numba.njit(_nrt=False, **_OPTIONS, **OPTIMISED_APART)
"""For the longest of these, which gain nothing from being compiled into their callers."""

allocating = numba.njit(**_OPTIONS, **FOR_KERNELS)
"""For functions that allocate or return arrays."""


class Constants(NamedTuple):
    """The constants of a group, views of one flat `block`: a* (k, lanes), `Numbers` (lanes,), and `teacher`.

    teacher (rows, lanes) : of the SDE L* (k, k), of the chain as `chain_state` says.
    """

    a_star: Array
    numbers: Any
    teacher: Array
    block: Array


class Progress(NamedTuple):
    """The progress of n replicas.

    steps (n,) : steps taken.
    until (n,) : steps to take in total.
    targets (n, thresholds) : targets of the risk.
    exits (n, thresholds) : steps of the exits, negative before.
    failed (n,) : step of a divergence, negative without one.
    keys, seeds (n,) : names of the streams of random numbers.
    """

    steps: NDArray[np.int64]
    until: NDArray[np.int64]
    targets: Array
    exits: NDArray[np.int64]
    failed: NDArray[np.int64]
    keys: NDArray[np.uint64]
    seeds: NDArray[np.uint64]


class Stream(NamedTuple):
    """The names of each lane's random numbers: key, seed and number of the next step or sample, all (lanes,)."""

    key: NDArray[np.uint64]
    seed: NDArray[np.uint64]
    step: NDArray[np.uint64]


class Group(NamedTuple):
    """A group in a round: replicas `order[first:]`, one per lane, and the `Progress` of all n replicas.

    order : the numbers of the replicas that take part in the round. first : the place in it of the group's first.
    broken (lanes,) : whether the lane is a copy, or its replica has diverged.
    target (lanes,) : the next target of the risk, -inf without one.
    """

    order: NDArray[np.intp]
    first: int
    progress: Progress
    broken: NDArray[np.bool_]
    target: Array


class Network(NamedTuple):
    """The overlaps and second layers of a group, as arguments of the risk, and `risk` (lanes,) for the result.

    slack (lanes,) : how far f can move, in the norm of L², before the risk can reach a target.
    waiting (1,) : whether a target is pending.
    """

    Q: Array
    M: Array
    P: Array
    a: Array
    a_star: Array
    risk: Array
    slack: Array
    waiting: NDArray[np.bool_]


@numba.njit(_nrt=False, error_model="numpy", fastmath={"contract", "reassoc"}, **OPTIMISED_APART)
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """The sum Σ_l x_l y_l of x, y (lanes,), in any order: the compiler may use vector instructions."""
    total = 0.0
    for lane in range(x.shape[0]):
        total += x[lane] * y[lane]
    return total


@allocating
def constants_of(block, k, lanes):  # type: ignore[no-untyped-def]
    """The `Constants` of a group in a flat block: k rows of a*, one for each of the `Numbers`, those of the teacher."""
    rows = block.reshape((block.shape[0] // lanes, lanes))
    return Constants(rows[:k], numbers_of_rows(rows[k : k + COUNT]), rows[k + COUNT :], block)


@kernel
def group_width(count):  # type: ignore[no-untyped-def]
    """The number of lanes of the next group, of `count` replicas that are left: whole vectors, up to MOST_LANES."""
    return min(MOST_LANES, FEWEST_LANES * ((count + FEWEST_LANES - 1) // FEWEST_LANES))


@kernel
def gather(source, order, first, lanes):  # type: ignore[no-untyped-def]
    """Copy the columns order[first], order[first + 1], ... of source (rows, n) to lanes (rows, width of the group).

    The lanes beyond the last replica are copies of it.
    """
    last = order.shape[0] - 1
    for row in range(source.shape[0]):
        for lane in range(lanes.shape[1]):
            lanes[row, lane] = source[row, order[min(first + lane, last)]]


@kernel
def scatter(lanes, order, first, target):  # type: ignore[no-untyped-def]
    """Copy lanes (rows, width) back to the columns order[first], order[first + 1], ... of target (rows, n)."""
    filled = min(lanes.shape[1], order.shape[0] - first)
    for row in range(target.shape[0]):
        for lane in range(filled):
            target[row, order[first + lane]] = lanes[row, lane]


@loops
def draw_normals(step, seed, key, z):  # type: ignore[no-untyped-def]
    """Fill z (a multiple of 4, lanes) with N(0, 1) numbers named by step, seed and key (lanes,) of each lane."""
    rows, lanes = z.shape
    # random bits come first, in place of the numbers that `make_fours` makes of them
    bits = z.view(np.uint64)
    # two draws at a time, each of four words
    for row in range(0, rows - 4, 8):
        b0, b1, b2, b3 = bits[row], bits[row + 1], bits[row + 2], bits[row + 3]
        c0, c1, c2, c3 = bits[row + 4], bits[row + 5], bits[row + 6], bits[row + 7]
        draw = np.uint64(row // 4)
        for lane in range(lanes):
            w0, w1, w2, w3, v0, v1, v2, v3 = two_draws(draw, draw + np.uint64(1), step[lane], seed[lane], key[lane])
            b0[lane], b1[lane], b2[lane], b3[lane] = w0, w1, w2, w3
            c0[lane], c1[lane], c2[lane], c3[lane] = v0, v1, v2, v3
    if rows % 8:
        b0, b1, b2, b3 = bits[rows - 4], bits[rows - 3], bits[rows - 2], bits[rows - 1]
        draw = np.uint64(rows // 4 - 1)
        for lane in range(lanes):
            b0[lane], b1[lane], b2[lane], b3[lane] = random_words(draw, step[lane], seed[lane], key[lane])
    for row in range(0, rows, 4):
        make_fours(z[row], z[row + 1], z[row + 2], z[row + 3])


@kernel
def add_mean(factor, weights, values, out):  # type: ignore[no-untyped-def]
    """Add factor · Σ_i weights_i values_i to out (lanes,); weights and values are (rows, lanes)."""
    rows, lanes = values.shape
    for i in range(rows):
        for lane in range(lanes):
            out[lane] += factor * weights[i, lane] * values[i, lane]


@allocating
def empty_stream(lanes):  # type: ignore[no-untyped-def]
    """A `Stream` that has to be filled."""
    return Stream(np.empty(lanes, np.uint64), np.empty(lanes, np.uint64), np.empty(lanes, np.uint64))


@allocating
def begin(order, first, progress, lanes):  # type: ignore[no-untyped-def]
    """The `Stream` of the group `order[first:]`, at the current step of each lane."""
    last, stream = order.shape[0] - 1, empty_stream(lanes)
    for lane in range(lanes):
        replica = order[min(first + lane, last)]
        stream.key[lane], stream.seed[lane] = progress.keys[replica], progress.seeds[replica]
        stream.step[lane] = progress.steps[replica]
    return stream


@kernel
def steps_to_take(order, first, progress, most):  # type: ignore[no-untyped-def]
    """The number of steps, at most `most`, that all lanes of the group can take until one is at its end."""
    for replica in order[first : first + MOST_LANES]:
        most = min(most, progress.until[replica] - progress.steps[replica])
    return most


@kernel
def next_targets(order, first, progress, out):  # type: ignore[no-untyped-def]
    """Fill out (lanes,) with the highest target that a lane has not reached, or -inf; return whether there is one."""
    pending = False
    last = order.shape[0] - 1
    for lane in range(out.shape[0]):
        replica = order[min(first + lane, last)]
        out[lane] = -np.inf
        for t in range(progress.targets.shape[1]):
            if progress.exits[replica, t] < 0:
                out[lane] = max(out[lane], progress.targets[replica, t])
                pending = True
    return pending


@kernel
def note_exits(order, first, risk, step, progress):  # type: ignore[no-untyped-def]
    """Record the number of steps as exit for each threshold that a lane's risk reaches for the first time.

    risk, step (lanes,) : the present risk, and how many steps the lane has taken.
    """
    exits, targets = progress.exits, progress.targets
    for lane in range(min(risk.shape[0], order.shape[0] - first)):
        replica = order[first + lane]
        for t in range(targets.shape[1]):
            if exits[replica, t] < 0 and risk[lane] <= targets[replica, t]:
                exits[replica, t] = step[lane]


@kernel
def note_divergences(order, first, broken, step, failed):  # type: ignore[no-untyped-def]
    """Record the steps taken so far, `step` (lanes,), as the end of each lane that is `broken` for the first time.

    failed (n,) : of all replicas, changed in place.
    """
    for lane in range(min(broken.shape[0], order.shape[0] - first)):
        replica = order[first + lane]
        if failed[replica] < 0 and broken[lane]:
            failed[replica] = step[lane]


@kernel
def any_of(flags):  # type: ignore[no-untyped-def]
    """Whether one of the flags (lanes,) is set."""
    some = False
    for lane in range(flags.shape[0]):
        # all flags, without a `break`: then the loop is one of vector instructions
        some |= flags[lane]
    return some


@kernel
def filled_lanes(broken):  # type: ignore[no-untyped-def]
    """The number of lanes up to the last one that is not broken; later lanes hold copies or have diverged."""
    filled = 0
    for lane in range(broken.shape[0]):
        if not broken[lane]:
            filled = lane + 1
    return filled


@kernel
def may_exit(slack):  # type: ignore[no-untyped-def]
    """Whether the risk of some lane may have reached its target: its slack (lanes,) is used up."""
    some = False
    for lane in range(slack.shape[0]):
        some |= slack[lane] <= 0.0
    return some


@kernel
def fill_slack(risk, target, slack):  # type: ignore[no-untyped-def]
    """Fill slack with √(2 risk) − √(2 target): by the triangle inequality, f moves so far. All are (lanes,)."""
    for lane in range(slack.shape[0]):
        goal = math.sqrt(2.0 * max(target[lane], 0.0)) if target[lane] > -np.inf else -np.inf
        slack[lane] = (1.0 - ROUNDING) * (math.sqrt(2.0 * max(risk[lane], 0.0)) - goal) - ROUNDING


work_space = prepare = take_step = fill_network = steps = unbound
"""Bound by `round_of`."""


def take_steps(count, settings, functions, rates, clock, stream, work, group):  # type: ignore[no-untyped-def]
    """Take `count` steps in all lanes, by the functions that are bound to the names above; record exits and ends.

    rates, clock : schedules, and the numbers of the group that change with them. stream : of each lane. work : the
    group's data, with a `Network`.
    """
    network, broken, target, progress = work.network, group.broken, group.target, group.progress
    order, first = group.order, group.first
    network.waiting[0] = next_targets(order, first, progress, target)
    prepare(settings, functions, work, broken)
    for _ in range(count):
        if rates.varying:
            set_rates(rates, stream.step, clock)
        if rates.anneals:
            set_noise(rates, stream.step, clock)
        take_step(settings, functions, stream, work, broken)
        if any_of(broken):
            note_divergences(order, first, broken, stream.step, progress.failed)
        # a divergence is noted before its step counts, an exit after it
        for lane in range(broken.shape[0]):
            stream.step[lane] += np.uint64(1)
        if network.waiting[0] and may_exit(network.slack):
            fill_network(work)
            functions.risk(functions.pair, network.Q, network.M, network.P, network.a, network.a_star, network.risk)
            note_exits(order, first, network.risk, stream.step, progress)
            network.waiting[0] = next_targets(order, first, progress, target)
            fill_slack(network.risk, target, network.slack)


def lanes_round(order, chunk, settings, functions, rates, state, constants, progress):  # type: ignore[no-untyped-def]
    """Take up to `chunk` steps, not beyond `until`, with each replica in `order`; state and progress change in place.

    `state` and `constants` are blocks (rows, n). `round_of` binds these functions of a dynamics:

    work_space(settings, state, constants) : returns the data of a group from its flat blocks.
    prepare(settings, functions, work, broken) : is called before the first step.
    take_step(settings, functions, stream, work, broken) : takes a step; sets `broken` (lanes,) where it diverged.
    fill_network(work) : fills the current overlaps.
    """
    first = 0 * order.shape[0]  # functions would be compiled for the literal zero too
    while first < order.shape[0]:
        lanes = group_width(order.shape[0] - first)
        block, fixed = np.empty((state.shape[0], lanes)), np.empty((constants.shape[0], lanes))
        gather(state, order, first, block)
        gather(constants, order, first, fixed)
        work = work_space(settings, block.reshape(block.size), fixed.reshape(fixed.size))
        clock = clock_of(constants_of(fixed.reshape(fixed.size), settings.k, lanes).numbers)
        # how far f is from its targets is not known yet: the first step computes the risk
        work.network.slack[:] = 0.0
        stream, broken = begin(order, first, progress, lanes), np.zeros(lanes, np.bool_)
        for lane in range(lanes):
            # copies count as broken, so that what is done for single replicas leaves them out
            broken[lane] = first + lane >= order.shape[0]
        group = Group(order, first, progress, broken, np.empty(lanes))
        count = steps_to_take(order, first, progress, chunk)
        steps(count, settings, functions, rates, clock, stream, work, group)
        scatter(block, order, first, state)
        for lane in range(min(lanes, order.shape[0] - first)):
            progress.steps[order[first + lane]] = stream.step[lane]
        first += lanes


class Steps(NamedTuple):
    """The functions of a dynamics that `round_of` binds; `lanes_round` says what they are called with."""

    work_space: Any
    prepare: Any
    take_step: Any
    fill_network: Any

    @property
    def round(self) -> OneSignature:
        """The compiled `lanes_round` of these steps."""
        return round_of(self.work_space, **dict(zip(self._fields[1:], self[1:], strict=True)))


@cache
def round_of(work_space: Any, **bindings: Any) -> OneSignature:
    """The compiled `lanes_round` of a dynamics, with its `work_space`, `prepare`, `take_step` and `fill_network`."""
    return OneSignature(lanes_round, work_space=work_space, steps=inlined(bound(take_steps, **bindings), _nrt=False))
