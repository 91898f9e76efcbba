"""Updates: what a step makes of the gradient of the weights, one rule per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.updates.update import UPDATES, Rule, Update

__all__ = ["UPDATES", "Rule", "Update"]

import_modules(__name__, __path__)
