"""Activation functions, one per file, with the properties that the theory needs; `activation` finds one by its name."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.networks.maths.activations.named import activation

__all__ = ["ACTIVATIONS", "Activation", "activation"]

import_modules(__name__, __path__)
