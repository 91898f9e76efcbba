"""Rules of integration over inputs for the drifts and the risk of particles, with their errors.

The state of p particles is flat: u (κ, p), their coordinates along the teacher's span (or all of space), with offsets
as one more row; q (p,), the squared norms of the rest; and a (p,), the second layer; as far as they change. Means over
inputs are sums over nodes: g (κ,), coordinates of the input along the span, ρ, the length of its rest, and ω, the
cosine between the rests of input and unit. `Levels` say how fine each kind of nodes is. `dop853.Equations` calls
systems by number; here there is one, number 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import ROUNDING
from sweeplib.networks.kernels.particle_flow import WHOLE_NOISE, Flow, Room, fill_slope, state_risk, unpack
from sweeplib.networks.maths.particles.inputs import Levels
from sweeplib.networks.maths.particles.self_terms import self_means
from sweeplib.networks.maths.particles.smoothing import means
from sweeplib.networks.numerics.integrators import dop853
from sweeplib.networks.numerics.python_calls import compiled

DRIFT_AIM, RISK_AIM, LEAST_RISK_AIM = (1e-5, 5e-4), (3e-3, 1e-2), (1e-10, 5e-7)
"""The errors that finer rules aim at: of drifts relative to the largest, of the risk relative to itself, and to its
terms. Each is a pair, indexed by `Accuracy.rough`: for smooth functions on grids, and for all others.
"""
ROUGH_ESTIMATE = 3.5
"""The error of a rough rule over its difference to the next level: for errors ∝ n^(-3/2), 1/(1 - 1.25^(-3/2))."""
FAR = 1e2
"""A rule whose error is so many times what is aimed at is made finer by two levels at once."""
MOST_NODES = 4e5, 3e4
"""The number of nodes of g, ρ and ω together up to which rules are made finer: a pair indexed by `Accuracy.rough`."""
TRUNCATION, BEYOND = 1.5e-10, 4e-12
"""The errors of a risk by the end of rules at 7 standard deviations, relative to its terms and to the largest f*².

