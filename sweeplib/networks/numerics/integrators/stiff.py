"""The rest of a solution of the overlaps' ODE that has become stiff, or all but rests.

A stiff solution is continued by scipy's LSODA (Petzold 1983, doi 10.1137/0904010), which changes between Adams' methods
and backward differentiation, on the compiled right-hand side. Each solution keeps its integrator, so that a recording
time interrupts nothing: the state there is read off its own interpolant, whose error is that of the method. Before
SciPy 1.17 a process can have one integrator at a time: then a solution starts a new one whenever it goes on.

Where a state all but rests, its slope is small or rounding alone. Then no error tells an integrator that stability
limits its steps, and it crawls. Such a state is carried on by the linearised flow as far as that is right.

A level is a number of a state, such as the risk, whose first passages of targets are noted; a target waits until then.
"""

import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.numerics.integrators.dop853 import Equations, fill_slope, level
from sweeplib.networks.numerics.python_calls import compiled

# near the root of the rounding of doubles, where the errors of rounding and of curvature are alike
INCREMENT = 1e-8
"""The length of the differences in a Jacobian, over the size of the variable or one."""
_SIDES = 1e-3 * np.array([-1.0, 1.0])
"""Where the rate of the level at a passage is read off, in steps from there."""


def _fill_jacobian(equations, i, state, slope, out):  # type: ignore[no-untyped-def]
    """Fill out (size, size) with ∂ slope_u/∂ state_v of system i, by differences.

    equations : the `Calls`. slope (size,) : at the state (size,).
    """
    size = state.shape[0]
    shifted, slope_there = state.copy(), np.empty(size)
    for v in range(size):
        shifted[v] = state[v] + INCREMENT * max(abs(state[v]), 1.0)
        equations.slope_of(i, shifted, equations.arguments, slope_there)
        for u in range(size):
            out[u, v] = (slope_there[u] - slope[u]) / (shifted[v] - state[v])
        shifted[v] = state[v]


@cache
def has_one_memory() -> bool:
    """Whether all integrators of LSODA in a process share the memory of one, as before SciPy 1.17."""
    major, minor = scipy.__version__.split(".")[:2]
    return (int(major), int(minor)) < (1, 17)


_ALONE = threading.Lock()
"""Held by the thread whose solution takes steps, where integrators share the memory of one."""


class StiffSystem:
    """System number i of some equations as Python calls it; `evaluations` counts the right-hand sides.

    _last : the last state and its slope, which is not computed again for the same state.
    """

    def __init__(self, equations: Equations, i: int) -> None:
        self._equations, self._i = equations, i
        self._last = np.empty(0), np.empty(0)
        self.evaluations = 0

    def slope(self, _: float, state: Array) -> Array:
        """The time derivative (size,) of a state (size,), which does not depend on the time.

        The last one is remembered.
        """
        # a Jacobian begins with the slope at its state, which the integrator has just asked for
        if not np.array_equal(state, self._last[0]):
            state = np.array(state, dtype=float)
            out = np.empty_like(state)
            compiled(fill_slope.py_func)(self._i, self._equations.calls, state, out)
            self._last = state, out
            self.evaluations += 1
        return self._last[1].copy()

    def jacobian(self, time: float, state: Array) -> Array:
        """The derivative of the slope by the state, (size, size), at a state (size,)."""
        out = np.empty((len(state), len(state)))
        state = np.array(state, dtype=float)
        compiled(_fill_jacobian)(self._equations.calls, self._i, state, self.slope(time, state), out)
        self.evaluations += len(state)
        return out

    def level(self, state: Array) -> float:
        """The level of a state (size,)."""
        return float(compiled(level.py_func)(self._i, self._equations.calls, np.array(state, dtype=float)))


