"""What can be recorded along a run: one observable a file."""

from sweeplib.observables.observable import OBSERVABLES, Observable, Snapshot
from sweeplib.registry import import_modules

__all__ = ["OBSERVABLES", "Observable", "Snapshot"]

import_modules(__name__, __path__)
