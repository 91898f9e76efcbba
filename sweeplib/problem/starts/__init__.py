"""Starts: laws of the student's initial weights, one per file."""

from sweeplib.problem.starts.start import STARTS, Start
from sweeplib.registry import import_modules

__all__ = ["STARTS", "Start"]

import_modules(__name__, __path__)
