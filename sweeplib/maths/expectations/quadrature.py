"""Any activation and any sum of ridge functions, known by value and derivative alone, by quadrature.

The functions are called by address, so the rules are compiled once for all of them. A kink at zero costs no accuracy.

All fields share one index, z = (λ, κ) ~ N(0, Ω) with κ_r = v_r·λ*, and E = Σ_m b_m σ_m(z_m) + √Δ ζ with b = (−a/p, c).
Two fields are z_i = s_i u_1 and z_m = s_m (ρ u_1 + √(1−ρ²) u_2); rules for u are those of `plane`, split where either
field is zero.

E[σ'_i z_j σ_m] = cov(z_j, u_1) E[σ'_i u_1 σ_m] + cov(z_j, u_2) E[σ'_i u_2 σ_m], and
Ψ^Var_ij = a_i a_j E[σ'_i σ'_j (Δ + E[(Σ_m b_m σ_m)² | z_i, z_j])], the inner expectation as in `conditional`.

Errors, by finer nodes and by closed forms, at variances of order one and also where Ω is singular: mostly below 10⁻⁶ of
the largest entry, 10⁻⁵ at worst, with or without a kink at zero. A kink elsewhere, or features much narrower than a
field's standard deviation and away from zero, cost more: finer nodes tell.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.activations import Activation
from sweeplib.maths.activations.activation import bends_off_zero, kink, lipschitz
from sweeplib.maths.expectations.addresses import ridge_address
from sweeplib.maths.expectations.conditional import (
    Given,
    fill_rectified,
    fill_residuals,
    givens,
    project,
    second_moment,
)
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family, refined
from sweeplib.maths.expectations.fields import counts, fill_fields, function_number
from sweeplib.maths.expectations.grids import filled_up, hinges_row, reach, rest_step
from sweeplib.maths.expectations.nodes import nodes_of, rules_of
from sweeplib.maths.expectations.plane import (
    Plane,
    components,
    fill_lines,
    line_angle,
    on_a_line,
    planes,
    split_at,
)
from sweeplib.maths.expectations.products import risk
from sweeplib.maths.expectations.system import Drifts, Pair, Ridges, System, ridge_arrays
from sweeplib.numerics.compiled import inlined, over_arrays

Array = np.ndarray[Any, np.dtype[np.float64]]


class Fields(NamedTuple):
    """All fields that enter, students first, then ridges, then λ* if these are not the ridges.

    They are: Ω (N, N); for students and ridges the weights b, the number of the target's function or −1, κ, and whether
    the function has a rest (n,); the place of λ*_1; and at nodes the values of two fields, of their functions and of
    their slopes (2, nodes).
    """

    omega: Array
    weight: Array
    which: NDArray[np.int64]
    kink: Array
    rest: Array
    teacher: int
    field: Array
    value: Array
    slope: Array


@inlined
def fields_of(pair: Pair, p: int, k: int, nodes: int) -> Fields:
    """Work arrays for p students and k teachers."""
    n, size = counts(pair.weights, p, k)
    kink, rest, which = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for m in range(n):
        number = function_number(pair.which, p, m)
        which[m], kink[m], rest[m] = number - 1, pair.kinks[number], pair.rests[number]
    work = np.empty((2, nodes)), np.empty((2, nodes)), np.empty((2, nodes))
    return Fields(np.empty((size, size)), np.empty(n), which, kink, rest, size - k, *work)


@inlined
def fill_values(pair: Pair, which: int, x: Array, out: Array) -> None:
    """Fill out with the target's function of this number at x, or with σ(x) for −1."""
    if which < 0:
        pair.student_value(x, out)
    else:
        pair.ridge_value(which, x, out)


@inlined
def pair_means(pair: Pair, fields: Fields, plane: Plane, count: int, m: int) -> tuple[float, ...]:
    """E[σ_i σ_m], E[σ'_i u_1 σ_m] and E[σ'_i u_2 σ_m] of the fields z_i and z_m (2, count)."""
    own, value, slope = fields.field[0, :count], fields.value, fields.slope[0, :count]
    pair.student_value(own, value[0, :count])
    pair.student_slope(own, slope)
    fill_values(pair, fields.which[m], fields.field[1, :count], value[1, :count])
    both, slope_first, slope_second = 0.0, 0.0, 0.0
    for q in range(count):
        weighed = plane.weight[q] * value[1, q]
        both += value[0, q] * weighed
        slope_first += slope[q] * weighed * plane.first[q]
        slope_second += slope[q] * weighed * plane.second[q]
    return both, slope_first, slope_second


@inlined
def expand(pair: Pair, given: Given, fields: Fields, first: Array, second: Array, u: float, v: float) -> None:
    """Fill the means and the expansions of all functions at (u_1, u_2) = (u, v)."""
    for m in range(len(fields.weight)):
        mean, scale, kink = first[m] * u + second[m] * v, given.scale[m], given.kink[m]
        given.mean[m] = mean
        if kink != 0.0:
            given.squares[1, m] = fill_rectified(mean, scale, given.rectified[m])
        if fields.rest[m] != 0.0:
            count = 1 if scale == 0.0 else len(given.nodes)
            field, samples = fields.field[0, :count], given.samples[:count]
            for q in range(count):
                field[q] = mean + scale * given.nodes[q]
            if scale == 0.0:
                field[0] = mean
            fill_values(pair, fields.which[m], field, samples)
            for q in range(count):
                samples[q] -= kink * max(field[q], 0.0)
            if scale == 0.0:
                for order in range(given.smooth.shape[1]):
                    given.smooth[m, order] = 0.0
                given.smooth[m, 0], given.squares[0, m] = samples[0], samples[0] * samples[0]
            else:
                given.squares[0, m] = project(samples, given.table, given.smooth[m])


