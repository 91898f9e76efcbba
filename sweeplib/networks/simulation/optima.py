"""The optimal schedules of cases: what each is, and what is recorded of it.

A schedule is optimal for the ODE (`Case.of_ode`), on the mean over some starts of its problem.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sweeplib.networks.dynamics.optimal_schedule import Optimum
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.initial import Initial

SAME_STARTS = 1e-12
"""The largest difference of the overlaps and second layers of starts that are the same but for rounding."""


@dataclass(frozen=True)
class ScheduleOfCase:
    """A schedule as a formula, with what is recorded of it beside the results of a run, by name."""

    formula: str
    recorded: dict[str, NDArray[np.float64]]


def schedule_of(case: Case, initial: Initial) -> ScheduleOfCase | None:
    """The optimal schedule of a case, for its starts or for `initial`; None for a case that is given its schedule."""
    optimal = case.problem.optimal
    if optimal is None:
        return None
    ode, (knots, starts) = case.of_ode(), (optimal.knots, optimal.starts)
    if initial is None:
        optimum = _known_optimum(ode, ode.problem.text, knots, starts)
    else:
        optimum = _optimum(ode, knots, starts, initial)
    recorded = {"schedule_rate": optimum.rates, "schedule_risk": optimum.risk, "schedule_gradient": optimum.gradient}
    formula = optimal.through(optimum.rates.tolist(), ode.recording.times[-1])
    return ScheduleOfCase(formula, {name: np.asarray(value) for name, value in recorded.items()})


@lru_cache(maxsize=1024)
def _known_optimum(case: Case, text: str, knots: int, starts: int) -> Optimum:
    """The optimum of a case on the mean over random starts, which is remembered.

    text : the problem's, by which cases are told apart too: 0.0 and -0.0 are equal numbers.
    """
    return _optimum(case, knots, starts, None)


def _optimum(case: Case, knots: int, starts: int, initial: Initial) -> Optimum:
    """The schedule of `knots` factors that is best on the mean over `starts` starts of a case's problem.

    If all starts are the same but for rounding, one serves.
    """
    from sweeplib.networks.dynamics.optimal_schedule import optimal_schedule
    from sweeplib.networks.simulation.driver import replicas_of  # which imports this module

    single, many = (replicas_of(Cases.with_seeds(case, range(count)), initial) for count in (1, starts))
    states = many.Q, many.M, many.P, many.a
    same = all(np.ptp(values, axis=0).max(initial=0.0) <= SAME_STARTS for values in states)
    return optimal_schedule(single if same else many, knots)
