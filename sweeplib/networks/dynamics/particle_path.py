"""The solution of one replica's particles, with rules of integration over inputs that follow its state.

Particles grow, and turn to the teacher: then the mean of a unit varies on a smaller scale of the input. The errors of
the drifts and of the risk are estimated by rules that are finer by one level, at some times that do not depend on what
is recorded. Where one is too large, the solution goes back to the time before, and on from there with finer rules.

A look is a check of the errors at one of these times. States are flat, of `size` numbers: u, q, a (`particle_rules`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import ROUNDING
from sweeplib.networks.dynamics.integrated import passage_errors
from sweeplib.networks.dynamics.particle_rules import TINY, Rules
from sweeplib.networks.numerics.integrators.floors import SMALL, relative_tolerances
from sweeplib.networks.numerics.integrators.integration import Integration

LOOKS = 10
"""The errors are estimated at the start and after 2^-9, ..., ¼, ½ and all of the time."""
DEFAULT_RTOL, LARGEST_DEFAULT_RTOL = 1e-8, 1e-3
"""The bounds of the relative tolerance where it follows the error of the drifts."""
ATOL_A_RTOL = 0.1
"""By how much the absolute tolerance is raised where the relative one is raised by one."""
MUCH = 10.0
"""The default tolerance of the integration is raised where the error of the drifts is so many times larger."""
WORK_A_LOOK = 2e8
"""Nominal operations after which the clock is read."""


GROWN, FED = 1e2, 1e3
"""The growth of an overlap that multiplies errors, and the rate over its size above which a source feeds it."""
AHEAD, OF_ROUNDING = 0.1, 1e-13
"""The ODE time from the start over which the rate of an overlap is taken, and a rate that is rounding."""
LASTING = 1.0 / 3.0
"""The part of an earlier error of the risk, relative to the risk, that is taken to last."""
BEYOND_FINER = 1.25
"""The error of the risk of a rule over its difference to the finer one, whose own error is less than a fifth."""
GROWS = 2.0
"""By how much an earlier error of the risk may have grown, relative to the risk."""


class RiskNow(NamedTuple):
    """The risk of a path now, and its errors.

    error : of the risk. terms : the size of the terms of which the risk is a difference.
    drift_error : the largest error of the drifts until now, over the largest drift then.
    """

    risk: float
    error: float
    terms: float
    drift_error: float


class Look(NamedTuple):
    """The errors found at one of the times at which a path is checked.

    drift_error, risk_error : relative errors of the drifts and of the risk by the rules.
    drifts (size,) : the absolute errors of the drifts.
    moved : by how much the risk changes, relative to it, if variables are off by the errors of their drifts since the
        look before; summed over all looks so far.
    """

    time: float
    drift_error: float
    risk_error: float
    drifts: Array
    moved: float

    def since(self, time: float, drifts: Array) -> Array:
        """The errors (size,) that variables gather from this look to a `time`, at which drifts have errors `drifts`."""
        return np.asarray((time - self.time) * np.maximum(self.drifts, drifts))


class ParticlePath:
    """The solution of one replica: `state` (size,) at `time`, the `passages` of targets, why it ended.

    rules : the rules of integration over inputs, which become finer where the solution needs it.
    start (size,), times (n,) : the state at time 0, and the times at which states are recorded.
    thresholds : the fractions T of the risk at the start; `passages` (thresholds,) are the times of their exits, or ∞.
    longest : the longest step of the integrator, if there is one.
    stops : whether the run ends at its last exit.
    rtol, atol, max_steps : the options of the integration; without an rtol it follows the error of the drifts.
    teacher (k, d) : rows of the teacher, where coordinates are weights, whose overlaps with it are small differences.
    """

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
        teacher: Array | None = None,
    ) -> None:
        self.rules, self.times, self._longest, self._stops = rules, times, longest, stops
        self._steps_left, self._given_atol = max_steps, atol
        self.time, self.state, self.passages, self.failed = 0.0, start, np.full(len(thresholds), np.inf), False
        rules.refine(start, 0.0)
        self._given_rtol, self._rtol = rtol, rtol or self._allowed_rtol
        # variables that begin so small have tolerances relative to their size
        self._begin, self._small, self._is_hidden = start, (start != 0.0) & (np.abs(start) < SMALL), False
        risk = rules.rule.risk(start)
        # a fall within the rounding of the risk cannot be seen: such a threshold has no target
        rounding = thresholds * risk <= ROUNDING * rules.terms(risk)
        self._targets = np.where(rounding, -np.inf, (1.0 - thresholds) * risk)
        self._teacher = teacher
        self.passage_errors = np.full(len(thresholds), np.nan)
        # a look checks the errors, and goes back with finer rules if they are too large
        self._checked: tuple[float, Array] = (0.0, start)  # time and state of the last look
        self._looks = [times[-1] * 0.5**n for n in reversed(range(LOOKS))]
        # by recording time before that look: where the path came
        self._ahead: dict[float, tuple[float, Array]] = {}
        self._errors = [Look(0.0, rules.drift_error, rules.risk_error, rules.drifts, 0.0)]
        self._earlier = 0  # right-hand sides of the integrations before `_solution`
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
        """An integration, by the rules in use, that begins with a `state` at the time of the last look, `_checked`."""
        waiting = np.isinf(self.passages)
        self._begun = self._checked[0]
        return Integration(
            self.rules.rule.equations,
            state[None],
            self.times[-1:] - self._begun,
            rtol=np.full(1, self._rtol),
            atol=np.full(1, self._atol),
            # a target of ∞ is passed at the start of the solution: those of before are not looked for again
            targets=np.where(waiting, self._targets, np.inf)[None],
            max_steps=self._steps_left,
            longest=None if self._longest is None else np.full(1, self._longest),
            steps_a_round=max(1, int(WORK_A_LOOK / (12.0 * self.rules.rule.operations))),
        )

    @property
    def spent(self) -> bool:
        """Whether the integration has taken all of its steps."""
        return bool(self._solution.spent[0])

    @property
    def evaluations(self) -> int:
        """The number of right-hand sides evaluated so far."""
        return self._earlier + int(self._solution.evaluations[0])

    @property
    def _stopped(self) -> bool:
        """Whether the run is over as all exits are made."""
        return self._stops and bool(np.isfinite(self.passages).all())

    def advance(self, to: int, late: Callable[[], bool]) -> None:
        """Come to recording time number `to`, or as far as a failure, the last exit, the steps or `late` allow.

        late : function that returns whether the deadline is over, as in the methods below.
        """
        until = float(self.times[to])
        while self._checked[0] < until and not (self.failed or self._stopped or self.spent or late()):
            self._to_next_look(late)
        # the path may be at the next look, beyond `until`: then the state at `until` was kept on the way
        self.time, self.state = self._ahead.pop(until, self._checked)

    def _to_next_look(self, late: Callable[[], bool]) -> None:
        """Integrate to the next look, and keep the states at times on the way; or go back, with finer rules.

        Rules are made finer if the errors at the look are larger than aimed at: then nothing of the way is kept.
        """
        begin = self._checked[0]
        look = next((look for look in self._looks if look > begin), float(self.times[-1]))
        on_the_way, solution = {}, self._solution
        for until in [*self.times[(self.times > begin) & (self.times < look)].tolist(), look]:
            solution.advance(np.zeros(1, np.intp), np.full(1, until - self._begun), stops=self._stops, late=late)
            reached = self._begun + float(solution.times[0])
            short = float(solution.times[0]) < until - self._begun
            on_the_way[until] = (reached if short else until, solution.states[0].copy())
            if short:
                break
        time, state = on_the_way[until]
        self.failed = bool(solution.failed[0])
        # where it was short for lack of time or steps, errors are checked at a later call, or never
        ended = not short or (np.isfinite(solution.passages[0]).all() and self._stops)
        again = ended and not self.failed and self.rules.refine(state, time)
        if not again:
            self._checked = time, state
            self._ahead |= on_the_way
            rules, last, now = self.rules, self._errors[-1], self.rules.rule.derivative(state)
            moved = last.moved + rules.rise(now, last.since(time, rules.drifts)) / max(abs(now.risk), TINY)
            self._errors.append(Look(time, rules.drift_error, rules.risk_error, rules.drifts, moved))
            self._is_hidden |= bool(solution.hidden[0])
            self._note_exits()
        if again or (self._given_rtol is None and self._allowed_rtol > MUCH * self._rtol):
            self._rtol = self._given_rtol or max(self._rtol, self._allowed_rtol)
            self._earlier, self._steps_left = self.evaluations, max(int(solution.steps_left[0]), 0)
            self._solution = self._from(self._checked[1])

    def risk_now(self) -> RiskNow:
        """The risk at the present state, and its errors."""
        return self._risk_at(self.time, self.state)

    def _risk_at(self, time: float, state: Array) -> RiskNow:
        """The risk at a `state` of this path, at a `time` no later than the last look, and the errors.

        The error of the risk is that of its rule, and its rise where each variable is off by its own error: the
        tolerance of the integration, and the error of the drift over all of the time; or, where this was larger before,
        what the errors of the drifts between looks make of the risk there, relative to it. As two rules may agree by
        chance now, it is, relative to the risk, at least a third of the largest one at an earlier look.
        """
        rules = self.rules
        now = rules.rule.derivative(state)
        drifts, of_rule = rules.errors(now)
        of_drifts, of_form = rules.form_errors(now)
        looks = [look for look in self._errors if look.time <= time]
        tolerance, last = self._tolerance(state) + time * of_drifts, looks[-1]
        rise = rules.rise(now, tolerance + last.since(time, drifts)) + GROWS * last.moved * abs(now.risk)
        rise = max(rise, rules.rise(now, tolerance + time * drifts))
        lasting = LASTING * max(look.risk_error for look in looks) * abs(now.risk)
        error = max(BEYOND_FINER * of_rule + rise, lasting) + rules.least_error(now.risk) + of_form
        # rounding hid how a small variable grew, which has become large: nothing is known
        if self._is_hidden and (self._small & (np.abs(state) > SMALL)).any():
            error = np.inf
        largest = max(rules.relative(drifts + of_drifts, now), *(look.drift_error for look in looks))
        return RiskNow(now.risk, error, rules.terms(now.risk), largest)

    def _tolerance(self, state: Array) -> Array:
        """The errors (size,) of the variables by the integration: for small ones a tolerance for each growth by e."""
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(self._small, np.maximum(np.log(np.abs(state) / np.abs(self._begin)), 0.0), 0.0)
        of_small = relative_tolerances(np.array(self._rtol), np.array(self._atol)) * grown
        return np.asarray((self._rtol + of_small) * np.abs(state) + self._atol) * self._growth(state)

    def _growth(self, state: Array) -> float:
        """The factor by which overlaps with teachers, and early errors with them, have grown; 1 if that is not much.

        An overlap that a source feeds, so that it first grows by much more than itself, has no such errors.
        """
        if self._teacher is None:
            return 1.0
        ahead = self._begin + AHEAD * self.rules.rule.derivative(self._begin).slope
        now, begin, soon = (self._overlaps(self._teacher, x) for x in (state, self._begin, ahead))
        size, moved = np.linalg.norm(begin, axis=1), np.linalg.norm(soon - begin, axis=1)
        fed = moved > AHEAD * (FED * size + OF_ROUNDING)
        grown = np.where(fed, 0.0, np.linalg.norm(now, axis=1)) / np.maximum(size, TINY)
        largest = float(grown.max(initial=0.0))
        return largest if largest > GROWN else 1.0

    def _overlaps(self, teacher: Array, state: Array) -> Array:
        """The overlaps (k, p) of the coordinates of a state with the rows of the teacher."""
        return teacher @ self.rules.rule.particles(state)[0][: teacher.shape[1]]

    def _note_exits(self) -> None:
        """Note the passages of the integration since the last look, with the errors of their times."""
        solution, fall = self._solution, self.rules.rule.risk(self._begin) - self._targets
        for place in np.flatnonzero(np.isinf(self.passages) & np.isfinite(solution.passages[0])).tolist():
            self.passages[place] = time = self._begun + solution.passages[0, place]
            rate, error = solution.passage_rates[0, place], 0.0
            if time > 0.0:
                error = self._risk_at(time, solution.passing[0, place].copy()).error
            self.passage_errors[place] = passage_errors(np.array(error), fall[place], rate) if time > 0.0 else 0.0
