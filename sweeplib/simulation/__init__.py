"""The one driver: any dynamics, any observables, to numbers with a status or to a labelled Dataset."""

from sweeplib.simulation.cases import Case, Recording, Status
from sweeplib.simulation.driver import Records, case_work, run_cases
from sweeplib.simulation.labelled import simulate
from sweeplib.simulation.variables import Variable, recorded_variables

__all__ = [
    "Case",
    "Recording",
    "Records",
    "Status",
    "Variable",
    "case_work",
    "recorded_variables",
    "run_cases",
    "simulate",
]
