"""Losses: what SGD descends, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.losses.loss import LOSSES, Criterion, Loss

__all__ = ["LOSSES", "Criterion", "Loss"]

import_modules(__name__, __path__)
