"""A plugin for tests: an activation with a number from another file, and a dynamics whose M is the activation."""

import constants
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics import DYNAMICS, ONE_PASS, OverlapDynamics
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation
from sweeplib.networks.problem import Problem


def value(field):
    return constants.SCALE * field


def derivative(field):
    return constants.SCALE


class ReadOff(OverlapDynamics):
    """M is the activation's value at the recording time."""

    name = "read_off"
    label = "Read off"
    reads = ONE_PASS
    replicas_at_once = 64

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Advance to a recording time."""
        self.time = self.replicas.times[:, to]
        self.M[:, 0, 0] = [ACTIVATIONS[self.replicas.activation].value(time) for time in self.time]

    @property
    def exit_steps(self) -> Array:
        """Return no exits."""
        return np.full((len(self.replicas), len(self.replicas.thresholds)), np.nan)

    @property
    def end_steps(self) -> Array:
        """Return the last step."""
        return np.rint(self.time / self.replicas.step_time)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return the step length of SGD."""
        return time / problem.step_time()


ACTIVATIONS.register("scaled", Activation("scaled", r"c\lambda", value, derivative, 1))
DYNAMICS.register("read_off", ReadOff)
