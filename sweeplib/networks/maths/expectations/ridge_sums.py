"""Expectations of a student and a formula of the teacher's fields that is a sum of ridge functions Σ_e c_e τ_e(v_e·λ*).

The fields κ = Vλ* of the ridges are those of a committee with teacher overlaps M Vᵀ and V P Vᵀ. For polynomials on both
sides there are closed forms; all other sums are computed by quadrature.
"""

from dataclasses import replace
from functools import cache

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import bends_off_zero
from sweeplib.networks.maths.expectations import polynomials, quadrature
from sweeplib.networks.maths.expectations.expectations import Expectations
from sweeplib.networks.maths.formulas import Formula, ridges
from sweeplib.networks.maths.formulas.formula import Applied


@cache
def of_formula(student: str, formula: Formula) -> Expectations | None:
    """The expectations of a student's activation, by name, and a formula; None if it is no sum of ridge functions."""
    ridge_functions = ridges(formula)
    if ridge_functions is None:
        return None
    sigma = activation(student)
    functions = tuple(dict.fromkeys(ridge.function for ridge in ridge_functions))
    numbered_ridges = [(functions.index(ridge.function), ridge.weight, ridge.direction) for ridge in ridge_functions]
    series = tuple(function.hermite for function in functions if function.hermite is not None)
    name = f"{student}|{formula}"
    if sigma.hermite is not None and len(series) == len(functions):
        return polynomials.of_series(name, sigma.hermite, series, numbered_ridges)
    activations = (sigma, *(node.activation for node in formula.walk() if isinstance(node, Applied)))
    rule = quadrature.of_ridges(name, sigma, functions, numbered_ridges)
    return replace(rule, resolved=not any(map(bends_off_zero, activations)))
