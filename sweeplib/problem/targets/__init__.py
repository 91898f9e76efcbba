"""Targets: functions that a student can learn, one per file."""

from sweeplib.problem.targets.formulas import canonical_target, registered_target, target, with_numbers
from sweeplib.problem.targets.target import TARGETS, Target
from sweeplib.registry import import_modules

__all__ = ["TARGETS", "Target", "canonical_target", "registered_target", "target", "with_numbers"]

import_modules(__name__, __path__)
