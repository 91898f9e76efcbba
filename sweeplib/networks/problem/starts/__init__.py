"""Starts: laws of the student's initial weights, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.starts.start import STARTS, Start

__all__ = ["STARTS", "Start"]

import_modules(__name__, __path__)
