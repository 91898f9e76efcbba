"""The solution of one replica's particles, with rules of integration over inputs that follow its state.

Particles grow, and turn to the teacher: then the mean of a unit varies on a smaller scale of the input. The errors of
the drifts and of the risk are estimated by rules that are finer by one level, at some times that do not depend on what
is recorded. Where one is too large, the solution goes back to the time before, and on from there with finer rules.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.arrays import Array
from sweeplib.dynamics.diagnostics import ROUNDING
from sweeplib.kernels.numbers import COUNT, Numbers
from sweeplib.kernels.particle_flow import WHOLE_NOISE, Flow, Room, fill_slope, state_risk, unpack
from sweeplib.kernels.schedules import rates
from sweeplib.maths.activations import activation
from sweeplib.maths.particles.inputs import Inputs, Levels
from sweeplib.maths.particles.self_terms import self_means, self_rule
from sweeplib.maths.particles.smoothing import means, smoothing
from sweeplib.numerics.compiled import OneSignature
from sweeplib.numerics.integrators import dop853
from sweeplib.numerics.integrators.integration import Integration

LOOKS = 10
"""The errors are estimated at the start and after 2^-9, ..., ¼, ½ and all of the time."""
DRIFT_AIM, RISK_AIM, LEAST_RISK_AIM = (1e-5, 5e-4), (3e-3, 1e-2), (1e-10, 5e-7)
"""The errors that finer rules are for, by grids of smooth functions and by others (`Accuracy.rough`): of drifts
relative to the largest, of the risk relative to itself, and to its terms.
"""
ROUGH_ESTIMATE = 3.5
"""The error of a rough rule over its difference to the next level: for errors ∝ n^(-3/2), 1/(1 - 1.25^(-3/2))."""
FAR = 1e2
"""A rule whose error is so many times what is aimed at is made finer by two levels at once."""
MOST_NODES = 4e5, 3e4
"""The number of nodes of g, ρ and ω together up to which rules are made finer, likewise."""
TRUNCATION, BEYOND = 1.5e-10, 4e-12
"""The errors of a risk by the end of rules at 7 standard deviations, relative to its terms and to the largest f*².

