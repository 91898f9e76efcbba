"""Mixtures of error functions on both sides: erf, tanh, sigmoid, in any pair.

With σ(λ) = o + Σ_q w_q erf(s_q λ/√2), every unit is a few units of erf that share a field, and the closed forms of
`erf` hold term by term: a factor σ' of slope s tilts the Gaussian as erf' does at the field s λ. The offsets of
student and teacher give E a constant part e0 = (1/k) Σ a*_r o* − (1/p) Σ a_i o; as error functions are odd, it enters
E[E²] as e0², E[σ(λ_i) E] as o e0, and Ψ^M, Ψ^GF not at all. The only error is that of the mixture itself.
"""

import math
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.arc_sine import arc_sine, arc_sines_sum, pair_weights
from sweeplib.maths.binding import bound
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family

Array = np.ndarray[Any, np.dtype[np.float64]]

student_offset = teacher_offset = 0.0
student_weights = student_slopes = teacher_weights = teacher_slopes = (1.0,)


def risk(Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ e0² + ½ Σ b_m b_n w w' I2, every lane on its own; rounding below zero is cut."""
    p, k, lanes = M.shape
    for lane in range(lanes):
        out[lane] = 0.0
    for i in range(p):
        for lane in range(lanes):
            out[lane] -= student_offset * a[i, lane] / p
    for r in range(k):
        for lane in range(lanes):
            out[lane] += teacher_offset * a_star[r, lane] / k
    for lane in range(lanes):
        out[lane] *= 0.5 * out[lane]
    for r in range(k):
        for s in range(k):
            for t in range(len(teacher_slopes)):
                for u in range(len(teacher_slopes)):
                    factor = teacher_weights[t] * teacher_weights[u] / (math.pi * k * k)
                    x, y = teacher_slopes[t], teacher_slopes[u]
                    for lane in range(lanes):
                        scale = (1.0 + x * x * P[r, r, lane]) * (1.0 + y * y * P[s, s, lane])
                        cosine = x * y * P[r, s, lane] / math.sqrt(scale)
                        out[lane] += factor * a_star[r, lane] * a_star[s, lane] * arc_sine(cosine)
    for i in range(p):
        for r in range(k):
            for t in range(len(student_slopes)):
                for u in range(len(teacher_slopes)):
                    factor = 2.0 * student_weights[t] * teacher_weights[u] / (math.pi * p * k)
                    x, y = student_slopes[t], teacher_slopes[u]
                    for lane in range(lanes):
                        scale = (1.0 + x * x * Q[i, i, lane]) * (1.0 + y * y * P[r, r, lane])
                        cosine = x * y * M[i, r, lane] / math.sqrt(scale)
                        out[lane] -= factor * a[i, lane] * a_star[r, lane] * arc_sine(cosine)
        for j in range(p):
            for t in range(len(student_slopes)):
                for u in range(len(student_slopes)):
                    factor = student_weights[t] * student_weights[u] / (math.pi * p * p)
                    x, y = student_slopes[t], student_slopes[u]
                    for lane in range(lanes):
                        scale = (1.0 + x * x * Q[i, i, lane]) * (1.0 + y * y * Q[j, j, lane])
                        cosine = x * y * Q[i, j, lane] / math.sqrt(scale)
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
    """Ψ^M, Ψ^GF, Ψ^a and Ψ^Var, in N⁴ p² (p + k)²/4 arc sines for mixtures of N terms."""
    p, k = M.shape
    n, terms = p + k, len(student_slopes)
    units = p * terms + k * len(teacher_slopes)
    omega = np.empty((n, n))
    omega[:p, :p], omega[:p, p:], omega[p:, p:] = Q, M, P
    for i in range(p):
        for r in range(k):
            omega[p + r, i] = M[i, r]

    of, slope, weight = np.empty(units, np.int64), np.empty(units), np.empty(units)
    offset = 0.0
    at = 0
    for i in range(p):
        offset -= student_offset * a[i] / p
        for t in range(terms):
            of[at], slope[at], weight[at] = i, student_slopes[t], -student_weights[t] * a[i] / p
            at += 1
    for r in range(k):
        offset += teacher_offset * a_star[r] / k
        for t in range(len(teacher_slopes)):
            of[at], slope[at], weight[at] = p + r, teacher_slopes[t], teacher_weights[t] * a_star[r] / k
            at += 1

    flow = np.zeros((p, n))
    for i in range(p):
        drift_a[i] = student_offset * offset
        for t in range(terms):
            x, part = student_slopes[t], student_weights[t]
            norm = 1.0 + x * x * omega[i, i]
            for u in range(units):
                m, y = of[u], slope[u]
                other, covariance = 1.0 + y * y * omega[m, m], x * y * omega[i, m]
                root = math.sqrt(norm * other - covariance * covariance)
                factor = a[i] * part * x * weight[u] * 2.0 / (math.pi * norm * root)
                for j in range(n):
                    flow[i, j] += factor * (norm * y * omega[j, m] - x * omega[i, j] * covariance)
                cosine = covariance / math.sqrt(norm * other)
                drift_a[i] += part * weight[u] * 2.0 / math.pi * arc_sine(cosine)
        for r in range(k):
            drift_M[i, r] = flow[i, p + r]

    tilted, scale = np.empty((n, n)), np.empty(units)
    from_i, from_j = np.empty(n), np.empty(n)
    pairs = pair_weights(weight)
    cosines = np.zeros(len(pairs))
    for i in range(p):
        for j in range(i + 1):
            total = 0.0
            for t in range(terms):
                for v in range(t + 1 if i == j else terms):
                    x, y = student_slopes[t], student_slopes[v]
                    norm_i, norm_j = 1.0 + x * x * omega[i, i], 1.0 + y * y * omega[j, j]
                    between = x * y * omega[i, j]
                    determinant = norm_i * norm_j - between * between
                    for m in range(n):
                        to_i, to_j = x * omega[i, m], y * omega[j, m]
                        from_i[m] = x * (norm_j * to_i - between * to_j) / determinant
                        from_j[m] = y * (norm_i * to_j - between * to_i) / determinant
                    for m in range(n):
                        for q in range(m + 1):
                            value = omega[m, q] - omega[i, m] * from_i[q] - omega[j, m] * from_j[q]
                            tilted[m, q] = tilted[q, m] = value
                    for u in range(units):
                        own = slope[u] * slope[u] * max(tilted[of[u], of[u]], 0.0)
                        scale[u] = slope[u] / math.sqrt(1.0 + own)
                    at = 0
                    for u in range(units):
                        for w in range(u + 1):
                            cosines[at + w] = tilted[of[u], of[w]] * scale[u] * scale[w]
                        at += u + 1
                    pair = student_weights[t] * x * student_weights[v] * y * (2.0 if i == j and v < t else 1.0)
                    moment = 4.0 / math.pi * arc_sines_sum(cosines, pairs) + offset * offset + Delta
                    total += pair * 2.0 / (math.pi * math.sqrt(determinant)) * moment
            drift_GF[i, j] = drift_GF[j, i] = flow[i, j] + flow[j, i]
            drift_Var[i, j] = drift_Var[j, i] = a[i] * a[j] * total


def of(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of two mixtures of error functions."""
    if student.error_functions is None or teacher.error_functions is None:
        return None
    (ours, own), (theirs, others) = student.error_functions, teacher.error_functions
    constants = {
        "student_offset": ours,
        "student_weights": tuple(weight for weight, _ in own),
        "student_slopes": tuple(slope for _, slope in own),
        "teacher_offset": theirs,
        "teacher_weights": tuple(weight for weight, _ in others),
        "teacher_slopes": tuple(slope for _, slope in others),
    }
    name = f"{student.name}|{teacher.name}"
    return Expectations(name, bound(risk, **constants), bound(drifts, **constants))


FAMILIES.register("error functions", Family("error functions", 20, of))
