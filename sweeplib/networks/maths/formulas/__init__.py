"""Formulas of several fields, such as `lam1 + lam1*lam2 + he3(lam3)`, and sums of ridge functions equal to them.

`formula` parses, `exponents` has the information exponent and the leap exponent, `ridges` the sums.
"""

from sweeplib.networks.maths.formulas.formula import Formula, formula
from sweeplib.networks.maths.formulas.ridges import Ridge, is_constant, ridges

__all__ = ["Formula", "Ridge", "formula", "is_constant", "ridges"]
