"""Information exponent and leap exponent of a formula of independent fields, from its Hermite coefficients.

f* = Σ_α c_α Π_r h_α_r(λ_r) with multi-indices α and normalised Hermite polynomials h_n. The information exponent is the
lowest degree |α| > 0 with c_α ≠ 0 (arXiv 2003.10409). The leap exponent is the largest degree in new fields that a term
has when terms are learned in the best order: min over orders of max_i Σ_r α_i,r over the fields r of no earlier term
(arXiv 2302.11055), here for the fields of the formula as the basis.
"""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np

from sweeplib.maths.activations import activation
from sweeplib.maths.formulas.formula import Formula
from sweeplib.maths.hermite import hermite_polynomials

Term = tuple[int, ...]

DEGREE = 8
"""The highest degree of a term that is looked for."""

NODES = {1: 120, 2: 80, 3: 40, 4: 20}
"""Nodes of a Gauss-Hermite rule for each of k fields."""

ZERO = 1e-6
"""Coefficients below this part of the largest one are zero: errors of the quadrature."""


def information_exponent(formula: Formula) -> int | None:
    """The lowest degree of a term; None for more than four fields, or if no term is found."""
    return min((sum(term) for term in terms(formula)), default=None)


def leap_exponent(formula: Formula) -> int | None:
    """The largest degree in new fields, in the best order; None for more than four fields, or if no term is found."""
    left, known, leap = set(terms(formula)), frozenset[int](), 0
    if not left:
        return None
    while left:
        best = min(left, key=lambda term: sum(power for r, power in enumerate(term) if r not in known))
        leap = max(leap, sum(power for r, power in enumerate(best) if r not in known))
        known |= {r for r, power in enumerate(best) if power}
        left.remove(best)
    return leap


@cache
def terms(formula: Formula) -> frozenset[Term]:
    """The multi-indices beyond zero, up to degree 8, with a coefficient; none for more than four fields."""
    k = formula.width
    if k not in NODES:
        return frozenset()
    x, weights = np.polynomial.hermite_e.hermegauss(NODES[k])
    weights = weights / weights.sum()
    grids = np.meshgrid(*[x] * k, indexing="ij")
    values = _values(formula, [grid.ravel() for grid in grids]).reshape(grids[0].shape)
    basis = hermite_polynomials(x, DEGREE) * weights
    for axis in range(k):
        values = np.moveaxis(np.tensordot(basis, values, axes=(1, axis)), 0, axis)
    degrees = [term for term in itertools.product(range(DEGREE + 1), repeat=k) if 0 < sum(term) <= DEGREE]
    largest = max((abs(values[term]) for term in degrees), default=0.0)
    return frozenset(term for term in degrees if abs(values[term]) > ZERO * max(largest, math.ulp(0.0)))


def _values(formula: Formula, fields: list[np.ndarray]) -> np.ndarray:
    calls: dict[str, str] = {}
    source = formula.source(calls)
    space: dict[str, Any] = {f"lam{index + 1}": field for index, field in enumerate(fields)}
    space |= {variable: np.vectorize(activation(name).value, otypes=[float]) for name, variable in calls.items()}
    return np.broadcast_to(eval(compile(source, "formula", "eval"), space), fields[0].shape)
