"""Polynomials σ = Σ c_n He_n/√n! on either side, by Wick's theorem in the form of Taylor series in the covariances.

All fields share one index, z = (λ, λ*) ~ N(0, Ω) of covariances c, and E = Σ_m b_m σ_m(z_m) + √Δ ζ with
b = (−a/p, a*/k). As ∂/∂c_mn E[g(z)] = E[∂_m ∂_n g(z)], every expectation of a polynomial is a finite sum:

F_m[u] = E[σ_m^(u)(z_m)] = Σ_t c_(u+2t) √(u+2t)! ((c_mm − 1)/2)^t/t!,
S_mq[u, w] = E[σ_m^(u)(z_m) σ_q^(w)(z_q)] = Σ_l c_mq^l/l! F_m[u+l] F_q[w+l],
E[σ'_i z_j E] = c_ij Σ_m b_m S_im[2, 0] + Σ_m b_m c_jm S_im[1, 1] (Stein), and, with x pairings of z_i with z_m, x' of
z_i with z_q, y of z_j with z_m and y' of z_j with z_q,
E[σ'_i σ'_j σ_m σ_q] = Σ c_im^x c_iq^x' c_jm^y c_jq^y'/(x! x'! y! y'!) S_ij[1+x+x', 1+y+y'] S_mq[x+y, x'+y'].
Nothing is divided by a variance: singular Ω and zero variances need no care.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.maths.expectations.fields import fill_fields
from sweeplib.maths.expectations.polynomials_in_lanes import drifts_in_lanes, teacher_weights
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import inlined, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = tuple[float, ...]

student: Weights = ()
teachers: tuple[Weights, ...] = ((),)
stride = 1


@inlined
def derivative_mean(weights: Weights, order: int, variance: float) -> float:
    """F[order] of the polynomial whose c_n √n! are the weights."""
    power, total = 1.0, 0.0
    for t in range((len(weights) - order + 1) // 2):
        if weights[order + 2 * t] != 0.0:
            total += weights[order + 2 * t] * power
        power *= 0.5 * (variance - 1.0) / (t + 1)
    return total


@inlined
def mean_of_product(left: Weights, right: Weights, variance: float, other: float, covariance: float) -> float:
    """E[σ(z) τ(z')] of two polynomials."""
    power, total = 1.0, 0.0
    for order in range(min(len(left), len(right))):
        total += power * derivative_mean(left, order, variance) * derivative_mean(right, order, other)
        power *= covariance / (order + 1)
    return total


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn b_m b_n S_mn[0, 0], every lane on its own."""
    p, k, lanes = M.shape
    for lane in range(lanes):
        out[lane] = 0.0
    for r in range(k):
        for s in range(r + 1):
            factor = (0.5 if r == s else 1.0) / (k * k)
            for lane in range(lanes):
                left, right = teacher_weights(teachers, r), teacher_weights(teachers, s)
                mean = mean_of_product(left, right, P[r, r, lane], P[s, s, lane], P[r, s, lane])
                out[lane] += factor * a_star[r, lane] * a_star[s, lane] * mean
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                right = teacher_weights(teachers, r)
                mean = mean_of_product(student, right, Q[i, i, lane], P[r, r, lane], M[i, r, lane])
                out[lane] -= 1.0 / (p * k) * a[i, lane] * a_star[r, lane] * mean
        for j in range(i + 1):
            factor = (0.5 if i == j else 1.0) / (p * p)
            for lane in range(lanes):
                mean = mean_of_product(student, student, Q[i, i, lane], Q[j, j, lane], Q[i, j, lane])
                out[lane] += factor * a[i, lane] * a[j, lane] * mean


@without_references
def fill_means(omega: Array, p: int, student: Weights, teachers: tuple[Weights, ...], means: Array) -> None:
    """Fill F (order, field) of p students and of teachers; zero beyond the degree."""
    orders, n = means.shape
    for u in range(orders):
        for m in range(p):
            means[u, m] = derivative_mean(student, u, omega[m, m])
        for m in range(p, n):
            means[u, m] = derivative_mean(teacher_weights(teachers, m - p), u, omega[m, m])


@inlined
def fill_products(omega: Array, means: Array, products: Array) -> None:
    """Fill S[u, w] (order, order, field, field)."""
    orders, n = means.shape
    powers = np.ones((orders, n, n))
    for l in range(1, orders):  # noqa: E741
        for m in range(n):
            for q in range(n):
                powers[l, m, q] = powers[l - 1, m, q] * omega[m, q] / l
    products[:] = 0.0
    for u in range(orders):
        for w in range(orders):
            for l in range(orders - max(u, w)):  # noqa: E741
                for m in range(n):
                    mean = means[u + l, m]
                    for q in range(n):
                        products[u, w, m, q] += mean * means[w + l, q] * powers[l, m, q]


@without_references
def fill_powers(i: int, j: int, omega: Array, weight: Array, powers: Array) -> None:
    """Fill b_m c_im^x c_jm^y/(x! y!) (x, y, field)."""
    orders, _, n = powers.shape
    for m in range(n):
        first = weight[m]
        for x in range(orders):
            second = first
            for y in range(orders):
                powers[x, y, m] = second
                second *= omega[j, m] / (y + 1)
            first *= omega[i, m] / (x + 1)


@without_references
def second_moment(slopes: Array, powers: Array, products: Array, stride: int, rows: Array) -> float:
    """E[σ'_i σ'_j (Σ_m b_m σ_m)²], from the `slopes` S_ij (order, order) and the `powers` of (i, j).

    The sum over x, y and w = x' + y' ≤ x + y of Σ_mq powers[x, y, m] S_mq[x + y, w] Σ_x' slopes powers[x', y', q]; what
    has w < x + y counts twice, for m ↔ q. With `stride` 2, of an even or odd σ, w has the parity of x + y.
    """
    reach, n = len(powers), powers.shape[2]
    row, other = rows
    total = 0.0
    for x in range(reach):
        for y in range(min(reach, len(products) - x)):
            for w in range((x + y) & (stride - 1), min(x + y, 2 * (reach - 1) - x - y) + 1, stride):
                row[:] = 0.0
                for x_q in range(max(0, w + y - reach + 1), min(reach - x, w + 1)):
                    slope = (1.0 if w == x + y else 2.0) * slopes[1 + x + x_q, 1 + y + w - x_q]
                    for q in range(n):
                        row[q] += slope * powers[x_q, w - x_q, q]
                other[:] = 0.0
                for m in range(n):
                    for q in range(n):
                        other[q] += powers[x, y, m] * products[x + y, w, m, q]
                for q in range(n):
                    total += row[q] * other[q]
    return total


def drifts(system: System, out: Drifts) -> None:
    """Ψ^a from S[0, 0], Ψ^M and Ψ^GF from S[2, 0] and S[1, 1], Ψ^Var by the sum over pairings at Ω times `stretch`."""
    a, stretch = system.a, system.stretch
    p, k = system.M.shape
    n, orders = p + k, max(len(student), len(teachers[0]))
    omega, weight = np.empty((n, n)), np.empty(n)
    means, products = np.empty((orders, n)), np.empty((orders, orders, n, n))
    fill_fields(system, omega, weight)
    fill_means(omega, p, student, teachers, means)
    fill_products(omega, means, products)

    flow = np.zeros((p, n))
    for i in range(p):
        out.a[i], curvature = 0.0, 0.0
        for m in range(n):
            out.a[i] += weight[m] * products[0, 0, i, m]
            if len(student) > 2:
                curvature += weight[m] * products[2, 0, i, m]
        for j in range(n):
            flow[i, j] = curvature * omega[i, j]
            for m in range(n):
                flow[i, j] += weight[m] * omega[j, m] * products[1, 1, i, m]
            flow[i, j] *= a[i]
        for r in range(k):
            out.M[i, r] = flow[i, p + r]

    if stretch != 1.0:
        omega *= stretch
        fill_means(omega, p, student, teachers, means)
        fill_products(omega, means, products)
    powers, rows = np.empty((len(student) - 1, len(student) - 1, n)), np.empty((2, n))
    for i in range(p):
        for j in range(i + 1):
            fill_powers(i, j, omega, weight, powers)
            slopes = products[:, :, i, j]
            variance = second_moment(slopes, powers, products, stride, rows) + system.Delta * slopes[1, 1]
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of two Hermite series."""
    if student.hermite is None or teacher.hermite is None:
        return None
    return of_series(f"{student.name}|{teacher.name}", student.hermite, (teacher.hermite,))


def of_series(name: str, student: Weights, teachers: tuple[Weights, ...]) -> Expectations:
    """The expectations of Hermite series, one for all teacher units or one for each."""
    longest = max(map(len, teachers))
    bindings = {
        "student": _weights(student),
        "teachers": tuple(_weights(teacher + (0.0,) * (longest - len(teacher))) for teacher in teachers),
        "stride": 2 if _has_parity(student) else 1,
    }
    return Expectations(name, bound(risk, **bindings), bound(drifts, **bindings), bound(drifts_in_lanes, **bindings))


def _weights(coefficients: Weights) -> Weights:
    """c_n √n!."""
    return tuple(c * math.sqrt(math.factorial(n)) for n, c in enumerate(coefficients))


def _has_parity(coefficients: Weights) -> bool:
    """Whether the series is even or odd."""
    return not any(coefficients[::2]) or not any(coefficients[1::2])


FAMILIES.register("polynomials", Family("polynomials", 10, pair_expectations))
