"""The rectified linear unit on both sides, σ(λ) = σ*(λ) = max(λ, 0).

All fields share one index, z_m = s_m u_m with u ~ N(0, ρ) of unit variances, and E = Σ_m β_m u_m⁺ + √Δ ζ with
β = s (−a/p, a*/k), u⁺ = max(u, 0), θ_m = θ(u_m). Stein's lemma E[u_m X] = Σ_n ρ_mn E[∂_n X], with ∂θ = δ, takes
moments over orthants to densities at zero times moments of fewer fields, down to arc sines (A(ρ) = π/2 + asin ρ):

E[θ_m θ_n] = A(ρ_mn)/2π,  E[u_m⁺ u_n⁺] = (√(1−ρ_mn²) + ρ_mn A(ρ_mn))/2π (Cho and Saul 2009, eqs. 6, 7),
E[θ_i u_j u_m⁺] = (ρ_ij √(1−ρ_im²) + ρ_jm A(ρ_im))/2π,
and likewise E[θ_i u_m⁺ u_n⁺] and E[θ_i θ_j u_m⁺²]. For four distinct fields the covariances between {i, j} and {m, n}
are scaled by t: that is a convex combination of covariances; at t = 0 the expectation F is a product, and
dF/dt = Σ_ab ρ_ab E[δ(u_a) θ_a' θ_b u_b'⁺], {a, a'} = {i, j}, {b, b'} = {m, n}, is in closed form. It is integrated by
Gauss-Legendre quadrature in (1−t)^¼, in which it is smooth even where ρ is singular at t = 1: an error below 10⁻¹⁵ for
well-conditioned ρ, up to 10⁻⁹ for singular ones.

`risk` has Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes), a_star (k, lanes) and out (lanes,), systems
in lanes; `drifts` one `System`. Arguments ij, im, jm, ... are the correlations ρ_ij, ρ_im, ρ_jm, ..., and inn is ρ_in.

Fields within rounding of equal or opposite ones count as such. A unit without variance has σ' = 0, as in SGD.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.networks.maths.expectations.hinges import correlation
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined, specialised, without_references

NODES = 24
"""The usual number of nodes on the path from t = 0 to 1."""
TWO_PI = 2.0 * math.pi

path: tuple[float, ...] = ()
path_weights: tuple[float, ...] = ()
"""The nodes t and weights that `_drifts` binds."""


@inlined
def angle(rho: float) -> float:
    """The angle A(ρ) = π/2 + asin ρ, that is 2π E[θ θ']."""
    return 0.5 * math.pi + math.asin(rho)


@inlined
def sine(rho: float) -> float:
    """The factor √(1−ρ²)."""
    # not 1 − ρ², which loses its digits near ±1
    return math.sqrt((1.0 - rho) * (1.0 + rho))


@inlined
def product(rho: float) -> float:
    """The mean E[u⁺ u'⁺] of two fields of unit variances and the correlation ρ."""
    return (sine(rho) + rho * angle(rho)) / TWO_PI


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn β_m β_n E[u_m⁺ u_n⁺] of each of the systems that the last axis of all arrays counts (lanes).

    `pair` is not read: the form is closed. out (lanes,) : the risks; none depends on the other lanes.
    """
    p, k, lanes = M.shape
    out[:] = 0.0
    for r in range(k):
        for s in range(r + 1):
            factor = (0.5 if r == s else 1.0) / (k * k)
            for lane in range(lanes):
                scale, other = math.sqrt(P[r, r, lane]), math.sqrt(P[s, s, lane])
                mean = scale * other * product(correlation(P[r, s, lane], scale, other))
                out[lane] += factor * a_star[r, lane] * a_star[s, lane] * mean
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                scale, other = math.sqrt(Q[i, i, lane]), math.sqrt(P[r, r, lane])
                mean = scale * other * product(correlation(M[i, r, lane], scale, other))
                out[lane] -= a[i, lane] * a_star[r, lane] * mean / (p * k)
        for j in range(i + 1):
            factor = (0.5 if i == j else 1.0) / (p * p)
            for lane in range(lanes):
                scale, other = math.sqrt(Q[i, i, lane]), math.sqrt(Q[j, j, lane])
                mean = scale * other * product(correlation(Q[i, j, lane], scale, other))
                out[lane] += factor * a[i, lane] * a[j, lane] * mean


@inlined
def orthant(first: float, second: float, third: float) -> float:
    """The probability E[θ θ' θ''] that three fields are above zero, by their three correlations."""
    return (angle(first) + angle(second) + angle(third) - math.pi) / (2.0 * TWO_PI)


@inlined
def edge(ux: float, uy: float, xy: float) -> float:
    """The mean E[δ(u) x⁺ θ(y)] = (√(1−ρ_ux²) + cov(x, y | u)/√(1−ρ_uy²))/4π by the correlations of u, x, y."""
    reach, other = sine(ux), sine(uy)
    slope = 0.0 if other == 0.0 else max(min((xy - ux * uy) / other, reach), -reach)
    return (reach + slope) / (2.0 * TWO_PI)


@inlined
def one_step(im: float, inn: float, mn: float) -> float:
    """The mean E[θ_i u_m⁺ u_n⁺] by the correlations of the three fields."""
    return edge(mn, im, inn) + mn * orthant(im, inn, mn) + im * edge(inn, im, mn)


@inlined
def two_steps(ij: float, im: float, jm: float) -> float:
    """The mean E[θ_i θ_j u_m⁺²] by the correlations of the three fields."""
    return orthant(ij, im, jm) + im * edge(im, ij, jm) + jm * edge(jm, ij, im)


@inlined
def path_slope(t: float, ij: float, im: float, inn: float, jm: float, jn: float, mn: float) -> float:
    """The part of dF/dt with δ(u_i) at t, ρ_im E[δ(u_i) θ_j θ_m u_n⁺] + (m ↔ n), by the correlations at t = 1.

    With c the covariances at u_i = 0, there E[θ_j θ_m u_n⁺] = (√c_nn A_n + c_mn A_m/√c_mm + c_jn A_j/√c_jj)/(2π)^(3/2),
    where A_n = A(correlation of j and m given n); the three have one determinant.
    """
    jj, mm, nn = (1.0 - ij) * (1.0 + ij), 1.0 - t * t * im * im, 1.0 - t * t * inn * inn
    c_mn, c_jm, c_jn = mn - t * t * im * inn, t * (jm - ij * im), t * (jn - ij * inn)
    determinant = mm * (jj * nn - c_jn * c_jn) - c_jm * (c_jm * nn - c_jn * c_mn) + c_mn * (c_jm * c_jn - jj * c_mn)
    # rounding takes it below zero where fields are collinear, and its root is needed
    determinant = max(determinant, 1e-16 * jj * mm * nn)
    s_j, s_m, s_n = math.sqrt(jj), math.sqrt(mm), math.sqrt(nn)
    root = math.sqrt(determinant)
    at_j = 0.5 * math.pi + math.atan2(jj * c_mn - c_jm * c_jn, s_j * root)
    at_m = 0.5 * math.pi + math.atan2(mm * c_jn - c_jm * c_mn, s_m * root)
    at_n = 0.5 * math.pi + math.atan2(nn * c_jm - c_jn * c_mn, s_n * root)
    first = s_n * at_n + c_mn / s_m * at_m + c_jn / s_j * at_j
    second = s_m * at_m + c_mn / s_n * at_n + c_jm / s_j * at_j
    return (im * first + inn * second) / (TWO_PI * TWO_PI)


def four_fields(ij: float, im: float, inn: float, jm: float, jn: float, mn: float) -> float:
    """The mean E[θ_i θ_j u_m⁺ u_n⁺] of any four fields by their correlations; some of the fields may coincide."""
    # two opposite fields are never above zero together; of equal ones θ θ = θ and θ u⁺ = u⁺
    if min(ij, im, inn, jm, jn, mn) == -1.0:
        return 0.0
    if ij == 1.0 or jm == 1.0 or jn == 1.0:
        return one_step(im, inn, mn)
    if im == 1.0 or inn == 1.0:
        return one_step(jm, jn, mn)
    if mn == 1.0:
        return two_steps(ij, im, jm)
    total = angle(ij) / TWO_PI * product(mn)
    for node in range(len(path)):
        t = path[node]
        slope = path_slope(t, ij, im, inn, jm, jn, mn) + path_slope(t, ij, jm, jn, im, inn, mn)
        total += path_weights[node] * slope
    return total


@without_references
def fill_angles(system: System, scale: Array, beta: Array, rho: Array) -> None:
    """Fill the fields' standard deviations `scale` (n,), β (n,) and correlations `rho` (n, n), students first."""
    Q, M, P = system.Q, system.M, system.P
    p, k = M.shape
    for i in range(p):
        scale[i] = math.sqrt(Q[i, i])
        beta[i] = -scale[i] * system.a[i] / p
    for r in range(k):
        scale[p + r] = math.sqrt(P[r, r])
        beta[p + r] = scale[p + r] * system.a_star[r] / k
    for i in range(p):
        for j in range(p):
            rho[i, j] = correlation(Q[i, j], scale[i], scale[j])
        for r in range(k):
            rho[i, p + r] = rho[p + r, i] = correlation(M[i, r], scale[i], scale[p + r])
    for r in range(k):
        for s in range(k):
            rho[p + r, p + s] = correlation(P[r, s], scale[p + r], scale[p + s])


def drifts(system: System, out: Drifts) -> None:
    """Fill the drifts: Ψ^a, Ψ^M, Ψ^GF from two fields, Ψ^Var from up to four, by O(p² (p + k)²/4) integrals.

    Ψ^Var is that at Ω times `stretch`: without label noise it is of degree 1 in Ω.
    """
    a = system.a
    p, k = system.M.shape
    n = p + k
    scale, beta, rho, flow = np.empty(n), np.empty(n), np.empty((n, n)), np.zeros((p, n))
    fill_angles(system, scale, beta, rho)
    for i in range(p):
        out.a[i] = 0.0
        for m in range(n):
            out.a[i] += scale[i] * beta[m] * product(rho[i, m])
            for j in range(n):
                # E[θ_i u_j u_m⁺]
                mean = (rho[i, j] * sine(rho[i, m]) + rho[j, m] * angle(rho[i, m])) / TWO_PI
                flow[i, j] += a[i] * scale[j] * beta[m] * mean
        # a unit without variance has σ' = 0
        if scale[i] == 0.0:
            flow[i] = 0.0
        for r in range(k):
            out.M[i, r] = flow[i, p + r]

    for i in range(p):
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]
            if system.stretch == 0.0:
                continue
            variance = system.Delta * angle(rho[i, j]) / TWO_PI
            for m in range(n):
                for q in range(m + 1):
                    factor = (1.0 if q == m else 2.0) * system.stretch * beta[m] * beta[q]
                    if factor != 0.0:
                        mean = four_fields(rho[i, j], rho[i, m], rho[i, q], rho[j, m], rho[j, q], rho[m, q])
                        variance += factor * mean
            alive = scale[i] != 0.0 and scale[j] != 0.0
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance if alive else 0.0


def _drifts(nodes: int) -> Any:
    """The rule `drifts` by so many nodes on the path, t = 1 − (1−s)⁴ with Gauss-Legendre in s."""
    x, weights = np.polynomial.legendre.leggauss(nodes)
    s = 0.5 * (1.0 - x)
    rule = {"path": tuple((1.0 - s**4).tolist()), "path_weights": tuple((2.0 * s**3 * weights).tolist())}
    return bound(drifts, four_fields=specialised(four_fields, **rule))


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of relu with itself; None for other pairs."""
    if not student.name == teacher.name == "relu":
        return None
    usual, finer = _by_nodes(NODES), _by_nodes(2 * NODES)
    return replace(usual, finer=finer)


def _by_nodes(nodes: int) -> Expectations:
    """The expectations of relu with itself, by so many nodes on the path."""
    return Expectations("relu|relu", risk, _drifts(nodes), lipschitz=1.0)


FAMILIES.add(Family("relu", 30, pair_expectations))
