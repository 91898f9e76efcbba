"""Tasks: a course of tasks that a student learns in turn. Each is a committee of some rows of the teacher."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


class Course(NamedTuple):
    """What a student learns, and when.

    a_star : second layers (k,) of the teacher, one a task: zero for the rows that are not of the task.
    order : the task of each phase of the run.
    switches : the ODE times, in increasing order, at which a phase ends and the next begins: one less than phases.
    own_heads : whether each task has a second layer of the student, which only steps of the task train.
    replay : the share of samples that are of tasks of earlier phases, each of these as often.
    """

    a_star: tuple[tuple[float, ...], ...]
    order: tuple[int, ...] = (0,)
    switches: tuple[float, ...] = ()
    own_heads: bool = False
    replay: float = 0.0

    def shares(self, phase: int) -> NDArray[np.float64]:
        """Return the share (T,) of each task in the samples of a phase; tasks of earlier phases divide `replay`."""
        now, shares = self.order[phase], np.zeros(len(self.a_star))
        earlier = sorted(set(self.order[:phase]) - {now})
        shares[earlier] = self.replay / max(len(earlier), 1)
        shares[now] = 1.0 - (self.replay if earlier else 0.0)
        return shares


@dataclass(frozen=True)
class Tasks(Part):
    """A course of tasks.

    course : function (problem) that returns the `Course`.
    overlaps : function (problem) that returns the overlaps P (k, k) of the teacher's rows; None if the law
        `teacher_start` makes them.
    in_turn : whether there are several tasks.
    """

    name: str
    course: Callable[["Problem"], Course]
    overlaps: Callable[["Problem"], NDArray[np.float64] | None] = lambda problem: None
    in_turn: bool = True


TASKS: Registry[Tasks] = Registry("course of tasks", declare_parameters_of("tasks"))
