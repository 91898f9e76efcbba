"""The Hermite polynomials h_n(λ) = He_n(λ)/√n!, orthonormal under N(0, 1), and finite series of them.

He_n(λ) = n! Σ_m (−1/2)^m λ^(n−2m)/(m! (n−2m)!): the probabilists' polynomials (O'Donnell, Analysis of Boolean
Functions, chapter 11.2). A series σ = Σ c_n h_n has the name `hermite(c_0, c_1, ...)`.
"""

import math
from typing import Any

from sweeplib.errors import InputError
from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation
from sweeplib.networks.maths.activations.named import FORMS, spelled
from sweeplib.networks.numerics.binding import bound

MAX_DEGREE = 8
"""The highest degree of a polynomial activation."""

descending: tuple[float, ...] = ()
"""Bound in `polynomial`: the coefficients, the one of the highest power first."""


def polynomial(field: float) -> float:
    """The polynomial Σ_j s_j λ^j at a field λ, whose coefficients s_j are bound to `descending`, the highest first."""
    result = 0.0
    for coefficient in descending:
        result = result * field + coefficient
    return result


def power_coefficients(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients s_j of powers, Σ_n c_n h_n(λ) = Σ_j s_j λ^j: s_j = Σ_m c_(j+2m) √(j+2m)! (−1/2)^m/(m! j!)."""
    return tuple(
        math.fsum(
            coefficients[n] * math.sqrt(math.factorial(n)) * (-0.5) ** m / (math.factorial(m) * math.factorial(j))
            for m, n in enumerate(range(j, len(coefficients), 2))
        )
        for j in range(len(coefficients))
    )


def _has_finite_powers(coefficients: tuple[float, ...]) -> bool:
    """Whether the coefficients of the powers, and those of the slope, are finite numbers."""
    try:
        return all(math.isfinite(j * power) for j, power in enumerate(power_coefficients(coefficients)))
    except (ValueError, OverflowError):  # sums of infinite terms
        return False


def hermite_series(coefficients: tuple[float, ...]) -> Activation:
    """The activation Σ c_n He_n/√n! of coefficients c_0, c_1, ...

    InputError where it is constant, or of a degree beyond MAX_DEGREE.
    """
    degree = max((n for n, c in enumerate(coefficients) if c != 0.0), default=0)
    name = spelled("hermite", coefficients)
    if degree == 0:
        raise InputError("a constant activation", value=name, expected="a coefficient beyond the constant")
    if degree > MAX_DEGREE:
        expected = f"at most {MAX_DEGREE}, that is {MAX_DEGREE + 1} coefficients"
        raise InputError(f"too high a degree, {degree}", value=name, expected=expected)
    terms = coefficients[: degree + 1]
    if not _has_finite_powers(terms):
        raise InputError("too large coefficients", value=name, expected="powers of the field with finite coefficients")
    label = " + ".join(f"{c:.4g}\\,h_{{{n}}}(\\lambda)" for n, c in enumerate(terms) if c != 0.0)
    return Activation(spelled("hermite", terms), label.replace("+ -", "- "), **_series(terms))


def _series(coefficients: tuple[float, ...]) -> dict[str, Any]:
    """The arguments of the `Activation` that is a series with these coefficients."""
    powers = power_coefficients(coefficients)
    slopes = tuple(j * power for j, power in enumerate(powers))[1:]
    return {
        "value": bound(polynomial, descending=powers[::-1]),
        "derivative": bound(polynomial, descending=slopes[::-1]),
        "information_exponent": next(n for n, c in enumerate(coefficients) if n > 0 and c != 0.0),
        "hermite": coefficients,
    }


FORMS.register("hermite", hermite_series)
for order in range(1, 7):
    ACTIVATIONS.register(
        f"he{order}",
        Activation(
            f"he{order}", rf"\mathrm{{He}}_{order}(\lambda)/\sqrt{{{order}!}}", **_series((0.0,) * order + (1.0,))
        ),
    )
