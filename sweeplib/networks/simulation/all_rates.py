"""Records of cases that differ in γ alone from one solution: that of dynamics on whose times γ does not act."""

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.records import Records
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.simulation.columns import Cases

IN_STEPS = {"end_steps": "end_time", "exit_steps": "exit_time", "exit_steps_error": "exit_time_error"}
"""The variables that count steps, with those that have the same as ODE times."""


def at_all_rates(cases: Cases, solved: Records, places: NDArray[np.intp]) -> Records:
    """The records of cases whose solutions, but for counts of steps, are those `solved` at some `places` (n,)."""
    data = {name: values[places] for name, values in solved.data.items()}
    T = cases.numbers(lambda case: DYNAMICS[case.dynamics].step_time(case.problem, case.numerical_options()))
    for name in data.keys() & IN_STEPS.keys():
        times = data[IN_STEPS[name]]
        data[name] = times / T.reshape(-1, *[1] * (times.ndim - 1))
    excess = {at: solved.excess[place] for at, place in enumerate(places.tolist()) if place in solved.excess}
    return Records(data, solved.status[places], excess)
