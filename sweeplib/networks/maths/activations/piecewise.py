"""Continuous piecewise linear activations, constant outside their knots.

`piecewise(x_1, y_1, x_2, y_2, ...)` is linear from (x_1, y_1) to (x_2, y_2) and so on, y_1 to the left of x_1, and its
last y to the right. At a knot the derivative is the one to the right. An example is the activation of Mei, Montanari
and Nguyen (arXiv 1804.06561) for two isotropic Gaussians, `piecewise(0.5, -2.5, 1.5, 7.5)`.

With jumps κ_j of the slope at the knots c_j, σ'' = Σ κ_j δ(· − c_j), so that the Hermite coefficients are
E[σ(z) He_1(z)] = Σ κ_j Φ(−c_j) and E[σ(z) He_n(z)] = Σ κ_j He_(n−2)(c_j) φ(c_j) for n ≥ 2.
"""

import math
from itertools import pairwise

from sweeplib.errors import InputError
from sweeplib.networks.maths.activations.activation import Activation
from sweeplib.networks.maths.activations.named import FORMS, PATTERNS, spelled
from sweeplib.networks.numerics.binding import bound

PATTERN = "piecewise(x1, y1, x2, y2, ...)"
"""How names are written, for messages."""
MOST_KNOTS = 32
"""The most knots of an activation."""
HIGHEST_ORDER = 40
"""The highest order in which a Hermite coefficient is looked for."""

start = 0.0
"""Bound in `value`: the value to the left of all knots."""
pieces: tuple[tuple[float, float, float], ...] = ()
"""Bound in `value` and `derivative`: left end, right end and slope of each piece."""


def value(field: float) -> float:
    """The value to the left, `start`, plus the rise along each of the `pieces` up to the field."""
    result = start
    for left, right, slope in pieces:
        # the field, or the end of the piece beyond which it lies, without branches
        inside = right if field > right else field
        inside = left if inside < left else inside
        result += slope * (inside - left)
    return result


def derivative(field: float) -> float:
    """The slope of the one of the `pieces`, which are bound in, that contains the field or begins there; else zero."""
    result = 0.0
    for left, right, slope in pieces:
        result += slope if (field >= left) & (field < right) else 0.0
    return result


def piecewise(numbers: tuple[float, ...]) -> Activation:
    """The activation of these numbers, knots and values in turn.

    InputError where they are no piecewise linear activation, or a constant one.
    """
    name, (knots, values) = spelled("piecewise", numbers), (numbers[::2], numbers[1::2])
    if len(numbers) % 2 or not 2 <= len(knots) <= MOST_KNOTS:
        expected = f"2 to {MOST_KNOTS} knots, each with its value: {PATTERN}"
        raise InputError("not a piecewise linear activation", value=name, expected=expected)
    if any(right <= left for left, right in pairwise(knots)):
        raise InputError("knots out of order", value=name, expected=f"ascending knots: {PATTERN}")
    rises, lengths = ([after - before for before, after in pairwise(numbers)] for numbers in (values, knots))
    slopes = [rise / length for rise, length in zip(rises, lengths, strict=True)]
    if not any(slopes) or not all(map(math.isfinite, slopes)):
        raise InputError("no slope", value=name, expected="values that differ, and finite slopes")
    jumps = [after - before for before, after in pairwise((0.0, *slopes, 0.0))]
    hinges = tuple((knot, jump) for knot, jump in zip(knots, jumps, strict=True) if jump != 0.0)
    parts = tuple((left, right, slope) for (left, right), slope in zip(pairwise(knots), slopes, strict=True))
    definition = {"start": values[0], "pieces": parts}
    functions = bound(value, **definition), bound(derivative, **definition)
    return Activation(name, _label(knots, values), *functions, _exponent(name, hinges), hinges=(values[0], hinges))


def _label(knots: tuple[float, ...], values: tuple[float, ...]) -> str:
    """Return the knots and the values there in LaTeX."""
    points = r",\,".join(f"({knot:.4g}, {level:.4g})" for knot, level in zip(knots, values, strict=True))
    return rf"\mathrm{{piecewise}}[{points}]"


def _exponent(name: str, hinges: tuple[tuple[float, float], ...]) -> int:
    """The information exponent, by pairs (knot, jump): the order of the first coefficient that is not rounding."""
    terms = [jump * 0.5 * math.erfc(knot * math.sqrt(0.5)) for knot, jump in hinges]
    before, now = [0.0] * len(hinges), [math.exp(-0.5 * knot * knot) for knot, _ in hinges]
    for order in range(1, HIGHEST_ORDER + 1):
        if abs(math.fsum(terms)) > 1e-12 * math.fsum(map(abs, terms)):
            return order
        terms = [jump * polynomial for (_, jump), polynomial in zip(hinges, now, strict=True)]
        # the recurrence of the normalised Hermite polynomials, at the knots
        following = [
            (knot * polynomial - math.sqrt(order - 1) * earlier) / math.sqrt(order)
            for (knot, _), polynomial, earlier in zip(hinges, now, before, strict=True)
        ]
        before, now = now, following
    raise InputError(f"no Hermite coefficient up to order {HIGHEST_ORDER}", value=name, expected="knots nearer to zero")


FORMS.register("piecewise", piecewise)
PATTERNS["piecewise"] = PATTERN
