"""Simulation: runs of any dynamics with any observables, as arrays with a status or as a labelled Dataset."""

from sweeplib.numerics.sound_cache import keep_checksums
from sweeplib.simulation.cases import Case
from sweeplib.simulation.columns import Cases
from sweeplib.simulation.driver import Begun, Records, case_memory, case_steps, case_work, run_cases
from sweeplib.simulation.labelled_runs import simulate
from sweeplib.simulation.recording import FAILURES, OUTCOMES, Excess, Recording, Status, failed, outcomes
from sweeplib.simulation.variables import Variable, recorded_variables, stored_variables

keep_checksums()

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
    "case_steps",
    "case_work",
    "failed",
    "outcomes",
    "recorded_variables",
    "run_cases",
    "simulate",
    "stored_variables",
]
