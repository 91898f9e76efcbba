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
    """R = τ²/2 + tr(BΩ)², every lane on its own; rounding below zero is cut."""
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
    for lane in range(lanes):
        out[lane] = max(out[lane], 0.0)


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
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a from ΩBΩ and ΩBΩBΩ, in O(p (p + k)²)."""
    p, k = M.shape
    n = p + k
    omega = np.empty((n, n))
    weight = np.empty(n)
    for i in range(p):
        weight[i] = -a[i] / p
        for j in range(p):
            omega[i, j] = Q[i, j]
        for r in range(k):
            omega[i, p + r] = M[i, r]
            omega[p + r, i] = M[i, r]
    for r in range(k):
        weight[p + r] = a_star[r] / k
        for s in range(k):
            omega[p + r, p + s] = P[r, s]

    trace, square = 0.0, 0.0
    for m in range(n):
        trace += weight[m] * omega[m, m]
        for q in range(n):
            square += weight[m] * weight[q] * omega[m, q] * omega[m, q]
    second_moment = trace * trace + 2.0 * square + Delta

    once = np.zeros((p, n))
    for i in range(p):
        for m in range(n):
            factor = omega[i, m] * weight[m]
            for q in range(n):
                once[i, q] += factor * omega[m, q]

    for i in range(p):
        drift_a[i] = trace * Q[i, i] + 2.0 * once[i, i]
        for r in range(k):
            drift_M[i, r] = 2.0 * a[i] * (trace * M[i, r] + 2.0 * once[i, p + r])
        for j in range(i + 1):
            twice = 0.0
            for m in range(n):
                twice += once[i, m] * weight[m] * omega[m, j]
            flow = 2.0 * (a[i] + a[j]) * (trace * Q[i, j] + 2.0 * once[i, j])
            variance = second_moment * Q[i, j] + 4.0 * trace * once[i, j] + 8.0 * twice
            drift_GF[i, j] = drift_GF[j, i] = flow
            drift_Var[i, j] = drift_Var[j, i] = 4.0 * a[i] * a[j] * variance


def of(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of the square with itself."""
    return Expectations("square|square", risk, drifts) if student.name == teacher.name == "square" else None


FAMILIES.register("square", Family("square", 0, of))
