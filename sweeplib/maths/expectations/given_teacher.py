"""Any function f* of the teacher's fields and any activation, by quadrature conditional on λ*.

Given λ* = L z, z ~ N(0, I_k), P = L Lᵀ, the students' fields are N(A z, C), A = M L⁻ᵀ and C = Q − A Aᵀ. The terms with
f* are sums over nodes z with weights w: with E' the mean given λ*,
Ψ^a_i ∋ Σ w f* E'[σ_i],  Ψ^M_ir ∋ a_i Σ w f* λ*_r E'[σ'_i],  E[σ'_i λ_j f*] = Σ w f* E'[σ'_i λ_j],
Ψ^Var_ij ∋ a_i a_j Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]).
The terms without f* are those of `quadrature`. Nodes z are those of `lines`, fewer for Ψ^Var, whose sums are long.
E'[σ_i] and E'[σ'_i] are functions of one number, the mean A_i z: they are tabulated at equal distances and interpolated
by polynomials of degree seven.

Of an activation with kinks, E'[σ_i] is that of a smooth rest and of hinges, in closed form, with bends of the width
w = √C_ii/|A_i| along A_i. Where nodes do not resolve them, z is turned so that A_i is along the last axis, whose panels
end around the bends: the error does not depend on w. Kinks of f* keep z from being turned if k > 1. For Ψ^Var the nodes
of a pair given λ* are in panels that end at the kinks; z is not turned, so that the error is of order h² where w < h.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.activations.activation import bends_off_zero, kinks
from sweeplib.maths.expectations import quadrature
from sweeplib.maths.expectations.addresses import fields_address
from sweeplib.maths.expectations.expectations import Expectations, refined
from sweeplib.maths.expectations.grids import WIDEST, filled_up, hinges_row, reach, rest_step, target_steps
from sweeplib.maths.expectations.hinges import has_part, hinge_mean
from sweeplib.maths.expectations.lines import (
    along_line,
    are_finite,
    factorise,
    fill_line,
    lines_of,
    next_line,
)
from sweeplib.maths.expectations.nodes import MOST_AXES, Rules, nodes_of, rules_of
from sweeplib.maths.expectations.plane import ENDS_OF_A_BEND, Axis, add_bend, components, fill_between
from sweeplib.maths.expectations.products import (
    MOST_NODES,
    PANEL_STEPS,
    ROWS,
    fill_rest,
    mean_product,
    rest_sums,
    take_lane,
)
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.maths.expectations.tables import INTERPOLATED, Tables, interpolation, tables_of, tabulated
from sweeplib.numerics.compiled import call_by_address, inlined, over_arrays, specialised, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]

without_target = specialised(quadrature.drifts)

MOST_FIELDS = 6
"""The largest k."""
LEVELS = 3
"""The number of norms of the teacher, 1, 2, 4, for which steps are sought."""
MOST_NODES_OF_TEACHER, NODES_OF_A_PANEL = 2.0**15, 5.0
END, PIECES = 7.0, 2
"""Where nodes of a pair of students with kinks end, and the number of panels without a kink."""
FEWER_FOR_VARIANCE, LEAST_WEIGHT = 8.0, 1e-13
"""For Ψ^Var there are so many times fewer nodes at most, and none of less weight."""


@inlined
def student_tables(pair: Pair, A: Array, C: Array, kinds: int) -> Tables:
    """The tables of the first `kinds` of the means of the students, as far as nodes of λ* reach."""
    (p, k), spreads, scales = A.shape, np.empty(len(A)), np.empty(len(A))
    number = 0 if pair.steps[0, 0] < math.inf else -1
    for i in range(p):
        square = 0.0
        for r in range(k):
            square += A[i, r] * A[i, r]
        spreads[i], scales[i] = math.sqrt(square * (1.0 if k <= MOST_AXES else k)), math.sqrt(C[i, i])
    return tables_of(pair, np.full(p, number), spreads, scales, np.zeros(p), kinds)


@without_references
def is_narrow(pair: Pair, row: Array, scale: float, step: Array) -> bool:
    """Whether steps do not resolve the bends of a student's mean given λ*, at row·z of the deviation `scale` beyond."""
    narrow = False
    for s in range(len(row)):
        own = step[s] / PANEL_STEPS if has_part(pair.series[1 + s]) else step[s]
        narrow = narrow or abs(row[s]) * own > WIDEST * scale
    return narrow and len(row) <= MOST_AXES


