"""Steps of the overlap chain with fresh samples, of one task or of one drawn at random: the present or an earlier one.

Where T tasks are drawn, a step has the a* of its task and, with separate heads, the second layer of the task, which it
trains; a head is a second layer of the student, and there is one (H = 1) or one of each task. One kernel serves both
kinds of runs.

Arguments: `settings` of the run, `functions` by address, `stream` naming each lane's random numbers, `broken` (lanes,)
set where a lane diverges, and `work`, the `Replay` of the group.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.chain import chain_step
from sweeplib.networks.kernels.chain_state import chain_work
from sweeplib.networks.kernels.lanes import allocating, kernel
from sweeplib.networks.numerics.random import random_words, uniform

_DRAW = np.uint64(2**32 - 1)
"""The number of the draw of the task of a step, beyond all draws of its sample."""


class Replay(NamedTuple):
    """The chain of a group of replicas in lanes, and the tasks among which its steps choose.

    ends (T, lanes) : the end of the share of each task in [0, 1]; no rows where no task is drawn.
    a_star (T, k, lanes), heads (H, p, lanes) : second layers of the teacher and of the student, by task.
    chosen (lanes,) : the tasks of the present step.
    """

    chain: Any
    network: Any
    ends: Array
    a_star: Array
    heads: Array
    chosen: Any


@numba.njit(error_model="numpy")
def task_of(ends, step, seed, key):  # type: ignore[no-untyped-def]
    """The task of a step, drawn by the random number that step, seed and key name.

    ends (T,) : cumulative shares of the tasks in [0, 1].
    """
    word, _, _, _ = random_words(_DRAW, step, seed, key)
    number, task = uniform(word), 0
    while task < ends.shape[0] - 1 and number > ends[task]:
        task += 1
    return task


@numba.njit(error_model="numpy")
def tasks_of(ends, first, count, seed, key):  # type: ignore[no-untyped-def]
    """The tasks (count,) of the steps from number `first` on, for SGD on the weights, which takes the same tasks.

    ends (T,) : cumulative shares. seed, key : names of the random numbers.
    """
    tasks = np.empty(count, np.int64)
    for s in range(count):
        tasks[s] = task_of(ends, np.uint64(first + s), seed, key)
    return tasks


@allocating
def replay_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Replay` of a group: views of its flat blocks of state and constants, and work arrays.

    Behind the state of the chain are the ends of shares, a* and heads of all tasks.
    """
    p, k, T, H = settings.p, settings.k, settings.tasks, settings.heads
    size = settings.frame.states[-1] + (1 if settings.remembers else 0) + p
    lanes = state.shape[0] // (size + T + T * k + H * p)
    chain = chain_work(settings, state[: size * lanes], constants)
    after_chain, after_ends, after_a_star = size * lanes, (size + T) * lanes, (size + T + T * k) * lanes
    ends = state[after_chain:after_ends].reshape((T, lanes))
    a_star = state[after_ends:after_a_star].reshape((T, k, lanes))
    heads = state[after_a_star:].reshape((H, p, lanes))
    return Replay(chain, chain.network, ends, a_star, heads, np.empty(lanes, np.int64))


@kernel
def choose_tasks(settings, stream, work):  # type: ignore[no-untyped-def]
    """Draw the task of each lane's step, and let the chain have the second layers a* and a of this task."""
    chain, chosen = work.chain, work.chosen
    for lane in range(chosen.shape[0]):
        task = task_of(work.ends[:, lane], stream.step[lane], stream.seed[lane], stream.key[lane])
        chosen[lane] = task
        for r in range(settings.k):
            chain.constants.a_star[r, lane] = work.a_star[task, r, lane]
        for i in range(settings.p):
            # there is a head of each task, or one of all
            chain.a[i, lane] = work.heads[min(task, settings.heads - 1), i, lane]


@kernel
def replay_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step of the chain in each lane, with the second layers of its task; the head that it trained is kept."""
    chain, chosen, draws = work.chain, work.chosen, settings.tasks > 0
    if draws:
        choose_tasks(settings, stream, work)
    chain_step(settings, functions, stream, chain, broken)
    if draws:
        for lane in range(chosen.shape[0]):
            for i in range(settings.p):
                work.heads[min(chosen[lane], settings.heads - 1), i, lane] = chain.a[i, lane]
