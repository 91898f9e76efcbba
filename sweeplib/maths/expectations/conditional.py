"""The second moment E[(Σ_m b_m σ_m(z_m))²] of fields z_m = μ_m + s_m g_m, g ~ N(0, ρ), given two others.

σ_m = τ_m + κ_m (·)⁺, κ the jump of its slope at zero and τ without that kink. In normalised Hermite polynomials h_l,
with c_lm = E[σ_m h_l(g_m)], E[σ_m σ_n] = Σ_l ρ_mn^l c_lm c_ln (Mehler): fast for smooth functions. The
coefficients of (·)⁺ are μ Φ(h) + s φ(h), s Φ(h) and s h_(l−2)(−h) φ(h)/√(l(l−1)) with h = μ/s, and the expectation
of two (·)⁺ follows by integrating its second derivative in ρ, the Gaussian density: with ρ = sin ϑ_0,
E[z_m⁺ z_n⁺] = E z_m⁺ E z_n⁺ + ρ s_m s_n Φ(h_m) Φ(h_n)
+ s_m s_n/2π ∫_0^ϑ_0 (ρ − sin ϑ) exp(−(h_m² + h_n² − 2 h_m h_n sin ϑ)/(2 cos²ϑ)) dϑ.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.numerics.compiled import inlined, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]


class Given(NamedTuple):
    """The fields given two others, and their expansions.

    They are: b, κ, μ, s (n,) and ρ (n, n); E[τ²] and E[z⁺²] (2, n); the coefficients of τ and of z⁺ (n, order); the
    arcs of `fill_arcs` (n, n, 3, node); nodes of a Gauss-Hermite rule, values at them, and w_q h_l(x_q) (node, order).
    """

    weight: Array
    kink: Array
    mean: Array
    scale: Array
    rho: Array
    squares: Array
    smooth: Array
    rectified: Array
    arcs: Array
    nodes: Array
    samples: Array
    table: Array


@inlined
def givens(weight: Array, kink: Array, inner: Array, orders: int, arcs: int) -> Given:
    """Work arrays for fields with these weights and kinks.

    `inner` is a rule (2, nodes), `arcs` the number of nodes on an arc.
    """
    n, nodes = len(weight), inner.shape[1]
    table = np.empty((nodes, orders))
    fill_table(inner[0], inner[1], table)
    fields = np.empty(n), np.empty(n), np.empty((n, n))
    series = np.zeros((2, n)), np.zeros((n, orders)), np.zeros((n, orders)), np.empty((n, n, 3, arcs))
    return Given(weight, kink, *fields, *series, inner[0], np.empty(nodes), table)


@without_references
def fill_table(nodes: Array, weights: Array, table: Array) -> None:
    """Fill w_q h_l(x_q) (node, order)."""
    for q in range(len(nodes)):
        table[q, 0], table[q, 1] = weights[q], weights[q] * nodes[q]
        for order in range(2, table.shape[1]):
            previous = math.sqrt(order - 1.0) * table[q, order - 2]
            table[q, order] = (nodes[q] * table[q, order - 1] - previous) / math.sqrt(1.0 * order)


@without_references
def fill_arcs(rho: float, arc: Array, arcs: Array) -> None:
    """Fill sin ϑ, 1/(2 cos²ϑ) and the weights (3, node) of the integral from 0 to asin ρ."""
    end = math.asin(rho)
    for q in range(arc.shape[1]):
        sine, cosine = math.sin(end * arc[0, q]), math.cos(end * arc[0, q])
        arcs[0, q], arcs[1, q] = sine, 0.5 / (cosine * cosine)
        arcs[2, q] = (rho - sine) * end * arc[1, q] / (2.0 * math.pi)


@without_references
def fill_residuals(given: Given, omega: Array, first: Array, second: Array, arc: Array) -> None:
    """Fill s_m and ρ_mn of z_m − first_m u_1 − second_m u_2, and the arcs of ρ between fields with kinks.

    A scale is zero if the variance is zero up to rounding.
    """
    scale, rho = given.scale, given.rho
    n = len(scale)
    for m in range(n):
        variance = omega[m, m] - first[m] * first[m] - second[m] * second[m]
        scale[m] = 0.0 if variance < 1e-14 * omega[m, m] else math.sqrt(variance)
        for q in range(m + 1):
            covariance = omega[m, q] - first[m] * first[q] - second[m] * second[q]
            bound = scale[m] * scale[q]
            rho[m, q] = 0.0 if bound == 0.0 else max(min(covariance / scale[m] / scale[q], 1.0), -1.0)
            if q < m and given.kink[m] * given.kink[q] != 0.0:
                fill_arcs(rho[m, q], arc, given.arcs[m, q])


@without_references
def project(samples: Array, table: Array, series: Array) -> float:
    """Fill the coefficients c_l of τ from its values at the nodes; return E[τ²]."""
    for order in range(len(series)):
        series[order] = 0.0
    square = 0.0
    for q in range(len(samples)):
        square += table[q, 0] * samples[q] * samples[q]
        for order in range(len(series)):
            series[order] += table[q, order] * samples[q]
    return square


@without_references
def fill_rectified(mean: float, scale: float, series: Array) -> float:
    """Fill the coefficients c_l of z⁺; return E[z⁺²]."""
    edge = max(min(mean / scale, 38.0), -38.0) if scale > 0.0 else math.copysign(38.0, mean)
    above = 0.5 * math.erfc(-edge * math.sqrt(0.5))
    density = math.exp(-0.5 * edge * edge) / math.sqrt(2.0 * math.pi)
    series[0], series[1] = mean * above + scale * density, scale * above
    before, now = 0.0, scale * density
    for order in range(2, len(series)):
        series[order] = now / math.sqrt(order * (order - 1.0))
        before, now = now, (-edge * now - math.sqrt(order - 2.0) * before) / math.sqrt(order - 1.0)
    return (mean * mean + scale * scale) * above + mean * scale * density


@without_references
def rectified_product(edge: float, other: float, arcs: Array) -> float:
    """The integral in E[z⁺ z'⁺] over the arc, at h and h'."""
    total = 0.0
    for q in range(arcs.shape[1]):
        exponent = edge * edge + other * other - 2.0 * edge * other * arcs[0, q]
        total += arcs[2, q] * math.exp(-exponent * arcs[1, q])
    return total


@without_references
def second_moment(given: Given) -> float:
    """E[(Σ_m b_m σ_m)²]."""
    smooth, rectified, scale, kink = given.smooth, given.rectified, given.scale, given.kink
    n, orders = smooth.shape
    total = 0.0
    for m in range(n):
        square = given.squares[0, m]
        if kink[m] != 0.0:
            for order in range(orders):
                square += 2.0 * kink[m] * rectified[m, order] * smooth[m, order]
            square += kink[m] * kink[m] * given.squares[1, m]
        total += given.weight[m] * given.weight[m] * square
        for q in range(m):
            power, product, both = 1.0, 0.0, kink[m] * kink[q]
            for order in range(orders):
                left = smooth[m, order] + kink[m] * rectified[m, order]
                right = smooth[q, order] + kink[q] * rectified[q, order]
                known = both * rectified[m, order] * rectified[q, order] if order > 1 else 0.0
                product += power * (left * right - known)
                power *= given.rho[m, q]
            if both != 0.0 and scale[m] > 0.0 and scale[q] > 0.0:
                edge, other = given.mean[m] / scale[m], given.mean[q] / scale[q]
                product += both * scale[m] * scale[q] * rectified_product(edge, other, given.arcs[m, q])
            total += 2.0 * given.weight[m] * given.weight[q] * product
    return total
