"""Many solutions of the overlaps' ODE at one tolerance, by whichever method each needs.

All begin with the compiled explicit method (`explicit`). One that becomes stiff goes on with an implicit method, one
that all but rests with the linearised flow (`stiff`). `order` (m,) are the numbers, of n, of the solutions that a call
is about; arrays (n,), such as `until`, have all solutions.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.integrators import dop853, explicit, floors
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.numerics.integrators.solutions import solutions_at_start
from sweeplib.networks.numerics.integrators.stiff import LinearFlow, StiffSolution, StiffSystem
from sweeplib.networks.numerics.python_calls import compiled

STEPS_A_ROUND = 200
"""Steps of each solution after which the clock is looked at."""
FEWEST_STEPS = 100
"""The linearised flow is tried where it spares more steps than these, and one a variable."""
MOST_VARIABLES = 2000
"""Larger systems have no Jacobian: they go on with explicit steps, however many stability asks for."""


def _fill_levels(equations, order, states, out):  # type: ignore[no-untyped-def]
    """Fill out (len(order),) with the level of each solution in `order`: a number whose passages are noted.

    equations : the `Calls`. states (n, size) : of all solutions.
    """
    for place, i in enumerate(order):
        out[place] = equations.level_of(i, states[i], equations.arguments)


class Integration:
    """n solutions from time zero on, each with its own tolerance.

    `states` (n, size) and `times` (n,) are where they came.

    ends (n,) : the last times that will be needed.
    targets (n, T) : the values of the level, such as the risk, whose passages are noted.
    max_steps, longest (n,) : how many steps each solution may take, and the longest ones.
    steps_a_round : after so many steps of each the clock is looked at; `STEPS_A_ROUND` for None.
    beyond : function (number, state (size,)) : from where a solution goes on that fails at a singular point, or None.
    after : solutions at whose times and with whose steps left these begin.
    trembling : whether the solutions tell what rounding does (`floors`).
    The tolerances of small variables follow their sizes.
    """

    def __init__(
        self,
        equations: Equations,
        states: Array,
        ends: Array,
        *,
        rtol: Array,
        atol: Array,
        targets: Array,
        max_steps: int,
        longest: Array | None = None,
        steps_a_round: int | None = None,
        beyond: Callable[[int, Array], Array | None] = lambda _, state: None,
        after: "Integration | None" = None,
        trembling: bool = False,
    ) -> None:
        longest = np.full(len(states), np.inf) if longest is None else longest
        self._steps_a_round, self._explicit_only = steps_a_round or STEPS_A_ROUND, states.shape[1] > MOST_VARIABLES
        self._equations, self._rtol, self._targets = equations, rtol, targets
        self._beyond = beyond
        small = floors.relative_tolerances(rtol, atol), floors.tremor(states) if trembling else np.zeros(states.shape)
        constants = {"rtol": rtol, "relative": small[0], "tremor": small[1], "end": ends, "longest": longest}
        self._solutions = solutions_at_start(states, max_steps, atol, targets, **constants)
        # by number of the solution; a system is what both of its integrators call
        self._stiff: dict[int, StiffSolution] = {}
        self._flows: dict[int, LinearFlow] = {}
        self._systems: dict[int, StiffSystem] = {}
        # of each solution: rounds so far, and the one from which on the linearised flow is tried again
        self._rounds, self._next_trial = np.zeros((2, len(states)), dtype=np.int64)
        self.states, self.times = states.copy(), np.zeros(len(states))
        if after is not None:
            # begin where the others came, with the steps that they have left
            self.times[:] = self._solutions.time[:] = self._solutions.before[:] = after.times
            self._solutions.failed[:], self._solutions.budget[:] = after.failed, after.steps_left

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which solutions (n,) could take no further step."""
        return self._solutions.failed

    @property
    def passages(self) -> Array:
        """When each target was first reached (n, T), inf where it was not."""
        return self._solutions.passages

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which solutions (n,) have a variable that began small and whose growth rounding hides."""
        return self._solutions.hidden

    @property
    def passage_rates(self) -> Array:
        """The time derivatives of the level at the passages (n, T), NaN before."""
        return self._solutions.rates

    @property
    def passing(self) -> Array:
        """The states at the passages (n, T, size)."""
        return self._solutions.passing

    def levels(self, order: NDArray[np.intp]) -> Array:
        """The levels (len(order),) of the present states of the solutions in `order`."""
        values = np.empty(len(order))
        compiled(_fill_levels)(self._equations.calls, order, self.states, values)
        return values

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """How many right-hand sides were taken for each solution (n,)."""
        of_implicit = np.zeros(len(self.times), dtype=np.int64)
        for i, system in self._systems.items():
            of_implicit[i] = system.evaluations
        return self._solutions.evaluations + of_implicit

    @property
    def steps_left(self) -> NDArray[np.int64]:
        """The steps that each solution (n,) may still take."""
        return self._solutions.budget

    @property
    def spent(self) -> NDArray[np.bool_]:
        """Which solutions (n,) may take no further step."""
        return self.steps_left <= 0

    def advance(self, order: NDArray[np.intp], until: Array, *, stops: bool, late: Callable[[], bool]) -> None:
        """Bring the solutions in `order` to the times `until` (n,), or to failure, their last step, or their deadline.

        One that `stops` goes no further than its last passage. `late()` says whether the time is up, and is called
        every round.
        """
        while (order := order[~self._round(order, until, stops=stops)]).size and not late():
            for i in order.tolist() if not self._explicit_only else ():
                self._linearise(i)

    def _round(self, order: NDArray[np.intp], until: Array, *, stops: bool) -> NDArray[np.bool_]:
        """Take some steps of the solutions in `order`; return of each whether it came as far as it will."""
        solutions = self._solutions
        implicit = np.isin(order, [*self._stiff, *self._flows])
        compiled(explicit.advance)(
            self._equations.calls,
            order[~implicit],
            until,
            self._steps_a_round,
            stops,
            dop853.tableau(),
            solutions,
            self.states,
            self.times,
        )
        if self._explicit_only:
            solutions.stiff[:] = False
        for i in order.tolist():
            if i in self._flows:
                self._follow(i, until[i])
            elif i in self._stiff or (solutions.stiff[i] and solutions.time[i] < until[i]):
                self._advance_stiff(i, until[i], stops=stops)
        ends = np.minimum(until, solutions.passages.max(axis=1, initial=-np.inf)) if stops else until
        return (self.times[order] >= ends[order]) | self.failed[order] | self.spent[order]

    def _advance_stiff(self, i: int, until: float, *, stops: bool) -> None:
        """Carry stiff solution i on by its implicit integrator to `until`, or to its last passage if it `stops`."""
        solutions = self._solutions
        if i not in self._stiff:
            self._stiff[i] = self._implicit(i, solutions.time[i], solutions.state[i].copy())
        solution, before = self._stiff[i], self._stiff[i].steps
        solution.advance(until, min(self._steps_a_round, int(solutions.budget[i])), stops=stops)
        solutions.budget[i] -= solution.steps - before
        solutions.failed[i] = solution.failed
        end = solutions.passages[i].max(initial=-np.inf) if stops and solutions.passages.shape[1] else np.inf
        self.times[i] = min(solution.time, until, end)
        self.states[i] = solution.at(self.times[i])
        if solution.failed and (state := self._beyond(i, self.states[i])) is not None:
            solutions.failed[i], self.states[i] = False, state
            self._stiff[i] = self._implicit(i, self.times[i], state)

    def _implicit(self, i: int, time: float, state: Array) -> StiffSolution:
        """The implicit continuation of solution i from this time and state on."""
        solutions = self._solutions
        tolerances = self._rtol[i], solutions.floor[i].copy()
        targets = self._targets[i], solutions.passages[i], solutions.rates[i], solutions.passing[i]
        return StiffSolution(
            self._system(i), time, state, solutions.end[i], *tolerances, *targets, solutions.longest[i]
        )

    def _system(self, i: int) -> StiffSystem:
        """The system of solution i as implicit methods call it."""
        if i not in self._systems:
            self._systems[i] = StiffSystem(self._equations, i)
        return self._systems[i]

    def _follow(self, i: int, until: float) -> None:
        """Carry solution i on by its linearised flow to `until`; where the flow ends before, by implicit steps."""
        flow = self._flows[i]
        self.times[i] = min(until, flow.end)
        self.states[i] = flow.at(self.times[i])
        if self.times[i] < until:
            del self._flows[i]
            self._stiff[i] = self._implicit(i, self.times[i], self.states[i].copy())

    def _linearise(self, i: int) -> None:
        """Let the linearised flow carry on solution i if it crawls, and if the flow spares many of its steps.

        A solution is tried when its last step moved all variables by less than their tolerances, and if that was in
        vain again after twice as many rounds.
        """
        solutions, size = self._solutions, self.states.shape[1]
        if i in self._flows:
            return
        if i in self._stiff:
            time, state, step = self._stiff[i].time, self._stiff[i].state, self._stiff[i].step
        else:
            time, state, step = solutions.time[i], solutions.state[i].copy(), solutions.length[i]
        if step == 0.0:  # an implicit method that has just begun: how far its steps reach is not known
            return
        self._rounds[i] += 1
        tolerance, span = solutions.floor[i] + self._rtol[i] * np.abs(state), solutions.end[i] - time
        moved = step * np.abs(self._system(i).slope(time, state))
        spared = FEWEST_STEPS * max(step, np.spacing(time))  # never a flow without progress
        if self._rounds[i] < self._next_trial[i] or span <= spared + size * step or (moved > tolerance).any():
            return
        self._next_trial[i] = 2 * self._rounds[i]
        flow = LinearFlow(self._system(i), time, state)
        # to the end, or to a tenth of the way, a hundredth, ...
        ends = (solutions.end[i] if n == 0 else time + span / 10.0**n for n in range(7) if span > spared * 10**n)
        if any(flow.reaches(end, tolerance) for end in ends) and not self._passes(i, flow):
            self._flows[i], self._next_trial[i] = flow, 0

    def _passes(self, i: int, flow: LinearFlow) -> bool:
        """Whether the level of solution i comes to a target that waits at the end of the flow."""
        waiting = self._targets[i][np.isinf(self._solutions.passages[i])]
        return bool((self._system(i).level(flow.at(flow.end)) <= waiting).any())
