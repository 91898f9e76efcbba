"""Many solutions of the overlaps' ODE at one tolerance, by whichever method each needs.

All begin with the compiled explicit method (`dop853`). One that becomes stiff goes on with an implicit method, one that
has come to rest stays where it is (`stiff`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics import dop853
from sweeplib.dynamics.stiff import StiffSolution, System, settled

Array = NDArray[np.float64]

STEPS_A_ROUND = 200
"""Steps of each solution after which the clock is looked at."""


class Integration:
    """n solutions from time zero on, each with its own tolerance.

    `states` (n, size) and `times` (n,) are where they came; `failed` (n,) says which could take no further step. `ends`
    (n,) are the last times that will be asked for, `targets` (n, T) the risks whose passages are noted.
    """

    def __init__(
        self,
        functions: tuple[Any, Any],
        systems: Any,
        work: Any,
        states: Array,
        ends: Array,
        *,
        rtol: Array,
        atol: Array,
        targets: Array,
        max_steps: int,
    ) -> None:
        self._functions, self._systems, self._work = functions, systems, work
        self._rtol, self._atol, self._targets = rtol, atol, targets
        self._solutions = dop853.solutions(states, ends, targets.shape[1], max_steps)
        self._stiff: dict[int, StiffSolution] = {}
        self._settled = np.zeros(len(states), dtype=bool)
        self._rounds, self._next_trial = np.zeros((2, len(states)), dtype=np.int64)
        self.states, self.times = states.copy(), np.zeros(len(states))

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which solutions (n,) could take no further step."""
        return self._solutions.failed

    @property
    def passages(self) -> Array:
        """When each target was first reached (n, T), inf where it was not."""
        return self._solutions.passages

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """The right-hand sides taken (n,)."""
        implicit = np.zeros(len(self.times), dtype=np.int64)
        for i, solution in self._stiff.items():
            implicit[i] = solution.system.evaluations
        return self._solutions.evaluations + implicit

    @property
    def spent(self) -> NDArray[np.bool_]:
        """Which solutions (n,) may take no further step."""
        return self._solutions.left <= 0

    def advance(self, order: NDArray[np.intp], until: Array, *, stops: bool, late: Callable[[], bool]) -> None:
        """Bring the solutions in `order` to the times `until` (n,), or to failure, their last step, or their deadline.

        One that `stops` goes no further than its last passage. `late` says that the time is up; it is asked often.
        """
        while (order := order[~self._round(order, until, stops=stops)]).size and not late():
            self._let_settle(order)

    def _round(self, order: NDArray[np.intp], until: Array, *, stops: bool) -> NDArray[np.bool_]:
        """Take some steps; say which of `order` came as far as they will."""
        self.times[order] = np.where(self._settled[order], until[order], self.times[order])
        moving = order[~self._settled[order]]
        explicit = moving[~np.isin(moving, list(self._stiff))]
        dop853.advance(
            *self._functions,
            explicit,
            until,
            STEPS_A_ROUND,
            stops,
            self._rtol,
            self._atol,
            dop853.tableau(),
            self._solutions,
            self._targets,
            self.states,
            self.times,
            self._systems,
            self._work,
        )
        for i in moving[self._solutions.stiff[moving] & (self._solutions.time[moving] < until[moving])].tolist():
            self._advance_stiff(i, until[i], stops=stops)
        ends = np.minimum(until, self._solutions.passages.max(axis=1, initial=-np.inf)) if stops else until
        reached: NDArray[np.bool_] = (self.times[order] >= ends[order]) | self.failed[order] | self.spent[order]
        return reached

    def _advance_stiff(self, i: int, until: float, *, stops: bool) -> None:
        found = self._solutions
        if i not in self._stiff:
            system = System(self._functions, i, self._systems, self._work)
            start, tolerance = (found.time[i], found.state[i].copy()), (self._rtol[i], self._atol[i])
            targets = self._targets[i], found.passages[i]
            self._stiff[i] = StiffSolution(system, *start, self._solutions.end[i], *tolerance, *targets)
        solution, before = self._stiff[i], self._stiff[i].steps
        solution.advance(until, min(STEPS_A_ROUND, int(found.left[i])), stops=stops)
        found.left[i] -= solution.steps - before
        found.failed[i] = solution.failed
        end = found.passages[i].max(initial=-np.inf) if stops and found.passages.shape[1] else np.inf
        self.times[i] = min(solution.time, until, end)
        self.states[i] = solution.at(self.times[i])

    def _let_settle(self, order: NDArray[np.intp]) -> None:
        """Leave where they are the solutions that have come to rest.

        A solution is tried when its last step moved all variables by less than their tolerances, and if it has not come
        to rest again after twice as many rounds.
        """
        found = self._solutions
        for i in order.tolist():
            self._rounds[i] += 1
            tolerance = self._atol[i] + self._rtol[i] * np.abs(self.states[i])
            if i in self._stiff:
                system, moved = self._stiff[i].system, self._stiff[i].moved
            else:
                system = System(self._functions, i, self._systems, self._work)
                moved = np.abs(found.slope[i]) * found.length[i]
            if self._rounds[i] >= self._next_trial[i] and (moved <= tolerance).all():
                self._settled[i] = settled(system, self.states[i], self._solutions.end[i] - self.times[i], tolerance)
                self._next_trial[i] = 2 * self._rounds[i]
