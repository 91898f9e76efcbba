"""Nodes for functions of two standard Gaussian numbers u: equally spaced, or in panels that end at kinks and bends.

Along an axis nodes are within ±limit; weights have the density φ in them.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import inlined, without_references

NARROWEST = 1e-8
"""A bend of less width is a kink."""
ENDS_OF_A_BEND = 60
"""The most ends of panels around one bend."""


class Axis(NamedTuple):
    """The nodes x (most,) and weights (most,) of one coordinate, and the ends of panels."""

    x: Array
    weight: Array
    ends: Array


@inlined
def axis_of(bends: int, pieces: int, nodes: int) -> Axis:
    """An axis to be filled, with `nodes` nodes in panels that end at so many bends, or in so many pieces."""
    ends = ENDS_OF_A_BEND * bends + 1
    return Axis(np.empty((ends + pieces) * nodes), np.empty((ends + pieces) * nodes), np.empty(ends))


@without_references
def fill_equal(axis: Axis, step: float, limit: float) -> int:
    """Fill an axis with equally spaced nodes in ±limit; return their number."""
    count = int(limit / step)
    for n in range(2 * count + 1):
        u = step * (n - count)
        axis.x[n], axis.weight[n] = u, step * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return 2 * count + 1


@without_references
def add_bend(axis: Axis, count: int, place: float, width: float, longest: float, limit: float) -> int:
    """Add the ends of panels around a bend of this width at `place`, at distances that double; return their number.

    count : the number of ends before. longest, limit : the longest panel, and where nodes end.
    """
    # a wide bend, or one far beyond the nodes, needs no panels of its own
    if not 2.0 * width < longest or not abs(place) < limit + longest:
        return count
    axis.ends[count] = place
    count, distance = count + 1, 2.0 * width if width > NARROWEST else longest
    while distance < longest:
        axis.ends[count], axis.ends[count + 1] = place - distance, place + distance
        count, distance = count + 2, 2.0 * distance
    return count


@without_references
def fill_between(axis: Axis, count: int, rule: Array, longest: float, limit: float) -> int:
    """Fill Gauss-Legendre nodes in panels between ±limit and the first `count` ends; return the number of nodes.

    rule (2, nodes) : of an interval of length one. longest : the longest panel.
    """
    sort(axis.ends, count)
    begin, n, place = -limit, 0, 0
    while begin < limit:
        while place < count and axis.ends[place] <= begin:
            place += 1
        end = min(axis.ends[place], limit) if place < count else limit
        n = fill_interval(rule, begin, end, longest, axis.x, axis.weight, n)
        begin = end
    return n


@without_references
def fill_interval(rule: Array, begin: float, end: float, longest: float, x: Array, weight: Array, count: int) -> int:
    """Add Gauss-Legendre nodes in panels from `begin` to `end` to the first `count`; return the number of all.

    rule (2, nodes) : of an interval of length one. longest : the longest panel. x, weight : nodes, and weights with φ.
    """
    panels = max(1, math.ceil((end - begin) / longest))
    width = (end - begin) / panels
    for panel in range(panels):
        for q in range(rule.shape[1]):
            if count < len(x):
                z = begin + width * (panel + rule[0, q])
                x[count] = z
                weight[count] = width * rule[1, q] * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                count += 1
    return count


@without_references
def sort(numbers: Array, count: int) -> None:
    """Sort the first `count` numbers by insertion."""
    for last in range(1, count):
        number, at = numbers[last], last
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@without_references
def components(omega: Array, i: int, j: int, first: Array, second: Array) -> None:
    """Fill cov(z_m, u_1) and cov(z_m, u_2) of every field m, u_1 along z_i and u_2 along what z_j has beyond.

    omega (fields, fields) : the covariance. first, second (fields,) : to be filled.
    """
    scale = math.sqrt(omega[i, i])
    for m in range(len(first)):
        first[m] = 0.0 if scale == 0.0 else omega[i, m] / scale
    remainder = omega[j, j] - first[j] * first[j]
    beyond = 0.0 if i == j or remainder < 1e-14 * omega[j, j] else math.sqrt(remainder)
    for m in range(len(first)):
        most = math.sqrt(max(omega[m, m] - first[m] * first[m], 0.0))
        slope = 0.0 if beyond == 0.0 else (omega[j, m] - first[j] * first[m]) / beyond
        # rounding must not give a field more variance along two axes than it has
        second[m] = max(min(slope, most), -most)
