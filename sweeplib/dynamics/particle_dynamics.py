"""Deterministic dynamics of p particles, integrated with error control: the base of the mean-field limits.

A particle is a student unit with coordinates u along the teacher's span, or in all of space, and a squared norm q of
the rest. `kernels/particle_flow.py` has the equations, `maths/particles` the law of the input. A step costs p times the
number of nodes of that law, and no p × p array.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.dynamics.dynamics import ONE_PASS, Array, Diagnostic, NumericalOptions
from sweeplib.dynamics.integrated import IntegratedDynamics, IntegrationOptions
from sweeplib.dynamics.replicas import Replicas
from sweeplib.errors import InputError, SweeplibError
from sweeplib.kernels.particle_flow import LABEL_NOISE, NO_NOISE, WHOLE_NOISE, Flow, pack, pointers, room, unpack
from sweeplib.kernels.schedules import rates
from sweeplib.maths.activations import activation
from sweeplib.maths.activations.activation import kink
from sweeplib.maths.particles import rules
from sweeplib.maths.particles.inputs import Accuracy, Label, accuracy, count_of_fields, inputs, parity_of, with_constant
from sweeplib.maths.particles.self_terms import self_rule
from sweeplib.maths.particles.smoothing import smoothing
from sweeplib.numerics.compiled import OneSignature
from sweeplib.numerics.integrators.dop853 import Equations
from sweeplib.numerics.integrators.integration import Integration
from sweeplib.problem import DATA, OFFSET_FIELDS, Problem
from sweeplib.problem.targets import target
from sweeplib.views import NetworkView, View

NOISES = {"none": NO_NOISE, "labels": LABEL_NOISE, "whole": WHOLE_NOISE}
DEFAULT_RTOL, LARGEST_DEFAULT_RTOL = 1e-8, 1e-3
WORK_A_LOOK = 2e8
"""Nominal operations after which the clock is read."""


class ParticleOptions(IntegrationOptions):
    """Options of the integration of particles.

    rtol : relative tolerance; by default 1e-8, or the error of the drifts at the start if that is larger.
    atol : absolute tolerance.
    max_steps : number of steps after which a run has failed.
    """

    atol: float = Field(default=1e-10, ge=1e-300, le=1e-2)


class NoiseOptions(ParticleOptions):
    """Options of the integration, and of the equations.

    noise : the part of the noise of SGD, of order γ/p, that the norms feel: `none`, that of the `labels`, or `whole`.
    """

    noise: Literal["none", "labels", "whole"] = "none"


class Start:
    """A replica's particles at the start, u (κ, p) and q (p,), and its teacher: λ* = L* g, L* (k, κ).

    D : dimension of the rest of the input, which may be infinite; 0 if there is none.
    """

    def __init__(self, u: Array, q: Array, L_star: Array, D: float) -> None:
        self.u, self.q, self.L_star, self.D = np.ascontiguousarray(u), q, np.ascontiguousarray(L_star), D


class ParticleDynamics(IntegratedDynamics):
    """Replicas of the particles. Subclasses define `start_of`."""

    replicas_at_once = 16
    view: ClassVar[type[View]] = NetworkView
    reads = (ONE_PASS - {"Delta"}) | {"schedule", "data", "contrast"} | OFFSET_FIELDS
    unaffected_by = frozenset({"times", "thresholds"})
    Options: ClassVar[type[ParticleOptions]] = NoiseOptions
    options: ParticleOptions

    def __init__(self, replicas: Replicas, options: ParticleOptions) -> None:
        super().__init__(replicas, options)
        count = len(replicas)
        self._trained = bool((replicas.second_layer_rate > 0).any())
        self._starts = [self.start_of(i) for i in range(count)]
        self._coordinates = [self._at_start(i) for i in range(count)]
        self._flows = [self._flow(i, finer=False) for i in range(count)]
        self._finer = [self._flow(i, finer=True) for i in range(count)]
        self._rooms = [room(replicas.p, len(self._coordinates[i]), self._flows[i]) for i in range(count)]
        self._solutions = [self._solution(i) for i in range(count)]
        self._error = np.full(count, np.nan)

    @abstractmethod
    def start_of(self, i: int) -> Start:
        """The start of replica i."""

    def _at_start(self, i: int) -> Array:
        """The coordinates u of replica i at the start, with the offsets as the last if there are any."""
        given, u = self.replicas, self._starts[i].u
        return np.vstack([u, given.starts.offsets(i, given.p)]) if given.has_offsets else u

    def _flow(self, i: int, *, finer: bool) -> Flow:
        """The constants of replica i, by finer rules to estimate the error."""
        given, start = self.replicas, self._starts[i]
        noise = self.options.noise if isinstance(self.options, NoiseOptions) else "none"
        student = activation(given.activation)
        law = DATA[given.data]
        label = _label(given.data, given.target, given.teacher_activation)
        assert law.classes is not None  # by `check`
        classes = law.classes(float(given.contrast[i]))
        fine = accuracy(given.activation, label, len(start.u), start.D, whole=noise == "whole", finer=finer)
        parity = 0 if given.has_offsets else parity_of(given.activation)
        nodes = inputs(start.L_star, start.D, self._labels(i), classes, parity, fine)
        scheduled, xi, _ = rates(given.schedule)
        return Flow(
            given.spherical,
            self._trained,
            start.D > 0,
            given.has_offsets,
            NOISES[noise],
            float(given.gamma[i] / (given.p * given.batch_size)),
            float(given.Delta[i]),
            float(given.second_layer_rate[i]),
            float(given.offset_rate[i]),
            np.ascontiguousarray(given.a[i]),
            with_constant(nodes) if given.has_offsets else nodes,
            smoothing(student, start.D, fine.omega),
            self_rule(student, classes, offsets=given.has_offsets, finer=finer),
            _nodes(start.D, fine),
            scheduled,
            xi,
            float(given.times[i, -1]),
        )

    def _labels(self, i: int) -> Callable[[Array], Array]:
        """The function of g (κ, n) that returns f* (n,)."""
        given, L_star, a_star = self.replicas, self._starts[i].L_star, self.replicas.a_star[i]
        if not given.k:
            return lambda g: np.zeros(g.shape[1])
        rule = _compiled(target(given.target).labels(given.teacher_activation))

        def labels(g: Array) -> Array:
            out = np.empty(g.shape[1])
            rule(np.ascontiguousarray(L_star @ g), np.repeat(a_star[:, None], g.shape[1], axis=1), out)
            return out

        return labels

    def _solution(self, i: int) -> Integration:
        given, flow, start = self.replicas, self._flows[i], self._starts[i]
        equations = Equations(*pointers(), flow, self._rooms[i])
        state = pack(self._coordinates[i], start.q, given.a[i], flow)[None]
        level = _compiled(_risk)(equations, state[0])
        targets = (1.0 - given.thresholds)[None] * level
        ends, longest = np.ascontiguousarray(given.times[i : i + 1, -1]), self.longest_step
        rtol = self.options.rtol or np.clip(self._drift_error(i, state[0]), DEFAULT_RTOL, LARGEST_DEFAULT_RTOL)
        steps = max(1, int(WORK_A_LOOK / (12.0 * _operations(given.p, flow))))
        return Integration(
            equations,
            state,
            ends,
            rtol=np.full(1, rtol),
            atol=np.full(1, self.options.atol),
            targets=targets,
            max_steps=self.options.max_steps,
            longest=None if longest is None else longest[i : i + 1],
            steps_a_round=steps,
        )

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica to recording time number `to`."""

        def late() -> bool:
            return self.clock() > deadline

        until, only = self.replicas.times[:, to], np.zeros(1, dtype=np.intp)
        for i in np.flatnonzero(self.running).tolist():
            found = self._solutions[i]
            found.advance(only, until[i : i + 1].copy(), stops=self.replicas.stop_at_exit, late=late)
            if found.spent[0] and found.times[0] < until[i] and not found.failed[0]:
                at = f"it is at time {found.times[0]:.6g}"
                raise SweeplibError(f"{self.name} needs more than max_steps steps; {at}")
        self.diverged = np.array([found.failed[0] for found in self._solutions])
        behind = self.end_time < until
        self.timed_out |= self.running & behind & ~self.diverged & ~self.stopped_at_exit()
        self.running &= ~behind & ~self.diverged

    def _particles(self, i: int) -> tuple[Array, Array, Array]:
        """The coordinates u (κ, p), with offsets as one more, q (p,) and a (p,) of replica i now."""
        u, q, a = np.empty_like(self._coordinates[i]), np.empty(self.replicas.p), np.empty(self.replicas.p)
        _compiled(_unpack)(self._solutions[i].states[0], self._flows[i], u, q, a)
        return u, q, a

    def look(self) -> list[tuple[Array, View]]:
        """The particles now, with weight one."""
        given, count = self.replicas, len(self.replicas)
        m, q, a = np.empty((count, given.p, given.k)), np.empty((count, given.p)), np.empty((count, given.p))
        risk, b = np.empty(count), np.zeros((count, given.p)) if given.has_offsets else None
        for i, start in enumerate(self._starts):
            u, rest, a[i] = self._particles(i)
            if b is not None:
                u, b[i] = u[:-1], u[-1]
            m[i] = (start.L_star @ u).T
            q[i] = np.einsum("ri,ri->i", u, u) + rest
            equations = Equations(*pointers(), self._flows[i], self._rooms[i])
            risk[i] = _compiled(_risk)(equations, self._solutions[i].states[0])
        weight = np.full((count, given.p), 1.0 / given.p)
        return [(np.ones(count), NetworkView(m, q, a, weight, given.P, given.a_star, given.Delta, risk, b=b))]

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`drift_error`, of the rules of integration over inputs."""
        rule = {"comment": "largest at a recording time, over the largest drift; estimated by a finer rule"}
        return {"drift_error": Diagnostic((), {"long_name": "error of the drifts", "units": "1"} | rule, False)}

    def diagnosed(self) -> Mapping[str, Array]:
        """The largest error of the drifts so far."""
        for i, found in enumerate(self._solutions):
            self._error[i] = np.fmax(self._error[i], self._drift_error(i, found.states[0]))
        return {"drift_error": self._error}

    def _drift_error(self, i: int, state: Array) -> float:
        """The error of the drifts of a state of replica i, over the largest drift, by the finer rules."""
        coarse, fine = (self._slope(i, flow, state) for flow in (self._flows[i], self._finer[i]))
        return float(np.abs(fine - coarse).max() / max(np.abs(fine).max(), np.finfo(float).tiny))

    def _slope(self, i: int, flow: Flow, state: Array) -> Array:
        """The time derivative of a state of replica i."""
        out = np.empty_like(state)
        equations = Equations(*pointers(), flow, room(self.replicas.p, len(self._coordinates[i]), flow))
        _compiled(_slope)(equations, state, out)
        return out

    @property
    def passages(self) -> Array:
        """ODE times at which the targets were first reached (n, thresholds), inf where they were not."""
        return np.array([found.passages[0] for found in self._solutions])

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return np.array([found.times[0] for found in self._solutions])

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """The number of right-hand sides evaluated so far (n,)."""
        return np.array([found.evaluations[0] for found in self._solutions])

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError for inputs that are no mixture of isotropic Gaussians."""
        if DATA[problem.data].classes is None:
            known = [name for name in DATA if DATA[name].classes is not None]
            raise InputError("no mixture of isotropic Gaussians", key="data", value=problem.data, choices=known)

    @classmethod
    def reads_of(cls, problem: Problem, options: NumericalOptions) -> frozenset[str]:
        """The fields that it depends on; with noise also those of the noise."""
        noisy = isinstance(options, NoiseOptions) and options.noise != "none"
        return super().reads_of(problem, options) | ({"Delta", "batch_size"} if noisy else set())

    @classmethod
    def dimensions(cls, problem: Problem) -> int:
        """The number κ of coordinates u."""
        return problem.k

    @classmethod
    def work(cls, problem: Problem, time: float) -> float:
        """Right-hand sides, twelve a step, five steps a unit of time, of p units at all nodes of the input."""
        dimensions = cls.dimensions(problem)
        fine = accuracy(
            problem.activation,
            _label(problem.data, problem.target, problem.teacher),
            dimensions,
            problem.d - dimensions,
        )
        nodes = count_of_fields(dimensions, fine) * fine.rho * (1 if fine.even else fine.omega)
        return (60.0 * time + 120.0) * problem.p * nodes * 20.0


