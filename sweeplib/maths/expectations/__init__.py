"""Gaussian expectations of up to four local fields, in closed form: one pair of activations a file."""

from sweeplib.maths.expectations.expectations import (
    EXPECTATIONS,
    Expectations,
    expectations,
)
from sweeplib.registry import import_modules

__all__ = ["EXPECTATIONS", "Expectations", "expectations"]

import_modules(__name__, __path__)
