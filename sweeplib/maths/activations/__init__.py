"""Activation functions, one per file, with the properties that the theory needs."""

from sweeplib.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.maths.activations.named import activation
from sweeplib.registry import import_modules

__all__ = ["ACTIVATIONS", "Activation", "activation"]

import_modules(__name__, __path__)
