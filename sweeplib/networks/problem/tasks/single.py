"""A single task: the target, learned all along."""

from typing import TYPE_CHECKING

from sweeplib.networks.problem.tasks.tasks import TASKS, Course, Tasks
from sweeplib.networks.problem.teacher_layers import teacher_layer

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


def course(problem: "Problem") -> Course:
    """Return the course of the one task, which has all rows of the teacher."""
    return Course((teacher_layer(problem.a_star, problem.k),))


TASKS.add(Tasks("single", course, in_turn=False))
