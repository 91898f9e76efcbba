"""E[σ'_i σ'_j (Δ + (Σ_m b_m σ_m)²)], by the second moment of the sum given z_i and z_j.

z_m = first_m u_1 + second_m u_2 + s_m g_m with z_i along u_1, z_j in the plane of u, and g ~ N(0, ρ). Functions are
sums of a smooth part and of hinges (`parts`): f_m is a part, τ_m a smooth one. Parts with s_m = 0 are known in the
plane, E[τ_m | u] and E[τ_m² | u] of others are tabulated over their mean μ_m, and
E[τ_m f_n | u] = E[τ_m(μ_m + s_m x) T_n(μ_n + ρ s_n x)], x ~ N(0, 1), where T_n, the mean of f_n over what z_n has
beyond, is tabulated too or in closed form, as everything about two hinges.

Nodes of u and x are equally spaced; at kinks, and bends too narrow for that, they are in panels that end there.
Functions have these arguments: `pair`, what rules know of the activations; `law`, `tables`, `room`; m and q, numbers of
parts; `at`, the number of a node of u_2; `limit`, where nodes end; `rule`, Gauss's for panels; `axis`, the nodes to
fill; hinges (1 + 2J,), an offset, then knots and jumps.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.grids import WIDEST, reach, usable_step
from sweeplib.networks.maths.expectations.hinges import hinge_mean, hinge_product, hinge_square
from sweeplib.networks.maths.expectations.nodes import rules_of
from sweeplib.networks.maths.expectations.parts import PIECES, Parts, bends, longest_of, step_of
from sweeplib.networks.maths.expectations.plane import Axis, axis_of, components, fill_between, fill_equal
from sweeplib.networks.maths.expectations.products import fill_rest
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.maths.expectations.tables import INTERPOLATED, Tables, interpolation, tables_of, tabulated
from sweeplib.networks.numerics.compiled import inlined, without_references

Numbers = NDArray[np.int64]
"""An array of whole numbers."""

USUAL_REACH, NEARER = reach(0), 1.3
"""Where nodes of students that are no polynomials end, and how much nearer here: beyond is a part of 10⁻¹²."""
COLLINEAR = 1e-13
"""Residual fields are collinear if 1 − |ρ| is less."""
LEAST, LEAST_OF_POLYNOMIALS = 1e-15, 1e-40
"""The least weight of a node; of polynomials, whose moments are large where weights are small."""


class Law(NamedTuple):
    """Two fields z_i and z_j, and what n parts are given them.

    first, second (fields,) : covariances of all fields with u_1 and u_2.
    scale (n,), rho (n, n) : s and ρ of the parts given u.
    along, beyond (n, n) : of T_n(μ_n + along x), and what z_n has beyond.
    steps (2,) : the steps in u_1 and in u_2.
    step, stride (n, n) : of pairs of parts, the step in x, and how many points of the table it is.
    density (n², nodes) : of pairs, the weights of nodes of x from zero on.
    """

    first: Array
    second: Array
    scale: Array
    rho: Array
    along: Array
    beyond: Array
    steps: Array
    step: Array
    stride: Numbers
    density: Array


@inlined
def givens(parts: Parts, size: int, side: int) -> Law:
    """A `Law` to be filled, of these parts, `size` fields, and `side` nodes on each side of zero."""
    n = len(parts.field)
    first, second, scale, steps = np.empty(size), np.empty(size), np.empty(n), np.empty(2)
    rho, along, beyond, step = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    stride, density = np.zeros((n, n), np.int64), np.empty((n * n, side + 1))
    return Law(first, second, scale, rho, along, beyond, steps, step, stride, density)


class Room(NamedTuple):
    """Work arrays: the nodes u_1, u_2 and x, in `first`, `second` and `inner`.

    mean (n, nodes) : μ_m of the parts at nodes of u_2.
    work (4, nodes) : arguments, values and weights; last, at nodes of u_2, the sum of the parts that are known there.
    hinges (2, 1 + 2 knots) : two rows of hinges.
    """

    first: Axis
    second: Axis
    inner: Axis
    mean: Array
    work: Array
    hinges: Array


@inlined
def room_of(pair: Pair, n: int) -> Room:
    """Work arrays for n parts, given two fields."""
    knots = pair.series.shape[1] // 2
    nodes = rules_of(pair.nodes).plane.shape[1]
    axes = axis_of(n * knots, PIECES, nodes), axis_of(n * knots, PIECES, nodes), axis_of(2 * knots, PIECES, nodes)
    size = len(axes[0].x)
    return Room(axes[0], axes[1], axes[2], np.empty((n, size)), np.empty((4, size)), np.empty((2, 1 + 2 * knots)))


@without_references
def fill_given(pair: Pair, parts: Parts, omega: Array, i: int, j: int, law: Law) -> None:
    """Fill the law of all parts given fields i and j; omega (fields, fields) is the covariance.

    A scale is zero if the variance is zero up to rounding.
    """
    first, second, scale, field, n = (law.first, law.second, law.scale, parts.field, len(parts.field))
    components(omega, i, j, first, second)
    law.steps[0] = law.steps[1] = WIDEST
    for m in range(n):
        f = field[m]
        variance = omega[f, f] - first[f] * first[f] - second[f] * second[f]
        scale[m] = 0.0 if variance < 1e-14 * omega[f, f] or f in (i, j) else math.sqrt(variance)
        # seen from u_1, what a part has along u_2 and beyond is averaged
        law.steps[0] = min(law.steps[0], step_of(pair, parts, m, math.hypot(scale[m], second[f]), first[f]))
        law.steps[1] = min(law.steps[1], step_of(pair, parts, m, scale[m], second[f]))
    for m in range(n):
        for q in range(n):
            covariance = omega[field[m], field[q]] - first[field[m]] * first[field[q]]
            covariance -= second[field[m]] * second[field[q]]
            bound = scale[m] * scale[q]
            rho = 0.0 if bound == 0.0 else max(min(covariance / scale[m] / scale[q], 1.0), -1.0)
            law.rho[m, q] = math.copysign(1.0, rho) if 1.0 - abs(rho) < COLLINEAR else rho
            law.along[m, q] = law.rho[m, q] * scale[q]
            law.beyond[m, q] = scale[q] * math.sqrt(1.0 - law.rho[m, q] * law.rho[m, q])
            step = min(
                step_of(pair, parts, m, 0.0, scale[m]), step_of(pair, parts, q, law.beyond[m, q], law.along[m, q])
            )
            law.step[m, q] = usable_step(pair.reach, step, pair.side)
    for at in range(2):
        law.steps[at] = usable_step(pair.reach, law.steps[at], pair.side)


@inlined
def fill_tables(pair: Pair, parts: Parts, omega: Array, law: Law) -> Tables:
    """The means and mean squares of the smooth parts, and T_q of pairs m, q, at points that fit the nodes of x.

    Row m n + q is that of the pair; law.density and law.stride are filled too. omega (fields, fields) : the covariance.
    """
    n = len(parts.field)
    # rows with the number −1 have no table
    numbers, spreads, scales, units = np.full(n * n, -1), np.zeros(n * n), np.zeros(n * n), np.zeros(n * n)
    for m in range(n):
        for q in range(n):
            row, f, smooth = m * n + q, parts.field[q], parts.hinged[m] + parts.hinged[q] == 0
            if smooth and q >= m and law.scale[m] > 0.0 and law.scale[q] > 0.0:
                numbers[row], scales[row] = parts.number[q], law.beyond[m, q] if m != q else law.scale[m]
                spreads[row] = math.sqrt(max(omega[f, f] - scales[row] * scales[row], 0.0))
                units[row] = abs(law.along[m, q]) * law.step[m, q] if m != q else 0.0
            if parts.hinged[m] == 0 and (parts.hinged[q] == 1 or q > m):
                for r in range(int(pair.reach / law.step[m, q]) + 1):
                    x = r * law.step[m, q]
                    law.density[row, r] = law.step[m, q] * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    tables = tables_of(pair, numbers, spreads, scales, units, 2)
    for m in range(n):
        for q in range(m + 1, n):
            points = law.along[m, q] * law.step[m, q] / tables.step[m * n + q]
            law.stride[m, q] = round(points) if abs(points) > 0.5 else 0
    return tables


@without_references
def fill_first(pair: Pair, rule: Array, parts: Parts, law: Law, limit: float, axis: Axis) -> int:
    """Fill the nodes u_1 within ±limit, in panels of `rule` where a part has narrow bends; return their number."""
    count, longest = 0, longest_of(law.steps[0])
    for m in range(len(parts.field)):
        f = parts.field[m]
        width = math.hypot(law.scale[m], law.second[f])
        count = bends(pair, parts, m, 0.0, law.first[f], width, longest, limit, axis, count)
    if count == 0:
        return fill_equal(axis, law.steps[0], limit)
    return fill_between(axis, count, rule, longest, limit)


@without_references
def fill_second(pair: Pair, rule: Array, parts: Parts, law: Law, u: float, limit: float, axis: Axis) -> int:
    """Fill the nodes u_2 within ±limit at u_1 = u, in panels of `rule` where a part has narrow bends.

    Return their number.
    """
    count, longest = 0, longest_of(law.steps[1])
    for m in range(len(parts.field)):
        f = parts.field[m]
        count = bends(pair, parts, m, law.first[f] * u, law.second[f], law.scale[m], longest, limit, axis, count)
    if count == 0:
        return fill_equal(axis, law.steps[1], limit)
    return fill_between(axis, count, rule, longest, limit)


@without_references
def tabulated_product(tables: Tables, law: Law, m: int, q: int, mean: float, value: Array, share: Array) -> float:
    """The mean E[τ_m τ_q | u] at the mean μ_q `mean`, from the values of τ_m at the nodes x.

    share : a work array, for weights of interpolation.
    """
    row, half, total = m * len(law.scale) + q, len(value) // 2, 0.0
    for r in range(len(value)):
        place = mean + law.along[m, q] * law.step[m, q] * (r - half)
        total += law.density[row, abs(r - half)] * value[r] * tabulated(tables, row, place, share)
    return total


@without_references
def smooth_product(
    pair: Pair, parts: Parts, law: Law, tables: Tables, m: int, q: int, at: int, limit: float, room: Room
) -> float:
    """The mean E[τ_m τ_q | u] of two smooth parts: the sum over nodes x of τ_m times the table of τ_q.

    Where the distance of two nodes is a whole number of points of the table, the stride, all nodes have the same
    weights of interpolation, so that the products are added first and interpolated once. Where it is none, the stride
    is 0, and each node is interpolated.
    """
    row, count = m * len(parts.field) + q, int(limit / law.step[m, q])
    x, value = room.work[0, : 2 * count + 1], room.work[1, : 2 * count + 1]
    share, sums = room.work[2], room.work[2, INTERPOLATED:]
    for r in range(2 * count + 1):
        x[r] = room.mean[m, at] + law.scale[m] * law.step[m, q] * (r - count)
    fill_rest(pair, parts.number[m], x, value)
    if law.stride[m, q] == 0:
        return tabulated_product(tables, law, m, q, room.mean[q, at], value, share)
    first, stride = interpolation(tables, row, room.mean[q, at], share), law.stride[m, q]
    sums[:INTERPOLATED] = 0.0
    for r in range(2 * count + 1):
        weighed = law.density[row, abs(r - count)] * value[r]
        place = first + (r - count) * stride
        for n in range(INTERPOLATED):
            sums[n] += weighed * tables.values[row, 0, place + n]
    total = 0.0
    for n in range(INTERPOLATED):
        total += share[n] * sums[n]
    return total


@without_references
def bent_product(
    pair: Pair, rule: Array, parts: Parts, law: Law, m: int, q: int, at: int, limit: float, room: Room
) -> float:
    """The mean E[τ_m f_q | u] of a smooth part m and of hinges q, over nodes x within ±limit, in panels of `rule`."""
    step, across, along, axis = law.step[m, q], law.beyond[m, q], law.along[m, q], room.inner
    longest, hinges = longest_of(step), pair.series[parts.number[q]]
    count = bends(pair, parts, q, room.mean[q, at], along, across, longest, limit, axis, 0)
    count = fill_between(axis, count, rule, longest, limit) if count > 0 else fill_equal(axis, step, limit)
    x, value, total = room.work[0, :count], room.work[1, :count], 0.0
    for r in range(count):
        x[r] = room.mean[m, at] + law.scale[m] * axis.x[r]
    fill_rest(pair, parts.number[m], x, value)
    for r in range(count):
        total += axis.weight[r] * value[r] * hinge_mean(hinges, room.mean[q, at] + along * axis.x[r], across)
    return total


@without_references
def shift(hinges: Array, mean: float, out: Array) -> None:
    """Fill out with the hinges of σ(mean + z) as a function of z: knots move by −mean."""
    for j in range(len(hinges)):
        out[j] = hinges[j] - (mean if j % 2 == 1 else 0.0)


@without_references
def product_given(
    pair: Pair,
    rule: Array,
    parts: Parts,
    law: Law,
    tables: Tables,
    m: int,
    q: int,
    at: int,
    limit: float,
    room: Room,
) -> float:
    """The mean E[f_m f_q | u] of two parts, over nodes x within ±limit where it has no closed form."""
    if parts.hinged[m] + parts.hinged[q] == 0:
        return smooth_product(pair, parts, law, tables, m, q, at, limit, room)
    if parts.hinged[m] + parts.hinged[q] == 1:
        smooth, hinged = (m, q) if parts.hinged[m] == 0 else (q, m)
        return bent_product(pair, rule, parts, law, smooth, hinged, at, limit, room)
    hinges_m, hinges_q = room.hinges[0], room.hinges[1]
    shift(pair.series[parts.number[m]], room.mean[m, at], hinges_m)
    shift(pair.series[parts.number[q]], room.mean[q, at], hinges_q)
    covariance = law.rho[m, q] * law.scale[m] * law.scale[q]
    return hinge_product(hinges_m, hinges_q, law.scale[m], law.scale[q], covariance)


@without_references
def own_moments(pair: Pair, parts: Parts, law: Law, tables: Tables, m: int, at: int, room: Room) -> tuple[float, float]:
    """The means E[f_m | u] and E[f_m² | u] of one part m."""
    # the row of the pair of m with itself (`fill_tables`), and room for the weights of interpolation
    mean, row, share = room.mean[m, at], m * (len(parts.field) + 1), room.work[2]
    if parts.hinged[m] == 1:
        hinges = pair.series[parts.number[m]]
        return hinge_mean(hinges, mean, law.scale[m]), hinge_square(hinges, mean, law.scale[m])
    # of this pair the table has the values of E[τ_m | u] first, then those of E[τ_m² | u]
    first, first_moment, square = interpolation(tables, row, mean, share), 0.0, 0.0
    for n in range(INTERPOLATED):
        first_moment += share[n] * tables.values[row, 0, first + n]
        square += share[n] * tables.values[row, 1, first + n]
    return first_moment, square


@without_references
def second_moment(
    pair: Pair, rule: Array, parts: Parts, law: Law, tables: Tables, at: int, limit: float, room: Room
) -> float:
    """The mean E[(Σ_m b_m σ_m)² | u], over nodes x within ±limit."""
    constant, linear, square, weight = room.work[3, at], 0.0, 0.0, parts.weight
    for m in range(len(weight)):
        if law.scale[m] > 0.0:
            first_moment, own_square = own_moments(pair, parts, law, tables, m, at, room)
            linear += weight[m] * first_moment
            square += weight[m] * weight[m] * own_square
            for q in range(m + 1, len(weight)):
                if law.scale[q] > 0.0:
                    product = product_given(pair, rule, parts, law, tables, m, q, at, limit, room)
                    square += 2.0 * weight[m] * weight[q] * product
    return constant * constant + 2.0 * constant * linear + square


@without_references
def fill_plane(pair: Pair, parts: Parts, law: Law, u: float, count: int, room: Room) -> None:
    """Fill room.mean with μ_m of all parts at the first `count` nodes of u_2, and the sum of the parts known there.

    u : the node u_1.
    """
    mean, constant, value = room.mean, room.work[3], room.work[0, :count]
    for q in range(count):
        constant[q] = 0.0
    for m in range(len(parts.field)):
        f = parts.field[m]
        for q in range(count):
            mean[m, q] = law.first[f] * u + law.second[f] * room.second.x[q]
        if law.scale[m] == 0.0 and parts.hinged[m] == 0:
            fill_rest(pair, parts.number[m], mean[m, :count], value)
            for q in range(count):
                constant[q] += parts.weight[m] * value[q]
        elif law.scale[m] == 0.0:
            for q in range(count):
                constant[q] += parts.weight[m] * hinge_mean(pair.series[parts.number[m]], mean[m, q], 0.0)


@inlined
def slopes_at(pair: Pair, scale: float, slope: float, u: float, x: Array, count: int, out: Array) -> None:
    """Fill out with σ' of scale u + slope x at the first `count` nodes x."""
    field = np.empty(count)
    for q in range(count):
        field[q] = scale * u + slope * x[q]
    pair.student_slope(field, out[:count])


