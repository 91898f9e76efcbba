"""Activation functions: one a file, each with what the theory needs to know of it."""

from sweeplib.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.registry import import_modules

__all__ = ["ACTIVATIONS", "Activation"]

import_modules(__name__, __path__)
