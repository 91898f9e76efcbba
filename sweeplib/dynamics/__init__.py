"""The dynamics, one per file: each advances replicas of one shape between recording times."""

from sweeplib.dynamics.dynamics import DYNAMICS, ONE_PASS, Dynamics, OverlapDynamics
from sweeplib.dynamics.replicas import Replicas
from sweeplib.registry import import_modules

__all__ = ["DYNAMICS", "ONE_PASS", "Dynamics", "OverlapDynamics", "Replicas"]

import_modules(__name__, __path__)
