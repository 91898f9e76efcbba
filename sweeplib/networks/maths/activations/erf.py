"""The error function of the soft committee machine, σ(λ) = erf(λ/√2) (Saad and Solla 1995, eq. 2)."""

import math

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation


def value(field: float) -> float:
    """σ(λ) = erf(λ/√2)."""
    return math.erf(field * math.sqrt(0.5))


def derivative(field: float) -> float:
    """σ'(λ) = √(2/π) exp(−λ²/2)."""
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * field * field)


ACTIVATIONS.add(
    Activation("erf", r"\mathrm{erf}(\lambda/\sqrt{2})", value, derivative, 1, error_functions=(0.0, ((1.0, 1.0),))),
)
