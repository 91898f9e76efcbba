"""A plugin for tests: particles that relax to the teacher, with their own state, view and diagnostic."""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics import DYNAMICS, Dynamics
from sweeplib.networks.dynamics.diagnostics import Diagnostic
from sweeplib.networks.dynamics.dynamics import NumericalOptions
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import Problem
from sweeplib.networks.views import ParticleView, View


class CloudOptions(NumericalOptions):
    """Number of particles."""

    particles: int = Field(default=3, ge=1)


@dataclass(frozen=True, eq=False)
class CloudView(ParticleView):
    """Particles with their ages (n, N)."""

    age: Array


class Cloud(Dynamics):
    """Return N particles m (n, N, k), q (n, N) from the start's law, N an option; m relaxes to that of the teacher."""

    name = "cloud"
    label = "Cloud of particles"
    view = CloudView
    reads = frozenset({"gamma", "p", "k", "d", "spherical", "start", "start_scale", "m0", "teacher_start"})
    replicas_at_once = 64
    stochastic = False
    Options = CloudOptions
    options: CloudOptions

    def __init__(self, replicas: Replicas, options: CloudOptions) -> None:
        super().__init__(replicas, options)
        starts = [replicas.particles(i, options.particles) for i in range(len(replicas))]
        self._m, self._q = (np.array(part) for part in zip(*starts, strict=True))
        self._end = np.zeros(len(replicas))

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Advance to a recording time."""
        past = self.replicas.times[:, to] - self._end
        ones = np.einsum("nrr->nr", self.replicas.P)[:, None, :]
        self._m = ones + (self._m - ones) * np.exp(-past)[:, None, None]
        self._end = self.replicas.times[:, to]

    def look(self) -> list[tuple[Array, View]]:
        """Return the particles, all with the same weight and age."""
        replicas, (count, N) = self.replicas, self._q.shape
        weight, age = np.full((count, N), 1.0 / N), np.repeat(self._end[:, None], N, axis=1)
        view = CloudView(
            self._m, self._q, np.ones((count, N)), weight, replicas.P, replicas.a_star, replicas.Delta, age
        )
        return [(np.ones(count), view)]

    @classmethod
    def sizes(cls, problem: Problem, options: NumericalOptions) -> dict[str, int]:
        """Return N from the options."""
        assert isinstance(options, CloudOptions)
        return super().sizes(problem, options) | {"student": options.particles}

    @classmethod
    def diagnostics(cls, problem, options, observables):
        """The largest overlap of each particle."""
        return {"largest_m": Diagnostic(("student",), {"long_name": "largest overlap of a particle", "units": "1"})}

    def diagnosed(self) -> dict[str, Array]:
        """Return the current largest overlap of each particle."""
        return {"largest_m": self._m.max(axis=2)}

    @property
    def exit_steps(self) -> Array:
        """Return no exits."""
        return np.full((len(self.replicas), len(self.replicas.thresholds)), np.nan)

    @property
    def end_steps(self) -> Array:
        """Return the last step."""
        return np.rint(self._end / self.replicas.step_time)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return a nominal work proportional to time."""
        return 1.0 + time


DYNAMICS.register("cloud", Cloud)
