"""The error function on both sides, σ(λ) = σ*(λ) = erf(λ/√2).

Saad and Solla, Phys. Rev. E 52, 4225 (1995), appendix A, in the following form.

All fields share one index, z = (λ, λ*) ~ N(0, Ω), and E = Σ_m b_m σ(z_m) + √Δ ζ with b = (−a/p, a*/k).
I2(m, n) = E[σ(z_m) σ(z_n)] = (2/π) asin(c_mn/√((1+c_mm)(1+c_nn))). A factor σ'(z_i) = √(2/π) exp(−z_i²/2)
tilts the Gaussian: the fields keep a Gaussian law, of covariance c − c_·i c_i·/(1+c_ii); so do two factors. Hence
I3(i, j, m) = E[σ'(z_i) z_j σ(z_m)] and I4(i, j, m, n) = J2(i, j) · I2(m, n at the tilted covariance), with
J2(i, j) = E[σ'(z_i) σ'(z_j)] = (2/π)/√((1+c_ii)(1+c_jj) − c_ij²).
Every square root is of a number ≥ 1 for Ω ≥ 0: singular Ω and zero variances need no care.
"""

import math
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.arc_sine import arc_sine, arc_sines_sum, pair_weights
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family

Array = np.ndarray[Any, np.dtype[np.float64]]


def risk(Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn b_m b_n I2(m, n), every lane on its own; rounding below zero is cut."""
    p, k, lanes = M.shape
    for lane in range(lanes):
        out[lane] = 0.0
    for r in range(k):
        for s in range(r + 1):
            factor = (1.0 if r == s else 2.0) / (math.pi * k * k)
            for lane in range(lanes):
                cosine = P[r, s, lane] / math.sqrt((1.0 + P[r, r, lane]) * (1.0 + P[s, s, lane]))
                out[lane] += factor * a_star[r, lane] * a_star[s, lane] * arc_sine(cosine)
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                cosine = M[i, r, lane] / math.sqrt((1.0 + Q[i, i, lane]) * (1.0 + P[r, r, lane]))
                out[lane] -= 2.0 / (math.pi * p * k) * a[i, lane] * a_star[r, lane] * arc_sine(cosine)
        for j in range(i + 1):
            factor = (1.0 if i == j else 2.0) / (math.pi * p * p)
            for lane in range(lanes):
                cosine = Q[i, j, lane] / math.sqrt((1.0 + Q[i, i, lane]) * (1.0 + Q[j, j, lane]))
                out[lane] += factor * a[i, lane] * a[j, lane] * arc_sine(cosine)
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
    """Ψ^a from I2, Ψ^M and Ψ^GF from I3, Ψ^Var from I4 and J2, in p² (p + k)²/4 arc sines."""
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

    flow, over_root, cosine = np.empty((p, n)), np.empty(n), np.empty(n)
    for i in range(p):
        norm = 1.0 + omega[i, i]
        for m in range(n):
            rest = norm * (1.0 + omega[m, m])
            over_root[m] = weight[m] / math.sqrt(rest - omega[i, m] * omega[i, m])
            cosine[m] = omega[i, m] / math.sqrt(rest)
            flow[i, m] = 0.0
        for m in range(n):
            factor = a[i] * over_root[m] * 2.0 / (math.pi * norm)
            for j in range(n):
                flow[i, j] += factor * (norm * omega[m, j] - omega[i, j] * omega[i, m])
        for r in range(k):
            drift_M[i, r] = flow[i, p + r]
        drift_a[i] = 2.0 / math.pi * arc_sines_sum(cosine, weight)

    pairs = pair_weights(weight)
    from_i, from_j, scale, cosines = np.empty(n), np.empty(n), np.empty(n), np.zeros(len(pairs))
    for i in range(p):
        for j in range(i + 1):
            between, norm_i, norm_j = omega[i, j], 1.0 + omega[i, i], 1.0 + omega[j, j]
            determinant = norm_i * norm_j - between * between
            inverse = 1.0 / determinant
            for m in range(n):
                from_i[m] = (norm_j * omega[i, m] - between * omega[j, m]) * inverse
                from_j[m] = (norm_i * omega[j, m] - between * omega[i, m]) * inverse
                tilted = omega[m, m] - omega[i, m] * from_i[m] - omega[j, m] * from_j[m]
                scale[m] = 1.0 / math.sqrt(1.0 + max(tilted, 0.0))
            at = 0
            for m in range(n):
                for q in range(m + 1):
                    tilted = omega[m, q] - omega[i, m] * from_i[q] - omega[j, m] * from_j[q]
                    cosines[at + q] = tilted * scale[m] * scale[q]
                at += m + 1
            second_moment = 4.0 / math.pi * arc_sines_sum(cosines, pairs) + Delta
            variance = a[i] * a[j] * 2.0 / (math.pi * math.sqrt(determinant)) * second_moment
            drift_GF[i, j] = drift_GF[j, i] = flow[i, j] + flow[j, i]
            drift_Var[i, j] = drift_Var[j, i] = variance


def of(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of erf with itself."""
    return Expectations("erf|erf", risk, drifts) if student.name == teacher.name == "erf" else None


FAMILIES.register("erf", Family("erf", 0, of))
