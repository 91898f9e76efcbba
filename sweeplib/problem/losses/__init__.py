"""Losses: what SGD descends, one per file."""

from sweeplib.problem.losses.loss import LOSSES, Criterion, Loss
from sweeplib.registry import import_modules

__all__ = ["LOSSES", "Criterion", "Loss"]

import_modules(__name__, __path__)
