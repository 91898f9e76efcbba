"""Gaussian means of functions, tabulated at equal distances and interpolated by polynomials of degree seven.

`pair` is what rules know of the activations. A row of a table is a function's, a point a value of μ; share (8,) are
the weights of eight points in a value between.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.grids import WIDEST, usable_step
from sweeplib.networks.maths.expectations.hinges import has_part
from sweeplib.networks.maths.expectations.products import fill_rest, fill_rest_slope, resolved_by
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.numerics.compiled import inlined, without_references

INTERPOLATED, POINTS_A_STEP, MOST_POINTS = 8, 8.0, 10
"""The numbers of points that are interpolated, of points in a step that resolves a mean, and of points above zero for
every node there.
"""
LAGRANGE = tuple((-1.0) ** (7 - j) / (math.factorial(j) * math.factorial(7 - j)) for j in range(INTERPOLATED))
"""The factors 1/Π_{m≠j} (j − m) of Lagrange's polynomials of eight points."""


class Tables(NamedTuple):
    """E[τ], τ of μ + s u, and E[τ²] or, of students, E[τ'] and E[τ' u], u ~ N(0, 1), at equally spaced μ.

    values (rows, kinds, points) : the means; a row has the first `sizes` (rows,) points.
    first, step (rows,) : the first of these, and their distance.
    """

    values: Array
    sizes: NDArray[np.int64]
    first: Array
    step: Array


@inlined
def tables_of(
    pair: Pair, numbers: NDArray[np.int64], spreads: Array, scales: Array, units: Array, kinds: int
) -> Tables:
    """The tables of functions, one a row, at equally spaced μ as far as nodes reach; no points for numbers below 0.

    numbers (rows,) : of the functions. spreads, scales (rows,) : the deviations of μ and of what is averaged.
    units (rows,) : lengths that are to be multiples of the steps, unless they are small.
    kinds : 1, or 2 with the mean of τ², or 3 with those of τ' and τ' u of students.
    """
    count, first, step, most = np.zeros(len(numbers), np.int64), np.zeros(len(numbers)), np.ones(len(numbers)), 0
    for row in range(len(numbers)):
        if numbers[row] >= 0:
            end, width = pair.reach * spreads[row], max(pair.steps[0, numbers[row]], WIDEST * scales[row])
            step[row] = usable_step(end, width / POINTS_A_STEP, MOST_POINTS * pair.side)
            if units[row] > 0.5 * step[row]:
                step[row] = units[row] / math.ceil(units[row] / step[row])
            half = int(end / step[row]) + INTERPOLATED
            count[row], first[row], most = 2 * half + 1, -half * step[row], max(most, 2 * half + 1)
    values = np.empty((len(numbers), kinds, most))
    for row in range(len(numbers)):
        if numbers[row] >= 0:
            fill_table(pair, numbers[row], scales[row], step[row], values[row, :, : count[row]])
    return Tables(values, count, first, step)


@inlined
def fill_table(pair: Pair, number: int, scale: float, step: float, values: Array) -> None:
    """Fill `values` (kinds, points) with the means of function `number` at equally spaced μ around zero.

    scale, step : the deviation of what is averaged, and the distance of points.
    The function is evaluated at the same distance, if nodes of u can be that far apart, else for every μ on its own.
    """
    inner = min(WIDEST, resolved_by(pair.steps[0, number], 0.0, scale))
    inner = usable_step(pair.reach, inner, pair.side)
    nodes_apart, points = int(scale * inner / step), values.shape[1]
    if nodes_apart > 0:
        inner = nodes_apart * step / scale
    count = int(pair.reach / inner) if scale > 0.0 else 0
    means_apart = 1 if nodes_apart > 0 else 2 * count + 1
    nodes_apart = max(nodes_apart, 1)
    # rows: arguments, the function there, and its square or its slope, which the kinds of means are of
    room = np.empty((3, means_apart * (points - 1) + nodes_apart * 2 * count + 1))
    for n in range(room.shape[1]):
        if means_apart == 1:
            room[0, n] = step * (n - points // 2 - nodes_apart * count)
        else:
            room[0, n] = step * (n // means_apart - points // 2) + scale * inner * (n % means_apart - count)
    fill_rest(pair, number, room[0], room[1])
    if len(values) == 2:
        for n in range(room.shape[1]):
            room[2, n] = room[1, n] * room[1, n]
    elif len(values) == 3 and has_part(pair.series[0]):
        fill_rest_slope(pair, room[0], room[2])
    elif len(values) == 3:
        pair.student_slope(room[0], room[2])
    values[:] = 0.0
    for q in range(2 * count + 1):
        u = inner * (q - count)
        share = inner * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi) if count > 0 else 1.0
        for kind in range(len(values)):
            weighed, row = share * (u if kind == 2 else 1.0), min(kind, 1) + 1
            for n in range(points):
                values[kind, n] += weighed * room[row, n * means_apart + q * nodes_apart]


@without_references
def interpolation(tables: Tables, row: int, mean: float, share: Array) -> int:
    """Fill `share` with the weights of eight points in the value of a row at `mean`; return the number of the first."""
    return weights_at((mean - tables.first[row]) / tables.step[row], tables.sizes[row], share)


@without_references
def weights_at(place: float, size: int, share: Array) -> int:
    """Fill `share` with the weights of eight of the points 0 to size − 1 in the value at `place`; return the first."""
    first = min(max(int(place) - INTERPOLATED // 2 + 1, 0), size - INTERPOLATED)
    t, left, right = place - first, 1.0, 1.0
    for j in range(INTERPOLATED):
        share[j] = left * LAGRANGE[j]
        left *= t - j
    for j in range(INTERPOLATED - 1, -1, -1):
        share[j] *= right
        right *= t - j
    return first


@without_references
def tabulated(tables: Tables, row: int, mean: float, share: Array) -> float:
    """The first of the means of a row at `mean`; share (8,) is a work array."""
    first, total = interpolation(tables, row, mean, share), 0.0
    for j in range(INTERPOLATED):
        total += share[j] * tables.values[row, 0, first + j]
    return total
