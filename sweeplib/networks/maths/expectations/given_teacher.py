"""Any function f* of the teacher's fields and any activation, by quadrature conditional on λ*.

Given λ* = L z, z ~ N(0, I_k), P = L Lᵀ, the students' fields are N(A z, C), A = M L⁻ᵀ and C = Q − A Aᵀ. The terms with
f* are sums over nodes z with weights w: with E' the mean given λ*,
Ψ^a_i ∋ Σ w f* E'[σ_i],  Ψ^M_ir ∋ a_i Σ w f* λ*_r E'[σ'_i],  E[σ'_i λ_j f*] = Σ w f* E'[σ'_i λ_j],
Ψ^Var_ij ∋ a_i a_j Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]).
The terms without f* are those of `quadrature`. Nodes z are those of `lines`; Ψ^Var is that of `hinge_pairs` and
`smooth_pairs`, or of `student_pairs` for a kink with a smooth rest.
E'[σ_i] and E'[σ'_i] are functions of one number, the mean A_i z: they are tabulated at equal distances and interpolated
by polynomials of degree seven.

Of an activation with kinks, E'[σ_i] is that of a smooth rest and of hinges, in closed form, with bends of the width
w = √C_ii/|A_i| along A_i. Where nodes do not resolve them, z is turned so that A_i is along the last axis, whose panels
end around the bends: the error does not depend on w. Kinks of f* keep z from being turned if k > 1.

Arguments: L (k, k), A (p, k), C (p, p); `rules`, Gauss's rules of the pair; `hinges`, the student's: an offset, then
knots and jumps in turn, None, a type of its own to the compiler, for a smooth one; `system`, the `System`; `out`, its
`Drifts`, or the sums for three of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.activations.activation import bends_off_zero, kinks
from sweeplib.networks.maths.expectations import quadrature
from sweeplib.networks.maths.expectations.addresses import fields_address
from sweeplib.networks.maths.expectations.expectations import CHANCE, Expectations, refined
from sweeplib.networks.maths.expectations.grids import filled_up, hinges_row, reach, rest_step, target_steps
from sweeplib.networks.maths.expectations.hinge_pairs import add_hinge_variance
from sweeplib.networks.maths.expectations.hinges import hinge_mean
from sweeplib.networks.maths.expectations.lines import (
    along_line,
    are_finite,
    can_turn,
    factorise,
    fill_line,
    fill_turned,
    is_narrow,
    lines_of,
    next_line,
)
from sweeplib.networks.maths.expectations.nodes import MOST_AXES, Rules, nodes_of, rules_of
from sweeplib.networks.maths.expectations.products import MOST_NODES, ROWS, mean_product, rest_sums
from sweeplib.networks.maths.expectations.smooth_pairs import add_smooth_variance
from sweeplib.networks.maths.expectations.student_pairs import add_kinked_variance
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System, copy_lane
from sweeplib.networks.maths.expectations.tables import INTERPOLATED, Tables, interpolation, tables_of, tabulated
from sweeplib.networks.numerics.compiled import call_by_address, inlined, over_arrays, specialised, without_references

without_target = specialised(quadrature.drifts)
"""The compiled drifts of `quadrature`, for the terms without f*."""

MOST_FIELDS = 6
"""The largest k."""
LEVELS = 3
"""The number of norms of the teacher, 1, 2, 4, for which steps are sought."""
MOST_NODES_OF_TEACHER, NODES_OF_A_PANEL = 2.0**15, 5.0
"""About the most nodes of λ*, and by how much fewer there are for each field with panels."""


@inlined
def student_tables(pair: Pair, A: Array, C: Array, kinds: int) -> Tables:
    """The tables of the first `kinds` of the means E'[σ_i], E'[σ'_i], E'[σ'_i u] of the smooth rests of students.

    Means reach as far as nodes do.
    """
    (p, k), spreads, scales = A.shape, np.empty(len(A)), np.empty(len(A))
    # without a smooth rest there is nothing to tabulate
    number = 0 if pair.steps[0, 0] < math.inf else -1
    for i in range(p):
        square = 0.0
        for r in range(k):
            square += A[i, r] * A[i, r]
        # nodes of few fields are in a ball; of more they are in a cube, whose corners are √k times as far
        spreads[i], scales[i] = math.sqrt(square * (1.0 if k <= MOST_AXES else k)), math.sqrt(C[i, i])
    return tables_of(pair, np.full(p, number), spreads, scales, np.zeros(p), kinds)


@without_references
def add_hinge_means(hinges: Array, mean: float, scale: float, means: Array) -> None:
    """Add E'[σ], E'[σ'] and E'[σ' u] of the hinges at mean + scale u, u ~ N(0, 1), to means (3,)."""
    means[0] += hinge_mean(hinges, mean, scale)
    for j in range(1, len(hinges), 2):
        above, jump = mean - hinges[j], hinges[j + 1]
        if scale > 0.0 and jump != 0.0:
            h = above / scale
            means[1] += jump * 0.5 * math.erfc(-h * math.sqrt(0.5))
            means[2] += jump * math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)
        elif above > 0.0:
            means[1] += jump


@inlined
def add_moments(system: System, C: Array, i: int, factor: float, fields: Array, x: float, law: Any, out: Any) -> None:
    """Add the terms of student i at a node with the fields λ* (k,) and x on the line, times `factor`.

    law : Σ_q A_jq z_q over the other axes (p,), A (p, k) in the axes of the line, and E'[σ_i], E'[σ'_i], E'[σ'_i u].
    out : the sums for Ψ^a (p,), Ψ^M (p, k) and E[σ'_i λ_j f*] (p, p).
    """
    (centre, A, means), (to_a, to_M, flow), scale = law, out, math.sqrt(C[i, i])
    to_a[i] += factor * means[0]
    for r in range(A.shape[1]):
        to_M[i, r] += system.a[i] * factor * fields[r] * means[1]
    for j in range(len(A)):
        along = C[i, j] / scale if scale > 0.0 else 0.0
        mean = centre[j] + A[j, A.shape[1] - 1] * x
        flow[i, j] += system.a[i] * factor * (mean * means[1] + along * means[2])


@inlined
def add_first_moments(
    system: System, hinges: Array | None, rules: Rules, L: Array, A: Array, C: Array, out: Any
) -> None:
    """Add the terms of Ψ^a (p,), Ψ^M (p, k) and E[σ'_i λ_j f*] (p, p) with f* to these three arrays `out`."""
    (p, k), pair = A.shape, system.pair
    lines, tables = lines_of(pair, rules, L, pair.most, np.empty((0, k)), np.empty(0)), student_tables(pair, A, C, 3)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    share, centre, means, rests = np.empty(INTERPOLATED), np.empty(p), np.empty(3), pair.steps[0, 0] < math.inf
    while next_line(pair, rules, L, lines):
        count = fill_line(L, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        # along a line only the last coordinate x of z changes: `centre` is the part of the others
        for j in range(p):
            centre[j] = along_line(A, j, lines)
        for i in range(p):
            scale = math.sqrt(C[i, i])
            bends = not is_narrow(pair, A[i], scale, lines.step)
            for n in range(count):
                mean = centre[i] + A[i, k - 1] * lines.x[k - 1, n]
                means[:] = 0.0
                if rests:
                    first = interpolation(tables, i, mean, share)
                    for kind in range(3):
                        for j in range(INTERPOLATED):
                            means[kind] += share[j] * tables.values[i, kind, first + j]
                if hinges is not None and bends:
                    add_hinge_means(hinges, mean, scale, means)
                law = centre, A, means
                at = fields[n : (k - 1) * count + n + 1 : count]
                add_moments(system, C, i, weight[n] * target[n], at, lines.x[k - 1, n], law, out)
    if hinges is not None:
        for i in range(p):
            if is_narrow(pair, A[i], math.sqrt(C[i, i]), lines.step):
                add_narrow_moments(system, rules, L, A, C, i, out)


@inlined
def add_narrow_moments(system: System, rules: Rules, L: Array, A: Array, C: Array, i: int, out: Any) -> None:
    """Add the terms of the hinges of student i to `out` (as `add_first_moments`), in panels around its bends."""
    (p, k), pair, scale = A.shape, system.pair, math.sqrt(C[i, i])
    L_after, A_after, turns, scales = np.empty((k, k)), np.empty((p, k)), can_turn(pair, k), np.empty(1)
    # z is turned so that A_i is along the lines, if f* allows it: then their panels meet the bends
    fill_turned(A, A[i], turns, A_after)
    fill_turned(L, A[i], turns, L_after)
    scales[0] = scale
    lines = lines_of(pair, rules, L_after, pair.most, A_after[i : i + 1], scales)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    centre, means = np.empty(p), np.empty(3)
    while next_line(pair, rules, L_after, lines):
        count = fill_line(L_after, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for j in range(p):
            centre[j] = along_line(A_after, j, lines)
        for n in range(count):
            means[:] = 0.0
            x = lines.x[k - 1, n]
            add_hinge_means(pair.series[0], centre[i] + A_after[i, k - 1] * x, scale, means)
            law = centre, A_after, means
            at = fields[n : (k - 1) * count + n + 1 : count]
            add_moments(system, C, i, weight[n] * target[n], at, x, law, out)


@inlined
def begin_drifts(system: System, hinges: Array | None, L: Array, A: Array, C: Array, out: Drifts) -> bool:
    """Fill all but the terms of Ψ^Var with f*, and L, A and C at Ω times `stretch`; return whether these terms remain.

    The terms without f* are those of `quadrature`.
    """
    without_target(system, out)
    p, k = A.shape
    flow = np.zeros((p, p))
    factorise(system.Q, system.M, system.P, L, A, C)
    if not are_finite(A, C):
        # one NaN of each is enough for callers
        out.a[0] = out.M[0, 0] = out.GF[0, 0] = out.Var[0, 0] = math.nan
        return False
    add_first_moments(system, hinges, rules_of(system.pair.nodes), L, A, C, (out.a, out.M, flow))
    root = math.sqrt(system.stretch)
    for r in range(k):
        for s in range(k):
            L[r, s] *= root
    for i in range(p):
        for s in range(k):
            A[i, s] *= root
        for j in range(p):
            C[i, j] *= system.stretch
            out.GF[i, j] += flow[i, j] + flow[j, i]
    return system.stretch != 0.0


@without_references
def add_variance(a: Array, sums: Array, out: Array) -> None:
    """Add a_i a_j times the sums (p, p), j ≤ i, to Ψ^Var."""
    for i in range(len(a)):
        for j in range(i + 1):
            out[i, j] += a[i] * a[j] * sums[i, j]
            out[j, i] = out[i, j]


@inlined
def narrow_product(pair: Pair, rules: Rules, L: Array, row: Array, scale: float) -> float:
    """The sum Σ w f* E'[σ_i] of the hinges of student i, in panels around its bends.

    row (k,), scale : A_i and √C_ii.
    """
    k, L_after, A_after, scales = len(L), np.empty((len(L), len(L))), np.empty((1, len(L))), np.empty(1)
    fill_turned(L, row, can_turn(pair, k), L_after)
    fill_turned(row.reshape((1, k)), row, can_turn(pair, k), A_after)
    scales[0] = scale
    lines = lines_of(pair, rules, L_after, pair.most, A_after, scales)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    total = 0.0
    while next_line(pair, rules, L_after, lines):
        count, centre = fill_line(L_after, lines, weight, fields), along_line(A_after, 0, lines)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for n in range(count):
            mean = centre + A_after[0, k - 1] * lines.x[k - 1, n]
            total += weight[n] * target[n] * hinge_mean(pair.series[0], mean, scale)
    return total


@inlined
def fill_risks(pair: Pair, hinges: Array | None, Q: Array, M: Array, P: Array, a: Array, out: Array) -> None:
    """Fill out (lanes,) with the risk: ½ E f² by `products`, and Σ w f* (½ f* − E'[f]), one lane after the other.

    Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes).
    """
    p, k, lanes = M.shape
    room = np.empty((ROWS, 2 * pair.side + 1))
    rules, share = rules_of(pair.nodes), np.empty(INTERPOLATED)
    L, A, C = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p))
    Q_lane, M_lane, P_lane = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    rests = pair.steps[0, 0] < math.inf
    for lane in range(lanes):
        copy_lane(lane, Q, Q_lane)
        copy_lane(lane, M, M_lane)
        copy_lane(lane, P, P_lane)
        factorise(Q_lane, M_lane, P_lane, L, A, C)
        out[lane] = 0.0 if are_finite(A, C) else math.nan
        if math.isnan(out[lane]):
            continue
        # ½ E f²
        for i in range(p):
            for j in range(i + 1):
                share_ij = (0.5 if i == j else 1.0) * a[i, lane] * a[j, lane] / (p * p)
                s, t = math.sqrt(Q_lane[i, i]), math.sqrt(Q_lane[j, j])
                if hinges is not None:
                    out[lane] += share_ij * mean_product(pair, rules.panel, 0, 0, s, t, Q_lane[i, j], room)
                else:
                    out[lane] += share_ij * rest_sums(pair, 0, 0, s, t, Q_lane[i, j], False, room)[0]
        lines = lines_of(pair, rules, L, pair.most, np.empty((0, k)), np.empty(0))
        tables = student_tables(pair, A, C, 1)
        weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
        while next_line(pair, rules, L, lines):
            count = fill_line(L, lines, weight, fields)
            pair.ridge_value(k, fields[: k * count], target[:count])
            for n in range(count):
                out[lane] += 0.5 * weight[n] * target[n] * target[n]
            for i in range(p):
                # Σ w f* E'[σ_i] over the nodes of the line; narrow bends follow in panels of their own
                centre, scale, total = along_line(A, i, lines), math.sqrt(C[i, i]), 0.0
                for n in range(count):
                    mean = centre + A[i, k - 1] * lines.x[k - 1, n]
                    if rests:
                        total += weight[n] * target[n] * tabulated(tables, i, mean, share)
                if hinges is not None:
                    for n in range(0 if is_narrow(pair, A[i], scale, lines.step) else count):
                        mean = centre + A[i, k - 1] * lines.x[k - 1, n]
                        total += weight[n] * target[n] * hinge_mean(hinges, mean, scale)
                out[lane] -= a[i, lane] / p * total
        if hinges is not None:
            for i in range(p):
                if is_narrow(pair, A[i], math.sqrt(C[i, i]), lines.step):
                    out[lane] -= a[i, lane] / p * narrow_product(pair, rules, L, A[i], math.sqrt(C[i, i]))


def drifts(system: System, out: Drifts) -> None:
    """Fill the drifts of a smooth student."""
    p, k = system.M.shape
    L, A, C, sums = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p)), np.zeros((p, p))
    if begin_drifts(system, None, L, A, C, out):
        add_smooth_variance(system, rules_of(system.pair.nodes), L, A, C, sums)
        add_variance(system.a, sums, out.Var)


def hinge_drifts(system: System, out: Drifts) -> None:
    """Fill the drifts of a student that is a sum of hinges."""
    p, k = system.M.shape
    L, A, C, sums = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p)), np.zeros((p, p))
    if begin_drifts(system, system.pair.series[0], L, A, C, out):
        add_hinge_variance(system, rules_of(system.pair.nodes), L, A, C, sums)
        add_variance(system.a, sums, out.Var)


