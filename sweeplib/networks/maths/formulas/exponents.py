"""Information exponent and leap exponent of a formula of independent fields, from its Hermite coefficients.

f* = Σ_α c_α Π_r h_α_r(λ_r) with multi-indices α and normalised Hermite polynomials h_n. The information exponent is the
lowest degree |α| > 0 with c_α ≠ 0 (arXiv 2003.10409). The leap exponent is the largest degree in new fields that a term
has when terms are learned in the best order: min over orders of max_i Σ_r α_i,r over the fields r of no earlier term
(arXiv 2302.11055), here for the fields of the formula as the basis.

The formula is expanded into products, like ones taken together. The c_α of a product are products of those of its parts
without a field in common: exact for powers; integrals over one number, in panels that end at the kinks, for functions
of one field and activations of one linear form; integrals over all their fields for other functions. Each has the error
of its integrals and of rounding. It is zero where it is below ten times its error.
"""

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import kinks
from sweeplib.networks.maths.formulas.formula import Applied, Field, Formula, Number, Power, Product, Sum
from sweeplib.networks.maths.formulas.ridges import power_series
from sweeplib.networks.maths.hermite import hermite_polynomials, hermite_series

Term = tuple[int, ...]
"""A multi-index α: the order of the Hermite polynomial of each field; also powers of the fields."""

Fields = tuple[int, ...]
"""Some of the fields, by their numbers from zero."""

DEGREE = 8
"""The highest degree of a term that is looked for."""

MOST_FIELDS = 4
"""The most fields whose coefficients are looked for."""

MOST_PRODUCTS = 300
"""A part that is a sum of more products is integrated as a whole."""

NODES = {2: (20, 15, 12), 3: (5, 4, 3), 4: (2, 1)}
"""Nodes a panel of the rules for so many fields; the error is the largest difference of the first from the others."""

PANELS = np.array([-10.0, -7.0, -5.0, -3.5, -2.0, -1.0, 0.0, 1.0, 2.0, 3.5, 5.0, 7.0, 10.0])
"""The ends of the panels of each number, in standard deviations."""

SURE = 1e-6
"""A coefficient that is below ten times its error, and its error above this part of the largest one, is unknown."""

EPSILON = float(np.finfo(float).eps)
"""The distance of doubles, relative to their size."""


class Coefficients(NamedTuple):
    """The coefficients c_α and their errors, arrays with an axis of length 9 for each field."""

    values: Array
    errors: Array


class _Monomial(NamedTuple):
    """A product of powers of the fields and of other functions of them."""

    powers: Term
    functions: tuple[Formula, ...] = ()


_Products = dict[_Monomial, tuple[float, float]]
"""A sum of products: of each monomial the coefficient, and the sum of the absolute values that it was added up from."""


class _TooManyProductsError(Exception):
    """A formula is a sum of too many products."""


def information_exponent(formula: Formula) -> int | None:
    """The lowest degree of a term; None for more than four fields, if no term is found, or if errors leave it open."""
    lowest = {min(map(sum, choice), default=None) for choice in terms(formula)}
    return lowest.pop() if len(lowest) == 1 else None


def leap_exponent(formula: Formula) -> int | None:
    """The largest degree in new fields, in the best order; None where `information_exponent` is None.

    Terms that may be zero leave it open if they make a way with smaller leaps, or have a larger degree in fields that
    no sure term has.
    """
    sure, possible = terms(formula)
    if not sure:
        return None
    leap, fields = _leap(sure, sure), {r for term in sure for r, power in enumerate(term) if power}
    beyond = max(_degree_without(fields, term) for term in possible)
    return leap if _leap(possible, sure) == leap >= beyond else None


def _leap(open_terms: frozenset[Term], needed: frozenset[Term]) -> int:
    """The largest degree in new fields until the `needed` terms are reached, by these terms in the best order.

    The next is always the one with fewest new ones.
    """
    waiting, fields, leap = set(open_terms), set[int](), 0
    while waiting & needed:
        best = min(waiting, key=lambda term: _degree_without(fields, term))
        leap = max(leap, _degree_without(fields, best))
        fields |= {r for r, power in enumerate(best) if power}
        waiting.remove(best)
    return leap


