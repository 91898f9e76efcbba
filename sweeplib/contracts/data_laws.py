"""What every data law keeps.

Public functions of `name`, the registered name of a data law, are checks: each raises BrokenError with what is wrong,
and its own name is the sentence that it checks.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.contracts.check import require, require_equal, require_labelled
from sweeplib.contracts.problems import needed, two_values
from sweeplib.engine.status import Status
from sweeplib.networks.problem import DATA, Problem
from sweeplib.networks.simulation import Case, Recording, run_cases


def _with_data(name: str) -> Problem:
    """Return a problem whose data have the law."""
    law = DATA[name]
    values: dict[str, Any] = {"gamma": 0.2, "p": 2, "k": 1 if law.teacher else 0, "d": 400, "Delta": 0.0}
    return Problem(activation="erf", data=name, **values, **needed(law))


def sgd_learns_from_it(name: str) -> None:
    """Check that a short run of SGD ends ok, with a finite risk, and is the same again."""
    case = Case(_with_data(name), "sgd", 0, Recording((0.0, 0.5)))
    first, other = run_cases([case]), run_cases([case])
    require(first.status[0] == Status.ok, f"a run of SGD ends {Status(int(first.status[0])).name}")
    require(bool(np.isfinite(first.data["risk"]).all()), "the risk is not finite")
    require_equal(other.data["risk"], first.data["risk"], "the risk of the same run again")


def its_samples_change_with_its_parameters(name: str) -> None:
    """Check that samples change with its own parameters and with no other, and that it is labelled."""
    law = DATA[name]
    require(not law.reads, f"`reads` has {', '.join(sorted(law.reads))}; its functions have its own parameters alone")
    require_labelled(law, name, "label")
    for field in law.parameter_names:
        runs = (
            run_cases([Case(replace(_with_data(name), **{field: value}), "sgd", 0, Recording((0.5,)), pair_by=())])
            for value in two_values(field)
        )
        first, other = (run.data["risk"] for run in runs)
        require(not np.array_equal(first, other), f"the risk of SGD is the same with another {field}")


def its_expected_risk_is_that_of_its_samples(name: str) -> None:
    """Check the risk against the training risk of data sets of this law, without noise, at the start.

    They agree within five standard errors and 2 %.
    """
    problem = replace(_with_data(name), samples=4000)
    cases = [Case(problem, "sgd", seed, Recording((0.0,), (), ("risk", "training_risk"))) for seed in range(8)]
    data = run_cases(cases).data
    apart = (data["training_risk"] - data["risk"])[:, 0]
    error = max(apart.std(ddof=1) / math.sqrt(len(apart)), 1e-3 * abs(data["risk"].mean()))
    limit = 5.0 * error + 0.02 * abs(data["risk"].mean())
    problem_found = f"the risk is {data['risk'].mean():.4g}; over 4000 samples it is {data['training_risk'].mean():.4g}"
    require(bool(abs(apart.mean()) < limit), problem_found)
