"""The arithmetic of a config: expressions over the names of a grid, schedules, and names in formulas."""

from sweeplib.engine.language.expressions import Expression
from sweeplib.engine.language.names import FormulaWithNames
from sweeplib.engine.language.optimal import OptimalSchedule, canonical_schedule
from sweeplib.engine.language.reader import is_symbol
from sweeplib.engine.language.schedules import Schedule, schedule

__all__ = [
    "Expression",
    "FormulaWithNames",
    "OptimalSchedule",
    "Schedule",
    "canonical_schedule",
    "is_symbol",
    "schedule",
]
