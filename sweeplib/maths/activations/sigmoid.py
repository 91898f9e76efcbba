"""The logistic sigmoid, σ(λ) = 1/(1 + e^{−λ})."""

import math

from sweeplib.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.maths.activations.logistic import HALF_TANH


def value(field: float) -> float:
    """σ(λ) = 1/(1 + e^{−λ}) = ½ + ½ tanh(λ/2)."""
    return 0.5 + 0.5 * math.tanh(0.5 * field)


def derivative(field: float) -> float:
    """σ'(λ) = e^{−|λ|}/(1 + e^{−|λ|})²."""
    tail = math.exp(-abs(field))
    return tail / ((1.0 + tail) * (1.0 + tail))


ACTIVATIONS.add(
    Activation(
        "sigmoid",
        r"1/(1 + e^{-\lambda})",
        value,
        derivative,
        1,
        error_functions=(0.5, tuple((0.5 * weight, slope) for weight, slope in HALF_TANH)),
    ),
)
