"""One solution of an autonomous ODE, followed from time to time by a scipy solver, and its first passages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.errors import SweeplibError

Array = NDArray[np.float64]

_LOOKS_A_STEP = np.array([0.25, 0.5, 0.75, 1.0])


class Trajectory:
    """The solution that a `solver` steps along, with the first times at which `risk(state)` is at each of `targets`.

    It ends at the last of these passages if it `stops` there. `time`, `state` are where it is now; `diverged` says
    that it cannot be followed further. Steps do not depend on the times asked for: states between them come from the
    solver's dense output. Passages are looked for at four points of a step, and located to rounding.
    """

    def __init__(
        self, solver: Any, risk: Callable[[Array], float], targets: Array, stops: bool, max_steps: int
    ) -> None:
        self.solver, self.risk, self.targets, self.stops = solver, risk, targets, stops
        self.time, self.state, self.diverged = 0.0, solver.y, False
        self._steps_left = max_steps
        self._interpolant: Callable[[Any], Array] | None = None
        self._passages = np.where(risk(solver.y) <= targets, 0.0, np.inf)

    @property
    def passages(self) -> Array:
        """The first times at which the risk was at each target; NaN where that has not come yet."""
        return np.where(self._passages <= self.time, self._passages, np.nan)

    def advance(self, until: float, expired: Callable[[], bool] = lambda: False) -> None:
        """Go on to the time `until`, unless the solution is over before, or the time to compute it has `expired`."""
        while self.solver.t < until and not self.over and not expired():
            self._step()
        end = min(until, self.solver.t, self._last_passage)
        if end > self.time:
            self.time, self.state = end, self._dense(end)

    @property
    def over(self) -> bool:
        """Whether no step will follow: diverged, or through the last passage."""
        return self.diverged or self._last_passage < np.inf

    @property
    def _last_passage(self) -> float:
        return float(self._passages.max(initial=0.0)) if self.stops and self._passages.size else np.inf

    def _step(self) -> None:
        if self._steps_left == 0:
            raise SweeplibError(f"the ODE needs more than max_steps steps; it is at time {self.solver.t:.6g}")
        self._steps_left -= 1
        with np.errstate(all="ignore"):
            self.solver.step()
        if self.solver.status == "failed":
            self.diverged = True
            return
        self._interpolant = None
        waiting = np.flatnonzero(np.isinf(self._passages))
        if waiting.size and self._may_have_passed(self.targets[waiting].max()):
            self._look_for_passages(waiting)

    def _dense(self, time: float | Array) -> Array:
        """The state within the last step; its interpolant costs as much as half a step, so it is made on demand."""
        if self._interpolant is None:
            self._interpolant = self.solver.dense_output()
        states: Array = self._interpolant(time)
        return states

    def _may_have_passed(self, target: float) -> bool:
        """Whether the risk at the end of the step is at the target, or is rising there, so that it may have been."""
        state, time = self.solver.y, self.solver.t
        beyond = 1e-3 * (time - self.solver.t_old) * self.solver.fun(time, state)
        return self.risk(state) <= target or self.risk(state + beyond) > self.risk(state)

    def _look_for_passages(self, waiting: NDArray[np.intp]) -> None:
        start, end = self.solver.t_old, self.solver.t
        times = start + (end - start) * _LOOKS_A_STEP
        risks = np.array([self.risk(state) for state in self._dense(times).T])
        for target in map(int, waiting):
            below = np.flatnonzero(risks <= self.targets[target])
            if below.size:
                first = below[0]
                self._passages[target] = self._located(target, times[first - 1] if first else start, times[first])

    def _located(self, target: int, before: float, after: float) -> float:
        from scipy.optimize import brentq

        def excess(time: float) -> float:
            return float(self.risk(self._dense(time)) - self.targets[target])

        if excess(before) <= 0.0:
            return before
        return float(brentq(excess, before, after, xtol=1e-15 * max(after, 1.0), rtol=1e-14))
