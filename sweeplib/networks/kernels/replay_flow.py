"""The right-hand side of the overlaps' ODE with samples of several tasks: a mean over tasks by shares.

The state is that of `overlap_flow` with the second layers of all tasks, the heads, in place of one, if there are
several. `mixture` are the constants of n systems, i is the number of one, `work` its work arrays.
"""

from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.overlap_flow import (
    Systems,
    Work,
    chosen_systems,
    fill_slope,
    work_space,
)
from sweeplib.networks.numerics.compiled import inlined
from sweeplib.networks.numerics.integrators.dop853 import Equations


class Mixture(NamedTuple):
    """The constants of n systems whose slope is a mean over T tasks.

    systems : those of all tasks, (n T,): the tasks of the first of the n, then of the second.
    shares (n, T) : of tasks in the mean. heads : number of second layers, one or T.
    """

    systems: Systems
    shares: Array
    heads: int


class MixtureWork(NamedTuple):
    """Work arrays: of one system, and a state (size,) and a slope (size,) of it."""

    task_work: Work
    state: Array
    slope: Array


of_task = inlined(fill_slope)


def fill_mixture(i: int, state: Array, mixture: Mixture, work: MixtureWork, slope: Array) -> None:
    """Fill `slope` (size,) at `state` for system i: the mean of its tasks' slopes, weighed by their shares.

    With several heads each task reads and trains its own. The last variable is the time, of slope 1, with a schedule,
    and B with AdaGrad-norm.
    """
    state_of_task, count, scheduled = work.state, mixture.shares.shape[1], mixture.systems.scheduled
    last = 1 if scheduled or mixture.systems.adapts else 0
    p = len(work.task_work.a) if mixture.systems.trained else 0
    overlaps = len(state_of_task) - p - last
    slope[:] = 0.0
    for task in range(count):
        # `head` is where the task's second layer begins
        share, head = mixture.shares[i, task], overlaps + p * min(task, mixture.heads - 1)
        if share == 0.0:
            continue
        for v in range(overlaps):
            state_of_task[v] = state[v]
        for j in range(p):
            state_of_task[overlaps + j] = state[head + j]
        if last:
            state_of_task[overlaps + p] = state[len(state) - 1]
        of_task(i * count + task, state_of_task, mixture.systems, work.task_work, work.slope)
        for v in range(overlaps):
            slope[v] += share * work.slope[v]
        for j in range(p):
            slope[head + j] += share * work.slope[overlaps + j]
        if last:
            slope[len(slope) - 1] += share * work.slope[overlaps + p]
    if scheduled:
        slope[len(slope) - 1] = 1.0


def mixture_equations(systems: Systems, a: Array, a_star: Array, shares: Array, heads: int, size: int) -> Equations:
    """The equations of n systems with second layers a (n, T, p), a* (n, T, k) and shares (n, T) of T tasks.

    systems : the n systems, whose own layers are not read. heads : number of second layers of the student, one or T.
    size : that of the flat state of a system with one task.
    """
    (n, T, p), k = a.shape, a_star.shape[2]
    layers: dict[str, Any] = {"a": a.reshape(n * T, p).copy(), "a_star": a_star.reshape(n * T, k).copy()}
    tasks = chosen_systems(systems, np.repeat(np.arange(n), T))._replace(**layers)
    work = MixtureWork(work_space(p, k), np.empty(size), np.empty(size))
    return Equations(fill_mixture, Mixture(tasks, np.ascontiguousarray(shares), heads), work)


def with_heads(states: Array, at: slice, heads: Array) -> Array:
    """Flat states (n, size) with the second layers `heads` (n, H, p) in place of the single ones at the slice `at`."""
    return np.concatenate([states[:, : at.start], heads.reshape(len(heads), -1), states[:, at.stop :]], axis=1)
