"""The hyperbolic tangent, σ(λ) = tanh λ."""

import math

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.networks.maths.activations.sigmoid import HALF_TANH


def value(field: float) -> float:
    """σ(λ) = tanh λ."""
    return math.tanh(field)


def derivative(field: float) -> float:
    """σ'(λ) = 1 − tanh² λ, as 4 e^{−2|λ|}/(1 + e^{−2|λ|})², which does not cancel."""
    tail = math.exp(-2.0 * abs(field))
    return 4.0 * tail / ((1.0 + tail) * (1.0 + tail))


ACTIVATIONS.add(
    Activation(
        "tanh",
        r"\tanh \lambda",
        value,
        derivative,
        1,
        error_functions=(0.0, tuple((weight, 2.0 * slope) for weight, slope in HALF_TANH)),
    ),
)
