"""Activation functions: one a file, each with what the theory needs to know of it."""

from sweeplib.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.maths.activations.named import activation
from sweeplib.registry import import_modules

__all__ = ["ACTIVATIONS", "Activation", "activation"]

import_modules(__name__, __path__)
