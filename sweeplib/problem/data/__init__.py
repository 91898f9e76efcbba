"""Data laws: laws of the inputs and of the labels that come with them, one per file."""

from sweeplib.problem.data.data import DATA, Blocks, DataLaw
from sweeplib.registry import import_modules

__all__ = ["DATA", "Blocks", "DataLaw"]

import_modules(__name__, __path__)
