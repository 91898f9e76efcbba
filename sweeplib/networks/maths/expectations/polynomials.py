"""Polynomials σ = Σ c_n He_n/√n! on either side, by Wick's theorem in the form of Taylor series in the covariances.

All fields share one index, z = (λ, λ*) ~ N(0, Ω) of covariances c, and E = Σ_m b_m σ_m(z_m) + √Δ ζ with
b = (−a/p, a*/k). As ∂/∂c_mn E[g(z)] = E[∂_m ∂_n g(z)], every expectation of a polynomial is a finite sum:

F_m[u] = E[σ_m^(u)(z_m)] = Σ_t c_(u+2t) √(u+2t)! ((c_mm − 1)/2)^t/t!,
S_mq[u, w] = E[σ_m^(u)(z_m) σ_q^(w)(z_q)] = Σ_l c_mq^l/l! F_m[u+l] F_q[w+l],
E[σ'_i z_j E] = c_ij Σ_m b_m S_im[2, 0] + Σ_m b_m c_jm S_im[1, 1] (Stein), and, with x pairings of z_i with z_m, x' of
z_i with z_q, y of z_j with z_m and y' of z_j with z_q,
E[σ'_i σ'_j σ_m σ_q] = Σ c_im^x c_iq^x' c_jm^y c_jq^y'/(x! x'! y! y'!) S_ij[1+x+x', 1+y+y'] S_mq[x+y, x'+y'].
Nothing is divided by a variance: singular Ω and zero variances need no care.

Weights of a function are its c_n √n!; means are F, products S, omega is Ω, weight is b.
`risk` has Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes), a_star (k, lanes) and out (lanes,), systems
in lanes; `drifts` one `System`. `pair` has the series.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.expectations.addresses import no_functions
from sweeplib.networks.maths.expectations.expectations import FAMILIES, Expectations, Family, in_vectors
from sweeplib.networks.maths.expectations.fields import counts, fill_fields, fill_fields_in_lanes, function_number
from sweeplib.networks.maths.expectations.system import Drifts, Pair, Ridges, System, ridge_arrays
from sweeplib.networks.numerics.compiled import in_any_order, in_place, without_references
from sweeplib.networks.numerics.vectors import everywhere, room

Weights = tuple[float, ...]
"""Coefficients c_0, c_1, ... of a Hermite series."""
Flags = np.ndarray[Any, np.dtype[np.bool_]]
"""An array of flags."""


@without_references
def length_of(weights: Array) -> int:
    """The number of coefficients `weights` (orders,) up to the last one that is not zero, 1 at least."""
    length = len(weights)
    while length > 1 and weights[length - 1] == 0.0:
        length -= 1
    return length


@without_references
def stride_of(weights: Array) -> int:
    """Two for an even or odd series, of whose products half are zero, else one."""
    even, odd = False, False
    for n in range(0, len(weights), 2):
        even |= weights[n] != 0.0
    for n in range(1, len(weights), 2):
        odd |= weights[n] != 0.0
    return 1 if even and odd else 2


@without_references
def fill_means_in_lanes(variance: Array, weights: Array, power: Array, means: Array, present: Flags) -> None:
    """Fill F (order, lanes) of a field of some variance (lanes,), and which are `present` (order,): not always zero.

    weights : c_n √n! of the function. power (lanes,) : a work array.
    """
    lanes = means.shape[1]
    means[:], power[:], present[:] = 0.0, 1.0, False
    for t in range((len(weights) + 1) // 2):
        for u in range(len(weights) - 2 * t):
            weight = weights[u + 2 * t]
            if weight != 0.0:
                present[u] = True
                for lane in range(lanes):
                    means[u, lane] += weight * power[lane]
        for lane in range(lanes):
            power[lane] *= 0.5 * (variance[lane] - 1.0) / (t + 1)


@without_references
def add_products(
    factor: float,
    m: int,
    q: int,
    omega: Array,
    weight: Array,
    means: Array,
    present: Flags,
    power: Array,
    out: Array,
) -> None:
    """Add factor · b_m b_q S_mq[0, 0] to out (lanes,).

    omega (fields, fields, lanes), weight (functions, lanes) : Ω and b. means (functions, orders, lanes) : F.
    present (functions, orders) : which are not zero. power (lanes,) : a work array.
    """
    lanes = len(out)
    for lane in range(lanes):
        power[lane] = factor * weight[m, lane] * weight[q, lane]
    for order in range(means.shape[1]):
        if present[m, order] and present[q, order]:
            for lane in range(lanes):
                out[lane] += power[lane] * means[m, order, lane] * means[q, order, lane]
        for lane in range(lanes):
            power[lane] *= omega[m, q, lane] / (order + 1)


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn b_m b_n S_mn[0, 0] of each system, which the last axis of all arrays counts (lanes)."""
    p, k, lanes = M.shape
    n, size = counts(pair.weights, p, k)
    orders = pair.series.shape[1]
    omega, weight, power = np.empty((size, size, lanes)), np.empty((n, lanes)), np.empty(lanes)
    means, present = np.empty((n, orders, lanes)), np.empty((n, orders), np.bool_)
    fill_fields_in_lanes(pair, Q, M, P, a, a_star, omega, weight)
    for m in range(n):
        fill_means_in_lanes(omega[m, m], pair.series[function_number(pair.which, p, m)], power, means[m], present[m])
    out[:] = 0.0
    for m in range(n):
        for q in range(m + 1):
            add_products(0.5 if m == q else 1.0, m, q, omega, weight, means, present, power, out)


