"""Simulation: runs of any dynamics with any observables, as arrays with a status or as a labelled Dataset."""

from sweeplib.networks.numerics.sound_cache import keep_checksums
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.driver import case_memory, case_steps, case_work, run_cases
from sweeplib.networks.simulation.labelled_runs import simulate
from sweeplib.networks.simulation.recording import Recording
from sweeplib.networks.simulation.variables import recorded_variables, stored_variables

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
