"""Formulas of several fields, such as `lam1 + lam1*lam2 + he3(lam3)`, and sums of ridge functions equal to them.

Also those of the time, schedules of the learning rate.
"""

from sweeplib.maths.formulas.formula import Formula, formula
from sweeplib.maths.formulas.ridges import Ridge, is_constant, ridges
from sweeplib.maths.formulas.schedules import Schedule, canonical_schedule, schedule

__all__ = ["Formula", "Ridge", "Schedule", "canonical_schedule", "formula", "is_constant", "ridges", "schedule"]
