"""Steps: what a step makes of the gradient of the weights, one rule per file."""

from sweeplib.problem.steps.step import STEPS, Rule, Step
from sweeplib.registry import import_modules

__all__ = ["STEPS", "Rule", "Step"]

import_modules(__name__, __path__)
