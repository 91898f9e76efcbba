"""Deterministic dynamics of p particles, integrated with error control: the base of the mean-field limits.

A particle is a student unit with coordinates u along the teacher's span, or in all of space, and a squared norm q of
the rest. `networks/kernels/particle_flow.py` has the equations, `networks/maths/particles` the law of the input. A step
costs p times the number of nodes of that law, and no p × p array.

κ is the number of coordinates u, D the dimension of the rest of the input; g (κ,) are coordinates of the input, and ω
is the cosine between the rests of input and unit. `Levels` say how often each kind of nodes was made finer.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics.diagnostics import OF_RISK, Bound, Diagnostic, risk_bounds
from sweeplib.networks.dynamics.dynamics import DECAYS, OFFSETS, ONE_PASS, NumericalOptions
from sweeplib.networks.dynamics.integrated import IntegratedDynamics, IntegrationOptions
from sweeplib.networks.dynamics.particle_path import ParticlePath
from sweeplib.networks.dynamics.particle_rules import MOST_NODES, Form, Rules
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.particle_flow import LABEL_NOISE, NO_NOISE, WHOLE_NOISE, Flow, pack
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import bends_off_zero, kinks, lipschitz, misfits
from sweeplib.networks.maths.particles import rules
from sweeplib.networks.maths.particles.inputs import (
    COARSEST,
    Accuracy,
    Label,
    Levels,
    accuracy,
    count_of_fields,
    inputs,
    level_of_label,
    parity_of,
    with_constant,
)
from sweeplib.networks.maths.particles.self_terms import self_rule
from sweeplib.networks.maths.particles.smoothing import smoothing
from sweeplib.networks.numerics.python_calls import compiled
from sweeplib.networks.problem import DATA, TAILS, Limit, Problem
from sweeplib.networks.problem.combinations import NO_MIXTURE, mixtures
from sweeplib.networks.problem.targets import target
from sweeplib.networks.views import NetworkView, View

NOISES = {"none": NO_NOISE, "labels": LABEL_NOISE, "whole": WHOLE_NOISE}
"""The numbers by which kernels know the options `noise`."""


class ParticleOptions(IntegrationOptions):
    """Options of the integration of particles.

    rtol : relative tolerance; by default 1e-8, or the error of the drifts if that is larger.
    atol : absolute tolerance; more by a tenth of what rtol is above 1e-8 by default.
    max_steps : number of steps after which a run has failed.
    largest_drift_error : error of the drifts, relative to the largest drift, above which a run is inaccurate.
    """

    atol: float = Field(default=1e-10, ge=1e-300, le=1e-2)
    largest_drift_error: float = Field(default=1e-3, gt=0.0, le=1.0)


class NoiseOptions(ParticleOptions):
    """Options of the integration, and of the equations.

    noise : the part of the noise of SGD, of order γ/p, that the norms feel: `none`, that of the `labels`, or `whole`.
    """

    noise: Literal["none", "labels", "whole"] = "none"


class Start:
    """The particles of a replica at the start, and its teacher.

    u (κ, p), q (p,) : coordinates along the span, and squared norms of the rest.
    L_star (k, κ) : the teacher's fields are L* g, with the coordinates g of the input.
    D : dimension of the rest of the input, which may be infinite; 0 if there is none.
    """

    def __init__(self, u: Array, q: Array, L_star: Array, D: float) -> None:
        self.u, self.q, self.L_star, self.D = np.ascontiguousarray(u), q, np.ascontiguousarray(L_star), D


class ParticleDynamics(IntegratedDynamics):
    """Replicas of the particles, each with a `ParticlePath`. Subclasses define `start_of` and `dimensions`."""

    replicas_at_once = 16
    view: ClassVar[type[View]] = NetworkView
    counts_steps = False
    cost_seconds = (2e-11, 0.0, 0.0)
    reads = (ONE_PASS - {"Delta"}) | {"schedule", "data"} | OFFSETS | DECAYS
    undefined: ClassVar[tuple[tuple[str, str], ...]] = (
        ("repeats samples sampling", "a flow for small rates has the mean over all samples"),
        (" ".join(["noise_schedule", *sorted(TAILS)]), "the noise of labels leaves the mean of the gradient as it is"),
    )
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit("data", "no mixture of isotropic Gaussians", "", NO_MIXTURE, choices=mixtures),
    )
    unaffected_by = frozenset({"times", "thresholds"})
    Options: ClassVar[type[ParticleOptions]] = NoiseOptions
    options: ParticleOptions

    def __init__(self, replicas: Replicas, options: ParticleOptions) -> None:
        super().__init__(replicas, options)
        self._starts = [self.start_of(i) for i in range(len(replicas))]
        self._paths = [self._path(i) for i in range(len(replicas))]
        self._drift_error = np.full(len(replicas), np.nan)
        # of each path where it is now
        self._risks = [path.risk_now() for path in self._paths]

    @abstractmethod
    def start_of(self, i: int) -> Start:
        """The particles of replica i at the start, and its teacher."""

    def _at_start(self, i: int) -> Array:
        """The coordinates u of replica i at the start, with the offsets as the last if there are any."""
        u = self._starts[i].u
        return np.vstack([u, self.offsets_at_start(i)]) if self.replicas.has_offsets else u

    def offsets_at_start(self, i: int) -> Array:
        """The offsets b (p,) of replica i at the start."""
        return self.replicas.starts.offsets(i, self.replicas.p)

    def _path(self, i: int) -> ParticlePath:
        """The solution of replica i, at its start."""
        replicas, longest = self.replicas, self.longest_step
        coordinates, coarse = self._at_start(i), self._accuracy(i, COARSEST)
        start = self._starts[i]
        # nodes of g resolve the label from the beginning, all others become finer with the errors
        level = level_of_label(self._labels(i), len(start.u), start.D, coarse, MOST_NODES[coarse.rough])
        shape = replicas.p, len(coordinates), level
        rules = Rules(
            lambda levels: self._flow(i, levels),
            *shape,
            rough=coarse.rough,
            exact=coarse.exact,
            form=self._form_of(start.D),
        )
        return ParticlePath(
            rules,
            pack(coordinates, start.q, replicas.a[i], rules.rule.flow),
            replicas.times[i],
            replicas.thresholds,
            None if longest is None else float(longest[i]),
            stops=replicas.stop_at_exit,
            rtol=self.options.rtol,
            atol=self.options.atol,
            max_steps=self.options.max_steps,
            teacher=None if start.D else start.L_star,
        )

    def _form_of(self, D: float) -> Form:
        """How far the activation is off the form that rules take for it, which they do for D = ∞ alone."""
        student = activation(self.replicas.activation)
        return Form(*misfits(student), lipschitz(student)) if math.isinf(D) else Form()

    def _accuracy(self, i: int, levels: Levels) -> Accuracy:
        """How fine the rules of replica i are at these levels."""
        replicas, start = self.replicas, self._starts[i]
        label = _label_form(replicas.data, replicas.target, replicas.teacher_activation)
        whole = _noise_of(self.options) == "whole"
        of_law = replicas.activation, label, len(start.u), start.D
        return accuracy(*of_law, offsets=replicas.has_offsets, whole=whole, levels=levels)

    def _flow(self, i: int, levels: Levels) -> Flow:
        """The constants of the equations of replica i, with nodes of these levels."""
        replicas, start = self.replicas, self._starts[i]
        student, fine = activation(replicas.activation), self._accuracy(i, levels)
        law = DATA[replicas.data]
        assert law.classes is not None  # by `limits`: mixtures of isotropic Gaussians alone
        classes = law.classes(**replicas.law_of(i))
        # of units σ(λ + b) the means are neither even nor odd in g
        parity = 0 if replicas.has_offsets else parity_of(replicas.activation)
        nodes = inputs(start.L_star, start.D, self._labels(i), classes, parity, fine)
        scheduled, xi, *_ = rates(replicas.schedule)
        return Flow(
            replicas.spherical,
            self.replicas.trains_second_layer,
            start.D > 0,
            replicas.has_offsets,
            NOISES[_noise_of(self.options)],
            replicas.numbers_of(i),
            np.ascontiguousarray(replicas.a[i]),
            with_constant(nodes) if replicas.has_offsets else nodes,
            smoothing(student, start.D, fine.omega),
            self_rule(student, classes, fine.self_nodes, offsets=replicas.has_offsets),
            _nodes(start.D, fine),
            scheduled,
            xi,
            float(replicas.times[i, -1]),
        )

    def _labels(self, i: int) -> Callable[[Array], Array]:
        """The function that returns the labels f* (n,) of replica i at coordinates g (κ, n); zero without a teacher."""
        replicas, L_star, a_star = self.replicas, self._starts[i].L_star, self.replicas.a_star[i]
        if not replicas.k:
            return lambda g: np.zeros(g.shape[1])
        rule = compiled(target(replicas.target).labels(replicas.teacher_activation))

        def labels(g: Array) -> Array:
            """Return the labels (n,) of inputs with the coordinates g (κ, n); the teacher's fields are L* g."""
            out = np.empty(g.shape[1])
            rule(np.ascontiguousarray(L_star @ g), np.repeat(a_star[:, None], g.shape[1], axis=1), out)
            return out

        return labels

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica to recording time number `to`."""

        def late() -> bool:
            return self.clock() > deadline

        until = self.replicas.times[:, to]
        for i in np.flatnonzero(self.running).tolist():
            path = self._paths[i]
            path.advance(to, late)
            if path.spent and path.time < until[i] and not path.failed:
                at = f"it is at time {path.time:.6g}"
                raise SweeplibError(f"{self.name} needs more than max_steps steps; {at}")
            self._risks[i] = path.risk_now()
        self.diverged = np.array([path.failed for path in self._paths])
        self.passage_errors = np.array([path.passage_errors for path in self._paths])
        self.stop_those_behind(self.end_time < until)

    def _particles(self, i: int) -> tuple[Array, Array, Array]:
        """The coordinates u (κ, p), with offsets as one more row, q (p,) and a (p,) of replica i now."""
        return self._paths[i].rules.rule.particles(self._paths[i].state)

    def look(self) -> list[tuple[Array, View]]:
        """The view of the particles now; its one part has the weight one in each replica."""
        replicas, count = self.replicas, len(self.replicas)
        m, (q, a) = np.empty((count, replicas.p, replicas.k)), np.empty((2, count, replicas.p))
        b = np.zeros((count, replicas.p)) if replicas.has_offsets else None
        for i, start in enumerate(self._starts):
            u, beyond_span, a[i] = self._particles(i)
            if b is not None:
                u, b[i] = u[:-1], u[-1]
            m[i] = (start.L_star @ u).T
            q[i] = np.einsum("ri,ri->i", u, u) + beyond_span
        weight, risk = (np.full((count, replicas.p), 1.0 / replicas.p), np.array([now.risk for now in self._risks]))
        return [(np.ones(count), NetworkView(m, q, a, weight, replicas.P, replicas.a_star, replicas.Delta, risk, b=b))]

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`drift_error`, of the rules of integration over inputs, and `risk_error` if a risk is recorded."""
        comment = "largest so far, over the largest drift then; estimated by a finer rule"
        labels = {"long_name": "error of the drifts", "units": "1", "comment": comment}
        diagnostics = {"drift_error": Diagnostic((), labels, False)}
        if OF_RISK.intersection(observables):
            comment = "difference to a finer rule, and change of the risk when variables move by their own errors"
            labels = {"long_name": "error of the risk", "units": "1", "symbol": r"\delta\mathcal{R}"}
            diagnostics["risk_error"] = Diagnostic((), labels | {"error_of": "risk", "comment": comment})
        return diagnostics

    def diagnosed(self) -> Mapping[str, Array]:
        """The largest error of the drifts so far, and the error of the risk."""
        self._drift_error = np.fmax(self._drift_error, [risk.drift_error for risk in self._risks])
        return {"drift_error": self._drift_error, "risk_error": np.array([risk.error for risk in self._risks])}

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the risk, and of the error of the drifts, the option `largest_drift_error`."""
        risk, error, terms, drifts = np.array([list(risks) for risks in self._risks]).T
        largest = np.full_like(drifts, self.options.largest_drift_error)
        return *risk_bounds(risk, error, terms), Bound("drift_error", drifts, largest)

    @property
    def passages(self) -> Array:
        """ODE times at which the targets were first reached (n, thresholds), inf where they were not."""
        return np.array([path.passages for path in self._paths])

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return np.array([path.time for path in self._paths])

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """The number of right-hand sides evaluated so far (n,)."""
        return np.array([path.evaluations for path in self._paths])

    @classmethod
    def reads_of(cls, problem: Problem, options: NumericalOptions) -> frozenset[str]:
        """The parameters that it depends on; with an option `noise` also Δ and the size of batches."""
        return super().reads_of(problem, options) | ({"Delta", "batch_size"} if _noise_of(options) != "none" else set())

    @classmethod
    def solves_all_rates(cls, problem: Problem, options: NumericalOptions) -> bool:
        """Whether the norms feel no noise of SGD, which is of order γ/p."""
        return _noise_of(options) == "none"

    @classmethod
    def dimensions(cls, problem: Problem) -> int:
        """The number κ of coordinates u."""
        return problem.k

    @classmethod
    def work(cls, problem: Problem, time: float) -> float:
        """Twelve right-hand sides a step, ten steps and five a unit of time, of p units at all nodes of the input."""
        dimensions = cls.dimensions(problem)
        fine = accuracy(
            problem.activation,
            _label_form(problem.data, problem.learned, problem.teacher),
            dimensions,
            problem.d - dimensions,
        )
        nodes = count_of_fields(dimensions, fine) * fine.rho * (1 if fine.even else fine.omega)
        return (60.0 * time + 120.0) * problem.p * nodes * 20.0


def _noise_of(options: NumericalOptions) -> str:
    """The option `noise`; "none" for dynamics without the option."""
    return options.noise if isinstance(options, NoiseOptions) else "none"


def _label_form(data: str, target_name: str, teacher_activation: str) -> Label:
    """What rules need of the label of a data law and a target, by name: its degree, and where it may have kinks.

    It has no degree if it is no polynomial. Without a teacher, by the data law, it is constant.
    """
    if not DATA[data].teacher:
        return Label(0, kinked=False)
    law = target(target_name)
    names = {teacher_activation} if "teacher_activation" in law.reads else set()
    kinked = any(kinks(activation(name)) for name in names.union(law.activations))
    hermite = activation(teacher_activation).hermite if target_name == "committee" else None
    # where the kinks are is known of a committee alone
    elsewhere = kinked and (target_name != "committee" or bends_off_zero(activation(teacher_activation)))
    return Label(None if hermite is None else len(hermite) - 1, kinked, elsewhere)


def _nodes(D: float, fine: Accuracy) -> Array:
    """Nodes and weights (2, n) of ω, a coordinate of a direction in D dimensions, or N(0, 1) for D → ∞ and D = 0.

    For polynomials they are then Gauss's: few equally spaced nodes are wrong.
    """
    return rules.coordinates(D, fine.omega) if 0.0 < D < math.inf else rules.line(fine.omega, polynomial=fine.even)