@inlined
def fill_slope_products(pair: Pair, fields: Fields, plane: Plane, count: int) -> None:
    """Fill σ'_i σ'_j times the weights, from the fields z_i and z_j (2, count)."""
    for side in range(2):
        pair.student_slope(fields.field[side, :count], fields.slope[side, :count])
    for q in range(count):
        fields.slope[0, q] *= plane.weight[q] * fields.slope[1, q]


def drifts(system: System, out: Drifts) -> None:
    """Ψ^a, Ψ^M and Ψ^GF by rules for two fields, Ψ^Var, at Ω times `stretch`, with expectations given both fields."""
    a, pair = system.a, system.pair
    p, k = system.M.shape
    rules = rules_of(pair.nodes)
    functions, _ = counts(pair.weights, p, k)
    plane = planes(rules.angles, rules.radii, rules.line, functions if functions > 1 else 2)
    fields = fields_of(pair, p, k, max(len(plane.weight), rules.inner.shape[1]))
    fill_fields(pair, system.Q, system.M, system.P, a, system.a_star, fields.omega, fields.weight)
    omega, size = fields.omega, len(fields.omega)
    first, second, flow = np.empty(size), np.empty(size), np.zeros((p, size))
    for i in range(p):
        out.a[i] = 0.0
        for m in range(functions):
            components(omega, i, m, first, second)
            plane.lines[0], plane.lines[1] = 0.5 * math.pi, line_angle(first[m], second[m])
            count = on_a_line(plane) if m == i else split_at(plane, 2)
            for q in range(count):
                fields.field[0, q] = first[i] * plane.first[q]
                fields.field[1, q] = first[m] * plane.first[q] + second[m] * plane.second[q]
            both, slope_first, slope_second = pair_means(pair, fields, plane, count, m)
            out.a[i] += fields.weight[m] * both
            for j in range(size):
                flow[i, j] += a[i] * fields.weight[m] * (first[j] * slope_first + second[j] * slope_second)
        for r in range(k):
            out.M[i, r] = flow[i, fields.teacher + r]

    for m in range(size):
        for n in range(size):
            omega[m, n] *= system.stretch
    given = givens(fields.weight, fields.kink, rules.inner, rules.orders, rules.arc.shape[1])
    for i in range(p):
        for j in range(i + 1):
            components(omega, i, j, first, second)
            fill_residuals(given, omega, first, second, rules.arc)
            count = on_a_line(plane) if i == j else split_at(plane, fill_lines(plane, given.kink, i, j, first, second))
            for q in range(count):
                fields.field[0, q] = first[i] * plane.first[q]
                fields.field[1, q] = first[j] * plane.first[q] + second[j] * plane.second[q]
            fill_slope_products(pair, fields, plane, count)
            variance = 0.0
            for m in range(size):
                variance += 0.0 * omega[m, m]  # NaN stays NaN where σ' is zero
            for q in range(count):
                if fields.slope[0, q] != 0.0:
                    expand(pair, given, fields, first, second, plane.first[q], plane.second[q])
                    variance += fields.slope[0, q] * (system.Delta + second_moment(given))
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations:
    """The expectations of any two activations."""
    found = of_ridges(f"{student.name}|{teacher.name}", student, (teacher,))
    return replace(found, resolved=not (bends_off_zero(student) or bends_off_zero(teacher)))


def of_ridges(name: str, student: Activation, functions: tuple[Activation, ...], ridges: Ridges = ()) -> Expectations:
    """The expectations of an activation and Σ_r c_r τ_r(v_r·λ*); without ridges a committee of the one function.

    Drifts have the errors that knots elsewhere than at zero cause.
    """
    sides = (student, *functions)
    degree = max(len(side.hermite or ()) for side in sides)

    def pair(finer: float) -> Pair:
        return Pair(
            over_arrays(student.value),
            over_arrays(student.derivative),
            ridge_address(tuple(side.value for side in functions)),
            **ridge_arrays(ridges),
            kinks=np.array([kink(side) for side in sides]),
            rests=np.array([float(_has_rest(side)) for side in sides]),
            nodes=nodes_of(finer, degree),
            series=filled_up([hinges_row(side) for side in sides]),
            reach=reach(degree),
            steps=np.array([[rest_step(side) for side in sides]]) / finer,
            most=0.0,
        )

    return replace(refined(Expectations(name, risk, drifts), pair), lipschitz=lipschitz(student))


def _has_rest(activation: Activation) -> bool:
    """Whether the activation is more than κ (·)⁺."""
    jump = kink(activation)
    return any(abs(activation.value(z) - jump * max(z, 0.0)) > 1e-12 for z in np.linspace(-3.7, 3.7, 40).tolist())


FAMILIES.register("quadrature", Family("quadrature", 100, pair_expectations))
