"""What can be recorded along a run: one observable a file."""

from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.registry import import_modules

__all__ = ["OBSERVABLES", "Observable"]

import_modules(__name__, __path__)