@in_any_order
def inner_product(x: Array, y: Array) -> Any:
    """The sum Σ_j x_j y_j, in any order."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@without_references
def derivative_mean(weights: Array, order: int, variance: float) -> float:
    """E[σ^(order)(z)], z ~ N(0, variance), of σ = Σ c_n He_n/√n!, whose c_n √n! are the weights."""
    power, total = 1.0, 0.0
    for t in range((len(weights) - order + 1) // 2):
        if weights[order + 2 * t] != 0.0:
            total += weights[order + 2 * t] * power
        power *= 0.5 / (t + 1) * (variance - 1.0)
    return total


@without_references
def fill_means(pair: Pair, p: int, omega: Array, means: Array, present: Flags) -> None:
    """Fill F (order, field) of students and ridges, and whether some are `present` (order,): not zero by their series.

    They are zero beyond the degree. p : the number of students.
    """
    orders, n = means.shape
    for u in range(orders):
        present[u] = False
        for weights in pair.series:
            for t in range(u, orders, 2):
                present[u] |= weights[t] != 0.0
    for m in range(n):
        weights = pair.series[function_number(pair.which, p, m)]
        for u in range(orders):
            means[u, m] = derivative_mean(weights, u, omega[m, m])


@without_references
def fill_products(omega: Array, means: Array, present: Flags, stride: int, products: Array) -> None:
    """Fill S[u, w] (order, order, field, field) for u ≥ w, as S_mq[u, w] = S_qm[w, u].

    stride : 2 for those with even u + w alone, 0 for those that Ψ^a, Ψ^M and Ψ^GF need, 1 for all.
    products (orders + 1, order, field, field) : S, and last c_mq^l/l! (order, field, field).
    """
    orders, n = means.shape
    powers = products[orders]
    powers[0] = 1.0
    for l in range(1, orders):  # noqa: E741
        for m in range(n):
            for q in range(n):
                powers[l, m, q] = powers[l - 1, m, q] * (1.0 / l * omega[m, q])
    for u in range(orders if stride > 0 else min(orders, 3)):
        for w in range(0 if stride == 1 else u % 2, u + 1 if stride > 0 else u % 2 + 1, max(stride, 1)):
            products[u, w] = 0.0
            for l in range(orders - u):  # noqa: E741
                if present[u + l] and present[w + l]:
                    for m in range(n):
                        mean = means[u + l, m]
                        for q in range(n):
                            products[u, w, m, q] += mean * means[w + l, q] * powers[l, m, q]


@without_references
def fill_powers(i: int, j: int, omega: Array, weight: Array, powers: Array) -> None:
    """Fill `powers` (x, y, field) with b_m c_im^x c_jm^y/(x! y!) for students i and j."""
    orders, _, n = powers.shape
    for m in range(n):
        first = weight[m]
        for x in range(orders):
            second = first
            for y in range(orders):
                powers[x, y, m] = second
                second *= 1.0 / (y + 1) * omega[j, m]
            first *= 1.0 / (x + 1) * omega[i, m]


@without_references
def second_moment(i: int, j: int, powers: Array, products: Array, stride: int, row: Array) -> float:
    """The mean E[σ'_i σ'_j (Σ_m b_m σ_m)²], from the `powers` of (i, j) and all `products`.

    It is the sum over x, y and w = x' + y' ≤ x + y of Σ_mq powers[x, y, m] S_mq[x + y, w] Σ_x' S_ij[1 + x + x',
    1 + y + y'] powers[x', y', q]; what has w < x + y counts twice, for m ↔ q. With `stride` 2, of an even or odd σ, w
    has the parity of x + y. row (field,) : a work array.
    """
    reach, n = len(powers), powers.shape[2]
    total = 0.0
    for x in range(reach):
        for y in range(min(x + 1 if i == j else reach, products.shape[1] - x)):
            for w in range((x + y) & (stride - 1), min(x + y, 2 * (reach - 1) - x - y) + 1, stride):
                factor = (1.0 if w == x + y else 2.0) * (2.0 if i == j and x != y else 1.0)
                row[:] = 0.0
                for x_q in range(max(0, w + y - reach + 1), min(reach - x, w + 1)):
                    u, v = 1 + x + x_q, 1 + y + w - x_q
                    slope = factor * (products[u, v, i, j] if u >= v else products[v, u, j, i])
                    for q in range(n):
                        row[q] += slope * powers[x_q, w - x_q, q]
                for m in range(n):
                    total += powers[x, y, m] * inner_product(row, products[x + y, w, m])
    return total


def drifts(system: System, out: Drifts) -> None:
    """Fill the drifts of one system of two Hermite series, or of a series and a sum of ridge functions."""
    p, k = system.M.shape
    fill_drifts(system, out, *work_arrays(p, k, system.pair, system.Delta))


@in_place
def work_arrays(p: int, k: int, pair: Pair, number: Any) -> tuple[Array, Array, Array, Array, Flags]:
    """Work arrays of `fill_drifts`, for numbers or, as `number` is, for vectors of numbers.

    Ω (fields, fields); rows (orders + 2, functions): b, a work array, F; products (orders + 1, orders, functions,
    functions): S, and last c^l/l!; the powers of a pair of students; which orders are present.
    """
    n, size = counts(pair.weights, p, k)
    orders, reach = pair.series.shape[1], max(length_of(pair.series[0]) - 1, 0)
    omega, rows = room((size, size), number), room((orders + 2, n), number)
    products, powers = room((orders + 1, orders, n, n), number), room((reach, reach, n), number)
    return omega, rows, products, powers, np.empty(orders, np.bool_)


@without_references
def fill_drifts(
    system: System, out: Drifts, omega: Array, rows: Array, products: Array, powers: Array, present: Flags
) -> None:
    """Fill the drifts: Ψ^a from S[0, 0], Ψ^M and Ψ^GF from S[2, 0] and S[1, 1], Ψ^Var by the sum over pairings.

    Ψ^Var is that at Ω times `stretch`. The arguments behind `out` are the `work_arrays`.
    """
    a, stretch, pair, weight, means = system.a, system.stretch, system.pair, rows[0], rows[2:]
    p, k = system.M.shape
    n, size = len(weight), len(omega)
    degrees, stride = length_of(pair.series[0]), stride_of(pair.series[0])
    fill_fields(pair, system.Q, system.M, system.P, a, system.a_star, omega, weight)
    fill_means(pair, p, omega, means, present)
    fill_products(omega, means, present, 0, products)

    for i in range(p):
        # E[σ'_i z_j E] = c_ij `curvature` + Σ_m b_m c_jm S_im[1, 1]
        out.a[i], curvature = 0.0, 0.0
        for m in range(n):
            out.a[i] += weight[m] * products[0, 0, i, m]
            if degrees > 2:
                curvature += weight[m] * products[2, 0, i, m]
        for j in range(p + k):
            # the last k fields are λ*
            at = j if j < p else size - k + j - p
            flow = curvature * omega[i, at]
            for m in range(n):
                flow += weight[m] * omega[at, m] * products[1, 1, i, m]
            if j < p:
                out.GF[i, j] = a[i] * flow
            else:
                out.M[i, j - p] = a[i] * flow
    for i in range(p):
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = out.GF[i, j] + out.GF[j, i]

    if everywhere(stretch == 0.0):
        return
    for m in range(size):
        for q in range(size):
            omega[m, q] *= stretch
    fill_means(pair, p, omega, means, present)
    fill_products(omega, means, present, stride, products)
    for i in range(p):
        for j in range(i + 1):
            fill_powers(i, j, omega, weight, powers)
            variance = second_moment(i, j, powers, products, stride, rows[1]) + system.Delta * products[1, 1, i, j]
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of two Hermite series; None for other pairs."""
    if student.hermite is None or teacher.hermite is None:
        return None
    return of_series(f"{student.name}|{teacher.name}", student.hermite, (teacher.hermite,))


def of_series(
    name: str,
    student: Weights,
    functions: tuple[Weights, ...],
    ridges: Ridges = (),
) -> Expectations:
    """The expectations of a Hermite series and a target Σ_r c_r τ_r(v_r·λ*) of such series.

    functions : the τ. Without ridges the target is the committee of the one function.
    """
    return Expectations(
        name, risk, drifts, in_vectors(fill_drifts, work_arrays), partial(_pair, student, functions, ridges)
    )


def _pair(student: Weights, functions: tuple[Weights, ...], ridges: Ridges) -> Pair:
    """The `Pair` of Hermite series: of the student, and of the functions of a committee or of ridges."""
    orders = max(map(len, (student, *functions)), default=1)
    series = np.zeros((1 + len(functions), max(orders, 2)))
    for row, coefficients in zip(series, (student, *functions), strict=True):
        row[: len(coefficients)] = [c * math.sqrt(math.factorial(n)) for n, c in enumerate(coefficients)]
    return no_functions()._replace(**ridge_arrays(ridges), series=series)


FAMILIES.add(Family("polynomials", 10, pair_expectations))
