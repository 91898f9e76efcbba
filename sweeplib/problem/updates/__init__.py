"""Updates: what a step makes of the gradient of the weights, one rule per file."""

from sweeplib.problem.updates.update import UPDATES, Rule, Update
from sweeplib.registry import import_modules

__all__ = ["UPDATES", "Rule", "Update"]

import_modules(__name__, __path__)