def _degree_without(fields: Collection[int], term: Term) -> int:
    """The degree of a term in other fields than these."""
    return sum(power for r, power in enumerate(term) if r not in fields)


@cache
def terms(formula: Formula) -> tuple[frozenset[Term], frozenset[Term]]:
    """The multi-indices beyond zero, up to DEGREE, that have a coefficient; and these with those that may have one.

    Both are empty for more than MOST_FIELDS fields.
    """
    if formula.width > MOST_FIELDS:
        return frozenset(), frozenset()
    values, errors = coefficients(formula)
    degrees = [term for term in itertools.product(range(DEGREE + 1), repeat=formula.width) if 0 < sum(term) <= DEGREE]
    largest = max((abs(values[term]) for term in degrees), default=0.0)
    sure = frozenset(term for term in degrees if abs(values[term]) > 10.0 * errors[term])
    return sure, sure.union(term for term in degrees if not errors[term] <= SURE * largest and largest > 0.0)


@np.errstate(over="ignore", invalid="ignore")
def coefficients(formula: Formula) -> Coefficients:
    """The coefficients c_α of a formula, of a total degree of 8 or less; NaN where they are too large for numbers."""
    shape = (DEGREE + 1,) * formula.width
    values, errors = np.zeros(shape), np.zeros(shape)
    try:
        for (powers, functions), (factor, size) in _products(formula, formula.width).items():
            products, error = _of_product(powers, functions)
            values += factor * products
            # rounding is proportional to what was added up, which may have cancelled
            errors += abs(factor) * error + 8.0 * EPSILON * size * np.abs(products)
    except OverflowError:
        return Coefficients(np.full(shape, np.nan), np.full(shape, np.nan))
    return Coefficients(values, errors)


def _products(formula: Formula, k: int) -> _Products:
    """The formula as a sum of products of k fields; as one function where they are too many."""
    try:
        return _expanded(formula, k)
    except _TooManyProductsError:
        return {_Monomial((0,) * k, (formula,)): (1.0, 1.0)}


def _expanded(formula: Formula, k: int) -> _Products:
    """The formula of k fields as a sum of products; _TooManyProductsError where these are too many."""
    unit = {_Monomial((0,) * k): (1.0, 1.0)}
    match formula:
        case Number(value):
            return {_Monomial((0,) * k): (value, abs(value))}
        case Field(index):
            return {_Monomial(tuple(int(r == index) for r in range(k))): (1.0, 1.0)}
        case Sum(parts):
            return _sum([_products(term, k) for term in parts])
        case Product(parts):
            return _product([_products(term, k) for term in parts], unit)
        case Power(base, exponent):
            return _product([_products(base, k)] * exponent, unit)
        case Applied(_, argument) if formula.activation.hermite is not None:
            inner, products = _products(argument, k), _Products()
            for power in reversed(power_series(formula.activation.hermite)):
                products = _sum([_product([products, inner], unit), {_Monomial((0,) * k): (power, abs(power))}])
            return products
        case _ if formula.width == 0:
            return _products(Number(float(_as_function(formula)({}))), k)
    return {_Monomial((0,) * k, (formula,)): (1.0, 1.0)}


def _sum(sums: Sequence[_Products]) -> _Products:
    """Return the sum of sums of products; _TooManyProductsError where these are too many."""
    total: _Products = {}
    for product, (factor, size) in itertools.chain(*(summand.items() for summand in sums)):
        before = total.get(product, (0.0, 0.0))
        total[product] = before[0] + factor, before[1] + size
    if len(total) > MOST_PRODUCTS:
        raise _TooManyProductsError
    return total


def _product(sums: Sequence[_Products], unit: _Products) -> _Products:
    """The product of sums of products, times `unit`."""
    for factor in sums:
        pairs = itertools.product(unit.items(), factor.items())
        unit = _sum([{_both(x, y): (a * b, u * v)} for (x, (a, u)), (y, (b, v)) in pairs])
    return unit