The mean of g² has 1.3e-10 beyond; that of g^16, 1.4 times what 2.6e-12 inputs have with f* at the end. Gauss rules of
polynomials have no end.
"""
DEFAULT_RTOL, LARGEST_DEFAULT_RTOL = 1e-8, 1e-3
ATOL_A_RTOL = 0.1
"""By how much the absolute tolerance is raised where the relative one is raised by one."""
TINY = np.finfo(float).tiny
MUCH = 10.0
"""The default tolerance of the integration is raised where the error of the drifts is so many times larger."""
WORK_A_LOOK = 2e8
"""Nominal operations after which the clock is read."""


def room(p: int, dimensions: int, flow: Flow) -> Room:
    """Work arrays for p particles with coordinates in this many dimensions."""
    size = p * flow.omega.shape[1]
    parts = [np.empty(p) for _ in range(4)]
    return Room(
        np.empty((dimensions, p)),
        parts[0],
        parts[1],
        np.empty((dimensions, p)),
        parts[2],
        parts[3],
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


@cache
def particle_rule() -> dop853.EquationRule:
    """`fill_slope` and `state_risk` for an integrator, compiled once for all activations."""
    ones, line, square = np.ones(1), np.ones((2, 1)), activation("square")
    self_terms = self_rule(square, [(1.0, 1.0, 0.0)], 3, offsets=False)
    inputs = Inputs(np.ones((1, 1)), ones, ones, ones, ones)
    rule = smoothing(square, 3, 1)
    numbers, xi = Numbers(*[1.0] * COUNT), rates(None)[:2]
    flow = Flow(False, False, True, False, 0, numbers, ones, inputs, rule, self_terms, line, *xi, 1.0)
    return dop853.EquationRule(fill_slope, flow, room(1, 1, flow), state_risk)


LASTING = 1.0 / 3.0
"""The part of an earlier error of the risk, relative to the risk, that is taken to last."""
BEYOND_FINER = 1.25
"""The error of the risk of a rule over its difference to the finer one, whose own error is less than a fifth."""
GROWS = 2.0
"""By how much an earlier error of the risk may have grown, relative to the risk."""
LEAST_DRIFT = 0.03
"""Errors of drifts are relative to the largest one now, which counts as at least this part of the largest so far."""


class RiskNow(NamedTuple):
    """A risk, its error and terms, and the largest error of the drifts until now over the largest drift then."""

    risk: float
    error: float
    terms: float
    drift_error: float


class Found(NamedTuple):
    """A state with its drift and its risk."""

    state: Array
    slope: Array
    risk: float


class Look(NamedTuple):
    """The relative errors of drifts and risk at a look, the errors of the drifts, and that of the risk by all before.

    moved : how much higher the risk is where variables are off by the errors of their drifts since the look before,
        relative to the risk, summed over the looks.
    """

    time: float
    drift_error: float
    risk_error: float
    drifts: Array
    moved: float

    def since(self, time: float, drifts: Array) -> Array:
        """The errors of the variables at a later time with these errors of the drifts, by those since this look."""
        return np.asarray((time - self.time) * np.maximum(self.drifts, drifts))


class Rule:
    """The right-hand side and the risk with one rule."""

    def __init__(self, flow: Flow, p: int, dimensions: int) -> None:
        self.flow, self._shape = flow, (dimensions, p)
        self.equations = dop853.Equations(particle_rule(), flow, room(p, dimensions, flow))

    @property
    def nodes(self) -> int:
        """The number of nodes of the input, g, ρ and ω."""
        flow = self.flow
        of_omega = flow.omega.shape[1] if flow.noise_kind == WHOLE_NOISE else 1
        return len(flow.inputs.weight) * max(1, flow.smoothing.omega.shape[1], of_omega)

    @property
    def operations(self) -> float:
        """Nominal operations of a right-hand side."""
        return 20.0 * self._shape[1] * (self.nodes + self.flow.self_rule.line.shape[1])

    def derivative(self, state: Array) -> Found:
        """The time derivative and the risk of a state."""
        slope, risk = np.empty_like(state), self.equations.work.risk
        risk[0] = 1.0  # asks for the risk, in risk[1]
        compiled(_slope)(self.equations.calls, state, slope)
        risk[0] = 0.0
        return Found(state, slope, float(risk[1]))

    def risk(self, state: Array) -> float:
        """The population risk of a state."""
        return float(compiled(_risk)(self.equations.calls, state))

    def particles(self, state: Array) -> tuple[Array, Array, Array]:
        """The u (κ, p), with offsets as one more, q (p,) and a (p,) of a state."""
        u, q, a = np.empty(self._shape), np.empty(self._shape[1]), np.empty(self._shape[1])
        compiled(_unpack)(state, self.flow, u, q, a)
        return u, q, a


class Rules:
    """The rule in use, and the one finer by a level in everything. `flow_of` makes the constants of given levels.

    The first has nodes of g of a given level.
    """

    def __init__(
        self, flow_of: Callable[[Levels], Flow], p: int, dimensions: int, level: int, *, rough: bool, exact: bool
    ) -> None:
        self._flow_of, self._shape, self.rough = flow_of, (p, dimensions), rough
        self._least = (ROUNDING, 0.0) if exact else (TRUNCATION, BEYOND)
        self.largest = self.drift_error = self.risk_error = 0.0
        self.drifts = np.zeros(0)
        self.use(Levels(level))

    def use(self, levels: Levels) -> None:
        """Take the rules of these levels."""
        self.levels = levels
        self.rule, self.finer = self._rule(levels), self._rule(Levels(*(level + 1 for level in levels)))

    def _rule(self, levels: Levels) -> Rule:
        return Rule(self._flow_of(levels), *self._shape)

    def errors(self, now: Found, finer: Rule | None = None) -> tuple[Array, float]:
        """The errors of the drifts and the risk that were found at a state, by the finer rule."""
        there, factor = (finer or self.finer).derivative(now.state), ROUGH_ESTIMATE if self.rough else 1.0
        return factor * np.abs(there.slope - now.slope), factor * abs(there.risk - now.risk)

    def relative(self, drifts: Array, now: Found) -> float:
        """The largest of some errors of drifts, over the largest drift now, or the `LEAST_DRIFT`."""
        largest = max(float(np.abs(now.slope).max(initial=0.0)), LEAST_DRIFT * self.largest, TINY)
        return float(drifts.max(initial=0.0)) / largest

    def rise(self, now: Found, errors: Array) -> float:
        """How much higher the risk is where each variable is off by its error, against its drift."""
        return abs(self.rule.risk(now.state - errors * np.sign(now.slope)) - now.risk)

    def least_error(self, risk: float) -> float:
        """The least error of a risk."""
        of_terms, of_label = self._least
        return max(of_terms * self.terms(risk), of_label * float(np.max(self.rule.flow.inputs.label**2)))

    def terms(self, risk: float) -> float:
        """E f*² + |R|, at least a third of ½ E f*² + ½ E f²."""
        nodes = self.rule.flow.inputs
        return float(nodes.weight @ nodes.label**2) + abs(risk)

    def _excess(self, now: Found, time: float, finer: Rule | None = None) -> float:
        """The larger of the errors of drifts and risk, each relative to what is aimed at."""
        drifts, of_risk = self.errors(now, finer)
        rough = self.rough
        if finer is None:
            self.drifts, self.drift_error = drifts, self.relative(drifts, now)
        of_risk += 0.0 if rough else self.rise(now, time * drifts)
        if finer is None:
            self.risk_error = of_risk / max(abs(now.risk), TINY)
        allowed = max(RISK_AIM[rough] * abs(now.risk), LEAST_RISK_AIM[rough] * self.terms(now.risk), TINY)
        return max(self.relative(drifts, now) / DRIFT_AIM[rough], of_risk / allowed)

    def refined(self, state: Array, time: float) -> bool:
        """Take finer rules until the errors at a state are as aimed at, or cost too much; whether any was taken."""
        before = self.levels
        while True:
            now = self.rule.derivative(state)
            self.largest = max(self.largest, float(np.abs(now.slope).max(initial=0.0)))
            if not self._excess(now, time) > 1.0:
                break
            finer = [self.levels._replace(**{name: level + 1}) for name, level in self.levels._asdict().items()]
            parts = np.array([self._excess(now, time, self._rule(levels)) for levels in finer])
            raised = parts > min(0.25, 0.5 * parts.max())
            levels = Levels(*(np.array(self.levels) + raised + (raised & (parts > FAR))).tolist())
            if not parts.max() > 0.0 or self._rule(levels).nodes > MOST_NODES[self.rough]:
                break
            self.use(levels)
        return self.levels != before


class ParticlePath:
    """The solution of one replica: `state` at `time`, the `passages` of targets (thresholds,), why it ended."""

    def __init__(
        self,
        rules: Rules,
        start: Array,
        times: Array,
        thresholds: Array,
        longest: float | None,
        *,
        stops: bool,
        rtol: float | None,
        atol: float,
        max_steps: int,
    ) -> None:
        self.rules, self.times, self._longest, self._stops = rules, times, longest, stops
        self._steps_left, self._given_atol = max_steps, atol
        self.time, self.state, self.passages, self.failed = 0.0, start, np.full(len(thresholds), np.inf), False
        rules.refined(start, 0.0)
        self._given_rtol, self._rtol = rtol, rtol or self._allowed_rtol
        self._targets = (1.0 - thresholds) * rules.rule.risk(start)
        self._checked: tuple[float, Array] = (0.0, start)
        self._looks = [times[-1] * 0.5**n for n in reversed(range(LOOKS))]
        self._ahead: dict[float, tuple[float, Array]] = {}
        self._errors = [Look(0.0, rules.drift_error, rules.risk_error, rules.drifts, 0.0)]
        self._earlier = 0
        self._solution = self._from(start)

    @property
    def _allowed_rtol(self) -> float:
        """The tolerance that the error of the drifts at the last look leaves."""
        return float(np.clip(self.rules.drift_error, DEFAULT_RTOL, LARGEST_DEFAULT_RTOL))

    @property
    def _atol(self) -> float:
        """The absolute tolerance, which is raised with the relative one.

        Rules of few nodes make drifts of units that are nearly in the teacher's span vary from node to node: a norm
        that falls to 10⁻³ would take a step a node, for nothing.
        """
        return self._given_atol if self._given_rtol else self._given_atol + ATOL_A_RTOL * (self._rtol - DEFAULT_RTOL)

    def _from(self, state: Array) -> Integration:
        """A solution from a state at the time `_checked`."""
        waiting = np.isinf(self.passages)
        self._begun = self._checked[0]
        return Integration(
            self.rules.rule.equations,
            state[None],
            self.times[-1:] - self._begun,
            rtol=np.full(1, self._rtol),
            atol=np.full(1, self._atol),
            targets=np.where(waiting, self._targets, np.inf)[None],
            max_steps=self._steps_left,
            longest=None if self._longest is None else np.full(1, self._longest),
            steps_a_round=max(1, int(WORK_A_LOOK / (12.0 * self.rules.rule.operations))),
        )

    @property
    def spent(self) -> bool:
        """Whether it may take no further step."""
        return bool(self._solution.spent[0])

    @property
    def evaluations(self) -> int:
        """The number of right-hand sides evaluated so far."""
        return self._earlier + int(self._solution.evaluations[0])

    @property
    def _stopped(self) -> bool:
        return self._stops and bool(np.isfinite(self.passages).all())

    def advance(self, to: int, late: Callable[[], bool]) -> None:
        """Come to recording time number `to`, or to failure, the last exit if it stops there, or the deadline."""
        until = float(self.times[to])
        while self._checked[0] < until and not (self.failed or self._stopped or self.spent or late()):
            self._segment(late)
        self.time, self.state = self._ahead.pop(until, self._checked)

    def _segment(self, late: Callable[[], bool]) -> None:
        """Integrate to the next look and, if the errors there are as aimed at, keep the states at times on the way."""
        begin = self._checked[0]
        look = next((look for look in self._looks if look > begin), float(self.times[-1]))
        looks, solution = {}, self._solution
        for until in [*self.times[(self.times > begin) & (self.times < look)].tolist(), look]:
            solution.advance(np.zeros(1, np.intp), np.full(1, until - self._begun), stops=self._stops, late=late)
            came = self._begun + float(solution.times[0])
            short = float(solution.times[0]) < until - self._begun
            looks[until] = (came if short else until, solution.states[0].copy())
            if short:
                break
        time, state = looks[until]
        self.failed = bool(solution.failed[0])
        ended = not short or (np.isfinite(solution.passages[0]).all() and self._stops)
        again = ended and not self.failed and self.rules.refined(state, time)
        if not again:
            self.passages = np.minimum(self.passages, self._begun + solution.passages[0])
            self._checked = time, state
            self._ahead |= looks
            rules, last, now = self.rules, self._errors[-1], self.rules.rule.derivative(state)
            moved = last.moved + rules.rise(now, last.since(time, rules.drifts)) / max(abs(now.risk), TINY)
            self._errors.append(Look(time, rules.drift_error, rules.risk_error, rules.drifts, moved))
        if again or (self._given_rtol is None and self._allowed_rtol > MUCH * self._rtol):
            self._rtol = self._given_rtol or max(self._rtol, self._allowed_rtol)
            self._earlier, self._steps_left = self.evaluations, max(int(solution.steps_left[0]), 0)
            self._solution = self._from(self._checked[1])

    def risk_now(self) -> RiskNow:
        """The risk at the present state, and the errors.

        The error of the risk is that of its rule, and its rise where each variable is off by its own error: the
        tolerance of the integration, and the error of the drift over all of the time; or, where this was larger before,
        what the errors of the drifts between looks make of the risk there, relative to it. As two rules may agree by
        chance now, it is, relative to the risk, at least a third of the largest one at an earlier look.
        """
        rules, state = self.rules, self.state
        now = rules.rule.derivative(state)
        drifts, of_rule = rules.errors(now)
        looks = [look for look in self._errors if look.time <= self.time]
        tolerance, last = self._rtol * np.abs(state) + self._atol, looks[-1]
        rise = rules.rise(now, tolerance + last.since(self.time, drifts)) + GROWS * last.moved * abs(now.risk)
        rise = max(rise, rules.rise(now, tolerance + self.time * drifts))
        lasting = LASTING * max(look.risk_error for look in looks) * abs(now.risk)
        error = max(BEYOND_FINER * of_rule + rise, lasting) + rules.least_error(now.risk)
        largest = max(rules.relative(drifts, now), *(look.drift_error for look in looks))
        return RiskNow(now.risk, error, rules.terms(now.risk), largest)


@cache
def compiled(template: Callable[..., Any]) -> OneSignature:
    """The template, compiled for the first arguments that it is called with."""
    return OneSignature(template)


def _slope(equations, state, out):  # type: ignore[no-untyped-def]
    equations.slope_of(0, state, equations.arguments, out)


def _risk(equations, state):  # type: ignore[no-untyped-def]
    return equations.level_of(0, state, equations.arguments)


def _unpack(state, flow, u, q, a):  # type: ignore[no-untyped-def]
    unpack(state, flow, u, q, a)
