"""The rectified linear unit, σ(λ) = max(λ, 0)."""

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation


def value(field: float) -> float:
    """σ(λ) = max(λ, 0)."""
    return 0.0 if field < 0.0 else field


def derivative(field: float) -> float:
    """σ'(λ) = θ(λ), and 0 at the kink: a unit without weights rests."""
    return 1.0 if field > 0.0 else 0.0


ACTIVATIONS.add(Activation("relu", r"\max(\lambda, 0)", value, derivative, 1, hinges=(0.0, ((0.0, 1.0),))))