def _both(first: _Monomial, second: _Monomial) -> _Monomial:
    """The product of two monomials: powers add up, functions stand side by side."""
    powers = tuple(a + b for a, b in zip(first.powers, second.powers, strict=True))
    return _Monomial(powers, tuple(sorted(first.functions + second.functions, key=str)))


def _of_product(powers: Term, functions: tuple[Formula, ...]) -> Coefficients:
    """The coefficients of a product of powers and functions, by its parts without a common field."""
    values, most, order = np.ones(()), np.ones(()), list[int]()
    for fields in _parted(functions, len(powers)):
        inner_functions = tuple(function for function in functions if _fields(function) <= {*fields})
        factor_values, error = _of_part(fields, tuple(powers[r] for r in fields), inner_functions)
        values, most = np.multiply.outer(values, factor_values), np.multiply.outer(most, np.abs(factor_values) + error)
        order += fields
    places = np.argsort(order)
    return Coefficients(values.transpose(places), (most - np.abs(values)).transpose(places))


def _parted(functions: Sequence[Formula], k: int) -> list[Fields]:
    """The fields in groups such that every function has fields of one group only."""
    groups = [frozenset({r}) for r in range(k)]
    for function in functions:
        shared = {group for group in groups if group & _fields(function)}
        groups = [group for group in groups if group not in shared] + [frozenset().union(*shared)]
    return [tuple(sorted(group)) for group in groups if group]


def _fields(formula: Formula) -> frozenset[int]:
    """The fields of a formula, by their numbers from zero."""
    return frozenset(node.index for node in formula.walk() if isinstance(node, Field))


@cache
def _of_part(fields: Fields, powers: Term, functions: tuple[Formula, ...]) -> Coefficients:
    """The coefficients of a product of powers and functions of these fields, with an axis for each field."""
    # only a function joins fields into a part (`_parted`): this one has one field
    if not functions:
        return _of_power(powers[0])
    if len(fields) == 1:
        return _of_one_field(fields[0], powers[0], functions)
    # the direction and the shift of an activation of a linear form
    ridge = None if any(powers) or len(functions) > 1 else _linear(functions[0], fields)
    return _of_several_fields(fields, powers, functions) if ridge is None else _of_ridge(functions[0], *ridge)


def _of_power(power: int) -> Coefficients:
    """The coefficients of λ^power."""
    series = np.polynomial.hermite_e.poly2herme([0.0] * power + [1.0])[: DEGREE + 1]
    values = np.zeros(DEGREE + 1)
    values[: len(series)] = series * np.sqrt([float(math.factorial(n)) for n in range(len(series))])
    return Coefficients(values, (power + 1) * EPSILON * np.abs(values))


def _of_one_field(field: int, power: int, functions: Sequence[Formula]) -> Coefficients:
    """The coefficients of λ^power times functions of the same field; `field` is its number from zero."""
    places = [place for function in functions for place in knots(function)[field]]
    callables = [_as_function(function) for function in functions]

    def value(z: float) -> float:
        return math.prod((function({f"lam{field + 1}": z}) for function in callables), start=z**power)

    series = hermite_series(value, DEGREE, tuple(places))
    return Coefficients(series.coefficients, series.errors)


def _of_ridge(function: Formula, direction: Array, shift: float) -> Coefficients:
    """The coefficients of an activation of a linear form, σ(v·λ + b), with v `direction` and b `shift`.

    They are those of σ(|v| z + b) times √(n!/Π α_r!) Π (v_r/|v|)^α_r, n = |α|.
    """
    assert isinstance(function, Applied)
    length, value = float(np.linalg.norm(direction)), function.activation.value
    places = tuple((knot - shift) / length for knot in kinks(function.activation))
    series = hermite_series(lambda z: value(length * z + shift), DEGREE, places)
    values, errors = (np.zeros((DEGREE + 1,) * len(direction)) for _ in range(2))
    for term in itertools.product(range(DEGREE + 1), repeat=len(direction)):
        if (n := sum(term)) <= DEGREE:
            ways = math.factorial(n) / math.prod(map(math.factorial, term))
            factor = math.sqrt(ways) * float(np.prod((direction / length) ** term))
            values[term], errors[term] = factor * series.coefficients[n], abs(factor) * series.errors[n]
    return Coefficients(values, errors)


