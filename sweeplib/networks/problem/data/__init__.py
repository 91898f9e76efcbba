"""Data laws: laws of the inputs and of the labels that come with them, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.data.data import DATA, Blocks, DataLaw

__all__ = ["DATA", "Blocks", "DataLaw"]

import_modules(__name__, __path__)
