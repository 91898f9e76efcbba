"""Targets: functions that a student can learn, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.targets.formulas import (
    canonical_target,
    registered_target,
    ridges_of,
    target,
    with_numbers,
)
from sweeplib.networks.problem.targets.target import TARGETS, Target

__all__ = ["TARGETS", "Target", "canonical_target", "registered_target", "ridges_of", "target", "with_numbers"]

import_modules(__name__, __path__)
