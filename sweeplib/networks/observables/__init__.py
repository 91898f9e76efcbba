"""Observables: quantities that can be recorded along a run, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.observables.observable import OBSERVABLES, Observable

__all__ = ["OBSERVABLES", "Observable"]

import_modules(__name__, __path__)