The mean of g² has 1.3e-10 beyond; that of g^16, 1.4 times what 2.6e-12 inputs have with f* at the end. Gauss rules of
polynomials have no end.
"""
TINY = np.finfo(float).tiny
"""What is divided by where a number could be zero."""
LEAST_DRIFT = 0.03
"""Errors of drifts are relative to the largest one now, which counts as at least this part of the largest so far."""


def room(p: int, dimensions: int, flow: Flow) -> Room:
    """Empty work arrays for p particles whose u has `dimensions` rows: κ coordinates, and one for offsets."""
    size = p * flow.omega.shape[1]
    q, a, q_slope, a_slope = (np.empty(p) for _ in range(4))
    return Room(
        np.empty((dimensions, p)),
        q,
        a,
        np.empty((dimensions, p)),
        q_slope,
        a_slope,
        means(p, flow.smoothing),
        self_means(p, flow.self_rule),
        np.empty((4, p)),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((2, 1)),
        np.empty(p),
        np.zeros(2),
    )


class Evaluation(NamedTuple):
    """A flat state (size,), its time derivative `slope` (size,) and its risk, by one rule."""

    state: Array
    slope: Array
    risk: float


class Rule:
    """The right-hand side and the risk of p particles, whose u has `dimensions` rows, by the nodes of one `flow`."""

    def __init__(self, flow: Flow, p: int, dimensions: int) -> None:
        self.flow, self._shape = flow, (dimensions, p)
        self.equations = dop853.Equations(fill_slope, flow, room(p, dimensions, flow), state_risk)

    @property
    def nodes(self) -> int:
        """The number of nodes (g, ρ) of the input, times the nodes of ω."""
        flow = self.flow
        of_omega = flow.omega.shape[1] if flow.noise_kind == WHOLE_NOISE else 1
        return len(flow.inputs.weight) * max(1, flow.smoothing.omega.shape[1], of_omega)

    @property
    def operations(self) -> float:
        """Nominal operations of a right-hand side."""
        return 20.0 * self._shape[1] * (self.nodes + self.flow.self_rule.line.shape[1])

    def derivative(self, state: Array) -> Evaluation:
        """The `state` (size,) with its time derivative and its risk."""
        slope, risk = np.empty_like(state), self.equations.work.risk
        risk[0] = 1.0  # asks for the risk, in risk[1]
        compiled(dop853.fill_slope.py_func)(0, self.equations.calls, state, slope)
        risk[0] = 0.0
        return Evaluation(state, slope, float(risk[1]))

    def risk(self, state: Array) -> float:
        """The population risk of a state."""
        return float(compiled(dop853.level.py_func)(0, self.equations.calls, state))

    def particles(self, state: Array) -> tuple[Array, Array, Array]:
        """The u (κ, p), with a last row of offsets if units have them, q (p,) and a (p,) of a flat state."""
        u, q, a = np.empty(self._shape), np.empty(self._shape[1]), np.empty(self._shape[1])
        compiled(_unpack)(state, self.flow, u, q, a)
        return u, q, a


class Form(NamedTuple):
    """How far off the form is that rules take for an activation: a sum of error functions.

    misfit, slope_misfit : the largest differences of σ and of σ' to those of the form. lipschitz : a bound of |σ'|.
    """

    misfit: float = 0.0
    slope_misfit: float = 0.0
    lipschitz: float = 1.0


class Rules:
    """The rule in use, and the one finer by a level in everything: the errors are the differences of both.

    flow_of : makes the constants of p particles, with nodes of given levels.
    level : the level of the nodes of g at first; all other nodes begin at level 0.
    rough : whether integrands have kinks or jumps, so that errors fall with a power of the number of nodes only.
    exact : whether the rules are exact, as student and label are polynomials.
    form : the misfits of the activation, whose errors come on top of those of the rules.

    `drifts` (size,) and `drift_error` are the errors of the drifts at the last check, absolute and over the largest
    drift, `risk_error` the error of the risk over the risk, and `largest` the largest drift so far.
    """

    def __init__(
        self, flow_of: Callable[[Levels], Flow], p: int, dimensions: int, level: int,
        *, rough: bool, exact: bool, form: Form,
    ) -> None:  # fmt: skip
        self._flow_of, self._shape, self.rough, self._form = flow_of, (p, dimensions), rough, form
        # the least error of a risk, as parts of its terms and of the largest squared label
        self._least = (ROUNDING, 0.0) if exact else (TRUNCATION, BEYOND)
        self.largest = self.drift_error = self.risk_error = 0.0
        self.drifts = np.zeros(0)
        self.use(Levels(level))

    def use(self, levels: Levels) -> None:
        """Use the rules of these levels from now on."""
        self.levels = levels
        self.rule, self.finer = self._rule(levels), self._rule(Levels(*(level + 1 for level in levels)))

    def _rule(self, levels: Levels) -> Rule:
        """The rule with nodes of these levels."""
        return Rule(self._flow_of(levels), *self._shape)

    def errors(self, now: Evaluation, finer: Rule | None = None) -> tuple[Array, float]:
        """The errors of the drifts (size,) and of the risk of `now`, by a finer rule: by default `self.finer`."""
        precise, factor = (finer or self.finer).derivative(now.state), ROUGH_ESTIMATE if self.rough else 1.0
        return factor * np.abs(precise.slope - now.slope), factor * abs(precise.risk - now.risk)

    def form_errors(self, now: Evaluation) -> tuple[float, float]:
        """Bounds of the errors of drifts and of the risk that come from the misfits of the activation's form.

        f is off by ε = ⟨|a|⟩ times the misfit, R by E|E| ε + ½ ε², and a_i E[σ'(λ_i) x E] for inputs x of unit variance
        by |a_i| (slope misfit · |E| + |σ'| ε); norms move by twice as much times √q, second layers by E[σ E].
        """
        if not self._form.misfit:
            return 0.0, 0.0
        u, q, a = self.rule.particles(now.state)
        displacement, off = np.sqrt(2.0 * abs(now.risk)), float(np.abs(a).mean()) * self._form.misfit
        of_gradient = float(np.abs(a).max()) * (self._form.slope_misfit * displacement + self._form.lipschitz * off)
        length = np.sqrt(max(1.0, float((u**2).sum(axis=0).max()), float(q.max())))
        of_layer = self._form.misfit * displacement + self._form.lipschitz * length * off
        return float(max(2.0 * length * of_gradient, of_layer)), float(displacement * off + 0.5 * off**2)

    def relative(self, drifts: Array, now: Evaluation) -> float:
        """The largest of the errors of drifts (size,), over the largest drift now, or the `LEAST_DRIFT`."""
        largest = max(float(np.abs(now.slope).max(initial=0.0)), LEAST_DRIFT * self.largest, TINY)
        return float(drifts.max(initial=0.0)) / largest

    def rise(self, now: Evaluation, errors: Array) -> float:
        """The size of the change of the risk if each variable is behind, against its drift, by its error (size,)."""
        return abs(self.rule.risk(now.state - errors * np.sign(now.slope)) - now.risk)

    def least_error(self, risk: float) -> float:
        """The error of a risk that no finer rule takes away: rounding or, of rules that end, the tails left out."""
        of_terms, of_label = self._least
        return max(of_terms * self.terms(risk), of_label * float(np.max(self.rule.flow.inputs.label**2)))

    def terms(self, risk: float) -> float:
        """The size E f*² + |R| of the terms that cancel in a risk, at least a third of ½ E f*² + ½ E f²."""
        nodes = self.rule.flow.inputs
        return float(nodes.weight @ nodes.label**2) + abs(risk)

    def _error_over_aim(self, now: Evaluation, time: float, finer: Rule | None = None) -> float:
        """The larger of the errors of drifts and risk by the rule in use, each over the error aimed at.

        Above 1 the rule must be made finer. Errors are differences to the rule `finer`; by default this is the one
        finer in everything, and the errors are kept as those of the last check. Smooth rules count, as an error of the
        risk, also its `rise` if the drifts have been off by their errors since time 0.
        """
        rough, (drifts, of_risk) = self.rough, self.errors(now, finer)
        of_risk += 0.0 if rough else self.rise(now, time * drifts)
        if finer is None:
            self.drifts, self.drift_error = drifts, self.relative(drifts, now)
            self.risk_error = of_risk / max(abs(now.risk), TINY)
        aim = max(RISK_AIM[rough] * abs(now.risk), LEAST_RISK_AIM[rough] * self.terms(now.risk), TINY)
        return max(self.relative(drifts, now) / DRIFT_AIM[rough], of_risk / aim)

    def refine(self, state: Array, time: float) -> bool:
        """Make rules finer until the errors at a state are as aimed at, or nodes too many; return whether any was made.

        Levels of g, ρ, ω and of a unit with itself are raised apart, each by what it alone does to the error. `time` is
        the ODE time of the state, for which its drifts may have been off.
        """
        before = self.levels
        while True:
            now = self.rule.derivative(state)
            self.largest = max(self.largest, float(np.abs(now.slope).max(initial=0.0)))
            if not self._error_over_aim(now, time) > 1.0:
                break
            one_finer = [self.levels._replace(**{name: level + 1}) for name, level in self.levels._asdict().items()]
            shares = np.array([self._error_over_aim(now, time, self._rule(levels)) for levels in one_finer])
            # kinds of nodes with a small share of the error stay: finer ones would cost time alone
            raised = shares > min(0.25, 0.5 * shares.max())
            levels = Levels(*(np.array(self.levels) + raised + (raised & (shares > FAR))).tolist())
            if not shares.max() > 0.0 or self._rule(levels).nodes > MOST_NODES[self.rough]:
                break
            self.use(levels)
        return self.levels != before


def _unpack(state, flow, u, q, a):  # type: ignore[no-untyped-def]
    """Fill u (κ, p), q (p,) and a (p,) from a flat state: `unpack`, which is inlined, for a call from Python."""
    unpack(state, flow, u, q, a)