class StiffSolution:
    """A solution from `time` on, to the time `end` at the latest.

    targets (T,) : values of the level whose passages to note.
    passages (T,), rates (T,), passing (T, size) : filled in with when these were, inf before, and with the derivative
        of the level and the state then.
    atol : a number, or (size,). longest : the longest step.
    `steps` counts its steps; `failed` says that it can take no further one.
    """

    def __init__(
        self,
        system: StiffSystem,
        time: float,
        state: Array,
        end: float,
        rtol: float,
        atol: float | Array,
        targets: Array,
        passages: Array,
        rates: Array,
        passing: Array,
        longest: float = np.inf,
    ) -> None:
        self.system, self.targets = system, targets
        self.passages, self.rates, self.passing = passages, rates, passing
        self.steps, self.failed = 0, False
        self._tolerances, self._end = {"rtol": rtol, "atol": atol, "max_step": longest}, end
        # an integrator of SciPy, and the number of steps before it was started
        self._solver, self._last_start = self._started(time, state), 0
        self._level = system.level(state)
        passages[np.isinf(passages) & (self._level <= targets)] = time

    def _started(self, time: float, state: Array) -> Any:
        """Return the integrator of LSODA that begins at a time with a state."""
        return scipy.integrate.LSODA(
            self.system.slope, time, state, self._end, jac=self.system.jacobian, **self._tolerances
        )

    @property
    def time(self) -> float:
        """The end of the last step."""
        return float(self._solver.t)

    @property
    def state(self) -> Array:
        """The state (size,) at the end of the last step."""
        return self._solver.y

    @property
    def step(self) -> float:
        """The length of the last step, 0 before the first."""
        return float(self._solver.step_size or 0.0)

    def advance(self, until: float, most_steps: int, *, stops: bool) -> None:
        """Take at most `most_steps` steps to the time `until`, to the last passage if it `stops`, or to failure."""
        with _ALONE if has_one_memory() else nullcontext():
            for number in range(most_steps):
                if self.failed or self.time >= until or (stops and np.isfinite(self.passages).all()):
                    return
                if number == 0 and self.steps and has_one_memory():
                    # always, not just after steps of another solution: no result depends on what is solved beside it
                    self._start_afresh(self.time, self.state)
                self._step()

    def _start_afresh(self, time: float, state: Array) -> None:
        """Let a new integrator go on from a time and a state."""
        self._solver, self._last_start = self._started(time, state), self.steps

    def _step(self) -> None:
        """Take a step. LSODA gives up where its order or step has become unfit: then it starts afresh from there."""
        before = self.time, self.state
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what LSODA says of a failure is in its status too
            self._solver.step()
        self.steps += 1
        if self._solver.status != "failed" and np.isfinite(self.state).all():
            self._note_passages()
            return
        # it was started afresh at this very state: to do that again would change nothing
        self.failed = self.steps == self._last_start + 1
        self._start_afresh(*before)

    def at(self, time: float) -> Array:
        """The state (size,) at a time of the last step."""
        if time == self.time:
            return self.state
        return self._solver.dense_output()(time)

    def _note_passages(self) -> None:
        """Note the first time in the last step at which the level is at each target that waits.

        A minimum of the level within a step is seen by its rising at the end.
        """
        waiting = np.isinf(self.passages)
        if not waiting.any():
            return
        before, self._level = self._level, self.system.level(self.state)
        # the level a little after the step
        rising = self.system.level(self.state + 1e-3 * self._solver.step_size * self.system.slope(0, self.state))
        if self._level > self.targets[waiting].max() and rising <= self._level:
            return
        old, within = self._solver.t_old, self._solver.dense_output()
        # in quarters of the step: the level may pass a target and come back
        times = np.linspace(old, self.time, 5)
        levels = [before, *(self.system.level(within(time)) for time in times[1:-1]), self._level]
        for place in np.flatnonzero(waiting):
            target = self.targets[place]
            first = next((look for look in range(1, 5) if levels[look] <= target), None)
            if first is not None:
                passage = self._crossing(within, times[first - 1], times[first], target)
                near, far = (min(max(passage + side, old), self.time) for side in _SIDES * (self.time - old))
                rise = self.system.level(within(far)) - self.system.level(within(near))
                self.passages[place], self.rates[place] = passage, rise / (far - near)
                self.passing[place] = within(passage)

    def _crossing(self, within: Callable[[float], Array], left: float, right: float, target: float) -> float:
        """The time between `left` and `right` at which the level on the interpolant `within` comes to the target."""

        def excess(time: float) -> float:
            """The level above the target at a time."""
            return self.system.level(within(time)) - target

        if excess(right) >= 0.0:
            return right
        return float(scipy.optimize.brentq(excess, left, right, xtol=1e-14 * right)) if excess(left) > 0.0 else left


class LinearFlow:
    """The flow linearised at a state, from `time` to `end`: for a state at rest, or one that drifts slowly.

    The displacement after a time t is ∫_0^t e^{J s} ds times the slope: the last column of the exponential of
    t [[J, slope], [0, 0]]. `end` is `time` until `reaches` has found how far the flow is right.
    """

    def __init__(self, system: StiffSystem, time: float, state: Array) -> None:
        self.time, self.end, self._state, self._system = time, time, state, system
        self._slope, self._jacobian = system.slope(time, state), system.jacobian(time, state)

    def at(self, time: float) -> Array:
        """The state (size,) at a time between `time` and `end`."""
        return self._state + self._response(time - self.time, self._slope)

    def reaches(self, end: float, tolerance: Array) -> bool:
        """Whether the flow is right to a tenth of the `tolerance` (size,) until `end`, which then becomes its own.

        What the slope at the end has beyond the linear one is taken for an error of the slope all the time.
        """
        span = end - self.time
        with np.errstate(over="ignore", invalid="ignore"):
            moved = self._response(span, self._slope)
            if not np.isfinite(moved).all():
                return False
            beyond = self._system.slope(end, self._state + moved) - self._slope - self._jacobian @ moved
            if (np.abs(self._response(span, beyond)) <= 0.1 * tolerance).all():
                self.end = end
        return self.end == end

    def _response(self, span: float, slope: Array) -> Array:
        """∫_0^span e^{J s} ds times a slope (size,)."""
        size = len(slope)
        generator = np.zeros((size + 1, size + 1))
        generator[:size, :size], generator[:size, size] = self._jacobian, slope
        if not np.isfinite(generator).all():
            return np.full(size, np.nan)
        return scipy.linalg.expm(span * generator)[:size, size]
