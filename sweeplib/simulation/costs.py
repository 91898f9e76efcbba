"""What a case costs by a model: seconds of one core of 3 GHz, the same on every machine.

`plan` measures what cases take here. The model decides which rows a sweep has, and by which simulator; these must not
depend on the machine, or on what else it did when it was measured.
"""

from sweeplib.dynamics import DYNAMICS
from sweeplib.simulation.cases import Case
from sweeplib.simulation.driver import case_steps, case_work

SECONDS_A_WEIGHT = 1e-8
"""Seconds of a random weight of a start."""


def case_seconds(case: Case) -> float:
    """Return the seconds of a case that runs to its last recording time, with its start."""
    kind, problem = DYNAMICS[case.dynamics], case.problem
    of_work, of_step, of_unit = kind.cost_seconds
    steps = case_steps(case) / kind.step_length(problem, case.numerical_options())
    weights = (2.0 * problem.p + problem.k) * problem.d if "start" in kind.reads else 0.0
    return of_work * case_work(case) + steps * (of_step + of_unit * problem.p) + SECONDS_A_WEIGHT * weights
