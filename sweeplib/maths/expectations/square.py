"""The square on both sides, σ(λ) = σ*(λ) = λ², with any second layers, by Isserlis' theorem.

All fields share one index, z = (λ, λ*) ~ N(0, Ω), and E = zᵀBz + √Δ ζ with B = diag(−a/p, a*/k).
Then, with τ = tr BΩ,
E[(zᵀBz)²] = τ² + 2 tr(BΩ)²,  E[z z' zᵀBz] = τΩ + 2ΩBΩ  and
E[z z' (zᵀBz)²] = (τ² + 2 tr(BΩ)²) Ω + 4τ ΩBΩ + 8 ΩBΩBΩ.
For a = a* = 1 these are the formulas of arXiv 2305.18502, appendix A.
"""

import numpy as np

from sweeplib.arrays import Array
from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.numerics.compiled import without_references


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = τ²/2 + tr(BΩ)², every lane on its own."""
    p, k, lanes = M.shape
    student, teacher = 1.0 / p, 1.0 / k
    for lane in range(lanes):
        out[lane] = 0.0
    for r in range(k):
        for lane in range(lanes):
            out[lane] += teacher * a_star[r, lane] * P[r, r, lane]
    for i in range(p):
        for lane in range(lanes):
            out[lane] -= student * a[i, lane] * Q[i, i, lane]
    for lane in range(lanes):
        out[lane] *= 0.5 * out[lane]
    for r in range(k):
        for s in range(k):
            for lane in range(lanes):
                weight = teacher * teacher * a_star[r, lane] * a_star[s, lane]
                out[lane] += weight * P[r, s, lane] * P[r, s, lane]
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                weight = 2.0 * student * teacher * a[i, lane] * a_star[r, lane]
                out[lane] -= weight * M[i, r, lane] * M[i, r, lane]
        for j in range(p):
            for lane in range(lanes):
                out[lane] += student * student * a[i, lane] * a[j, lane] * Q[i, j, lane] * Q[i, j, lane]


def drifts(system: System, out: Drifts) -> None:
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a from ΩBΩ and ΩBΩBΩ, in O(p² (p + k)).

    Without label noise Ψ^Var is of degree 3 in Ω; `stretch` enters by its powers.
    """
    Q, M, a, stretch = system.Q, system.M, system.a, system.stretch
    p, k = M.shape
    trace, square = traces(system)
    fill_products(system, out.M, out.GF)
    second_moment = stretch**3 * (trace * trace + 2.0 * square) + stretch * system.Delta
    for i in range(p):
        out.a[i] = trace * Q[i, i] + 2.0 * out.GF[i, i]
        for j in range(i + 1 if stretch != 0.0 else 0):
            twice = 0.0
            for m in range(p):
                twice -= out.GF[i, m] * a[m] * Q[m, j] / p
            for r in range(k):
                twice += out.M[i, r] * system.a_star[r] * M[j, r] / k
            variance = second_moment * Q[i, j] + stretch**3 * (4.0 * trace * out.GF[i, j] + 8.0 * twice)
            out.Var[i, j] = out.Var[j, i] = 4.0 * a[i] * a[j] * variance
    for i in range(p):
        for r in range(k):
            out.M[i, r] = 2.0 * a[i] * (trace * M[i, r] + 2.0 * out.M[i, r])
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = 2.0 * (a[i] + a[j]) * (trace * Q[i, j] + 2.0 * out.GF[i, j])


@without_references
def traces(system: System) -> tuple[float, float]:
    """τ = tr BΩ and tr (BΩ)²."""
    Q, M, P, a, a_star = system.Q, system.M, system.P, system.a, system.a_star
    p, k = M.shape
    trace, square = 0.0, 0.0
    for r in range(k):
        trace += a_star[r] * P[r, r] / k
        for s in range(k):
            square += a_star[r] * a_star[s] * P[r, s] * P[r, s] / (k * k)
    for i in range(p):
        trace -= a[i] * Q[i, i] / p
        for r in range(k):
            square -= 2.0 * a[i] * a_star[r] * M[i, r] * M[i, r] / (p * k)
        for j in range(p):
            square += a[i] * a[j] * Q[i, j] * Q[i, j] / (p * p)
    return trace, square


@without_references
def fill_products(system: System, to_teacher: Array, to_student: Array) -> None:
    """Fill ΩBΩ from students to the teacher (p, k), MWP − QVM, and to students (p, p), MWMᵀ − QVQ.

    With V = diag(a)/p and W = diag(a*)/k.
    """
    Q, M, P = system.Q, system.M, system.P
    p, k = M.shape
    to_teacher[:], to_student[:] = 0.0, 0.0
    for i in range(p):
        for m in range(p):
            factor = -system.a[m] * Q[i, m] / p
            for j in range(p):
                to_student[i, j] += factor * Q[m, j]
            for r in range(k):
                to_teacher[i, r] += factor * M[m, r]
        for s in range(k):
            factor = system.a_star[s] * M[i, s] / k
            for j in range(p):
                to_student[i, j] += factor * M[j, s]
            for r in range(k):
                to_teacher[i, r] += factor * P[s, r]


