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
from functools import cache, partial

import numpy as np

from sweeplib.arrays import Array
from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations.addresses import no_functions
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.maths.expectations.fields import counts, fill_fields, function_number
from sweeplib.maths.expectations.polynomials_in_lanes import drifts_in_lanes, length_of, risk, stride_of
from sweeplib.maths.expectations.system import Drifts, Pair, Ridges, System, ridge_arrays
from sweeplib.numerics.compiled import inlined, without_references

Weights = tuple[float, ...]


@without_references
def derivative_mean(weights: Array, order: int, variance: float) -> float:
    """F[order] of the polynomial whose c_n √n! are the weights."""
    power, total = 1.0, 0.0
    for t in range((len(weights) - order + 1) // 2):
        if weights[order + 2 * t] != 0.0:
            total += weights[order + 2 * t] * power
        power *= 0.5 * (variance - 1.0) / (t + 1)
    return total


@without_references
def fill_means(pair: Pair, p: int, omega: Array, means: Array) -> None:
    """Fill F (order, field) of students and ridges; zero beyond the degree."""
    orders, n = means.shape
    for m in range(n):
        weights = pair.series[function_number(pair.which, p, m)]
        for u in range(orders):
            means[u, m] = derivative_mean(weights, u, omega[m, m])


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
    a, stretch, pair = system.a, system.stretch, system.pair
    p, k = system.M.shape
    n, size = counts(pair.weights, p, k)
    degrees, stride, orders = length_of(pair.series[0]), stride_of(pair.series[0]), pair.series.shape[1]
    omega, weight = np.empty((size, size)), np.empty(n)
    means, products = np.empty((orders, n)), np.empty((orders, orders, n, n))
    fill_fields(pair, system.Q, system.M, system.P, a, system.a_star, omega, weight)
    fill_means(pair, p, omega, means)
    fill_products(omega, means, products)

    flow = np.zeros((p, size))
    for i in range(p):
        out.a[i], curvature = 0.0, 0.0
        for m in range(n):
            out.a[i] += weight[m] * products[0, 0, i, m]
            if degrees > 2:
                curvature += weight[m] * products[2, 0, i, m]
        for j in range(size):
            flow[i, j] = curvature * omega[i, j]
            for m in range(n):
                flow[i, j] += weight[m] * omega[j, m] * products[1, 1, i, m]
            flow[i, j] *= a[i]
        for r in range(k):
            out.M[i, r] = flow[i, size - k + r]
    for i in range(p):
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]

    if stretch == 0.0:
        return
    if stretch != 1.0:
        for m in range(size):
            for q in range(size):
                omega[m, q] *= stretch
        fill_means(pair, p, omega, means)
        fill_products(omega, means, products)
    reach = max(degrees - 1, 0)
    powers, rows = np.empty((reach, reach, n)), np.empty((2, n))
    for i in range(p):
        for j in range(i + 1):
            fill_powers(i, j, omega, weight, powers)
            slopes = products[:, :, i, j]
            variance = second_moment(slopes, powers, products, stride, rows) + system.Delta * slopes[1, 1]
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of two Hermite series."""
    if student.hermite is None or teacher.hermite is None:
        return None
    return of_series(f"{student.name}|{teacher.name}", student.hermite, (teacher.hermite,))


def of_series(
    name: str,
    student: Weights,
    functions: tuple[Weights, ...],
    ridges: Ridges = (),
) -> Expectations:
    """The expectations of Hermite series and Σ_r c_r τ_r(v_r·λ*).

    Without ridges it is the committee of the one function.
    """
    return Expectations(name, risk, drifts, drifts_in_lanes, partial(_pair, student, functions, ridges))


def _pair(student: Weights, functions: tuple[Weights, ...], ridges: Ridges) -> Pair:
    orders = max(map(len, (student, *functions)), default=1)
    series = np.zeros((1 + len(functions), max(orders, 2)))
    for row, coefficients in zip(series, (student, *functions), strict=True):
        row[: len(coefficients)] = [c * math.sqrt(math.factorial(n)) for n, c in enumerate(coefficients)]
    return no_functions()._replace(**ridge_arrays(ridges), series=series)


FAMILIES.add(Family("polynomials", 10, pair_expectations))