def _of_several_fields(fields: Fields, powers: Term, functions: Sequence[Formula]) -> Coefficients:
    """The coefficients of a product of powers and functions of several fields, by rules in all of them."""
    fine, *others = (_by_rule(nodes, fields, powers, functions) for nodes in NODES[len(fields)])
    error = np.max([np.abs(fine - other) for other in others], axis=0)
    return Coefficients(fine, error + 64.0 * EPSILON * np.abs(fine).max())


def _by_rule(nodes: int, fields: Fields, powers: Term, functions: Sequence[Formula]) -> Array:
    """The coefficients by Gauss's rule with `nodes` nodes in each of PANELS, in a grid of all fields."""
    offsets, weights = np.polynomial.legendre.leggauss(nodes)
    lengths = np.diff(PANELS)[:, None]
    x = (PANELS[:-1, None] + lengths * (0.5 * (offsets + 1.0))).ravel()
    weights = (lengths * (0.5 * weights)).ravel() * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    grids = dict(zip((f"lam{r + 1}" for r in fields), np.meshgrid(*[x] * len(fields), indexing="ij"), strict=True))
    values: Any = np.ones(())
    for factor in (*(grid**power for grid, power in zip(grids.values(), powers, strict=True)), *functions):
        values = values * (_as_function(factor, many=True)(grids) if isinstance(factor, Formula) else factor)
    basis = hermite_polynomials(x, DEGREE) * weights
    for axis in range(len(fields)):
        values = np.moveaxis(np.tensordot(basis, values, axes=(1, axis)), 0, axis)
    return np.asarray(values)


def _as_function(formula: Formula, *, many: bool = False) -> Callable[[dict[str, Any]], Any]:
    """The formula as a function of the values of its fields by name: of numbers or, with `many`, of arrays."""
    calls: dict[str, str] = {}
    code = compile(formula.source(calls), "formula", "eval")
    functions: dict[str, Any] = {variable: activation(name).value for name, variable in calls.items()}
    if many:
        functions = {name: np.vectorize(function, otypes=[float]) for name, function in functions.items()}
    return lambda fields: eval(code, functions | fields)


def _linear(function: Formula, fields: Fields) -> tuple[Array, float] | None:
    """The vector v (in the order of `fields`) and the shift b of an activation of v·λ + b.

    None for any other function.
    """
    if not isinstance(function, Applied):
        return None
    products = _products(function.argument, function.width)
    if any(functions or sum(powers) > 1 for powers, functions in products):
        return None
    by_powers = {powers: factor for (powers, _), (factor, _) in products.items()}
    direction = [by_powers.get(tuple(int(r == s) for s in range(function.width)), 0.0) for r in fields]
    return (np.array(direction), by_powers.get((0,) * function.width, 0.0)) if any(direction) else None


def knots(formula: Formula) -> list[list[float]]:
    """The values of each field at which activations of polynomials of it alone bend, ascending."""
    places: list[set[float]] = [set() for _ in range(formula.width)]
    for node in formula.walk():
        if isinstance(node, Applied) and len(_fields(node)) == 1 and (bends := kinks(node.activation)):
            [field], inner = _fields(node), _products(node.argument, node.width)
            if not any(functions for _, functions in inner):
                polynomial = np.polynomial.Polynomial(np.zeros(1 + max(powers[field] for powers, _ in inner)))
                for (powers, _), (factor, _) in inner.items():
                    polynomial.coef[powers[field]] += factor
                roots = np.concatenate([(polynomial - bend).roots() for bend in bends])
                places[field].update(roots.real[np.abs(roots.imag) < 1e-9].tolist())
    return list(map(sorted, places))
