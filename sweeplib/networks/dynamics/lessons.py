"""Lessons: the tasks of replicas that learn several, one after the other.

A task is a second layer of the teacher. In a phase of a run one task is the present one; steps may also repeat others.
A head is a second layer of the student: one for each of the T tasks, or one that all share.
"""

from dataclasses import dataclass

import numpy as np

from sweeplib.engine.base.arrays import Array


@dataclass(frozen=True, eq=False)
class Lessons:
    """The tasks of n replicas, and where they are in them.

    a_star (n, T, k) : second layers of the teacher.
    order : the task of each phase.
    heads (n, T, p) : second layers of the student at the start of the present phase; (n, 1, p) if tasks share one.
    shares (n, phases, T) : shares of the tasks in the steps of each phase.
    replays : whether steps may be of other tasks than the present one.
    phase : the number of the present phase, from 0.
    """

    a_star: Array
    order: tuple[int, ...]
    heads: Array
    shares: Array
    replays: bool
    phase: int = 0

    @property
    def head(self) -> int:
        """The number of the head of the present task."""
        return min(self.order[self.phase], self.heads.shape[1] - 1)

    def layers(self, a: Array, heads: Array | None = None) -> tuple[Array, Array]:
        """The second layers (n, T, p) of the student and (n, T, k) of the teacher for each task now.

        a (n, p) : the head of the present task now. heads : all heads now; by default those at the start of the phase.
        """
        heads = (self.heads if heads is None else heads).copy()
        heads[:, self.head] = a
        return np.broadcast_to(heads, (*self.a_star.shape[:2], heads.shape[2])), self.a_star