@without_references
def fill_turned(L: Array, row: Array, turned: Array, student: Array) -> None:
    """Fill L, or A, and A_i = row after the reflection of z that moves A_i to the last axis."""
    k, norm, square = len(row), 0.0, 0.0
    for s in range(k):
        norm = math.hypot(norm, row[s])
    for s in range(k):
        student[s] = row[s] / norm - (1.0 if s == k - 1 else 0.0)
        square += student[s] * student[s]
    for r in range(len(L)):
        along = 0.0
        for s in range(k):
            along += L[r, s] * student[s]
        for s in range(k):
            turned[r, s] = L[r, s] - (2.0 * along * student[s] / square if square > 0.0 else 0.0)
    student[:] = 0.0
    student[k - 1] = norm


@without_references
def can_turn(pair: Pair, k: int) -> bool:
    """Whether no kinks of f* keep z from being turned."""
    knots = False
    for r in range(k):
        knots = knots or has_part(pair.series[1 + r])
    return k == 1 or not knots


@without_references
def add_hinge_means(hinges: Array, mean: float, scale: float, means: Array) -> None:
    """Add E'[σ], E'[σ'] and E'[σ' u] of the hinges at mean + scale u."""
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
def add_moments(system: System, C: Array, i: int, factor: float, fields: Array, x: float, given: Any, out: Any) -> None:
    """Add the terms of student i at a node with the fields λ* (k,) and x on the line.

    given : Σ_q A_jq z_q over the other axes (p,), A (p, k) in the axes of the line, and E'[σ_i], E'[σ'_i], E'[σ'_i u].
    """
    (centre, A, means), (to_a, to_M, flow), scale = given, out, math.sqrt(C[i, i])
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
    """Add the terms of Ψ^a, Ψ^M and E[σ'_i λ_j f*] to out."""
    (p, k), pair = A.shape, system.pair
    lines, tables = lines_of(pair, rules, L, pair.most, np.empty(0), 0.0), student_tables(pair, A, C, 3)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    share, centre, means, rests = np.empty(INTERPOLATED), np.empty(p), np.empty(3), pair.steps[0, 0] < math.inf
    while next_line(pair, rules, L, lines):
        count = fill_line(L, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for j in range(p):
            centre[j] = along_line(A, j, lines)
        for i in range(p):
            scale = math.sqrt(C[i, i])
            bends = not is_narrow(pair, A[i], scale, lines.step)
            for n in range(count):
                mean = centre[i] + A[i, k - 1] * lines.x[k - 1, n]
                for kind in range(3):
                    means[kind] = 0.0
                if rests:
                    first = interpolation(tables, i, mean, share)
                    for kind in range(3):
                        for j in range(INTERPOLATED):
                            means[kind] += share[j] * tables.values[i, kind, first + j]
                if hinges is not None and bends:
                    add_hinge_means(hinges, mean, scale, means)
                given = centre, A, means
                at = fields[n : (k - 1) * count + n + 1 : count]
                add_moments(system, C, i, weight[n] * target[n], at, lines.x[k - 1, n], given, out)
    if hinges is not None:
        for i in range(p):
            if is_narrow(pair, A[i], math.sqrt(C[i, i]), lines.step):
                add_narrow_moments(system, rules, L, A, C, i, out)


@inlined
def add_narrow_moments(system: System, rules: Rules, L: Array, A: Array, C: Array, i: int, out: Any) -> None:
    """Add the terms of the hinges of student i in panels around its bends."""
    (p, k), pair, scale = A.shape, system.pair, math.sqrt(C[i, i])
    turned, rows, student = L.copy(), A.copy(), A[i].copy()
    if can_turn(pair, k):
        fill_turned(A, A[i], rows, student)
        fill_turned(L, A[i], turned, student)
    lines = lines_of(pair, rules, turned, pair.most, student, scale)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    centre, means = np.empty(p), np.empty(3)
    while next_line(pair, rules, turned, lines):
        count = fill_line(turned, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for j in range(p):
            centre[j] = along_line(rows, j, lines)
        for n in range(count):
            for kind in range(3):
                means[kind] = 0.0
            x = lines.x[k - 1, n]
            add_hinge_means(pair.series[0], centre[i] + rows[i, k - 1] * x, scale, means)
            given = centre, rows, means
            at = fields[n : (k - 1) * count + n + 1 : count]
            add_moments(system, C, i, weight[n] * target[n], at, x, given, out)


class Pairs(NamedTuple):
    """Work arrays of a pair of students at the nodes (u_1, u_2) of a product of rules.

    u, v, weight (nodes²,) : the nodes and their weights; for students with kinks, in panels that end there.
    slopes (2, nodes²) : σ'_i and σ'_j.
    network (nodes²,) : E'[f | λ_i, λ_j].
    first, second (p,) : covariances of the students with u_1 and u_2.
    field, value (nodes³,) : fields of a student and the values of σ.
    ends : room for the ends of panels.
    """

    u: Array
    v: Array
    weight: Array
    slopes: Array
    network: Array
    first: Array
    second: Array
    field: Array
    value: Array
    ends: Array


@inlined
def pairs_of(p: int, rules: Rules, hinges: Array) -> Pairs:
    """Work arrays for p students."""
    nodes = max(rules.student.shape[1], (len(hinges) // 2 + PIECES) * rules.plane.shape[1])
    ends = (ENDS_OF_A_BEND + 2) * (len(hinges) // 2)
    square = max(nodes * nodes, (ends + PIECES) * rules.panel.shape[1])
    grid, students = np.empty((4, square)), np.empty((2, p))
    work = np.empty((2, square * rules.student.shape[1]))
    network, slopes = grid[3], np.empty((2, square))
    return Pairs(grid[0], grid[1], grid[2], slopes, network, students[0], students[1], work[0], work[1], np.empty(ends))


@without_references
def fill_grid(rule: Array, in_plane: bool, pairs: Pairs) -> int:
    """Fill the nodes in the plane or on a line, and return their number."""
    nodes = rule.shape[1]
    others = nodes if in_plane else 1
    for q in range(nodes):
        for w in range(others):
            at = q * others + w
            pairs.u[at], pairs.v[at] = rule[0, q], rule[0, w] if in_plane else 0.0
            pairs.weight[at] = rule[1, q] * (rule[1, w] if in_plane else 1.0)
    return nodes * others


@inlined
def fill_bent_grid(hinges: Array, rules: Rules, i: int, j: int, mean: Array, in_plane: bool, pairs: Pairs) -> int:
    """Fill nodes in panels that end at the kinks of students i and j, of these means; return their number."""
    size = len(pairs.u)
    first, second = Axis(np.empty(size), np.empty(size), np.empty(len(hinges))), np.empty((3, size))
    inner, at = Axis(second[0], second[1], second[2]), 0
    outer = fill_pieces(hinges, mean[i], pairs.first[i], rules.plane, first)
    for n in range(outer):
        others = 1
        if in_plane:
            there = mean[j] + pairs.first[j] * first.x[n]
            others = fill_pieces(hinges, there, pairs.second[j], rules.plane, inner)
        for q in range(others):
            pairs.u[at], pairs.v[at] = first.x[n], inner.x[q] if in_plane else 0.0
            pairs.weight[at] = first.weight[n] * (inner.weight[q] if in_plane else 1.0)
            at += 1
    return at


@without_references
def fill_pieces(hinges: Array, mean: float, scale: float, rule: Array, axis: Axis) -> int:
    """Fill nodes of u in panels that end where mean + scale u is at a kink; return their number."""
    if scale <= 0.0:
        axis.x[0], axis.weight[0] = 0.0, 1.0
        return 1
    count = 0
    for knot in range(1, len(hinges), 2):
        if hinges[knot + 1] != 0.0 and abs(hinges[knot] - mean) < END * scale:
            axis.ends[count], count = (hinges[knot] - mean) / scale, count + 1
    return fill_between(axis, count, rule, 2.0 * END / PIECES, END)


@inlined
def fill_slopes(system: System, count: int, side: int, m: int, mean: Array, pairs: Pairs) -> None:
    """Fill σ' of student m."""
    for at in range(count):
        pairs.field[at] = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
    system.pair.student_slope(pairs.field[:count], pairs.slopes[side, :count])


@inlined
def fill_network(
    system: System, hinges: Array | None, rule: Array, C: Array, i: int, j: int, count: int, mean: Array, pairs: Pairs
) -> None:
    """Fill E'[f | λ_i, λ_j]: the students beyond the pair are averaged over what they have beyond u_1 and u_2.

    Without the pair itself for students that are hinges alone, of which `hinge_pair` takes care.
    """
    for at in range(count):
        pairs.network[at] = 0.0
    rests = system.pair.steps[0, 0] < math.inf
    for m in range(len(mean)):
        if hinges is not None and not rests and m in (i, j):
            continue
        variance = C[m, m] - pairs.first[m] * pairs.first[m] - pairs.second[m] * pairs.second[m]
        scale = math.sqrt(variance) if variance > 1e-12 * C[m, m] else 0.0
        if hinges is not None:
            for at in range(count if scale > 0.0 else 0):
                centre = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
                pairs.network[at] += system.a[m] / len(mean) * hinge_mean(hinges, centre, scale)
            if scale > 0.0 and not rests:
                continue
        inner = rule.shape[1] if scale > 0.0 else 1
        for at in range(count):
            centre = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
            for q in range(inner):
                pairs.field[at * inner + q] = centre + scale * rule[0, q] if scale > 0.0 else centre
        system.pair.student_value(pairs.field[: count * inner], pairs.value[: count * inner])
        if hinges is not None and scale > 0.0:
            fill_rest(system.pair, 0, pairs.field[: count * inner], pairs.value[: count * inner])
        for at in range(count):
            for q in range(inner):
                share = rule[1, q] if scale > 0.0 else 1.0
                pairs.network[at] += system.a[m] / len(mean) * share * pairs.value[at * inner + q]


@without_references
def hinge_slope(hinges: Array, mean: float, scale: float, weighed: bool) -> float:
    """E[σ'(x)], or E[σ'(x) σ(x)] if `weighed`, of hinges at x = mean + scale u."""
    total = 0.0
    for j in range(1, len(hinges), 2):
        above = mean - hinges[j]
        if scale > 0.0:
            h = above / scale
            over, density = 0.5 * math.erfc(-h * math.sqrt(0.5)), math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)
        else:
            over, density = 1.0 if above > 0.0 else 0.0, 0.0
        inner = over
        if weighed:
            inner *= hinges[0]
            for k in range(1, len(hinges), 2):
                if hinges[k] >= hinges[j]:  # the later hinge is zero before its own knot
                    later = mean - hinges[k]
                    inner += hinges[k + 1] * lifted(later, scale)
                else:
                    inner += hinges[k + 1] * ((mean - hinges[k]) * over + scale * density)
        total += hinges[j + 1] * inner
    return total


@without_references
def lifted(mean: float, scale: float) -> float:
    """E[x⁺] at x = mean + scale u."""
    if scale <= 0.0:
        return max(mean, 0.0)
    h = mean / scale
    return 0.5 * mean * math.erfc(-h * math.sqrt(0.5)) + scale * math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)


@inlined
def hinge_pair(
    system: System, hinges: Array, rules: Rules, i: int, j: int, mean: Array, target: float, pairs: Pairs
) -> float:
    """f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f], f of the pair alone: nodes of λ_i, and closed forms given λ_i."""
    axis, count, total = Axis(pairs.u, pairs.weight, pairs.ends), 0, 0.0
    scale, along, across = pairs.first[i], pairs.first[j], pairs.second[j] if i != j else 0.0
    for knot in range(1, len(hinges), 2):
        if hinges[knot + 1] != 0.0:
            if abs(hinges[knot] - mean[i]) < END * scale:
                axis.ends[count], count = (hinges[knot] - mean[i]) / scale, count + 1
            if i != j and along != 0.0:
                place, width = (hinges[knot] - mean[j]) / along, across / abs(along)
                count = add_bend(axis, count, place, width, END, END)
    nodes = fill_between(axis, count, rules.panel, END, END) if scale > 0.0 else 1
    if scale <= 0.0:
        axis.x[0], axis.weight[0] = 0.0, 1.0
    mine, other = system.a[i] / len(mean), system.a[j] / len(mean)
    for n in range(nodes):
        x, there = mean[i] + scale * axis.x[n], mean[j] + along * axis.x[n]
        slope = axis.weight[n] * hinge_slope(hinges, x, 0.0, False)
        if slope != 0.0:
            left = target * (target - 2.0 * mine * hinge_mean(hinges, x, 0.0))
            total += slope * left * hinge_slope(hinges, there, across, False)
            if i != j:
                total -= slope * 2.0 * target * other * hinge_slope(hinges, there, across, True)
    return total


@inlined
def variance_term(
    system: System,
    hinges: Array | None,
    rule: Array,
    C: Array,
    i: int,
    j: int,
    mean: Array,
    target: float,
    count: int,
    pairs: Pairs,
) -> float:
    """f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f] at one node of λ*, by the `count` nodes of the pair.

    Of hinges alone, the terms of the students beyond the pair.
    """
    alone = 1.0
    if hinges is not None and system.pair.steps[0, 0] == math.inf:
        alone = 0.0
    fill_slopes(system, count, 0, i, mean, pairs)
    fill_slopes(system, count, 1, j, mean, pairs)
    fill_network(system, hinges, rule, C, i, j, count, mean, pairs)
    total = 0.0
    for at in range(count):
        share = pairs.weight[at] * pairs.slopes[0, at] * pairs.slopes[1, at]
        total += share * target * (target * alone - 2.0 * pairs.network[at])
    return total


@inlined
def variance_with_target(
    system: System, hinges: Array | None, rules: Rules, factors: Any, i: int, j: int, pairs: Pairs
) -> float:
    """Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]), at fewer nodes than the first moments."""
    pair, (L, A, C), k = system.pair, factors, len(factors[0])
    components(C, i, j, pairs.first, pairs.second)
    in_plane = i != j and pairs.second[j] != 0.0
    nodes = 0
    if hinges is None:
        nodes = fill_grid(rules.student, in_plane, pairs)
    lines = lines_of(pair, rules, L, pair.most / FEWER_FOR_VARIANCE, np.empty(0), 0.0)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    along, centre, total = np.empty(len(A)), np.empty(len(A)), 0.0
    while next_line(pair, rules, L, lines):
        count = fill_line(L, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for m in range(len(A)):
            along[m] = along_line(A, m, lines)
        for n in range(count):
            if weight[n] > LEAST_WEIGHT:
                for m in range(len(A)):
                    centre[m] = along[m] + A[m, k - 1] * lines.x[k - 1, n]
                if hinges is not None:
                    alone = pair.steps[0, 0] == math.inf
                    if alone:
                        total += weight[n] * hinge_pair(system, hinges, rules, i, j, centre, target[n], pairs)
                    nodes = 0
                    if not alone or len(A) > (1 if i == j else 2):
                        nodes = fill_bent_grid(hinges, rules, i, j, centre, in_plane, pairs)
                total += weight[n] * variance_term(
                    system, hinges, rules.student, C, i, j, centre, target[n], nodes, pairs
                )
    return total


@inlined
def fill_drifts(system: System, hinges: Array | None, out: Drifts) -> None:
    """The drifts without f* by `quadrature`, and the terms with f*; Ψ^Var at Ω times `stretch`."""
    without_target(system, out)
    a, pair = system.a, system.pair
    p, k = system.M.shape
    rules = rules_of(pair.nodes)
    L, A, C, flow = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p)), np.zeros((p, p))
    factorise(system.Q, system.M, system.P, L, A, C)
    if not are_finite(A, C):
        out.a[0] = out.M[0, 0] = out.GF[0, 0] = out.Var[0, 0] = math.nan
        return
    add_first_moments(system, hinges, rules, L, A, C, (out.a, out.M, flow))

    root = math.sqrt(system.stretch)
    for r in range(k):
        for s in range(k):
            L[r, s] *= root
    for i in range(p):
        for s in range(k):
            A[i, s] *= root
        for j in range(p):
            C[i, j] *= system.stretch
    pairs = pairs_of(p, rules, pair.series[0])
    for i in range(p):
        for j in range(i + 1):
            out.Var[i, j] += a[i] * a[j] * variance_with_target(system, hinges, rules, (L, A, C), i, j, pairs)
            out.GF[i, j] += flow[i, j] + flow[j, i]
            if i != j:
                out.Var[j, i], out.GF[j, i] = out.Var[i, j], out.GF[i, j]


@inlined
def narrow_product(pair: Pair, rules: Rules, L: Array, row: Array, scale: float) -> float:
    """Σ w f* E'[σ_i] of the hinges of a student with A_i = row and √C_ii = scale, in panels around its bends."""
    k, turned, student = len(L), L.copy(), row.copy()
    if can_turn(pair, k):
        fill_turned(L, row, turned, student)
    lines = lines_of(pair, rules, turned, pair.most, student, scale)
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    total = 0.0
    while next_line(pair, rules, turned, lines):
        count, centre = fill_line(turned, lines, weight, fields), 0.0
        pair.ridge_value(k, fields[: k * count], target[:count])
        for q in range(k - 1):
            centre += student[q] * lines.x[q, lines.place[q]]
        for n in range(count):
            mean = centre + student[k - 1] * lines.x[k - 1, n]
            total += weight[n] * target[n] * hinge_mean(pair.series[0], mean, scale)
    return total


@inlined
def fill_risks(pair: Pair, hinges: Array | None, Q: Array, M: Array, P: Array, a: Array, out: Array) -> None:
    """½ E f² by `products`, and Σ w f* (½ f* − E'[f]), every lane on its own.

    hinges : those of the student; None, a type of its own to the compiler, for a smooth one.
    """
    p, k, lanes = M.shape
    room = np.empty((ROWS, 2 * pair.side + 1))
    rules, share = rules_of(pair.nodes), np.empty(INTERPOLATED)
    L, A, C = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p))
    own, ours, theirs = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    rests = pair.steps[0, 0] < math.inf
    for lane in range(lanes):
        take_lane(lane, Q, own)
        take_lane(lane, M, ours)
        take_lane(lane, P, theirs)
        factorise(own, ours, theirs, L, A, C)
        out[lane] = 0.0 if are_finite(A, C) else math.nan
        if math.isnan(out[lane]):
            continue
        for i in range(p):
            for j in range(i + 1):
                share_ij = (0.5 if i == j else 1.0) * a[i, lane] * a[j, lane] / (p * p)
                s, t = math.sqrt(own[i, i]), math.sqrt(own[j, j])
                if hinges is not None:
                    out[lane] += share_ij * mean_product(pair, rules.panel, 0, 0, s, t, own[i, j], room)
                else:
                    out[lane] += share_ij * rest_sums(pair, 0, 0, s, t, own[i, j], False, room)[0]
        lines, tables = lines_of(pair, rules, L, pair.most, np.empty(0), 0.0), student_tables(pair, A, C, 1)
        weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
        while next_line(pair, rules, L, lines):
            count = fill_line(L, lines, weight, fields)
            pair.ridge_value(k, fields[: k * count], target[:count])
            for n in range(count):
                out[lane] += 0.5 * weight[n] * target[n] * target[n]
            for i in range(p):
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
    """Those of a smooth student."""
    fill_drifts(system, None, out)


