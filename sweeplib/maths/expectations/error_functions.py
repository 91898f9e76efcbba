"""Mixtures of error functions on both sides: erf, tanh, sigmoid, in any pair.

Saad and Solla, Phys. Rev. E 52, 4225 (1995), appendix A, in the following form.

With σ(λ) = o + Σ_q w_q erf(s_q λ/√2) every unit of the network is a few units of erf, its terms, with fields s_q λ.
The fields of all terms, z ~ N(0, S), share one index, and E = e0 + Σ_m b_m erf(z_m/√2) + √Δ ζ with b = (−a w/p,
a* w*/k) and the offsets' e0 = (1/k) Σ a*_r o* − (1/p) Σ a_i o. For erf:
I2(m, n) = (2/π) asin(S_mn/√((1+S_mm)(1+S_nn))). A factor erf'(z_u) ∝ exp(−z_u²/2) tilts the Gaussian: the fields
keep a Gaussian law, of covariance S − α αᵀ with α = S_·u/√(1+S_uu); a second factor, of z_v, takes away β βᵀ, β being
what α does to S, of the covariance S − α αᵀ. Hence I3, and
I4(u, v, m, n) = J2(u, v) · I2(m, n at the tilted covariance), J2(u, v) = (2/π)/√((1+S_uu)(1+S_vv) − S_uv²).
Every square root is of a number ≥ 1 for S ≥ 0: singular covariances and zero variances need no care. As error
functions are odd, e0 enters E[E²] as e0², E[σ(λ_i) E] as o e0, and Ψ^M, Ψ^GF not at all. For erf itself nothing is
approximated; for other mixtures the only error is that of the mixture.
"""

import math
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations.error_functions_in_lanes import drifts_in_lanes
from sweeplib.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.maths.expectations.in_turn import drifts_in_turn
from sweeplib.numerics.arc_sine import add_arc_sines, arc_sine, arc_sines_sum, near_arc_sine
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import specialised

Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_LANES = 48
"""Pairs of terms side by side: what is kept of them stays in the processor's cache."""

FULL = 8
"""With so many terms of students their pairs fill vectors; lanes without a replica would be waste."""

student_offset = teacher_offset = 0.0
student_weights = student_slopes = teacher_weights = teacher_slopes = (1.0,)


