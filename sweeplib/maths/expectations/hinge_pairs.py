"""Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]) of students that are sums of hinges, in closed form given λ*.

With S the slope of σ, σ'² = Σ_a r_a θ(λ − c_a) and σ'σ = Σ_a (κ_a σ(c_a) θ(λ − c_a) + r_a (λ − c_a)⁺), r the jumps of S²,
and the like for σ'²σ. Given λ*, with h_i = (μ_i − c)/s_i, ρ the correlation of two fields and ρ̄² = 1 − ρ²,

E'[θ_i θ_j] = Φ_2(h_i, h_j; ρ),
E'[(λ_i − c)⁺ θ_j] = (μ_i − c) Φ_2 + s_i (φ(h_i) Φ((h_j − ρ h_i)/ρ̄) + ρ φ(h_j) Φ((h_i − ρ h_j)/ρ̄)),

and with the orthant probability Φ_3 of three fields and D_m = φ(h_m) Φ_2(the others | λ_m = c_m), by parts,
E'[(λ_i − c)⁺ θ_j θ_l] = (μ_i − c) Φ_3 + s_i (D_i + ρ_ij D_j + ρ_il D_l).

Φ_2 is the integral of its density over the angle of ρ, in the panels of `hinges`; Φ_3 that of its derivative along the
correlations t ρ_xy, t ρ_xz (Plackett 1954; Genz, Stat. Comput. 14, 251 (2004)), in panels towards t = 1. Errors are below
10⁻¹¹. Terms of one student, of two and of three have nodes of their own where bends are narrow.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.expectations import gauss
from sweeplib.maths.expectations.hinges import NARROWEST, PANELS, RATIO, WEAK, WIDEST, has_part
from sweeplib.maths.expectations.lines import (
    along_line,
    can_turn,
    fill_line,
    fill_turned,
    is_narrow,
    lines_of,
    next_line,
)
from sweeplib.maths.expectations.nodes import Rules
from sweeplib.maths.expectations.system import System
from sweeplib.numerics.compiled import inlined, without_references
from sweeplib.numerics.elementary import error_function, exponential

Array = np.ndarray[Any, np.dtype[np.float64]]

ARC, ARC_WEIGHTS = gauss.legendre(12)
CHORD, CHORD_WEIGHTS = gauss.legendre(7)
FARTHEST = 50.0
"""Larger h count as this one."""
LEAST_RHO_BAR = 1e-9
"""Fields of a smaller ρ̄ are one."""
NODES_PANELS = 20
"""The most panels of Φ_3."""
ROOT_HALF, DENSITY = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
ROWS = 8


class Bends(NamedTuple):
    """The knots c (J,) of a sum of hinges, and the jumps and values there that the products of σ and σ' need.

    jump, at : κ and κ σ(c), of σ' and the steps of σ'σ.
    square, square_at, cube : the jumps of S², those times σ(c), and the jumps of S³.
    """

    knot: Array
    jump: Array
    at: Array
    square: Array
    square_at: Array
    cube: Array


class Units(NamedTuple):
    """Students at the nodes of a line.

    scale (p,), rho (p, p) : √C_ii and the correlations given λ*.
    above, h, cdf, density (p, J, nodes) : μ − c, that over s, and Φ and φ of h.
    """

    scale: Array
    rho: Array
    above: Array
    h: Array
    cdf: Array
    density: Array


@inlined
def bends_of(hinges: Array) -> Bends:
    """The bends of hinges that have a jump."""
    out, count, slope = np.zeros((6, len(hinges) // 2)), 0, 0.0
    for j in range(1, len(hinges), 2):
        knot, jump, value = hinges[j], hinges[j + 1], hinges[0]
        if jump != 0.0:
            for k in range(1, j, 2):
                value += hinges[k + 1] * (knot - hinges[k])
            after = slope + jump
            square = after * after - slope * slope
            out[0, count], out[1, count], out[2, count] = knot, jump, jump * value
            out[3, count], out[4, count] = square, square * value
            out[5, count] = after * after * after - slope * slope * slope
            slope, count = after, count + 1
    return Bends(out[0, :count], out[1, :count], out[2, :count], out[3, :count], out[4, :count], out[5, :count])


@inlined
def units_of(C: Array, knots: int, nodes: int) -> Units:
    """Room for the students, with their scales and correlations."""
    p = len(C)
    scale, rho, room = np.empty(p), np.zeros((p, p)), np.empty((4, p, knots, nodes))
    for i in range(p):
        scale[i] = math.sqrt(C[i, i])
        for j in range(i):
            if scale[i] > 0.0 and scale[j] > 0.0:
                rho[i, j] = rho[j, i] = max(min(C[i, j] / scale[i] / scale[j], 1.0), -1.0)
    return Units(scale, rho, room[0], room[1], room[2], room[3])


@without_references
def fill_units(bends: Bends, units: Units, i: int, centre: float, slope: float, x: Array, count: int) -> None:
    """Fill those of student i, of the mean centre + slope x at the nodes."""
    scale = units.scale[i]
    for a in range(len(bends.knot)):
        above, h = units.above[i, a], units.h[i, a]
        for n in range(count):
            above[n] = centre + slope * x[n] - bends.knot[a]
        for n in range(count):
            ratio = above[n] / scale if scale > 0.0 else (FARTHEST if above[n] > 0.0 else -FARTHEST)
            h[n] = max(min(ratio, FARTHEST), -FARTHEST)
        fill_normal(h, count, units.cdf[i, a])
        for n in range(count):
            units.density[i, a, n] = DENSITY * exponential(-0.5 * h[n] * h[n])


@without_references
def fill_normal(h: Array, count: int, out: Array) -> None:
    """Fill Φ(h)."""
    for n in range(count):
        out[n] = 0.5 + 0.5 * error_function(ROOT_HALF * h[n])


@without_references
def rho_bar(rho: float) -> float:
    """√(1 − ρ²), not zero."""
    return max(math.sqrt((1.0 - rho) * (1.0 + rho)), LEAST_RHO_BAR)


@without_references
def fill_given(h: Array, g: Array, rho: float, count: int, out: Array) -> None:
    """Fill (h − ρ g)/ρ̄, what h is given the field of g at its knot."""
    bar = rho_bar(rho)
    for n in range(count):
        out[n] = max(min((h[n] - rho * g[n]) / bar, FARTHEST), -FARTHEST)


@without_references
def add_densities(
    share: float, h: Array, g: Array, sign: float, square: float, plus: float, count: int, out: Array
) -> None:
    """Add share exp(−(h ∓ g)²/square ∓ h g/plus)."""
    by_square, by_plus = 1.0 / square, sign / plus
    for n in range(count):
        gap = h[n] - sign * g[n]
        out[n] += share * exponential(-gap * gap * by_square - h[n] * g[n] * by_plus)


@without_references
def add_arc(h: Array, g: Array, rho: float, count: int, out: Array) -> None:
    """Add Φ_2(h, g; ρ) − Φ(h) Φ(g)."""
    if abs(rho) <= WEAK:
        for q in range(len(CHORD)):
            sine = rho * CHORD[q]
            rest = (1.0 - sine) * (1.0 + sine)
            share = rho * CHORD_WEIGHTS[q] / (2.0 * math.pi * math.sqrt(rest))
            add_densities(share, h, g, 1.0, 2.0 * rest, 1.0 + sine, count, out)
        return
    sign = math.copysign(1.0, rho)
    least, end, low = math.acos(abs(rho)), 0.5 * math.pi, WIDEST
    for _ in range(PANELS):
        begin = max(low, least)
        for q in range(len(ARC)):
            psi = begin + (end - begin) * ARC[q]
            share = sign * (end - begin) * ARC_WEIGHTS[q] / (2.0 * math.pi)
            add_densities(share, h, g, sign, 2.0 * math.sin(psi) ** 2, 1.0 + math.cos(psi), count, out)
        if begin <= least:
            break
        end, low = begin, low / RATIO if low > NARROWEST else 0.0


@without_references
def add_single(bends: Bends, units: Units, own: float, others: float, i: int, line: Any, total: Array) -> None:
    """Add the terms of student i alone to Var_ii; own, others : a_i/p, and the offset times Σ a_l/p of the others."""
    weight, target, count = line
    scale = units.scale[i]
    for a in range(len(bends.knot)):
        above, cdf, density = units.above[i, a], units.cdf[i, a], units.density[i, a]
        first, second = bends.square[a], 2.0 * (bends.square_at[a] * own + bends.square[a] * others)
        third = 2.0 * bends.cube[a] * own
        for n in range(count):
            lifted = above[n] * cdf[n] + scale * density[n]
            total[i, i] += weight[n] * target[n] * ((first * target[n] - second) * cdf[n] - third * lifted)


@without_references
def add_pair(
    bends: Bends, units: Units, a: Array, others: float, i: int, j: int, line: Any, room: Array, total: Array
) -> None:
    """Add the terms of students i and j alone, to Var_ij, Var_ii and Var_jj; a, others : a/p, as for `add_single`."""
    weight, target, count = line
    rho, s, t, both = units.rho[i, j], units.scale[i], units.scale[j], room[0]
    for b in range(len(bends.knot)):
        for c in range(len(bends.knot)):
            h, g = units.h[i, b], units.h[j, c]
            for n in range(count):
                both[n] = units.cdf[i, b, n] * units.cdf[j, c, n]
            add_arc(h, g, rho, count, both)
            fill_given(g, h, rho, count, room[3])
            fill_normal(room[3], count, room[1])
            fill_given(h, g, rho, count, room[3])
            fill_normal(room[3], count, room[2])
            for n in range(count):
                room[1, n] *= units.density[i, b, n]
                room[2, n] *= units.density[j, c, n]
            jumps = bends.jump[b] * bends.jump[c]
            steps = 2.0 * (a[i] * bends.jump[c] * bends.at[b] + a[j] * bends.jump[b] * bends.at[c] + others * jumps)
            first, second = bends.jump[c] * bends.square[b], bends.jump[b] * bends.square[c]
            for n in range(count):
                mine = units.above[i, b, n] * both[n] + s * (room[1, n] + rho * room[2, n])
                theirs = units.above[j, c, n] * both[n] + t * (room[2, n] + rho * room[1, n])
                factor = weight[n] * target[n]
                lifted = a[i] * first * mine + a[j] * second * theirs
                total[i, j] += factor * ((jumps * target[n] - steps) * both[n] - 2.0 * lifted)
                total[i, i] -= 2.0 * factor * a[j] * first * theirs
                total[j, j] -= 2.0 * factor * a[i] * second * mine


@without_references
def add_octants(units: Units, order: Any, knots: Any, count: int, room: Array, out: Array) -> None:
    """Fill Φ_3 of the students x, y, z in this order: best with the strongest correlation between y and z."""
    (x, y, z), (a, b, c) = order, knots
    h, g, f = units.h[x, a], units.h[y, b], units.h[z, c]
    xy, xz, yz = units.rho[x, y], units.rho[x, z], units.rho[y, z]
    for n in range(count):
        out[n] = units.cdf[y, b, n] * units.cdf[z, c, n]
    add_arc(g, f, yz, count, out)
    for n in range(count):
        out[n] *= units.cdf[x, a, n]
    rest = max(1.0 - xy * xy - xz * xz - yz * yz + 2.0 * xy * xz * yz, 0.0) / max((1.0 - yz) * (1.0 + yz), 1e-14)
    begin, left = 0.0, 1.0
    for panel in range(NODES_PANELS):
        left = left / RATIO if left > 0.5 * rest and panel < NODES_PANELS - 1 else 0.0
        end = 1.0 - left
        for q in range(len(ARC)):
            t = begin + (end - begin) * ARC[q]
            share = (end - begin) * ARC_WEIGHTS[q] / (2.0 * math.pi)
            add_plackett(share, h, g, f, (xy, t), (xz, t), yz, count, room, out)
            add_plackett(share, h, f, g, (xz, t), (xy, t), yz, count, room, out)
        if left == 0.0:
            break
        begin = end


@without_references
def add_plackett(
    share: float, h: Array, g: Array, f: Array, near: Any, far: Any, yz: float, count: int, room: Array, out: Array
) -> None:
    """Add share ρ_xy ∂Φ_3/∂ρ_xy at the correlations t ρ_xy, t ρ_xz of the pairs (ρ, t), and ρ_yz."""
    xy, xz = near[0] * near[1], far[0] * far[1]
    rest = max((1.0 - xy) * (1.0 + xy), LEAST_RHO_BAR**2)
    det = max(1.0 - xy * xy - xz * xz - yz * yz + 2.0 * xy * xz * yz, LEAST_RHO_BAR**2)
    by, first, second = 1.0 / math.sqrt(rest * det), xz - yz * xy, yz - xz * xy
    for n in range(count):
        room[0, n] = (f[n] * rest - h[n] * first - g[n] * second) * by
    fill_normal(room[0], count, room[1])
    share, half = share * near[0] / math.sqrt(rest), 0.5 / rest
    for n in range(count):
        square = h[n] * h[n] + g[n] * g[n] - 2.0 * xy * h[n] * g[n]
        out[n] += share * room[1, n] * exponential(-half * square)


@without_references
def fill_edge(units: Units, order: Any, knots: Any, count: int, room: Array, out: Array) -> None:
    """Fill φ(h_x) Φ_2(y, z | x at its knot)."""
    (x, y, z), (a, b, c) = order, knots
    xy, xz, yz = units.rho[x, y], units.rho[x, z], units.rho[y, z]
    partial = (yz - xy * xz) / (rho_bar(xy) * rho_bar(xz))
    fill_given(units.h[y, b], units.h[x, a], xy, count, room[0])
    fill_given(units.h[z, c], units.h[x, a], xz, count, room[1])
    fill_normal(room[0], count, out)
    fill_normal(room[1], count, room[2])
    for n in range(count):
        out[n] *= room[2, n]
    add_arc(room[0], room[1], max(min(partial, 1.0), -1.0), count, out)
    for n in range(count):
        out[n] *= units.density[x, a, n]


@without_references
def add_triple(
    bends: Bends,
    units: Units,
    a: Array,
    i: int,
    j: int,
    l: int,
    line: Any,
    room: Array,
    total: Array,
) -> None:
    """Add the terms with one of three students in f to the variances of the two others."""
    weight, target, count = line
    rho, octant, edges, work = units.rho, room[0], room[1:4], room[4:]
    lead = 2
    if abs(rho[j, l]) >= max(abs(rho[i, j]), abs(rho[i, l])):
        lead = 0
    elif abs(rho[i, l]) >= abs(rho[i, j]):
        lead = 1
    for b in range(len(bends.knot)):
        for c in range(len(bends.knot)):
            for e in range(len(bends.knot)):
                orders = ((i, j, l), (b, c, e)), ((j, i, l), (c, b, e)), ((l, i, j), (e, b, c))
                for m in range(3):
                    fill_edge(units, orders[m][0], orders[m][1], count, work, edges[m])
                add_octants(units, orders[lead][0], orders[lead][1], count, work, octant)
                share = -2.0 * bends.jump[b] * bends.jump[c] * bends.jump[e]
                for m in range(3):
                    (x, y, z), (own, _, _) = orders[m]
                    xy, xz = rho[x, y], rho[x, z]
                    first, second = (1 if m == 0 else 0), (1 if m == 2 else 2)
                    factor = share * a[x]
                    for n in range(count):
                        parts = edges[m, n] + xy * edges[first, n] + xz * edges[second, n]
                        lifted = units.above[x, own, n] * octant[n] + units.scale[x] * parts
                        total[max(y, z), min(y, z)] += factor * weight[n] * target[n] * lifted


@without_references
def is_chosen(narrow: NDArray[np.bool_], group: Any, i: int, j: int, l: int) -> bool:  # noqa: E741
    """Whether terms of these students are summed: of that group or, for a negative one, of any that is not narrow."""
    if group[0] < 0:
        return not (narrow[i] or narrow[j] or narrow[l])
    return bool(group[0] == i and group[1] == j and group[2] == l)


@inlined
def add_groups(system: System, rules: Rules, factors: Any, narrow: Any, group: Any, ends: Any, total: Array) -> None:
    """Add the terms of a group, or of all that are not narrow, at the nodes of lines with these ends of panels."""
    (L, A, C), pair, offset = factors, system.pair, system.pair.series[0, 0]
    (p, k), bends = A.shape, bends_of(pair.series[0])
    lines = lines_of(pair, rules, L, pair.most, ends[0], ends[1])
    size, a, all_a = lines.x.shape[1], system.a / len(A), 0.0
    units, room = units_of(C, len(bends.knot), size), np.empty((ROWS, size))
    weight, fields, target = np.empty(size), np.empty(lines.x.size), np.empty(size)
    for i in range(p):
        all_a += a[i]
    while next_line(pair, rules, L, lines):
        count = fill_line(L, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        line = weight, target, count
        for i in range(p):
            if group[0] < 0 or group[0] == i or group[1] == i or group[2] == i:
                fill_units(bends, units, i, along_line(A, i, lines), A[i, k - 1], lines.x[k - 1], count)
        for i in range(p):
            if is_chosen(narrow, group, i, i, i):
                add_single(bends, units, a[i], offset * (all_a - a[i]), i, line, total)
            for j in range(i):
                if is_chosen(narrow, group, i, j, j):
                    add_pair(bends, units, a, offset * (all_a - a[i] - a[j]), i, j, line, room, total)
                for l in range(j):  # noqa: E741
                    if is_chosen(narrow, group, i, j, l):
                        add_triple(bends, units, a, i, j, l, line, room, total)


@inlined
def add_narrow_group(system: System, rules: Rules, factors: Any, narrow: Any, group: Any, total: Array) -> None:
    """Add the terms of a group in panels around the bends of its narrow students, z turned to the narrowest."""
    (L, A, C), k, count = factors, len(factors[0]), 0
    students, scales, first, least = np.empty((3, k)), np.empty(3), 0, math.inf
    for at in range(3):
        m, seen = group[at], at > 0 and group[at] == group[at - 1]
        if narrow[m] and not seen:
            norm = 0.0
            for s in range(k):
                norm = math.hypot(norm, A[m, s])
            if math.sqrt(C[m, m]) < least * norm:
                first, least = m, math.sqrt(C[m, m]) / norm
            count += 1
    turned, rows, spare = L.copy(), A.copy(), np.empty(k)
    if can_turn(system.pair, k):
        fill_turned(L, A[first], turned, spare)
        fill_turned(A, A[first], rows, spare)
        rows[first] = spare
    found = 1
    for at in range(3):
        m, seen = group[at], at > 0 and group[at] == group[at - 1]
        if narrow[m] and not seen:
            place = 0
            if m != first:
                place, found = found, found + 1
            students[place], scales[place] = rows[m], math.sqrt(C[m, m])
    ends = students[:count], scales[:count]
    add_groups(system, rules, (turned, rows, C), narrow, group, ends, total)


@inlined
def fill_hinge_variance(system: System, rules: Rules, L: Array, A: Array, C: Array, total: Array) -> None:
    """Fill the sums of all pairs, j ≤ i."""
    (p, k), pair = A.shape, system.pair
    narrow, nothing = np.empty(p, np.bool_), (np.empty((0, k)), np.empty(0))
    lines = lines_of(pair, rules, L, pair.most, nothing[0], nothing[1])
    total[:] = 0.0
    for i in range(p):
        narrow[i] = has_part(pair.series[0]) and is_narrow(pair, A[i], math.sqrt(C[i, i]), lines.step)
    add_groups(system, rules, (L, A, C), narrow, (-1, -1, -1), nothing, total)
    for i in range(p):
        for j in range(i + 1):
            for l in range(j + 1):  # noqa: E741
                if (narrow[i] or narrow[j] or narrow[l]) and (j < i or l == i):
                    add_narrow_group(system, rules, (L, A, C), narrow, (i, j, l), total)
