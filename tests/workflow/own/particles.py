"""A plugin for tests: particles that relax to the teacher, with a state, a view and a diagnostic of their own."""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from sweeplib.dynamics import DYNAMICS, ONE_PASS, Dynamics
from sweeplib.dynamics.dynamics import Array, Diagnostic, NumericalOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.problem import Problem
from sweeplib.views import ParticleView, View


class CloudOptions(NumericalOptions):
    """How many particles there are."""

    particles: int = Field(default=3, ge=1)


@dataclass(frozen=True, eq=False)
class CloudView(ParticleView):
    """Particles with their ages (n, N)."""

    age: Array


class Cloud(Dynamics):
    """N particles m (n, N, k), q (n, N) of the start's law, N an option, whatever p; m goes to that of the teacher."""

    name = "cloud"
    label = "Cloud of particles"
    view = CloudView
    reads = ONE_PASS
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
        """Go to a recording time."""
        past = self.replicas.times[:, to] - self._end
        ones = np.einsum("nrr->nr", self.replicas.P)[:, None, :]
        self._m = ones + (self._m - ones) * np.exp(-past)[:, None, None]
        self._end = self.replicas.times[:, to]

    def look(self) -> list[tuple[Array, View]]:
        """The particles, all of one weight and age."""
        replicas, (count, N) = self.replicas, self._q.shape
        weight, age = np.full((count, N), 1.0 / N), np.repeat(self._end[:, None], N, axis=1)
        view = CloudView(
            self._m, self._q, np.ones((count, N)), weight, replicas.P, replicas.a_star, replicas.Delta, age
        )
        return [(np.ones(count), view)]

    @classmethod
    def sizes(cls, problem: Problem, options: NumericalOptions) -> dict[str, int]:
        """N is the option."""
        assert isinstance(options, CloudOptions)
        return super().sizes(problem, options) | {"particle": options.particles}

    @classmethod
    def diagnostics(cls, problem, options, observables):
        """The largest overlap of each particle."""
        return {"largest_m": Diagnostic(("particle",), {"long_name": "largest overlap of a particle", "units": "1"})}

    def diagnosed(self) -> dict[str, Array]:
        """The largest overlap of each particle now."""
        return {"largest_m": self._m.max(axis=2)}

    @property
    def exit_steps(self) -> Array:
        """None."""
        return np.full((len(self.replicas), len(self.replicas.thresholds)), np.nan)

    @property
    def end_steps(self) -> Array:
        """The last step."""
        return np.rint(self._end / self.replicas.step_time)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """As time goes by."""
        return 1.0 + time


DYNAMICS.register("cloud", Cloud)
