"""Gaussian expectations of up to four local fields: one family of pairs of activations per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.maths.expectations.expectations import FAMILIES, SLOW, Expectations, Family, Risks, expectations

__all__ = ["FAMILIES", "SLOW", "Expectations", "Family", "Risks", "expectations"]

import_modules(__name__, __path__)
