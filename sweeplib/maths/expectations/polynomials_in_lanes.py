"""The risk and the drifts of polynomials for many systems in lanes, by the sums over pairings of `polynomials`.

Arrays have the system as last axis. As S_mq[u, w] = S_qm[w, u], only u ≥ w is kept.
"""

from typing import Any

import numpy as np

from sweeplib.arrays import Array
from sweeplib.maths.expectations.fields import counts, fill_fields_in_lanes, function_number
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.numerics.compiled import inlined, without_references

Flags = np.ndarray[Any, np.dtype[np.bool_]]


@without_references
def length_of(weights: Array) -> int:
    """The number of coefficients up to the last one that is not zero."""
    length = len(weights)
    while length > 1 and weights[length - 1] == 0.0:
        length -= 1
    return length


@without_references
def stride_of(weights: Array) -> int:
    """Two for an even or odd series, else one."""
    even, odd = False, False
    for n in range(0, len(weights), 2):
        even |= weights[n] != 0.0
    for n in range(1, len(weights), 2):
        odd |= weights[n] != 0.0
    return 1 if even and odd else 2


@without_references
def fill_means(variance: Array, weights: Array, power: Array, means: Array, present: Flags) -> None:
    """Fill F (order, lanes) of a field, and which of them are `present` (order,): not zero at all variances."""
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
def fill_powers(omega: Array, powers: Array) -> None:
    """Fill c_mq^l/l! (order l, field, field, lanes)."""
    orders, n, _, lanes = powers.shape
    powers[0] = 1.0
    for order in range(1, orders):
        for m in range(n):
            for q in range(n):
                for lane in range(lanes):
                    powers[order, m, q, lane] = powers[order - 1, m, q, lane] * omega[m, q, lane] / order


@without_references
def fill_product(u: int, w: int, present: Flags, means: Array, powers: Array, product: Array) -> None:
    """Fill S[u, w] (field, field, lanes), u ≥ w."""
    n, orders, lanes = means.shape
    product[:] = 0.0
    for order in range(orders - u):
        for m in range(n):
            for q in range(n):
                if present[m, u + order] and present[q, w + order]:
                    for lane in range(lanes):
                        mean = means[m, u + order, lane] * means[q, w + order, lane]
                        product[m, q, lane] += mean * powers[order, m, q, lane]


@inlined
def fill_products(pair: Pair, p: int, few: bool, omega: Array, room: Array, powers: Array, products: Array) -> None:
    """Fill S[u, w] (u, w, field, field, lanes) for u ≥ w, or only the `few` of them that Ψ^a, Ψ^M and Ψ^GF need."""
    orders, n, _, lanes = powers.shape
    means, present = np.empty((n, orders, lanes)), np.empty((n, orders), np.bool_)
    for m in range(n):
        fill_means(omega[m, m], pair.series[function_number(pair.which, p, m)], room, means[m], present[m])
    fill_powers(omega, powers)
    for u in range(orders):
        for w in range(u + 1):
            if not few or (u < 3 and w == u % 2):
                fill_product(u, w, present, means, powers, products[u, w])


@without_references
def add_flow(i: int, omega: Array, weight: Array, products: Array, curved: bool, flow: Array) -> None:
    """Add E[σ'_i z_j E] to flow (field j, lanes); `curved` says whether σ'' is there."""
    n, lanes = weight.shape
    for j in range(len(flow)):
        for m in range(n):
            for lane in range(lanes):
                flow[j, lane] += weight[m, lane] * omega[j, m, lane] * products[1, 1, i, m, lane]
            if curved:
                for lane in range(lanes):
                    flow[j, lane] += weight[m, lane] * omega[i, j, lane] * products[2, 0, i, m, lane]


@without_references
def fill_pair_powers(i: int, j: int, omega: Array, weight: Array, powers: Array) -> None:
    """Fill b_m c_im^x c_jm^y/(x! y!) (x, y, field, lanes)."""
    orders, _, n, lanes = powers.shape
    for m in range(n):
        for lane in range(lanes):
            powers[0, 0, m, lane] = weight[m, lane]
        for x in range(orders):
            if x > 0:
                for lane in range(lanes):
                    powers[x, 0, m, lane] = powers[x - 1, 0, m, lane] * omega[i, m, lane] / x
            for y in range(1, orders):
                for lane in range(lanes):
                    powers[x, y, m, lane] = powers[x, y - 1, m, lane] * omega[j, m, lane] / y


