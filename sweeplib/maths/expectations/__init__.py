"""Gaussian expectations of up to four local fields: one family of pairs of activations per file."""

from sweeplib.maths.expectations.expectations import FAMILIES, SLOW, Expectations, Family, Risks, expectations
from sweeplib.registry import import_modules

__all__ = ["FAMILIES", "SLOW", "Expectations", "Family", "Risks", "expectations"]

import_modules(__name__, __path__)
