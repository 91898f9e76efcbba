"""Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]) of students that are sums of hinges, in closed form given λ*.

With S the slope of σ, θ the step and r the jumps of S², σ'² = Σ_a r_a θ(λ − c_a) and
σ'σ = Σ_a (κ_a σ(c_a) θ(λ − c_a) + r_a (λ − c_a)⁺), and the like for σ'²σ. Given λ*, with h_i = (μ_i − c)/s_i,
ρ the correlation of two fields and ρ̄² = 1 − ρ²,

E'[θ_i θ_j] = Φ_2(h_i, h_j; ρ),
E'[(λ_i − c)⁺ θ_j] = (μ_i − c) Φ_2 + s_i (φ(h_i) Φ((h_j − ρ h_i)/ρ̄) + ρ φ(h_j) Φ((h_i − ρ h_j)/ρ̄)),

and with the probability Φ_3 that three fields are above their knots and D_m = φ(h_m) Φ_2(the others | λ_m = c_m), by
parts, E'[(λ_i − c)⁺ θ_j θ_l] = (μ_i − c) Φ_3 + s_i (D_i + ρ_ij D_j + ρ_il D_l).

Φ_2 is that of `orthant_probabilities`; Φ_3 is the integral of its derivatives there along the correlations t ρ_xy,
t ρ_xz, in panels towards t = 1. Errors are below 10⁻¹¹.
Terms of one student, of two and of three whose bends are narrow have nodes of their own. `others` is the offset of σ
times Σ a_l/p of the students l that a term leaves out; `count` nodes are on a line. L, A, C: see `given_teacher`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.hinges import PANELS, RATIO, correlation
from sweeplib.networks.maths.expectations.lines import (
    Lines,
    along_line,
    can_turn,
    fill_line,
    fill_turned,
    is_narrow,
    lines_of,
    next_line,
)
from sweeplib.networks.maths.expectations.nodes import Rules
from sweeplib.networks.maths.expectations.orthant_probabilities import (
    ARC,
    ARC_WEIGHTS,
    DENSITY,
    FAR,
    FARTHEST,
    add_arc,
    add_plackett,
    fill_given,
    fill_normal,
    rho_bar,
)
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import inlined, without_references
from sweeplib.networks.numerics.elementary import exponential

Group = tuple[int, int, int]
"""Numbers of three students i ≥ j ≥ l, or of their knots."""

KNOT, JUMP, AT, SQUARE, SQUARE_AT, CUBE = range(6)
"""Rows of the bends of σ: c, κ, κ σ(c), the jumps of S², these times σ(c), and the jumps of S³."""
NOT_NARROW = -1, -1, -1
"""In place of a group of students (i, j, l), for all terms of students whose bends are not narrow."""


class Units(NamedTuple):
    """Students at the nodes of a line, and the sums.

    bends (6, J), a, scale (p,), rho (p, p) : bends of σ, a_i/p, √C_ii, and the correlations given λ*.
    above, h, cdf, density (p, J, nodes) : μ − c, that over s, and Φ and φ of it.
    weight, target, factor (nodes,) : w, f* and their product.
    room (8, nodes) : work arrays; rows 0 to 3 are of functions that add terms, 4 to 7 of those that these call.
    total (p, p) : the sums, j ≤ i.
    """

    bends: Array
    a: Array
    scale: Array
    rho: Array
    above: Array
    h: Array
    cdf: Array
    density: Array
    weight: Array
    target: Array
    factor: Array
    room: Array
    total: Array


@without_references
def fill_bends(hinges: Array, bends: Array) -> None:
    """Fill bends (6, J), with the rows named above, of J hinges: a row of an offset, then knots and jumps in turn."""
    slope = 0.0
    for b in range(bends.shape[1]):
        # σ at the knot is that of the hinges before it; slope and `after` are S on its two sides
        knot, jump, value = hinges[1 + 2 * b], hinges[2 + 2 * b], hinges[0]
        for k in range(1, 1 + 2 * b, 2):
            value += hinges[k + 1] * (knot - hinges[k])
        after = slope + jump
        square = after * after - slope * slope
        bends[KNOT, b], bends[JUMP, b], bends[AT, b] = knot, jump, jump * value
        bends[SQUARE, b], bends[SQUARE_AT, b] = square, square * value
        bends[CUBE, b] = after * after * after - slope * slope * slope
        slope = after


@inlined
def units_of(system: System, C: Array, nodes: int, total: Array) -> Units:
    """Empty `Units` of students with the covariance C (p, p) given λ*, with their bends; total (p, p) gets the sums."""
    hinges, p, count = system.pair.series[0], len(C), 0
    for j in range(1, len(hinges), 2):
        if hinges[j + 1] != 0.0:
            # hinges without a jump only fill up a row
            count = j // 2 + 1
    bends, students, rho, room = np.empty((6, count)), np.empty((2, p)), np.zeros((p, p)), np.empty((11, nodes))
    fill_bends(hinges, bends)
    many = np.empty((4, p, count, nodes))
    a, scale = students[0], students[1]
    for i in range(p):
        a[i], scale[i] = system.a[i] / p, math.sqrt(C[i, i])
        for j in range(i):
            if scale[i] > 0.0 and scale[j] > 0.0:
                rho[i, j] = rho[j, i] = correlation(C[i, j], scale[i], scale[j])
    return Units(bends, a, scale, rho, many[0], many[1], many[2], many[3], room[8], room[9], room[10], room[:8], total)


@without_references
def fill_units(units: Units, i: int, centre: float, slope: float, x: Array, count: int) -> None:
    """Fill above, h, cdf and density of student i, of the mean centre + slope x, at the first `count` nodes x."""
    scale = units.scale[i]
    for a in range(units.bends.shape[1]):
        above, h = units.above[i, a], units.h[i, a]
        for n in range(count):
            above[n] = centre + slope * x[n] - units.bends[KNOT, a]
            ratio = above[n] / scale if scale > 0.0 else (FARTHEST if above[n] > 0.0 else -FARTHEST)
            h[n] = max(min(ratio, FARTHEST), -FARTHEST)
        fill_normal(h, count, units.cdf[i, a])
        for n in range(count):
            units.density[i, a, n] = DENSITY * exponential(-0.5 * h[n] * h[n])


@without_references
def add_single(units: Units, others: float, i: int, count: int) -> None:
    """Add the terms of student i alone to Var_ii.

    They are those of σ'² = Σ_a SQUARE_a θ and σ'²σ = Σ_a (SQUARE_AT_a θ + CUBE_a (λ − c_a)⁺), θ = θ(λ − c_a).
    """
    bends, weight, scale = units.bends, units.a[i], units.scale[i]
    for b in range(bends.shape[1]):
        first, third = bends[SQUARE, b], 2.0 * bends[CUBE, b] * weight
        second = 2.0 * (bends[SQUARE_AT, b] * weight + first * others)
        for n in range(count):
            lifted = units.above[i, b, n] * units.cdf[i, b, n] + scale * units.density[i, b, n]
            inner = (first * units.target[n] - second) * units.cdf[i, b, n] - third * lifted
            units.total[i, i] += units.factor[n] * inner


@without_references
def add_pair(units: Units, others: float, i: int, j: int, count: int) -> None:
    """Add the terms of students i and j alone to Var_ij, Var_ii and Var_jj."""
    bends, a, rho, s, t = units.bends, units.a, units.rho[i, j], units.scale[i], units.scale[j]
    both, density_one, density_other, total = units.room[0], units.room[1], units.room[2], units.total
    for b in range(bends.shape[1]):
        for c in range(bends.shape[1]):
            h, g = units.h[i, b], units.h[j, c]
            for n in range(count):
                both[n] = units.cdf[i, b, n] * units.cdf[j, c, n]
            add_arc(h, g, rho, count, both)
            fill_given(g, h, rho, count, units.room[3], density_one)
            fill_given(h, g, rho, count, units.room[3], density_other)
            # θ_i θ_j has the factor `jumps` in σ'_i σ'_j, and `steps` in σ'_i σ'_j f; first and second are those of
            # (λ_i − c)⁺ in a_i σ'_i σ_i and of (λ_j − c)⁺ in a_j σ'_j σ_j
            jumps, first, second = bends[JUMP, b] * bends[JUMP, c], a[i] * bends[SQUARE, b], a[j] * bends[SQUARE, c]
            steps = a[i] * bends[JUMP, c] * bends[AT, b] + a[j] * bends[JUMP, b] * bends[AT, c] + others * jumps
            for n in range(count):
                # φ of one field at its knot times Φ of the other one there
                edge_i, edge_j = units.density[i, b, n] * density_one[n], units.density[j, c, n] * density_other[n]
                lifted_i = units.above[i, b, n] * both[n] + s * (edge_i + rho * edge_j)
                lifted_j = units.above[j, c, n] * both[n] + t * (edge_j + rho * edge_i)
                lifted = first * bends[JUMP, c] * lifted_i + second * bends[JUMP, b] * lifted_j
                inner = (jumps * units.target[n] - 2.0 * steps) * both[n] - 2.0 * lifted
                total[i, j] += units.factor[n] * inner
                total[i, i] -= 2.0 * units.factor[n] * a[j] * bends[SQUARE, b] * bends[JUMP, c] * lifted_j
                total[j, j] -= 2.0 * units.factor[n] * a[i] * bends[SQUARE, c] * bends[JUMP, b] * lifted_i


@without_references
def fill_octants(units: Units, order: Group, knots: Group, count: int, out: Array) -> None:
    """Fill Φ_3 of students (x, y, z) and knots: best with the strongest correlation between y and z."""
    (x, y, z), (b, c, e) = order, knots
    h, g, f = units.h[x, b], units.h[y, c], units.h[z, e]
    xy, xz, yz = units.rho[x, y], units.rho[x, z], units.rho[y, z]
    for n in range(count):
        out[n] = units.cdf[y, c, n] * units.cdf[z, e, n]
    add_arc(g, f, yz, count, out)
    for n in range(count):
        out[n] *= units.cdf[x, b, n]
    # the variance of x given y and z at t = 1: on this scale the derivative changes there, if it is small
    least_share = max(1.0 - xy * xy - xz * xz - yz * yz + 2.0 * xy * xz * yz, 0.0) / rho_bar(yz) ** 2
    # panels of t from `begin` to 1 − remaining
    begin, remaining = 0.0, 1.0
    for panel in range(PANELS):
        remaining = remaining / RATIO if remaining > 0.5 * least_share and panel < PANELS - 1 else 0.0
        for q in range(len(ARC)):
            t = begin + (1.0 - remaining - begin) * ARC[q]
            share = (1.0 - remaining - begin) * ARC_WEIGHTS[q] / (2.0 * math.pi)
            add_plackett(share * xy, (h, g, f), (t * xy, t * xz, yz), count, units.room, out)
            add_plackett(share * xz, (h, f, g), (t * xz, t * xy, yz), count, units.room, out)
        begin = 1.0 - remaining
        if remaining == 0.0:
            break


@without_references
def fill_edge(units: Units, order: Group, knots: Group, count: int, out: Array) -> None:
    """Fill out with φ(h_x) Φ_2(y, z | x at its knot), of the students `order` = (x, y, z) and their knots."""
    (x, y, z), (b, c, e), room = order, knots, units.room
    xy, xz, yz = units.rho[x, y], units.rho[x, z], units.rho[y, z]
    partial = max(min((yz - xy * xz) / (rho_bar(xy) * rho_bar(xz)), 1.0), -1.0)
    # rows 4 and 5: the fields of y and z given x at its knot; row 6: Φ of the latter
    fill_given(units.h[y, c], units.h[x, b], xy, count, room[4], out)
    fill_given(units.h[z, e], units.h[x, b], xz, count, room[5], room[6])
    for n in range(count):
        out[n] *= room[6, n]
    add_arc(room[4], room[5], partial, count, out)
    for n in range(count):
        out[n] *= units.density[x, b, n]


@without_references
def add_triple(units: Units, order: Group, count: int) -> None:
    """Add the terms with one of three students i > j > l in f to the variances of the two others."""
    (i, j, l), rho, octant, edges = order, units.rho, units.room[0], units.room[1:4]  # noqa: E741
    # the student that comes first in Φ_3: the two others have the strongest correlation
    lead, jumps = 2, units.bends[JUMP]
    if abs(rho[j, l]) >= max(abs(rho[i, j]), abs(rho[i, l])):
        lead = 0
    elif abs(rho[i, l]) >= abs(rho[i, j]):
        lead = 1
    # with each of the three in f, in closed form, for all knots of the three
    for b in range(len(jumps)):
        for c in range(len(jumps)):
            for e in range(len(jumps)):
                orders = ((i, j, l), (b, c, e)), ((j, i, l), (c, b, e)), ((l, i, j), (e, b, c))
                for m in range(3):
                    fill_edge(units, orders[m][0], orders[m][1], count, edges[m])
                fill_octants(units, orders[lead][0], orders[lead][1], count, octant)
                for m in range(3):
                    (x, y, z), (knot, _, _) = orders[m]
                    # D_y and D_z
                    first, second = edges[1 if m == 0 else 0], edges[1 if m == 2 else 2]
                    share = -2.0 * jumps[b] * jumps[c] * jumps[e] * units.a[x]
                    for n in range(count):
                        parts = edges[m, n] + rho[x, y] * first[n] + rho[x, z] * second[n]
                        lifted = units.above[x, knot, n] * octant[n] + units.scale[x] * parts
                        units.total[y, z] += share * units.factor[n] * lifted


@without_references
def is_chosen(narrow: NDArray[np.bool_], group: Group, i: int, j: int, l: int) -> bool:  # noqa: E741
    """Whether the terms of students i, j, l belong to a group: it is (i, j, l) or, for `NOT_NARROW`, none is narrow."""
    if group[0] < 0:
        return not (narrow[i] or narrow[j] or narrow[l])
    return bool(group[0] == i and group[1] == j and group[2] == l)


@without_references
def drop_nodes(units: Units, group: Group, A: Array, lines: Lines) -> None:
    """Leave out nodes of the present line at which a slope of the group is zero: terms are products of slopes."""
    last, count = A.shape[1] - 1, 0
    for n in range(lines.sizes[last]):
        active = True
        for m in group:
            mean = along_line(A, m, lines) + A[m, last] * lines.x[last, n]
            active = active and mean - units.bends[KNOT, 0] > -FAR * units.scale[m]
        if active:
            lines.x[last, count], lines.weight[last, count] = lines.x[last, n], lines.weight[last, n]
            count += 1
    lines.sizes[last] = count


@inlined
def add_group(system: System, rules: Rules, factors: Any, narrow: Any, group: Group, ends: Any, total: Array) -> None:
    """Add the terms of a group at the nodes of lines whose panels end around the bends of the students `ends`.

    factors : L, A and C. narrow (p,) : whose bends are narrow. ends : A_i and √C_ii of those students.
    """
    (L, A, C), pair, (p, k) = factors, system.pair, factors[1].shape
    lines, offset = lines_of(pair, rules, L, pair.most, ends[0], ends[1]), pair.series[0, 0]
    units, fields, all_a = units_of(system, C, lines.x.shape[1], total), np.empty(lines.x.size), 0.0
    for i in range(p):
        all_a += units.a[i]
    while next_line(pair, rules, L, lines):
        if group[0] >= 0:
            drop_nodes(units, group, A, lines)
        count = fill_line(L, lines, units.weight, fields)
        pair.ridge_value(k, fields[: k * count], units.target[:count])
        for n in range(count):
            units.factor[n] = units.weight[n] * units.target[n]
        for i in range(p):
            if group[0] < 0 or i == group[0] or i == group[1] or i == group[2]:
                fill_units(units, i, along_line(A, i, lines), A[i, k - 1], lines.x[k - 1], count)
        for i in range(p):
            if is_chosen(narrow, group, i, i, i):
                add_single(units, offset * (all_a - units.a[i]), i, count)
            for j in range(i):
                if is_chosen(narrow, group, i, j, j):
                    add_pair(units, offset * (all_a - units.a[i] - units.a[j]), i, j, count)
                for l in range(j):  # noqa: E741
                    if is_chosen(narrow, group, i, j, l):
                        add_triple(units, (i, j, l), count)


@inlined
def add_narrow_group(system: System, rules: Rules, factors: Any, narrow: Any, group: Group, total: Array) -> None:
    """Add the terms of a group in panels around bends of its narrow students, z turned to the first of these."""
    (L, A, C), (p, k), count, first = factors, factors[1].shape, 0, group[0]
    # backwards: the last one found is the first of the group
    for at in range(2, -1, -1):
        first = group[at] if narrow[group[at]] else first
    turned, rows, students, scales = np.empty((k, k)), np.empty((p, k)), np.empty((3, k)), np.empty(3)
    turns = can_turn(system.pair, k)
    fill_turned(L, A[first], turns, turned)
    fill_turned(A, A[first], turns, rows)
    for at in range(3):
        m = group[at]
        # students that are the same have one place
        if narrow[m] and (at == 0 or m != group[at - 1]):
            for s in range(k):
                students[count, s] = rows[m, s]
            scales[count], count = math.sqrt(C[m, m]), count + 1
    add_group(system, rules, (turned, rows, C), narrow, group, (students[:count], scales[:count]), total)


@inlined
def add_hinge_variance(system: System, rules: Rules, L: Array, A: Array, C: Array, total: Array) -> None:
    """Add the sums for all pairs j ≤ i to total (p, p): of students that are not narrow, then by narrow groups."""
    (p, k), pair = A.shape, system.pair
    narrow, ends = np.empty(p, np.bool_), (np.empty((0, k)), np.empty(0))
    step = lines_of(pair, rules, L, pair.most, ends[0], ends[1]).step
    for i in range(p):
        narrow[i] = is_narrow(pair, A[i], math.sqrt(C[i, i]), step)
    add_group(system, rules, (L, A, C), narrow, NOT_NARROW, ends, total)
    for i in range(p):
        for j in range(i + 1):
            for l in range(j + 1):  # noqa: E741
                # (i, i, l) with l < i would be the pair (i, l, l) again
                if (narrow[i] or narrow[j] or narrow[l]) and (j < i or l == i):
                    add_narrow_group(system, rules, (L, A, C), narrow, (i, j, l), total)
