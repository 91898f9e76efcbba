"""Sums of ridge functions Σ_s c_s τ_s(v_s·λ) that equal a formula of several fields.

A monomial Π λ_r^a_r of degree n = Σ a_r is (1/(2^n n!)) Σ_v Π_r (−1)^((a_r−v_r)/2) C(a_r, (a_r−v_r)/2) (v·λ)^n over all
v_r = −a_r, −a_r + 2, ..., a_r: the central differences of z^n. So every polynomial is a sum of ridge functions, as are
activations of linear forms and sums of both. Expectations with such a target are those of pairs of functions of one
field. k is the number of fields.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.activations.named import FORMS
from sweeplib.networks.maths.formulas.formula import Applied, Field, Formula, Number, Power, Product, Sum
from sweeplib.networks.numerics.binding import bound

Polynomial = dict[tuple[int, ...], float]
"""Coefficients by exponents (k,) of the fields."""


MAX_DEGREE = 8
"""The highest degree of a polynomial in a sum of ridge functions."""

ROUNDING = 1e-13
"""Relative weight below which a ridge is a rounding error."""


def _unit(field: float) -> float:
    return 1.0


def _zero(field: float) -> float:
    return 0.0


ONE = Activation("1", "1", _unit, _zero, 0, hermite=(1.0,))
"""The constant function."""


@dataclass(frozen=True)
class Ridge:
    """c τ(v·λ): the weight c, the function τ and the direction v, of unit length."""

    weight: float
    function: Activation
    direction: tuple[float, ...]


@cache
def ridges(formula: Formula) -> tuple[Ridge, ...] | None:
    """Ridge functions whose sum is the formula, one for each direction of its polynomial part; None if there are none.

    There are none if a product has a factor that is no polynomial, or if a polynomial's degree is above 8.
    """
    k = formula.width
    try:
        polynomial, others = _split(formula, k)
    except _NoRidgesError:
        return None
    return (*_of_polynomial(polynomial, k), *others)


def is_constant(formula: Formula) -> bool:
    """Whether the formula has no field, or is a polynomial of degree 8 or less that is the same at all fields."""
    try:
        terms = _polynomial(formula, formula.width)
    except _NoRidgesError:
        terms = None
    return formula.width == 0 or (
        terms is not None and not any(c != 0.0 and any(powers) for powers, c in terms.items())
    )


class _NoRidgesError(Exception):
    """A formula is not a sum of ridge functions."""


def _split(formula: Formula, k: int) -> tuple[Polynomial, list[Ridge]]:
    """A polynomial and ridge functions whose sum is the formula; _NoRidgesError if there are none."""
    if isinstance(formula, Sum):
        total: Polynomial = {}
        ridges_of_terms: list[Ridge] = []
        for term in formula.terms:
            polynomial, ridges_of_term = _split(term, k)
            total = _sum(total, polynomial)
            ridges_of_terms += ridges_of_term
        return total, ridges_of_terms
    polynomial_or_none = _polynomial(formula, k)
    if polynomial_or_none is not None:
        return polynomial_or_none, []
    if isinstance(formula, Product) and isinstance(formula.factors[0], Number):
        factor, factors = formula.factors[0].value, formula.factors[1:]
        polynomial, ridges_of_term = _split(factors[0] if len(factors) == 1 else Product(factors), k)
        scaled = [Ridge(factor * function.weight, function.function, function.direction) for function in ridges_of_term]
        return {powers: factor * c for powers, c in polynomial.items()}, scaled
    if isinstance(formula, Applied):
        return {}, [_of_activation(formula, k)]
    raise _NoRidgesError


def _of_activation(formula: Applied, k: int) -> Ridge:
    """The ridge of an activation of a linear form, in which a constant shifts the activation."""
    argument = _polynomial(formula.argument, k)
    if argument is None or any(sum(powers) > 1 for powers in argument):
        raise _NoRidgesError
    shift = argument.get((0,) * k, 0.0)
    direction = np.array([argument.get(tuple(int(r == s) for s in range(k)), 0.0) for r in range(k)])
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise _NoRidgesError
    function = formula.activation if (shift, length) == (0.0, 1.0) else _rescaled(formula.activation, length, shift)
    return Ridge(1.0, function, tuple((direction / length).tolist()))


function = float
scale = shift = 0.0
"""Bound by `_rescaled`: σ or σ', and the numbers by which its argument is scaled and shifted."""


def _value_moved(field: float) -> float:
    """σ(scale z + shift) at the field z."""
    return function(scale * field + shift)


def _slope_moved(field: float) -> float:
    """The derivative of σ(scale z + shift) at the field z."""
    return scale * function(scale * field + shift)


@cache
def _rescaled(activation: Activation, scale: float, shift: float) -> Activation:
    """The activation z → σ(scale z + shift), known by value and slope alone."""
    from sweeplib.networks.numerics.compiled import compiled

    value = bound(_value_moved, function=compiled(activation.value), scale=scale, shift=shift)
    slope = bound(_slope_moved, function=compiled(activation.derivative), scale=scale, shift=shift)
    name = f"{activation.name}({scale!r} z + {shift!r})"
    hinges = None
    if activation.hinges is not None:  # σ(x) = o + Σ κ (x − c)⁺ at x = scale z + shift, scale > 0
        hinge_terms = tuple(((knot - shift) / scale, jump * scale) for knot, jump in activation.hinges[1])
        hinges = activation.hinges[0], hinge_terms
    return Activation(name, name, value, slope, activation.information_exponent, hinges=hinges)


