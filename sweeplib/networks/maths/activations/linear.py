"""The identity of linear networks, σ(λ) = λ."""

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation


def value(field: float) -> float:
    """σ(λ) = λ."""
    return field


def derivative(field: float) -> float:
    """σ'(λ) = 1."""
    return 1.0


ACTIVATIONS.add(Activation("linear", r"\lambda", value, derivative, 1, hermite=(0.0, 1.0)))