@without_references
def add_second_moment(i: int, j: int, stride: int, powers: Array, products: Array, rows: Array, out: Array) -> None:
    """Add E[σ'_i σ'_j (Σ_m b_m σ_m)²], as `polynomials.second_moment` has it, to out (lanes,)."""
    reach, _, n, lanes = powers.shape
    row, other = rows[0], rows[1]
    for x in range(reach):
        for y in range(min(reach, len(products) - x)):
            for w in range((x + y) & (stride - 1), min(x + y, 2 * (reach - 1) - x - y) + 1, stride):
                factor = 1.0 if w == x + y else 2.0
                rows[:] = 0.0
                for x_q in range(max(0, w + y - reach + 1), min(reach - x, w + 1)):
                    u, v = 1 + x + x_q, 1 + y + w - x_q
                    slopes = products[u, v, i, j] if u >= v else products[v, u, j, i]
                    for q in range(n):
                        for lane in range(lanes):
                            row[q, lane] += factor * slopes[lane] * powers[x_q, w - x_q, q, lane]
                for m in range(n):
                    for q in range(n):
                        for lane in range(lanes):
                            other[q, lane] += powers[x, y, m, lane] * products[x + y, w, m, q, lane]
                for q in range(n):
                    for lane in range(lanes):
                        out[lane] += row[q, lane] * other[q, lane]


def drifts_in_lanes(filled: int, system: System, out: Drifts) -> None:
    """Ψ^a from S[0, 0], Ψ^M and Ψ^GF from S[2, 0] and S[1, 1], Ψ^Var by the sum over pairings at Ω times `stretch`."""
    a, pair = system.a, system.pair
    p, k, lanes = system.M.shape
    n, size = counts(pair.weights, p, k)
    degrees, stride = length_of(pair.series[0]), stride_of(pair.series[0])
    orders, reach = pair.series.shape[1], max(degrees - 1, 0)
    omega, weight, flow = np.empty((size, size, lanes)), np.empty((n, lanes)), np.zeros((p, size, lanes))
    powers, products = np.empty((orders, n, n, lanes)), np.empty((orders, orders, n, n, lanes))
    pair_powers, rows, total = np.empty((reach, reach, n, lanes)), np.empty((2, n, lanes)), np.empty(lanes)
    fill_fields_in_lanes(pair, system.Q, system.M, system.P, a, system.a_star, omega, weight)
    fill_products(pair, p, True, omega, total, powers, products)
    for i in range(p):
        out.a[i] = 0.0
        for m in range(n):
            for lane in range(lanes):
                out.a[i, lane] += weight[m, lane] * products[0, 0, i, m, lane]
        add_flow(i, omega, weight, products, degrees > 2, flow[i])
        for r in range(k):
            for lane in range(lanes):
                out.M[i, r, lane] = a[i, lane] * flow[i, size - k + r, lane]

    for m in range(size):
        for q in range(size):
            for lane in range(lanes):
                omega[m, q, lane] *= system.stretch[lane]
    fill_products(pair, p, False, omega, total, powers, products)
    for i in range(p):
        for j in range(i + 1):
            fill_pair_powers(i, j, omega, weight, pair_powers)
            for lane in range(lanes):
                total[lane] = system.Delta[lane] * products[1, 1, i, j, lane]
            add_second_moment(i, j, stride, pair_powers, products, rows, total)
            for lane in range(lanes):
                flows = a[i, lane] * flow[i, j, lane] + a[j, lane] * flow[j, i, lane]
                out.GF[i, j, lane] = out.GF[j, i, lane] = flows
                out.Var[i, j, lane] = out.Var[j, i, lane] = a[i, lane] * a[j, lane] * total[lane]


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn b_m b_n S_mn[0, 0], every lane on its own."""
    p, k, lanes = M.shape
    n, size = counts(pair.weights, p, k)
    orders = pair.series.shape[1]
    omega, weight, power = np.empty((size, size, lanes)), np.empty((n, lanes)), np.empty(lanes)
    means, present = np.empty((n, orders, lanes)), np.empty((n, orders), np.bool_)
    fill_fields_in_lanes(pair, Q, M, P, a, a_star, omega, weight)
    for m in range(n):
        fill_means(omega[m, m], pair.series[function_number(pair.which, p, m)], power, means[m], present[m])
    out[:] = 0.0
    for m in range(n):
        for q in range(m + 1):
            add_products(0.5 if m == q else 1.0, m, q, omega, weight, means, present, power, out)


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
    """Add `factor` b_m b_q S_mq[0, 0] to out (lanes,)."""
    lanes = len(out)
    for lane in range(lanes):
        power[lane] = factor * weight[m, lane] * weight[q, lane]
    for order in range(means.shape[1]):
        if present[m, order] and present[q, order]:
            for lane in range(lanes):
                out[lane] += power[lane] * means[m, order, lane] * means[q, order, lane]
        for lane in range(lanes):
            power[lane] *= omega[m, q, lane] / (order + 1)
