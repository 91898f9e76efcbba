"""The dynamics: one description a file, each advancing replicas of one shape from record to record."""

from sweeplib.dynamics.dynamics import DYNAMICS, Dynamics
from sweeplib.dynamics.replicas import Replicas
from sweeplib.registry import import_modules

__all__ = ["DYNAMICS", "Dynamics", "Replicas"]

import_modules(__name__, __path__)
