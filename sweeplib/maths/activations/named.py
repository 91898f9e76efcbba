"""Activations by name."""

from sweeplib.maths.activations.activation import ACTIVATIONS, Activation


def activation(name: str) -> Activation:
    """The activation of that name. Raises UnknownNameError, with the nearest one, where there is none."""
    return ACTIVATIONS[name]