def kinked_drifts(system: System, out: Drifts) -> None:
    """Those of a student with kinks."""
    fill_drifts(system, system.pair.series[0], out)


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """That of a smooth student."""
    fill_risks(pair, None, Q, M, P, a, out)


def kinked_risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """That of a student with kinks."""
    fill_risks(pair, pair.series[0], Q, M, P, a, out)


def of_labels(
    name: str, student: Activation, labels: Callable[..., None], knots: Sequence[Sequence[float]]
) -> Expectations:
    """The expectations of an activation and a function `labels(lam_star, a_star, out)` of fields λ*_r.

    Drifts are not resolved if the activation has kinks off zero.

    knots : the values of each field at which the function has a kink, as far as these are known.
    """
    address, degree, k = fields_address(labels), len(student.hermite or ()), len(knots)
    hinges = [hinges_row(student), *([0.0, *(number for knot in own for number in (knot, 1.0))] for own in knots)]

    def values(lam_star: Array) -> Array:
        out = np.empty(lam_star.shape[1])
        call_by_address(address, k, np.ascontiguousarray(lam_star).reshape(-1), out)
        return out

    @cache
    def steps() -> Array:
        scales = 2.0 ** np.arange(LEVELS)
        return np.array([[rest_step(student), *target_steps(values, knots, scale)] for scale in scales.tolist()])

    def pair(finer: float) -> Pair:
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

    rules = (kinked_risk, kinked_drifts) if kinks(student) else (risk, drifts)
    return refined(Expectations(name, *rules, resolved=not bends_off_zero(student)), pair)
