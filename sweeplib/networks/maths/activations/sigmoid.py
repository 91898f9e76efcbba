"""The logistic sigmoid, σ(λ) = 1/(1 + e^{−λ}), and the sum of error functions that stands for tanh and sigmoid."""

import math

from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation

HALF_TANH: tuple[tuple[float, float], ...] = (
    (0.001725285058559966, 0.2409066698531198),
    (0.030588430146303327, 0.3123607787049879),
    (0.13666303116507864, 0.40050136832017935),
    (0.27712933315675625, 0.5129571436681918),
    (0.31217340200229793, 0.6559848014600373),
    (0.18948283459369247, 0.8362457038080815),
    (0.04918969416361819, 1.064959135504642),
    (0.0030479861249711844, 1.3705283537479946),
)
"""The pairs (weight, slope) of tanh(x/2) ≈ Σ weight · erf(slope · x/√2)."""


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