def _label(data: str, name: str, teacher_activation: str) -> Label:
    """The degree and the kinks of the label of a target, or of a data law without a teacher."""
    if not DATA[data].teacher:
        return Label(0, kinked=False)
    found = target(name)
    own = {teacher_activation} if "teacher_activation" in found.reads else set()
    kinked = any(kink(activation(part)) != 0.0 for part in own.union(found.activations))
    form = activation(teacher_activation).hermite if name == "committee" else None
    return Label(None if form is None else len(form) - 1, kinked)


def _nodes(D: float, fine: Accuracy) -> Array:
    """Nodes and weights (2, n) of ω, which for D → ∞ are Gauss's for polynomials: few equally spaced ones are wrong."""
    return rules.coordinates(D, fine.omega) if 0.0 < D < math.inf else rules.line(fine.omega, polynomial=fine.even)


def _operations(p: int, flow: Flow) -> float:
    """Nominal operations of a right-hand side."""
    nodes = max(1, flow.smoothing.omega.shape[1], flow.omega.shape[1] if flow.noise_kind == WHOLE_NOISE else 1)
    return 20.0 * p * (len(flow.inputs.weight) * nodes + flow.own.line.shape[1])


@cache
def _compiled(template: Callable[..., Any]) -> OneSignature:
    return OneSignature(template)


def _slope(equations, state, out):  # type: ignore[no-untyped-def]
    equations.slope_of(0, state, equations.systems, equations.work, out)


def _risk(equations, state):  # type: ignore[no-untyped-def]
    return equations.level_of(0, state, equations.systems, equations.work)


def _unpack(state, flow, u, q, a):  # type: ignore[no-untyped-def]
    unpack(state, flow, u, q, a)
