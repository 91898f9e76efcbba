"""Tasks in turn: T teachers of k/T rows each, learned one after the other (arXiv 2107.04384, 2409.18061).

Task τ is f*_τ = (T/k) Σ a*_r σ*(λ*_r), a sum over its rows. Row j of a task has the cosine v with row j of each other
task; rows are orthogonal otherwise. A phase is a time in which one task is learned; tasks may come again.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.errors import InputError
from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.tasks.single import course as course_of_one
from sweeplib.networks.problem.tasks.tasks import TASKS, Course, Tasks

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

Time = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1)]
"""The number of a task, from 1 on."""


class TurnParameters(Parameters):
    """When, what, and how near the tasks are."""

    switch_time: Time | tuple[Time, ...] = parameter(..., "time of the switch of tasks", r"t_{\mathrm{s}}", 2.0)
    """ODE time at which the second task takes the place of the first, in the course `in_turn`; with more tasks their
    times in increasing order. The step nearest to it is the first of the task."""
    task_order: tuple[Number, ...] | None = parameter(None, "order of the tasks", "", [2, 1])
    """numbers of the tasks in the order in which they are learned, one more than times of switches; by default each
    task once: 1, 2, ... The k rows of the teacher are shared out equally among the tasks, in their order."""
    task_overlap: Annotated[float, Field(ge=-1, le=1)] = parameter(0.0, "overlap of the tasks", "v", 0.5)
    """cosine v of a row of the teacher of a task and the same row of the teacher of another task, for teachers with
    orthogonal rows otherwise; 0 with another `teacher_start`."""
    heads: Literal["shared", "separate"] = parameter("shared", "second layers of the student", "", "separate")
    """`separate`: each task has a second layer of the student for itself, `a` at the start, and trained in steps of the
    task alone."""
    replay: Annotated[float, Field(ge=0, lt=1)] = parameter(0.0, "share of replayed samples", "r", 0.1)
    """share r of the samples that are of tasks of earlier phases, drawn at random for each sample of each step, each of
    these tasks as often."""


def order_of(problem: "Problem") -> tuple[int, ...]:
    """Return the number of the task, from 1 on, in each phase."""
    return problem.task_order or tuple(range(1, len(_switches(problem)) + 2))


def _switches(problem: "Problem") -> tuple[float, ...]:
    """Return the times of the switches, also if the parameter is a single time."""
    times = problem.switch_time
    return times if isinstance(times, tuple) else (times,)


def course(problem: "Problem") -> Course:
    """Return the course of the tasks: a* of their own rows times T, as each is a mean over 1/T of the k rows."""
    count, (a_star,) = max(order_of(problem)), course_of_one(problem).a_star
    task_of_row = np.arange(problem.k) * count // problem.k
    layers = (np.where(task_of_row == task, count * np.array(a_star), 0.0) for task in range(count))
    tasks, order = tuple(tuple(layer.tolist()) for layer in layers), tuple(task - 1 for task in order_of(problem))
    return Course(tasks, order, _switches(problem), problem.heads == "separate", problem.replay)


def overlaps(problem: "Problem") -> NDArray[np.float64] | None:
    """Return P (k, k) of the teacher's rows, v for the same row of two tasks; None for orthogonal rows."""
    if problem.task_overlap == 0.0:
        return None
    rows = problem.k // max(order_of(problem))
    same = np.arange(problem.k)[:, None] % rows == np.arange(problem.k) % rows
    return np.where(np.eye(problem.k, dtype=bool), 1.0, np.where(same, problem.task_overlap, 0.0))


def check(problem: "Problem") -> None:
    """Raise InputError unless times increase, the tasks share out the rows, and rows can have the cosine.

    The cosine of T vectors with each other is at least −1/(T − 1).
    """
    times, order, v = _switches(problem), order_of(problem), problem.task_overlap
    if any(later <= earlier for earlier, later in pairwise(times)) or not times:
        raise InputError("no order of tasks", key="switch_time", value=list(times), expected="increasing times")
    if len(order) != len(times) + 1 or len(set(order)) != max(order):
        expected = f"{len(times) + 1} numbers, one more than switch_time has, each of 1, 2, ... among them"
        raise InputError("no order of tasks", key="task_order", value=list(order), expected=expected)
    count, least = max(order), -1.0 / max(max(order) - 1, 1)
    if problem.k % count:
        expected = f"a multiple of {count}, the number of tasks, whose teachers have equally many rows"
        raise InputError("rows that cannot be shared out", key="k", value=problem.k, expected=expected)
    if v < least - 1e-12:
        expected = f"at least {least:.6g} for {count} tasks"
        raise InputError("no such rows", key="task_overlap", value=v, expected=expected)


TASKS.add(Tasks("in_turn", course, overlaps, parameters=TurnParameters, check=check))
