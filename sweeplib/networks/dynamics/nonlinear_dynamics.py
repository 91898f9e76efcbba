"""Nonlinear dynamics: units in the field of a measure of many others (arXiv 1804.06561, propagation of chaos).

The p units start from SGD's own weights and move as those of `mean_field`, but in the field F of N ≥ p particles, of
which they are p and the others are drawn from the same law. For N → ∞ the units are independent given the teacher, and
F is that of the mean field ρ_t, not of their own empirical measure. The units of a student of width p stay near these,
at a distance of order p^(−1/2): the noise of their own F. A finite N takes away the fraction p/N of its variance.
"""

import dataclasses

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import DYNAMICS, NumericalOptions
from sweeplib.networks.dynamics.mean_field import MeanField
from sweeplib.networks.dynamics.particle_dynamics import NoiseOptions
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import Limit, Problem
from sweeplib.networks.views import NetworkView, View

PARTICLES = 1024
"""The number N of particles without the option `particles`."""


class NonlinearOptions(NoiseOptions):
    """Options of the integration, of the equations, and of the measure.

    particles : number N of particles of the measure, the p units among them.
    """

    particles: int = Field(default=PARTICLES, ge=1, le=1_000_000)


class NonlinearDynamics(MeanField):
    """The p units and N − p others at finite d; its risk is that of the measure of all."""

    name = "nonlinear_dynamics"
    label = "nonlinear dynamics"
    limits = (
        *MeanField.limits,
        Limit(
            "a",
            "no law for the other particles",
            "one number",
            where=lambda problem: isinstance(problem.resolved("a"), str | tuple),
        ),
    )
    Options = NonlinearOptions
    replicas_at_once = 1

    def __init__(self, replicas: Replicas, options: NonlinearOptions) -> None:
        # the p units are the first of the N particles; all have one second layer, a number (`limits`)
        self._units, count = replicas.p, options.particles
        # replicas of N units, in place of p
        among = dataclasses.replace(
            replicas,
            # T = γ/(p d) is that of the units: with N in place of p, γ is N/p times as large
            parameters={**replicas.parameters, "gamma": replicas.gamma * (count / replicas.p)},
            a=np.repeat(replicas.a[:, :1], count, axis=1),
        )
        super().__init__(among, options)

    def units_at_start(self, i: int) -> tuple[Array, Array]:
        """Overlaps m (N, k) and squared norms q (N,) of replica i: the p units first, then N − p that are drawn."""
        (m, q), (other_m, other_q) = (self.replicas.particles(i, count) for count in (None, self.replicas.p))
        return np.concatenate([m, other_m[len(m) :]]), np.concatenate([q, other_q[len(q) :]])

    def offsets_at_start(self, i: int) -> Array:
        """Offsets b (N,): those of the units first."""
        units, others = (self.replicas.starts.offsets(i, count) for count in (self._units, self.replicas.p))
        return np.concatenate([units, others[self._units :]])

    def look(self) -> list[tuple[Array, View]]:
        """Return the view of the p units now, with the risk of the measure of all N; its weight is one."""
        (weight, all_of_them), p = super().look()[0], self._units
        assert isinstance(all_of_them, NetworkView)
        units = {name: getattr(all_of_them, name)[:, :p] for name in ("m", "q", "a")}
        units |= {} if all_of_them.b is None else {"b": all_of_them.b[:, :p]}
        view = dataclasses.replace(all_of_them, **units, weight=np.full((len(weight), p), 1.0 / p))
        return [(weight, view)]

    @classmethod
    def step_time(cls, problem: Problem, options: NumericalOptions) -> float:
        """The ODE time γ/(p d) of a step of SGD of the p units, rounded as that of N units at N/p times the γ."""
        assert isinstance(options, NonlinearOptions)
        count = options.particles
        return problem.gamma * (count / problem.p) / (count * problem.d)

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError too for fewer particles than units."""
        super().check(problem, options)
        assert isinstance(options, NonlinearOptions)
        if options.particles < problem.p:
            expected = f"at least the p = {problem.p} units"
            raise InputError("too few particles", key="particles", value=options.particles, expected=expected)

    @classmethod
    def work(cls, problem: Problem, time: float) -> float:
        """The work of the mean field for the default number of particles; the options are not known here."""
        return super().work(dataclasses.replace(problem, p=max(problem.p, PARTICLES), a=1.0), time)


DYNAMICS.register("nonlinear_dynamics", NonlinearDynamics)
