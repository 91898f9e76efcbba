"""Targets: what a student can be asked to learn, one a file."""

from sweeplib.problem.targets.target import TARGETS, Target
from sweeplib.registry import import_modules

__all__ = ["TARGETS", "Target"]

import_modules(__name__, __path__)
