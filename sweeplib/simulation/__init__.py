"""Simulation: runs of any dynamics with any observables, as arrays with a status or as a labelled Dataset."""

from sweeplib.numerics.sound_cache import keep_checksums
from sweeplib.simulation.cases import Case
from sweeplib.simulation.columns import Cases
from sweeplib.simulation.driver import case_memory, case_steps, case_work, run_cases
from sweeplib.simulation.labelled_runs import simulate
from sweeplib.simulation.recording import Recording
from sweeplib.simulation.variables import recorded_variables, stored_variables

keep_checksums()

__all__ = [
    "Case",
    "Cases",
    "Recording",
    "case_memory",
    "case_steps",
    "case_work",
    "recorded_variables",
    "run_cases",
    "simulate",
    "stored_variables",
]
