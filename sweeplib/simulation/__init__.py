"""Simulation: runs of any dynamics with any observables, as arrays with a status or as a labelled Dataset."""

from typing import Any

from sweeplib.simulation.cases import Case
from sweeplib.simulation.columns import Cases
from sweeplib.simulation.costs import case_seconds
from sweeplib.simulation.driver import Begun, Records, case_memory, case_steps, case_work, run_cases
from sweeplib.simulation.recording import FAILURES, OUTCOMES, Excess, Recording, Status, failed, outcomes
from sweeplib.simulation.variables import Variable, recorded_variables, stored_variables

__all__ = [
    "FAILURES",
    "OUTCOMES",
    "Begun",
    "Case",
    "Cases",
    "Excess",
    "Recording",
    "Records",
    "Status",
    "Variable",
    "case_memory",
    "case_seconds",
    "case_steps",
    "case_work",
    "failed",
    "outcomes",
    "recorded_variables",
    "run_cases",
    "simulate",
    "stored_variables",
]


def __getattr__(name: str) -> Any:
    """`simulate`, imported when it is first asked for: xarray takes as long to import as all the rest."""
    if name == "simulate":
        from sweeplib.simulation.labelled_runs import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