def drifts_in_lanes(filled: int, system: System, out: Drifts) -> None:
    """`drifts` for many systems."""
    Q, M, a, a_star = system.Q, system.M, system.a, system.a_star
    p, k, lanes = M.shape
    moments = np.empty((5, lanes))
    trace, second_moment, cube, factor, twice = moments[0], moments[1], moments[2], moments[3], moments[4]
    fill_traces(system, trace, second_moment)
    for lane in range(lanes):
        stretch = system.stretch[lane]
        cube[lane] = stretch * stretch * stretch
        moment = trace[lane] * trace[lane] + 2.0 * second_moment[lane]
        second_moment[lane] = cube[lane] * moment + stretch * system.Delta[lane]
    fill_products_in_lanes(system, factor, out.M, out.GF)
    for i in range(p):
        for lane in range(lanes):
            out.a[i, lane] = trace[lane] * Q[i, i, lane] + 2.0 * out.GF[i, i, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                twice[lane] = 0.0
            for m in range(p):
                for lane in range(lanes):
                    twice[lane] -= out.GF[i, m, lane] * a[m, lane] * Q[m, j, lane] / p
            for r in range(k):
                for lane in range(lanes):
                    twice[lane] += out.M[i, r, lane] * a_star[r, lane] * M[j, r, lane] / k
            for lane in range(lanes):
                products = 4.0 * trace[lane] * out.GF[i, j, lane] + 8.0 * twice[lane]
                variance = second_moment[lane] * Q[i, j, lane] + cube[lane] * products
                out.Var[i, j, lane] = 4.0 * a[i, lane] * a[j, lane] * variance
                out.Var[j, i, lane] = out.Var[i, j, lane]
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                flow = trace[lane] * M[i, r, lane] + 2.0 * out.M[i, r, lane]
                out.M[i, r, lane] = 2.0 * a[i, lane] * flow
        for j in range(i + 1):
            for lane in range(lanes):
                flow = trace[lane] * Q[i, j, lane] + 2.0 * out.GF[i, j, lane]
                out.GF[i, j, lane] = out.GF[j, i, lane] = 2.0 * (a[i, lane] + a[j, lane]) * flow


@without_references
def fill_traces(system: System, trace: Array, square: Array) -> None:
    """Fill tr BΩ and tr (BΩ)² (lanes,)."""
    Q, M, P, a, a_star = system.Q, system.M, system.P, system.a, system.a_star
    p, k, lanes = M.shape
    for lane in range(lanes):
        trace[lane] = square[lane] = 0.0
    for r in range(k):
        for lane in range(lanes):
            trace[lane] += a_star[r, lane] * P[r, r, lane] / k
        for s in range(k):
            for lane in range(lanes):
                square[lane] += a_star[r, lane] * a_star[s, lane] / (k * k) * P[r, s, lane] * P[r, s, lane]
    for i in range(p):
        for lane in range(lanes):
            trace[lane] -= a[i, lane] * Q[i, i, lane] / p
        for r in range(k):
            for lane in range(lanes):
                square[lane] -= 2.0 * a[i, lane] * a_star[r, lane] / (p * k) * M[i, r, lane] * M[i, r, lane]
        for j in range(p):
            for lane in range(lanes):
                square[lane] += a[i, lane] * a[j, lane] / (p * p) * Q[i, j, lane] * Q[i, j, lane]


@without_references
def fill_products_in_lanes(system: System, factor: Array, to_teacher: Array, to_student: Array) -> None:
    """`fill_products` for many systems; `factor` (lanes,) is a work array."""
    Q, M, P = system.Q, system.M, system.P
    p, k, lanes = M.shape
    to_teacher[:], to_student[:] = 0.0, 0.0
    for i in range(p):
        for m in range(p):
            for lane in range(lanes):
                factor[lane] = -system.a[m, lane] * Q[i, m, lane] / p
            for j in range(p):
                for lane in range(lanes):
                    to_student[i, j, lane] += factor[lane] * Q[m, j, lane]
            for r in range(k):
                for lane in range(lanes):
                    to_teacher[i, r, lane] += factor[lane] * M[m, r, lane]
        for s in range(k):
            for lane in range(lanes):
                factor[lane] = system.a_star[s, lane] * M[i, s, lane] / k
            for j in range(p):
                for lane in range(lanes):
                    to_student[i, j, lane] += factor[lane] * M[j, s, lane]
            for r in range(k):
                for lane in range(lanes):
                    to_teacher[i, r, lane] += factor[lane] * P[s, r, lane]


def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of the square with itself."""
    return (
        Expectations("square|square", risk, drifts, drifts_in_lanes)
        if student.name == teacher.name == "square"
        else None
    )


FAMILIES.add(Family("square", 0, pair_expectations))
