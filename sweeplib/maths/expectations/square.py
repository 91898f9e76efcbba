"""The square on both sides, σ(λ) = σ*(λ) = λ², with any second layers, by Isserlis' theorem.

All fields share one index, z = (λ, λ*) ~ N(0, Ω), and E = zᵀBz + √Δ ζ with B = diag(−a/p, a*/k).
Then, with τ = tr BΩ,
E[(zᵀBz)²] = τ² + 2 tr(BΩ)²,  E[z z' zᵀBz] = τΩ + 2ΩBΩ  and
E[z z' (zᵀBz)²] = (τ² + 2 tr(BΩ)²) Ω + 4τ ΩBΩ + 8 ΩBΩBΩ.
For a = a* = 1 these are the formulas of arXiv 2305.18502, appendix A.
"""

from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family

Array = np.ndarray[Any, np.dtype[np.float64]]


def risk(Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
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


def drifts(
    Q: Array,
    M: Array,
    P: Array,
    a: Array,
    a_star: Array,
    Delta: float,
    drift_M: Array,
    drift_GF: Array,
    drift_Var: Array,
    drift_a: Array,
) -> None:
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a from ΩBΩ and ΩBΩBΩ, in O(p² (p + k)); drift_M and drift_GF hold ΩBΩ on the way.

    With V = diag(a)/p and W = diag(a*)/k, ΩBΩ is MWMᵀ − QVQ between students and MWP − QVM to the teacher.
    """
    p, k = M.shape
    student, teacher = 1.0 / p, 1.0 / k
    trace, square = 0.0, 0.0
    for r in range(k):
        trace += teacher * a_star[r] * P[r, r]
        for s in range(k):
            square += teacher * teacher * a_star[r] * a_star[s] * P[r, s] * P[r, s]
    for i in range(p):
        trace -= student * a[i] * Q[i, i]
        for r in range(k):
            square -= 2.0 * student * teacher * a[i] * a_star[r] * M[i, r] * M[i, r]
        for j in range(p):
            square += student * student * a[i] * a[j] * Q[i, j] * Q[i, j]
    second_moment = trace * trace + 2.0 * square + Delta

    for i in range(p):
        for j in range(p):
            drift_GF[i, j] = 0.0
        for r in range(k):
            drift_M[i, r] = 0.0
        for m in range(p):
            factor = -student * a[m] * Q[i, m]
            for j in range(p):
                drift_GF[i, j] += factor * Q[m, j]
            for r in range(k):
                drift_M[i, r] += factor * M[m, r]
        for s in range(k):
            factor = teacher * a_star[s] * M[i, s]
            for j in range(p):
                drift_GF[i, j] += factor * M[j, s]
            for r in range(k):
                drift_M[i, r] += factor * P[s, r]

    for i in range(p):
        drift_a[i] = trace * Q[i, i] + 2.0 * drift_GF[i, i]
        for j in range(i + 1):
            twice = 0.0
            for m in range(p):
                twice -= student * drift_GF[i, m] * a[m] * Q[m, j]
            for r in range(k):
                twice += teacher * drift_M[i, r] * a_star[r] * M[j, r]
            variance = second_moment * Q[i, j] + 4.0 * trace * drift_GF[i, j] + 8.0 * twice
            drift_Var[i, j] = drift_Var[j, i] = 4.0 * a[i] * a[j] * variance
    for i in range(p):
        for r in range(k):
            drift_M[i, r] = 2.0 * a[i] * (trace * M[i, r] + 2.0 * drift_M[i, r])
        for j in range(i + 1):
            flow = 2.0 * (a[i] + a[j]) * (trace * Q[i, j] + 2.0 * drift_GF[i, j])
            drift_GF[i, j] = drift_GF[j, i] = flow


def drifts_in_lanes(
    filled: int,
    Q: Array,
    M: Array,
    P: Array,
    a: Array,
    a_star: Array,
    Delta: Array,
    stretch: Array,
    drift_M: Array,
    drift_GF: Array,
    drift_Var: Array,
    drift_a: Array,
) -> None:
    """What `drifts` fills, of many systems, Ψ^Var at Ω times `stretch`: without label noise it is of degree 3 in Ω."""
    p, k, lanes = M.shape
    moments = np.zeros((2, lanes))
    trace, second_moment = moments[0], moments[1]
    factor, twice, cubes = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for r in range(k):
        for lane in range(lanes):
            trace[lane] += a_star[r, lane] * P[r, r, lane] / k
        for s in range(k):
            for lane in range(lanes):
                weight = a_star[r, lane] * a_star[s, lane] / (k * k)
                second_moment[lane] += weight * P[r, s, lane] * P[r, s, lane]
    for i in range(p):
        for lane in range(lanes):
            trace[lane] -= a[i, lane] * Q[i, i, lane] / p
        for r in range(k):
            for lane in range(lanes):
                weight = 2.0 * a[i, lane] * a_star[r, lane] / (p * k)
                second_moment[lane] -= weight * M[i, r, lane] * M[i, r, lane]
        for j in range(p):
            for lane in range(lanes):
                weight = a[i, lane] * a[j, lane] / (p * p)
                second_moment[lane] += weight * Q[i, j, lane] * Q[i, j, lane]
    for lane in range(lanes):
        cube = stretch[lane] * stretch[lane] * stretch[lane]
        moment = trace[lane] * trace[lane] + 2.0 * second_moment[lane]
        second_moment[lane], cubes[lane] = cube * moment + stretch[lane] * Delta[lane], cube

    for i in range(p):
        for j in range(p):
            for lane in range(lanes):
                drift_GF[i, j, lane] = 0.0
        for r in range(k):
            for lane in range(lanes):
                drift_M[i, r, lane] = 0.0
        for m in range(p):
            for lane in range(lanes):
                factor[lane] = -a[m, lane] * Q[i, m, lane] / p
            for j in range(p):
                for lane in range(lanes):
                    drift_GF[i, j, lane] += factor[lane] * Q[m, j, lane]
            for r in range(k):
                for lane in range(lanes):
                    drift_M[i, r, lane] += factor[lane] * M[m, r, lane]
        for s in range(k):
            for lane in range(lanes):
                factor[lane] = a_star[s, lane] * M[i, s, lane] / k
            for j in range(p):
                for lane in range(lanes):
                    drift_GF[i, j, lane] += factor[lane] * M[j, s, lane]
            for r in range(k):
                for lane in range(lanes):
                    drift_M[i, r, lane] += factor[lane] * P[s, r, lane]

    for i in range(p):
        for lane in range(lanes):
            drift_a[i, lane] = trace[lane] * Q[i, i, lane] + 2.0 * drift_GF[i, i, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                twice[lane] = 0.0
            for m in range(p):
                for lane in range(lanes):
                    twice[lane] -= drift_GF[i, m, lane] * a[m, lane] * Q[m, j, lane] / p
            for r in range(k):
                for lane in range(lanes):
                    twice[lane] += drift_M[i, r, lane] * a_star[r, lane] * M[j, r, lane] / k
            for lane in range(lanes):
                products = 4.0 * trace[lane] * drift_GF[i, j, lane] + 8.0 * twice[lane]
                variance = second_moment[lane] * Q[i, j, lane] + cubes[lane] * products
                drift_Var[i, j, lane] = 4.0 * a[i, lane] * a[j, lane] * variance
                drift_Var[j, i, lane] = drift_Var[i, j, lane]
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                flow = trace[lane] * M[i, r, lane] + 2.0 * drift_M[i, r, lane]
                drift_M[i, r, lane] = 2.0 * a[i, lane] * flow
        for j in range(i + 1):
            for lane in range(lanes):
                flow = trace[lane] * Q[i, j, lane] + 2.0 * drift_GF[i, j, lane]
                drift_GF[i, j, lane] = drift_GF[j, i, lane] = 2.0 * (a[i, lane] + a[j, lane]) * flow


def of(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of the square with itself."""
    return (
        Expectations("square|square", risk, drifts, drifts_in_lanes)
        if student.name == teacher.name == "square"
        else None
    )


FAMILIES.register("square", Family("square", 0, of))
