"""A single task: the target, learned all along."""

from typing import TYPE_CHECKING

from sweeplib.networks.problem.tasks.tasks import TASKS, Course, Tasks

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


def course(problem: "Problem") -> Course:
    """One task, of all rows."""
    a_star = problem.a_star if isinstance(problem.a_star, tuple) else (problem.a_star,) * problem.k
    return Course((a_star,))


TASKS.add(Tasks("single", course, in_turn=False))
