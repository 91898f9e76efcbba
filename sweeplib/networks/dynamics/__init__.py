"""The dynamics, one per file: each advances replicas of one shape between recording times.

`dynamics` is their base, and modules `*_dynamics` are those of several; `replicas` has what runs begin with.
`block_equations`, `label_means`, `lessons`, `map_steps` and `step_moments` are parts of single ones.
"""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.dynamics.dynamics import DYNAMICS, ONE_PASS, Dynamics
from sweeplib.networks.dynamics.overlap_dynamics import OverlapDynamics
from sweeplib.networks.dynamics.replicas import Replicas

__all__ = ["DYNAMICS", "ONE_PASS", "Dynamics", "OverlapDynamics", "Replicas"]

import_modules(__name__, __path__)
