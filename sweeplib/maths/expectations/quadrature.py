"""Any two activations, known by value and derivative alone, by quadrature; a kink at zero costs no accuracy.

All fields share one index, z = (λ, λ*) ~ N(0, Ω), and E = Σ_m b_m σ_m(z_m) + √Δ ζ with b = (−a/p, a*/k). Two fields are
z_i = s_i u_1 and z_m = s_m (ρ u_1 + √(1−ρ²) u_2); rules for u are those of `plane`, split where either field is zero.

E[σ'_i z_j σ_m] = cov(z_j, u_1) E[σ'_i u_1 σ_m] + cov(z_j, u_2) E[σ'_i u_2 σ_m], and
Ψ^Var_ij = a_i a_j E[σ'_i σ'_j (Δ + E[(Σ_m b_m σ_m)² | z_i, z_j])], the inner expectation as in `conditional`.

Errors, by `finer` and by closed forms, at variances of order one and also where Ω is singular: mostly below 10⁻⁶ of the
largest entry, 10⁻⁵ at worst, with or without a kink at zero. A kink elsewhere, or features much narrower than a field's
standard deviation and away from zero, cost more: `finer` tells.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations import gauss, mean_products
from sweeplib.maths.expectations.conditional import (
    Given,
    fill_rectified,
    fill_residuals,
    givens,
    project,
    second_moment,
)
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.maths.expectations.fields import fill_fields
from sweeplib.maths.expectations.in_turn import drifts_in_turn
from sweeplib.maths.expectations.plane import Plane, components, fill_lines, line_angle, on_a_line, planes, split_at
from sweeplib.maths.expectations.system import Drifts, System
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import inlined, specialised

Array = np.ndarray[Any, np.dtype[np.float64]]


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `of`")


student_value = student_slope = teacher_value = means = expanded = _unbound
student_kink = teacher_kink = 0.0
student_rest = teacher_rest = True
orders = 0
angles = angular = radii = radial = line = half = inner = inner_weights = arc = arc_weights = (0.0,)


def pair_means(
    plane: Plane, count: int, scale: float, along: float, across: float, p: int, m: int
) -> tuple[float, ...]:
    """E[σ_i σ_m], E[σ'_i u_1 σ_m] and E[σ'_i u_2 σ_m] of z_i = scale u_1 and z_m = along u_1 + across u_2."""
    both, slope_first, slope_second = 0.0, 0.0, 0.0
    for q in range(count):
        field, other = scale * plane.first[q], along * plane.first[q] + across * plane.second[q]
        weighed = plane.weight[q] * (student_value(other) if m < p else teacher_value(other))
        slope = student_slope(field) * weighed
        both += student_value(field) * weighed
        slope_first += slope * plane.first[q]
        slope_second += slope * plane.second[q]
    return both, slope_first, slope_second


def expand(given: Given, p: int, first: Array, second: Array, u: float, v: float) -> None:
    """Fill the means and the expansions of all fields at (u_1, u_2) = (u, v)."""
    for m in range(len(first)):
        mean, scale, kink = first[m] * u + second[m] * v, given.scale[m], given.kink[m]
        given.mean[m] = mean
        if kink != 0.0:
            given.squares[1, m] = fill_rectified(mean, scale, given.rectified[m])
        if student_rest if m < p else teacher_rest:
            for q in range(1 if scale == 0.0 else len(given.nodes)):
                field = mean + scale * given.nodes[q]
                value = student_value(field) if m < p else teacher_value(field)
                given.samples[q] = value - kink * max(field, 0.0)
            if scale == 0.0:
                given.smooth[m] = 0.0
                given.smooth[m, 0], given.squares[0, m] = given.samples[0], given.samples[0] ** 2
            else:
                given.squares[0, m] = project(given.samples, given.table, given.smooth[m])


def drifts(system: System, out: Drifts) -> None:
    """Ψ^a, Ψ^M and Ψ^GF by rules for two fields, Ψ^Var, at Ω times `stretch`, with expectations given both fields."""
    a = system.a
    p, k = system.M.shape
    n = p + k
    omega, weight, kink = np.empty((n, n)), np.empty(n), np.empty(n)
    fill_fields(system, omega, weight)
    for m in range(n):
        kink[m] = student_kink if m < p else teacher_kink
    plane = planes(angles, angular, radii, radial, line, half, n if n > 1 else 2)
    first, second, flow = np.empty(n), np.empty(n), np.zeros((p, n))
    for i in range(p):
        out.a[i] = 0.0
        for m in range(n):
            components(omega, i, m, first, second)
            plane.lines[0], plane.lines[1] = 0.5 * math.pi, line_angle(first[m], second[m])
            count = on_a_line(plane) if m == i else split_at(plane, 2)
            both, slope_first, slope_second = means(plane, count, first[i], first[m], second[m], p, m)
            out.a[i] += weight[m] * both
            for j in range(n):
                flow[i, j] += a[i] * weight[m] * (first[j] * slope_first + second[j] * slope_second)
        for r in range(k):
            out.M[i, r] = flow[i, p + r]

    omega *= system.stretch
    given = givens(weight, kink, inner, inner_weights, orders, arc)
    arcs = np.array(arc), np.array(arc_weights)
    for i in range(p):
        for j in range(i + 1):
            components(omega, i, j, first, second)
            fill_residuals(given, omega, first, second, *arcs)
            count = on_a_line(plane) if i == j else split_at(plane, fill_lines(plane, kink, i, j, first, second))
            variance = 0.0 * omega.sum()  # NaN stays NaN where σ' is none of it
            for q in range(count):
                u, v = plane.first[q], plane.second[q]
                factor = plane.weight[q] * student_slope(first[i] * u) * student_slope(first[j] * u + second[j] * v)
                if factor != 0.0:
                    expanded(given, p, first, second, u, v)
                    variance += factor * (system.Delta + second_moment(given))
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations:
    """The expectations of any two activations."""
    degree = max(len(side.hermite or ()) for side in (student, teacher))
    rough, fine = _rules(1, degree), _rules(2, degree)
    usual = _drifts(student, teacher, rough)
    return Expectations(
        f"{student.name}|{teacher.name}",
        _risk(student, teacher, rough),
        usual,
        bound(drifts_in_turn, drifts=specialised(usual)),
        _drifts(student, teacher, fine),
    )


def _rules(finer: int, degree: int) -> dict[str, Any]:
    """The nodes, `finer` times as many, and more for polynomials of high degree."""
    rules = {"orders": 8 + 16 * finer + degree}
    pairs = {
        ("angles", "angular"): gauss.legendre(12 * finer + degree),
        ("radii", "radial"): gauss.rayleigh(6 + 8 * finer + degree),
        ("line", "half"): gauss.half_normal(12 + 12 * finer + degree),
        ("inner", "inner_weights"): gauss.trapezoidal(17 + 24 * finer, 0.6 - 0.15 * finer),
        ("arc", "arc_weights"): gauss.legendre(10 * finer),
    }
    return rules | {name: part for names, rule in pairs.items() for name, part in zip(names, rule, strict=True)}


def _risk(student: Activation, teacher: Activation, rules: dict[str, Any]) -> Any:
    values = {"student_value": inlined(student.value), "teacher_value": inlined(teacher.value)}
    square_mean = specialised(mean_products.mean_of_square, **values, **rules)
    product_mean = specialised(mean_products.mean_of_product, **values, **rules)
    return bound(mean_products.risk, square_mean=square_mean, product_mean=product_mean)


def _drifts(student: Activation, teacher: Activation, rules: dict[str, Any]) -> Any:
    functions = {
        "student_value": inlined(student.value),
        "student_slope": inlined(student.derivative),
        "teacher_value": inlined(teacher.value),
    }
    kinks = {"student_kink": _kink(student), "teacher_kink": _kink(teacher)}
    rests = {"student_rest": _has_rest(student), "teacher_rest": _has_rest(teacher)}
    inner = {
        "means": specialised(pair_means, **functions),
        "expanded": specialised(expand, **functions, **rests),
    }
    return bound(drifts, **functions, **kinks, **rules, **inner)


def _kink(activation: Activation) -> float:
    """κ, the jump of the slope at zero."""
    jump = activation.derivative(1e-9) - activation.derivative(-1e-9)
    return jump if abs(jump) > 1e-6 else 0.0


def _has_rest(activation: Activation) -> bool:
    """Whether the activation is more than κ (·)⁺."""
    kink = _kink(activation)
    return any(abs(activation.value(z) - kink * max(z, 0.0)) > 1e-12 for z in np.linspace(-3.7, 3.7, 40).tolist())


FAMILIES.register("quadrature", Family("quadrature", 100, pair_expectations))
