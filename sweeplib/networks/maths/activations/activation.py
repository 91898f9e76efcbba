"""Activation: an activation function with its properties."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from sweeplib.engine.base.registry import Registry


@dataclass(frozen=True)
class Activation:
    """An activation σ with its derivative, its information exponent, and its form, if it has one.

    name : as configs write it. label : LaTeX without dollars.
    value, derivative : functions from float to float, in plain Python that numba compiles for the simulation kernels,
        where `math.exp`, `math.erf` and `math.tanh` become vector instructions.
    information_exponent : order of the first non-zero Hermite coefficient of σ(z), z ~ N(0, 1), beyond the constant.
    hermite : the coefficients c_0, c_1, ... of a polynomial σ(z) = Σ c_n He_n(z)/√n!.
    error_functions : (offset, ((weight, slope), ...)) of σ(z) = offset + Σ weight · erf(slope · z/√2).
    hinges : (offset, ((knot, jump), ...)) of σ(z) = offset + Σ jump · max(z − knot, 0), knots ascending.

    `hermite` or `error_functions` gives Gaussian expectations in closed form, `hinges` those of two fields; otherwise
    quadrature is used.
    """

    name: str
    label: str
    value: Callable[[float], float]
    derivative: Callable[[float], float]
    information_exponent: int
    hermite: tuple[float, ...] | None = None
    error_functions: tuple[float, tuple[tuple[float, float], ...]] | None = None
    hinges: tuple[float, tuple[tuple[float, float], ...]] | None = None


def lipschitz(activation: Activation) -> float:
    """A bound of |σ'|, by the form of the activation; infinite if none is known."""
    if activation.error_functions is not None:
        _, terms = activation.error_functions
        return math.sqrt(2.0 / math.pi) * sum(abs(weight * slope) for weight, slope in terms)
    if activation.hinges is not None:
        _, hinges = activation.hinges
        # the slopes between the knots
        return max(map(abs, accumulate(jump for _, jump in hinges)))
    return math.inf


@lru_cache
def misfits(activation: Activation) -> tuple[float, float]:
    """The largest differences of an activation and of its slope to their sums of error functions; 0 for mere rounding.

    The sums for tanh and sigmoid are approximations.
    """
    if activation.error_functions is None:
        return 0.0, 0.0
    (offset, terms), root, worst = activation.error_functions, math.sqrt(0.5), [0.0, 0.0]
    for x in (0.05 * place for place in range(241)):
        form = offset + sum(weight * math.erf(slope * root * x) for weight, slope in terms)
        slopes = (weight * slope * math.exp(-0.5 * (slope * x) ** 2) for weight, slope in terms)
        differences = form - activation.value(x), math.sqrt(2.0 / math.pi) * sum(slopes) - activation.derivative(x)
        worst = [max(largest, abs(off)) for largest, off in zip(worst, differences, strict=True)]
    of_value, of_slope = (off if off > 1e-14 else 0.0 for off in worst)
    return of_value, of_slope


def kink(activation: Activation) -> float:
    """The jump of an activation's slope at zero, 0 without one."""
    near, far = (activation.derivative(step) - activation.derivative(-step) for step in (1e-9, 2e-9))
    # a smooth slope changes by 2e-9 σ'' in between, and twice as much over twice the distance
    return near if abs(near) > 1e-6 and abs(far) < 1.5 * abs(near) else 0.0


def hinges_of(activation: Activation) -> tuple[float, tuple[tuple[float, float], ...]]:
    """The part of an activation with jumps of its slope that are known: a constant, and pairs (place, jump)."""
    if activation.hinges is not None:
        return activation.hinges
    jump = kink(activation)
    return 0.0, ((0.0, jump),) if jump else ()


def kinks(activation: Activation) -> tuple[float, ...]:
    """The places where the slope of an activation is known to jump."""
    return tuple(place for place, _ in hinges_of(activation)[1])


def bends_off_zero(activation: Activation) -> bool:
    """Whether the slope is known to jump elsewhere than at zero, which quadrature of drifts does not resolve."""
    return any(place != 0.0 for place in kinks(activation))


ACTIVATIONS: Registry[Activation] = Registry("activation")
"""The activations of the modules of this folder and of plugins, by name."""
