"""The arithmetic of a config: expressions over the names of a grid, schedules, and names in formulas."""

from sweeplib.language.expressions import Expression
from sweeplib.language.names import FormulaWithNames
from sweeplib.language.optimal import OptimalSchedule, canonical_schedule
from sweeplib.language.reader import is_symbol
from sweeplib.language.schedules import Schedule, schedule

__all__ = [
    "Expression",
    "FormulaWithNames",
    "OptimalSchedule",
    "Schedule",
    "canonical_schedule",
    "is_symbol",
    "schedule",
]