@inlined
def variance_mean(pair: Pair, parts: Parts, law: Law, omega: Array, Delta: float, i: int, j: int, room: Room) -> float:
    """The mean E[σ'_i σ'_j (Δ + (Σ_m b_m σ_m)²)] of fields with the covariance omega (fields, fields), Δ `Delta`.

    i, j : numbers of students. law, room : work arrays.
    """
    rule, limit, total, least = rules_of(pair.nodes).plane, pair.reach - NEARER, 0.0, LEAST
    if pair.reach > USUAL_REACH:
        limit, least = pair.reach, LEAST_OF_POLYNOMIALS
    for m in range(len(omega)):
        for q in range(len(omega)):
            total += 0.0 * omega[m, q]
    # 0 times infinity or NaN is NaN: of a network that diverged
    if total != 0.0:
        return total
    fill_given(pair, parts, omega, i, j, law)
    tables = fill_tables(pair, parts, omega, law)
    count, count_second = fill_first(pair, rule, parts, law, limit, room.first), 1
    slope_i, slope_j = np.empty(count), np.empty(len(room.second.x))
    # z_i is along u_1: its slope is known there. Where z_j is too, u_2 has the one node 0
    slopes_at(pair, 0.0, law.first[i], 0.0, room.first.x, count, slope_i)
    room.second.x[0], room.second.weight[0] = 0.0, 1.0
    for r in range(count):
        u, share = room.first.x[r], room.first.weight[r] * slope_i[r]
        if abs(share) < least:
            continue
        # nodes (u_1, u_2, x) are inside a ball
        room_left = limit * limit - u * u
        if law.second[j] != 0.0:
            count_second = fill_second(pair, rule, parts, law, u, math.sqrt(max(room_left, 0.0)), room.second)
        slopes_at(pair, law.first[j], law.second[j], u, room.second.x, count_second, slope_j)
        fill_plane(pair, parts, law, u, count_second, room)
        for q in range(count_second):
            factor, v = share * room.second.weight[q] * slope_j[q], room.second.x[q]
            if abs(factor) >= least:
                inner = math.sqrt(max(room_left - v * v, 0.0))
                moment = second_moment(pair, rule, parts, law, tables, q, inner, room)
                total += factor * (Delta + moment)
    return total
