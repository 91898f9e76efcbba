"""Observables: quantities that can be recorded along a run, one per file."""

from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.registry import import_modules

__all__ = ["OBSERVABLES", "Observable"]

import_modules(__name__, __path__)
