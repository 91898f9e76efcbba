"""A plugin of the benchmarks: a dynamics whose numbers cost nothing, so that all that a sweep takes is overhead."""

from typing import ClassVar

import numpy as np

from sweeplib.networks.dynamics.dynamics import DYNAMICS, ONE_PASS, Array, Dynamics, NumericalOptions
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import Problem
from sweeplib.networks.views import NetworkView, View


class Trivial(Dynamics):
    """Replicas whose risk is their learning rate at all times, and which exit after one step."""

    name = "trivial"
    label = "Trivial"
    view: ClassVar[type[View]] = NetworkView
    reads = ONE_PASS
    replicas_at_once = 4096

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self._end = np.zeros(len(replicas))
        self._units = np.zeros((len(replicas), 1, 1))

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Be at a recording time."""
        self._end = self.replicas.times[:, to]

    def look(self) -> list[tuple[Array, View]]:
        """One view, of weight one."""
        units, given = self._units, self.replicas
        view = NetworkView(units, units[:, 0], units[:, 0], units[:, 0], units, given.a_star, given.Delta, given.gamma)
        return [(np.ones(len(given)), view)]

    @property
    def exit_steps(self) -> Array:
        """One step for each threshold."""
        return np.ones((len(self.replicas), len(self.replicas.thresholds)))

    @property
    def end_steps(self) -> Array:
        """The last step."""
        return self._end / self.replicas.step_time

    def reached(self, to: int) -> np.ndarray:
        """All replicas."""
        return np.ones(len(self.replicas), dtype=bool)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The steps of SGD."""
        return time / problem.step_time()


DYNAMICS.register("trivial", Trivial)