def kinked_drifts(system: System, out: Drifts) -> None:
    """Fill the drifts of a student with kinks that is smooth beside them."""
    p, k = system.M.shape
    L, A, C, sums = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p)), np.zeros((p, p))
    if begin_drifts(system, system.pair.series[0], L, A, C, out):
        add_kinked_variance(system, system.pair.series[0], rules_of(system.pair.nodes), L, A, C, sums)
        add_variance(system.a, sums, out.Var)


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """Fill out (lanes,) with the risks of smooth students; a* is not read, as f* is a function of λ* alone."""
    fill_risks(pair, None, Q, M, P, a, out)


def kinked_risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """Fill out (lanes,) with the risks of students with kinks; a* is not read, as f* is a function of λ* alone."""
    fill_risks(pair, pair.series[0], Q, M, P, a, out)


def of_labels(
    name: str, student: Activation, labels: Callable[..., None], knots: Sequence[Sequence[float]]
) -> Expectations:
    """The expectations of an activation and a function `labels(lam_star, a_star, out)` of fields λ* (k, n).

    knots : the values of each field at which the function has a kink, as far as these are known. Drifts are not
    resolved if the activation has kinks off zero.
    """
    address, degree, k = fields_address(labels), len(student.hermite or ()), len(knots)
    # any jump but zero stands for a knot of f*
    hinges = [hinges_row(student), *([0.0, *(number for knot in places for number in (knot, 1.0))] for places in knots)]

    def values(lam_star: Array) -> Array:
        """Return f* (n,) at fields (k, n)."""
        out = np.empty(lam_star.shape[1])
        call_by_address(address, k, np.ascontiguousarray(lam_star).reshape(-1), out)
        return out

    @cache
    def steps() -> Array:
        """Return the widest steps (levels, 1 + k) that resolve the student and f*, by the scale of fields."""
        scales = 2.0 ** np.arange(LEVELS)
        return np.array([[rest_step(student), *target_steps(values, knots, scale)] for scale in scales.tolist()])

    def pair(finer: float) -> Pair:
        """Return the `Pair` of rules with nodes `finer` times as dense."""
        return Pair(
            over_arrays(student.value),
            over_arrays(student.derivative),
            address,
            which=np.full(1, -1),
            directions=np.ones((1, k)),
            weights=np.zeros(1),
            nodes=nodes_of(finer, degree, k),
            series=filled_up(hinges),
            reach=reach(degree),
            steps=steps() / finer,
            side=round(MOST_NODES * finer),
            most=MOST_NODES_OF_TEACHER * finer**k / NODES_OF_A_PANEL ** sum(map(bool, knots)),
        )

    risk_and_drifts = (risk, drifts)
    if kinks(student):
        risk_and_drifts = (kinked_risk, hinge_drifts if student.hinges is not None else kinked_drifts)
    rule = Expectations(name, *risk_and_drifts, resolved=not bends_off_zero(student))
    # a few Gauss nodes a field may all miss a steep f*
    return refined(replace(rule, margin=CHANCE) if k > MOST_AXES else rule, pair)
