"""The square of phase retrieval, σ(λ) = λ² (Arnaboldi et al. 2023, arXiv 2305.18502, eq. 3)."""

import math

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation


def value(field: float) -> float:
    """σ(λ) = λ²."""
    return field * field


def derivative(field: float) -> float:
    """σ'(λ) = 2λ."""
    return 2.0 * field


ACTIVATIONS.add(Activation("square", r"\lambda^2", value, derivative, 2, hermite=(1.0, 0.0, math.sqrt(2.0))))
