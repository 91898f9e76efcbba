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
approximated; for other mixtures the only error is that of the mixture. `student` and `teacher` are the `Mixture`s of σ
and σ*.

`risk` has Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes), a_star (k, lanes) and out (lanes,), systems
in lanes; `drifts` one `System`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.activations.activation import lipschitz, misfits
from sweeplib.networks.maths.expectations.error_functions_in_lanes import drifts_in_lanes
from sweeplib.networks.maths.expectations.expectations import FAMILIES, Expectations, Family
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System
from sweeplib.networks.numerics.arc_sine import add_arc_sines, arc_sine, arc_sines_sum, near_arc_sine
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined, without_references

MOST_LANES = 48
"""Number of pairs of terms in lanes, such that their arrays stay in the processor's cache."""

FULL = 8
"""From this number of student terms, their pairs fill vectors; lanes of replicas are not needed."""

student_offset = teacher_offset = 0.0
student_weights = student_slopes = teacher_weights = teacher_slopes = (1.0,)
"""The mixtures of σ and σ*, which `pair_expectations` binds."""


class Mixture(NamedTuple):
    """The offset o, weights w and slopes s of σ(λ) = o + Σ_q w_q erf(s_q λ/√2)."""

    offset: float
    weights: tuple[float, ...]
    slopes: tuple[float, ...]


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ e0² + ½ Σ b_m b_n I2(m, n) of each system, which the last axis of all arrays counts (lanes).

    `pair` is not read: the form is closed. out (lanes,) : the risks.
    """
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
    n_student, n_teacher = len(student_slopes), len(teacher_slopes)
    # of each term s/√(1 + S_mm): I2 is an arc sine of two of them and an overlap
    student_scale, teacher_scale = np.empty((p, n_student, lanes)), np.empty((k, n_teacher, lanes))
    cosines = np.empty(lanes)
    for i in range(p):
        for t in range(n_student):
            for lane in range(lanes):
                slope = student_slopes[t]
                student_scale[i, t, lane] = slope / math.sqrt(1.0 + slope * slope * Q[i, i, lane])
    for r in range(k):
        for t in range(n_teacher):
            for lane in range(lanes):
                slope = teacher_slopes[t]
                teacher_scale[r, t, lane] = slope / math.sqrt(1.0 + slope * slope * P[r, r, lane])
    # terms of the teacher with each other
    for r in range(k):
        for s in range(r + 1):
            for t in range(n_teacher):
                for u in range(n_teacher):
                    factor = (1.0 if r == s else 2.0) * teacher_weights[t] * teacher_weights[u] / (math.pi * k * k)
                    for lane in range(lanes):
                        cosines[lane] = teacher_scale[r, t, lane] * teacher_scale[s, u, lane] * P[r, s, lane]
                    add_arc_sines(factor, a_star[r], a_star[s], cosines, out)
    # terms of the student with those of the teacher, and with each other
    for i in range(p):
        for r in range(k):
            for t in range(n_student):
                for u in range(n_teacher):
                    factor = 2.0 * student_weights[t] * teacher_weights[u] / (math.pi * p * k)
                    for lane in range(lanes):
                        cosines[lane] = student_scale[i, t, lane] * teacher_scale[r, u, lane] * M[i, r, lane]
                    add_arc_sines(-factor, a[i], a_star[r], cosines, out)
        for j in range(i + 1):
            for t in range(n_student):
                for u in range(n_student):
                    factor = (1.0 if i == j else 2.0) * student_weights[t] * student_weights[u] / (math.pi * p * p)
                    for lane in range(lanes):
                        cosines[lane] = student_scale[i, t, lane] * student_scale[j, u, lane] * Q[i, j, lane]
                    add_arc_sines(factor, a[i], a[j], cosines, out)


class Terms(NamedTuple):
    """The terms of all units, students first.

    S (terms, terms), norm (terms,) : covariances of their fields, and 1 + S_mm.
    weight (terms,) : b.
    tilt, unit (student terms,) : a_i times the factor of erf', and the number of the unit.
    """

    S: Array
    weight: Array
    norm: Array
    tilt: Array
    unit: Any


@inlined
def terms_of(system: System, student: Mixture, teacher: Mixture) -> Terms:
    """The `Terms` of one network, with students and teachers of these mixtures."""
    Q, M, P, a, a_star = system.Q, system.M, system.P, system.a, system.a_star
    p, k = M.shape
    n_student, n_teacher = len(student.slopes), len(teacher.slopes)
    students, count = p * n_student, p * n_student + k * n_teacher
    terms = Terms(
        np.empty((count, count)), np.empty(count), np.empty(count), np.empty(students), np.empty(students, np.int64)
    )
    S = terms.S
    # term u is (i, t) of a student, m is (r, t) of a teacher: their overlaps times both slopes
    for i in range(p):
        for t in range(n_student):
            u = i * n_student + t
            terms.unit[u], terms.weight[u] = i, -student.weights[t] * a[i] / p
            terms.tilt[u] = 2.0 / math.pi * a[i] * student.weights[t] * student.slopes[t]
            for j in range(p):
                for v in range(n_student):
                    S[u, j * n_student + v] = student.slopes[t] * student.slopes[v] * Q[i, j]
            for r in range(k):
                for v in range(n_teacher):
                    m = students + r * n_teacher + v
                    S[u, m] = S[m, u] = student.slopes[t] * teacher.slopes[v] * M[i, r]
    for r in range(k):
        for t in range(n_teacher):
            m = students + r * n_teacher + t
            terms.weight[m] = teacher.weights[t] * a_star[r] / k
            for s in range(k):
                for v in range(n_teacher):
                    S[m, students + s * n_teacher + v] = teacher.slopes[t] * teacher.slopes[v] * P[r, s]
    for m in range(count):
        terms.norm[m] = 1.0 + S[m, m]
    return terms


@inlined
def fill_flow(terms: Terms, student: Mixture, teacher: Mixture, second_layer: Array, flow: Array) -> None:
    """Add Σ b asin, of I2, to Ψ^a `second_layer` (p,), and fill `flow` (p, p + k) with a_i E[σ'_i z_j E], of I3."""
    S, weight, norm = terms.S, terms.weight, terms.norm
    p, count, n_student, n_teacher = len(second_layer), len(weight), len(student.slopes), len(teacher.slopes)
    rows = np.empty((3, count))
    cosine, along, towards = rows[0], rows[1], rows[2]
    flow[:] = 0.0
    for u in range(p * n_student):
        i = terms.unit[u]
        towards[:] = 0.0
        for m in range(count):
            cosine[m] = S[u, m] / math.sqrt(norm[u] * norm[m])
        second_layer[i] += student.weights[u - i * n_student] * 2.0 / math.pi * arc_sines_sum(cosine, weight)
        for m in range(count):
            along[m] = weight[m] / math.sqrt(norm[u] * norm[m] - S[u, m] * S[u, m])
        for m in range(count):
            number = along[m]
            for f in range(count):
                towards[f] += number * S[m, f]
        outer, inner = terms.tilt[u], terms.tilt[u] * towards[u] / norm[u]
        for j in range(flow.shape[1]):
            # the first term of unit j, whose field is z_j times its slope
            f = j * n_student if j < p else p * n_student + (j - p) * n_teacher
            slope = student.slopes[0] if j < p else teacher.slopes[0]
            flow[i, j] += (outer * towards[f] - inner * S[u, f]) / slope


class Tilts(NamedTuple):
    """The tilts of pairs of terms in lanes, by factors erf' of both.

    alpha, beta, scale (terms, lanes) : α, β and 1/√(1 + S_mm − α² − β²).
    by_first, by_second, between (lanes,) : the factors of α and β, and the component of α at the other term.
    sums, cosines (lanes,) : work arrays.
    """

    alpha: Array
    beta: Array
    scale: Array
    by_first: Array
    by_second: Array
    between: Array
    sums: Array
    cosines: Array


@without_references
def fill_tilts(terms: Terms, first: Any, second: Any, tilts: Tilts) -> None:
    """Fill the tilts of the pairs of terms with the numbers `first` and `second` (lanes,)."""
    S, norm = terms.S, terms.norm
    alpha, beta = tilts.alpha, tilts.beta
    lanes = len(first)
    for lane in range(lanes):
        x, y = first[lane], second[lane]
        tilts.by_first[lane] = 1.0 / math.sqrt(norm[x])
        tilts.between[lane] = S[x, y] * tilts.by_first[lane]
        tilts.by_second[lane] = 1.0 / math.sqrt(norm[y] - tilts.between[lane] * tilts.between[lane])
    for m in range(len(norm)):
        for lane in range(lanes):
            alpha[m, lane] = S[m, first[lane]] * tilts.by_first[lane]
            beta[m, lane] = (S[m, second[lane]] - tilts.between[lane] * alpha[m, lane]) * tilts.by_second[lane]
        for lane in range(lanes):
            variance = norm[m] - alpha[m, lane] * alpha[m, lane] - beta[m, lane] * beta[m, lane]
            tilts.scale[m, lane] = 1.0 / math.sqrt(max(variance, 1.0))


@without_references
def fill_sums(terms: Terms, tilts: Tilts) -> None:
    """Fill tilts.sums with ½ Σ_mq b_m b_q asin of the tilted correlations, of I4."""
    alpha, beta, scale, sums, cosines = tilts.alpha, tilts.beta, tilts.scale, tilts.sums, tilts.cosines
    lanes = len(sums)
    sums[:] = 0.0
    for m in range(len(scale)):
        for q in range(m + 1):
            covariance = terms.S[m, q]
            both = terms.weight[m] * terms.weight[q] * (0.5 if m == q else 1.0)
            # a shorter series is enough where all correlations are small
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


@inlined
def fill_variance(terms: Terms, constant: float, out: Array) -> None:
    """Fill Ψ^Var, out (p, p), of one network, pairs of student terms in lanes.

    constant : the part of E[E²] without error functions.
    """
    p, students, count = len(out), len(terms.tilt), len(terms.weight)
    pairs = students * (students + 1) // 2
    # as many lanes for each group, in vectors of four
    groups = -(-pairs // MOST_LANES)
    lanes = -(-pairs // (4 * groups)) * 4
    first, second = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    matrices, rows = np.empty((3, count, lanes)), np.empty((5, lanes))
    tilts = Tilts(matrices[0], matrices[1], matrices[2], rows[0], rows[1], rows[2], rows[3], rows[4])
    out[:] = 0.0
    u = v = 0
    for start in range(0, pairs, lanes):
        filled = min(lanes, pairs - start)
        for lane in range(filled):
            first[lane], second[lane] = u, v
            v += 1
            if v > u:
                u, v = u + 1, 0
        fill_tilts(terms, first, second, tilts)
        fill_sums(terms, tilts)
        for lane in range(filled):
            term, other = first[lane], second[lane]
            i, j = terms.unit[term], terms.unit[other]
            # pairs are of terms u ≥ v: those of one unit stand for both orders
            twice = 2.0 if i == j and term != other else 1.0
            moment = 4.0 / math.pi * tilts.sums[lane] + constant
            scaled = 0.5 * math.pi * tilts.by_first[lane] * tilts.by_second[lane]
            out[i, j] += twice * terms.tilt[term] * terms.tilt[other] * scaled * moment
    for i in range(p):
        for j in range(i):
            out[j, i] = out[i, j]


def drifts(system: System, out: Drifts) -> None:
    """Fill the drifts: Ψ^a from I2, Ψ^M and Ψ^GF from I3, Ψ^Var from I4 at Ω times `stretch`.

    These are (terms of students)² (all terms)²/4 arc sines.
    """
    p, k = system.M.shape
    student = Mixture(student_offset, student_weights, student_slopes)
    teacher = Mixture(teacher_offset, teacher_weights, teacher_slopes)
    terms, flow = terms_of(system, student, teacher), np.empty((p, p + k))
    # e0
    offset = 0.0
    for i in range(p):
        offset -= student_offset * system.a[i] / p
    for r in range(k):
        offset += teacher_offset * system.a_star[r] / k
    out.a[:] = student_offset * offset
    fill_flow(terms, student, teacher, out.a, flow)
    for i in range(p):
        for r in range(k):
            out.M[i, r] = flow[i, p + r]
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]
    if system.stretch == 0.0:
        return
    for m in range(len(terms.norm)):
        for q in range(len(terms.norm)):
            terms.S[m, q] *= system.stretch
        terms.norm[m] = 1.0 + terms.S[m, m]
    fill_variance(terms, offset * offset + system.Delta, out.Var)


def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of two mixtures of error functions; None for other pairs."""
    if student.error_functions is None or teacher.error_functions is None:
        return None
    (of_student, student_terms), (of_teacher, teacher_terms) = student.error_functions, teacher.error_functions
    constants = {
        "student_offset": of_student,
        "student_weights": tuple(weight for weight, _ in student_terms),
        "student_slopes": tuple(slope for _, slope in student_terms),
        "teacher_offset": of_teacher,
        "teacher_weights": tuple(weight for weight, _ in teacher_terms),
        "teacher_slopes": tuple(slope for _, slope in teacher_terms),
    }
    name = f"{student.name}|{teacher.name}"
    return Expectations(
        name,
        bound(risk, **constants),
        bound(drifts, **constants),
        bound(drifts_in_lanes, **constants),
        wide=-(-FULL // len(student_terms)),
        lipschitz=lipschitz(student),
        misfits=(misfits(student)[0], misfits(teacher)[0]),
        slope_misfit=misfits(student)[1],
    )


FAMILIES.add(Family("error functions", 20, pair_expectations))