def risk(Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ e0² + ½ Σ b_m b_n I2(m, n), every lane on its own."""
    p, k, lanes = M.shape
    for lane in range(lanes):
        out[lane] = 0.0
    if student_offset != 0.0 or teacher_offset != 0.0:
        for i in range(p):
            for lane in range(lanes):
                out[lane] -= student_offset * a[i, lane] / p
        for r in range(k):
            for lane in range(lanes):
                out[lane] += teacher_offset * a_star[r, lane] / k
        for lane in range(lanes):
            out[lane] *= 0.5 * out[lane]
    own, others = len(student_slopes), len(teacher_slopes)
    student_scale, teacher_scale = np.empty((p, own, lanes)), np.empty((k, others, lanes))
    cosines = np.empty(lanes)
    for i in range(p):
        for t in range(own):
            for lane in range(lanes):
                x = student_slopes[t]
                student_scale[i, t, lane] = x / math.sqrt(1.0 + x * x * Q[i, i, lane])
    for r in range(k):
        for t in range(others):
            for lane in range(lanes):
                x = teacher_slopes[t]
                teacher_scale[r, t, lane] = x / math.sqrt(1.0 + x * x * P[r, r, lane])
    for r in range(k):
        for s in range(r + 1):
            for t in range(others):
                for u in range(others):
                    factor = (1.0 if r == s else 2.0) * teacher_weights[t] * teacher_weights[u] / (math.pi * k * k)
                    for lane in range(lanes):
                        cosines[lane] = teacher_scale[r, t, lane] * teacher_scale[s, u, lane] * P[r, s, lane]
                    add_arc_sines(factor, a_star[r], a_star[s], cosines, out)
    for i in range(p):
        for r in range(k):
            for t in range(own):
                for u in range(others):
                    factor = 2.0 * student_weights[t] * teacher_weights[u] / (math.pi * p * k)
                    for lane in range(lanes):
                        cosines[lane] = student_scale[i, t, lane] * teacher_scale[r, u, lane] * M[i, r, lane]
                    add_arc_sines(-factor, a[i], a_star[r], cosines, out)
        for j in range(i + 1):
            for t in range(own):
                for u in range(own):
                    factor = (1.0 if i == j else 2.0) * student_weights[t] * student_weights[u] / (math.pi * p * p)
                    for lane in range(lanes):
                        cosines[lane] = student_scale[i, t, lane] * student_scale[j, u, lane] * Q[i, j, lane]
                    add_arc_sines(factor, a[i], a[j], cosines, out)


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
    stretch: float = 1.0,
) -> None:
    """Ψ^a from I2, Ψ^M and Ψ^GF from I3, Ψ^Var from I4, in (terms of students)² (all terms)²/4 arc sines.

    Ψ^Var is that at Ω times `stretch`.
    """
    p, k = M.shape
    own, others = len(student_slopes), len(teacher_slopes)
    terms = p * own + k * others
    S, flow, rows = np.empty((terms, terms)), np.empty((p, p + k)), np.empty((6, terms))
    weight, tilt, norm, cosine, along, towards = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    of = np.empty(p * own, np.int64)
    offset = 0.0
    for i in range(p):
        offset -= student_offset * a[i] / p
        for t in range(own):
            u = i * own + t
            of[u], weight[u] = i, -student_weights[t] * a[i] / p
            tilt[u] = 2.0 / math.pi * a[i] * student_weights[t] * student_slopes[t]
            for j in range(p):
                for v in range(own):
                    S[u, j * own + v] = student_slopes[t] * student_slopes[v] * Q[i, j]
            for r in range(k):
                for v in range(others):
                    m = p * own + r * others + v
                    S[u, m] = S[m, u] = student_slopes[t] * teacher_slopes[v] * M[i, r]
    for r in range(k):
        offset += teacher_offset * a_star[r] / k
        for t in range(others):
            m = p * own + r * others + t
            weight[m] = teacher_weights[t] * a_star[r] / k
            for s in range(k):
                for v in range(others):
                    S[m, p * own + s * others + v] = teacher_slopes[t] * teacher_slopes[v] * P[r, s]
    for m in range(terms):
        norm[m] = 1.0 + S[m, m]

    to_student, to_teacher = 1.0 / student_slopes[0], 1.0 / teacher_slopes[0]
    for i in range(p):
        drift_a[i] = student_offset * offset
        for j in range(p + k):
            flow[i, j] = 0.0
        for t in range(own):
            u = i * own + t
            for m in range(terms):
                cosine[m] = S[u, m] / math.sqrt(norm[u] * norm[m])
                towards[m] = 0.0
            drift_a[i] += student_weights[t] * 2.0 / math.pi * arc_sines_sum(cosine, weight)
            for m in range(terms):
                along[m] = weight[m] / math.sqrt(norm[u] * norm[m] - S[u, m] * S[u, m])
            for m in range(terms):
                part = along[m]
                for f in range(terms):
                    towards[f] += part * S[m, f]
            outer, inner = tilt[u], tilt[u] * towards[u] / norm[u]
            for j in range(p):
                flow[i, j] += to_student * (outer * towards[j * own] - inner * S[u, j * own])
            for r in range(k):
                f = p * own + r * others
                flow[i, p + r] += to_teacher * (outer * towards[f] - inner * S[u, f])
        for r in range(k):
            drift_M[i, r] = flow[i, p + r]

    for m in range(terms):
        for q in range(terms):
            S[m, q] *= stretch
        norm[m] = 1.0 + S[m, m]
    count = p * own * (p * own + 1) // 2
    groups = -(-count // MOST_LANES)
    lanes = -(-count // (4 * groups)) * 4
    pair = np.zeros((2, lanes), np.int64)
    first, second = pair[0], pair[1]
    tilts, room = np.empty((3, terms, lanes)), np.empty((5, lanes))
    alpha, beta, scale = tilts[0], tilts[1], tilts[2]
    by_first, by_second, between, sums, cosines = room[0], room[1], room[2], room[3], room[4]
    for i in range(p):
        for j in range(i + 1):
            drift_GF[i, j] = drift_GF[j, i] = flow[i, j] + flow[j, i]
            drift_Var[i, j] = 0.0
    u = v = 0
    for start in range(0, count, lanes):
        filled = min(lanes, count - start)
        for lane in range(filled):
            first[lane], second[lane] = u, v
            v += 1
            if v > u:
                u, v = u + 1, 0
        for lane in range(lanes):
            x, y = first[lane], second[lane]
            by_first[lane] = 1.0 / math.sqrt(norm[x])
            between[lane] = S[x, y] * by_first[lane]
            by_second[lane] = 1.0 / math.sqrt(norm[y] - between[lane] * between[lane])
            sums[lane] = 0.0
        for m in range(terms):
            for lane in range(lanes):
                alpha[m, lane] = S[m, first[lane]] * by_first[lane]
                beta[m, lane] = (S[m, second[lane]] - between[lane] * alpha[m, lane]) * by_second[lane]
            for lane in range(lanes):
                rest = norm[m] - alpha[m, lane] * alpha[m, lane] - beta[m, lane] * beta[m, lane]
                scale[m, lane] = 1.0 / math.sqrt(max(rest, 1.0))
        for m in range(terms):
            for q in range(m + 1):
                covariance = S[m, q]
                both = weight[m] * weight[q] * (0.5 if m == q else 1.0)
                near = True
                for lane in range(lanes):
                    tilted = covariance - alpha[m, lane] * alpha[q, lane] - beta[m, lane] * beta[q, lane]
                    cosines[lane] = tilted * scale[m, lane] * scale[q, lane]
                    near &= abs(cosines[lane]) <= 0.5
                if near:
                    for lane in range(lanes):
                        sums[lane] += both * near_arc_sine(cosines[lane])
                else:
                    for lane in range(lanes):
                        sums[lane] += both * arc_sine(cosines[lane])
        for lane in range(filled):
            x, y = first[lane], second[lane]
            twice = 2.0 if of[x] == of[y] and x != y else 1.0
            moment = 4.0 / math.pi * sums[lane] + offset * offset + Delta
            scaled = 0.5 * math.pi * by_first[lane] * by_second[lane]
            drift_Var[of[x], of[y]] += twice * tilt[x] * tilt[y] * scaled * moment
    for i in range(p):
        for j in range(i):
            drift_Var[j, i] = drift_Var[i, j]


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
    usual = bound(drifts, **constants)
    return Expectations(
        name,
        bound(risk, **constants),
        usual,
        bound(drifts_in_lanes, **constants),
        in_turn=bound(drifts_in_turn, drifts=specialised(usual)),
        wide=-(-FULL // len(own)),
    )


FAMILIES.register("error functions", Family("error functions", 20, of))