def _polynomial(formula: Formula, k: int) -> Polynomial | None:
    """The formula as a polynomial of k fields; None if it is none."""
    zero = (0,) * k
    match formula:
        case Number(value):
            return {zero: value}
        case Field(index):
            return {tuple(int(r == index) for r in range(k)): 1.0}
        case Sum(terms) | Product(terms):
            total: Polynomial = {} if isinstance(formula, Sum) else {zero: 1.0}
            for term in terms:
                polynomial = _polynomial(term, k)
                if polynomial is None:
                    return None
                total = _sum(total, polynomial) if isinstance(formula, Sum) else _product(total, polynomial)
            return total
        case Power(base, exponent):
            polynomial = _polynomial(base, k)
            return None if polynomial is None else _composed((0.0,) * exponent + (1.0,), polynomial, zero)
        case Applied(_, argument) if formula.activation.hermite is not None:
            polynomial = _polynomial(argument, k)
            powers = power_series(formula.activation.hermite)
            return None if polynomial is None else _composed(powers, polynomial, zero)
    return None


def _norms(count: int) -> Array:
    """The norms √n! of He_n for n = 0, ..., count − 1."""
    return np.sqrt([float(math.factorial(n)) for n in range(count)])


def power_series(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients s_n of powers, Σ_n c_n He_n(z)/√n! = Σ_n s_n z^n."""
    series = np.polynomial.hermite_e.herme2poly(np.array(coefficients) / _norms(len(coefficients)))
    return tuple(series.tolist())


def _sum(first: Polynomial, second: Polynomial) -> Polynomial:
    """The sum of two polynomials."""
    return {powers: first.get(powers, 0.0) + second.get(powers, 0.0) for powers in {**first, **second}}


def _product(first: Polynomial, second: Polynomial) -> Polynomial:
    """The product of two polynomials; _NoRidgesError beyond MAX_DEGREE."""
    product: Polynomial = {}
    for (powers, c), (others, factor) in itertools.product(first.items(), second.items()):
        both = tuple(a + b for a, b in zip(powers, others, strict=True))
        product[both] = product.get(both, 0.0) + c * factor
    if max(map(sum, product), default=0) > MAX_DEGREE:
        raise _NoRidgesError
    return product


def _composed(coefficients: tuple[float, ...], inner: Polynomial, zero: tuple[int, ...]) -> Polynomial:
    """The polynomial Σ_n s_n p^n of the polynomial p `inner`, by Horner's rule.

    `zero` are the exponents of a constant.
    """
    composed: Polynomial = {}
    for c in reversed(coefficients):
        composed = _sum(_product(composed, inner), {zero: c})
    return composed


def _of_polynomial(polynomial: Polynomial, k: int) -> list[Ridge]:
    """The ridge functions of a polynomial of k fields: one for each direction, and one for the constant."""
    by_direction: dict[tuple[int, ...], list[float]] = {}
    for powers, c in polynomial.items():
        degree = sum(powers)
        if c != 0.0 and degree > 0:
            for weight, v in _central_differences(powers):
                # v and its multiples have one direction: their powers of (v·λ) are one ridge
                divisor = math.gcd(*v) * (1 if next(x for x in v if x) > 0 else -1)
                direction = tuple(x // divisor for x in v)
                by_direction.setdefault(direction, [0.0] * (MAX_DEGREE + 1))[degree] += c * weight * divisor**degree
    of_directions = []
    for direction, sums in sorted(by_direction.items(), reverse=True):
        length = math.hypot(*direction)
        terms = [c * length**degree for degree, c in enumerate(sums)]
        of_directions.append(_ridge(terms, tuple(x / length for x in direction)))
    largest = max((abs(ridge.weight) for ridge in of_directions), default=0.0)
    of_directions = [ridge for ridge in of_directions if abs(ridge.weight) > ROUNDING * largest]
    constant = polynomial.get((0,) * k, 0.0)
    return [*of_directions, Ridge(constant, ONE, (1.0,) + (0.0,) * (k - 1))] if constant != 0.0 else of_directions


def _central_differences(powers: tuple[int, ...]) -> list[tuple[float, tuple[int, ...]]]:
    """The weights, and the vectors v, of the sum of (v·λ)^n that is the monomial with these powers."""
    if sum(power > 0 for power in powers) == 1:
        # a power of one field is a ridge function already
        return [(1.0, tuple(int(power > 0) for power in powers))]
    degree = sum(powers)
    differences = []
    for down in itertools.product(*(range(power + 1) for power in powers)):
        v = tuple(power - 2 * n for power, n in zip(powers, down, strict=True))
        if any(v):
            weight = math.prod((-1.0) ** n * math.comb(power, n) for power, n in zip(powers, down, strict=True))
            differences.append((weight / (2.0**degree * math.factorial(degree)), v))
    return differences


def _ridge(terms: list[float], direction: tuple[float, ...]) -> Ridge:
    """The ridge Σ_n s_n (v·λ)^n, with s_n `terms` and v `direction`.

    The largest Hermite coefficient of its function is 1, so that few functions differ.
    """
    series = np.polynomial.hermite_e.poly2herme(terms)
    coefficients = (series * _norms(len(series))).tolist()
    largest = max(coefficients, key=abs)
    if largest == 0.0:
        return Ridge(0.0, ONE, direction)
    return Ridge(largest, FORMS["hermite"](tuple(round(c / largest, 15) + 0.0 for c in coefficients)), direction)
