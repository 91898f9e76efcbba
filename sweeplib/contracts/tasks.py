"""What every course of tasks keeps.

Public functions of `name`, the registered name of a course, are checks: each raises BrokenError with what is wrong, and
its own name is the sentence that it checks.
"""

from dataclasses import replace

import numpy as np

from sweeplib.contracts.check import require, require_equal
from sweeplib.contracts.problems import CHANGED, needed
from sweeplib.networks.problem import TASKS
from sweeplib.networks.simulation import Case, Recording, run_cases


def its_tasks_are_learned(name: str) -> None:
    """Check that its course is one of tasks of the teacher's rows, and that the ODE learns them in its order."""
    problem = replace(CHANGED, k=2, tasks=name, **needed(TASKS[name]))
    course = problem.course
    require(all(len(a_star) == problem.k for a_star in course.a_star), "a task has not k numbers in a_star")
    require(set(course.order) == set(range(len(course.a_star))), f"its order {course.order} is not one of its tasks")
    require(list(course.switches) == sorted(course.switches), f"its switches {course.switches} are in no order")
    require(len(course.switches) == len(course.order) - 1, "it has not one switch between two phases")
    ends = (*course.switches, 2.0 + max(course.switches, default=0.0))
    result = run_cases([Case(problem, "ode", 0, Recording(ends, (), ("risk", "risk_of_task")))]).data
    risks_of_task = result["risk_of_task"][0, np.arange(len(ends)), list(course.order)]
    require_equal(result["risk"][0], risks_of_task, "the risk at the ends of its phases", rtol=1e-12)
