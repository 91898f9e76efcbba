"""Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]) of students with kinks that are no sums of hinges.

Given λ*, the students' fields have means μ and the covariance C, E' is the mean, w are weights of nodes of λ*:
λ_i = μ_i + s u_1 and λ_j = μ_j + c u_1 + t u_2. Nodes (u_1, u_2) are in panels that end at the kinks. hinges (1 + 2J,)
are the student's: an offset, then knots and jumps in turn. `system` is the `System`, `rules` are Gauss's rules of its
pair, `pairs` the work arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.hinges import hinge_mean
from sweeplib.networks.maths.expectations.lines import along_line, fill_line, lines_of, next_line
from sweeplib.networks.maths.expectations.nodes import Rules
from sweeplib.networks.maths.expectations.plane import Axis, components, fill_between
from sweeplib.networks.maths.expectations.products import fill_rest
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import inlined, without_references

END, PIECES = 7.0, 2
"""Where nodes of a pair of students with kinks end, and the number of panels without a kink."""
FEWER_FOR_VARIANCE, LEAST_WEIGHT = 8.0, 1e-13
"""For Ψ^Var there are so many times fewer nodes at most, and none of less weight."""


class Pairs(NamedTuple):
    """Work arrays of a pair of students at the nodes (u_1, u_2).

    u, v, weight (nodes²,) : the nodes and their weights.
    slopes (2, nodes²) : σ'_i and σ'_j.
    network (nodes²,) : E'[f | λ_i, λ_j].
    first, second (p,) : covariances of the students with u_1 and u_2.
    field, value (nodes³,) : fields of a student and the values of σ.
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


@inlined
def pairs_of(p: int, rules: Rules, hinges: Array) -> Pairs:
    """Empty work arrays for p students with these hinges."""
    nodes = (len(hinges) // 2 + PIECES) * rules.plane.shape[1]
    grid, students = np.empty((4, nodes * nodes)), np.empty((2, p))
    work, slopes = np.empty((2, nodes * nodes * rules.student.shape[1])), np.empty((2, nodes * nodes))
    return Pairs(grid[0], grid[1], grid[2], slopes, grid[3], students[0], students[1], work[0], work[1])


@inlined
def fill_bent_grid(hinges: Array, rules: Rules, i: int, j: int, mean: Array, in_plane: bool, pairs: Pairs) -> int:
    """Fill nodes in panels that end at the kinks of students i and j, of the means `mean` (p,); return their number.

    in_plane : whether both fields vary independently; otherwise nodes are on a line.
    """
    size = len(pairs.u)
    u_axis = Axis(np.empty(size), np.empty(size), np.empty(len(hinges)))
    v_axis, at = Axis(np.empty(size), np.empty(size), np.empty(size)), 0
    for n in range(fill_pieces(hinges, mean[i], pairs.first[i], rules.plane, u_axis)):
        n_second = 1
        if in_plane:
            mean_given_u = mean[j] + pairs.first[j] * u_axis.x[n]
            n_second = fill_pieces(hinges, mean_given_u, pairs.second[j], rules.plane, v_axis)
        for q in range(n_second):
            pairs.u[at], pairs.v[at] = u_axis.x[n], v_axis.x[q] if in_plane else 0.0
            pairs.weight[at] = u_axis.weight[n] * (v_axis.weight[q] if in_plane else 1.0)
            at += 1
    return at


@without_references
def fill_pieces(hinges: Array, mean: float, scale: float, rule: Array, axis: Axis) -> int:
    """Fill nodes u of an axis in panels that end where mean + scale u is at a kink; return their number."""
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
    """Fill row `side` of pairs.slopes with σ' of student m at the first `count` nodes; mean (p,) : given λ*."""
    for at in range(count):
        pairs.field[at] = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
    system.pair.student_slope(pairs.field[:count], pairs.slopes[side, :count])


@inlined
def fill_network(system: System, hinges: Array, rule: Array, C: Array, count: int, mean: Array, pairs: Pairs) -> None:
    """Fill pairs.network with E'[f | λ_i, λ_j] at the first `count` nodes: an average over what is beyond u_1 and u_2.

    C (p, p), mean (p,) : covariance and mean of the students' fields given λ*. rule (2, nodes) : of N(0, 1).
    """
    # the hinges of σ in closed form, its rest by nodes; σ itself where (u_1, u_2) determine a field, of the scale 0
    pairs.network[:count] = 0.0
    for m in range(len(mean)):
        variance = C[m, m] - pairs.first[m] * pairs.first[m] - pairs.second[m] * pairs.second[m]
        scale = math.sqrt(variance) if variance > 1e-12 * C[m, m] else 0.0
        for at in range(count if scale > 0.0 else 0):
            centre = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
            pairs.network[at] += system.a[m] / len(mean) * hinge_mean(hinges, centre, scale)
        inner = rule.shape[1] if scale > 0.0 else 1
        for at in range(count):
            centre = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
            for q in range(inner):
                pairs.field[at * inner + q] = centre + scale * rule[0, q] if scale > 0.0 else centre
        system.pair.student_value(pairs.field[: count * inner], pairs.value[: count * inner])
        if scale > 0.0:
            fill_rest(system.pair, 0, pairs.field[: count * inner], pairs.value[: count * inner])
        for at in range(count):
            for q in range(inner):
                share = rule[1, q] if scale > 0.0 else 1.0
                pairs.network[at] += system.a[m] / len(mean) * share * pairs.value[at * inner + q]


@inlined
def variance_term(
    system: System, hinges: Array, rules: Rules, C: Array, i: int, j: int, mean: Array, target: float, pairs: Pairs
) -> float:
    """The term f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f] of students i and j at one node of λ*.

    mean (p,), target : the students' means and f* there. C (p, p) : the covariance. pairs : work arrays.
    """
    count = fill_bent_grid(hinges, rules, i, j, mean, i != j and pairs.second[j] != 0.0, pairs)
    fill_slopes(system, count, 0, i, mean, pairs)
    fill_slopes(system, count, 1, j, mean, pairs)
    fill_network(system, hinges, rules.student, C, count, mean, pairs)
    total = 0.0
    for at in range(count):
        share = pairs.weight[at] * pairs.slopes[0, at] * pairs.slopes[1, at]
        total += share * target * (target - 2.0 * pairs.network[at])
    return total


@inlined
def add_kinked_variance(
    system: System, hinges: Array, rules: Rules, L: Array, A: Array, C: Array, total: Array
) -> None:
    """Add w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]), over nodes of λ*, to total (p, p) for all pairs j ≤ i.

    L, A, C : the root of P, the means of students along its fields, and their covariance (p, p) given λ*.
    Nodes are fewer than those of the first moments.
    """
    pair, (p, k), pairs = system.pair, A.shape, pairs_of(len(A), rules, hinges)
    lines = lines_of(pair, rules, L, pair.most / FEWER_FOR_VARIANCE, np.empty((0, k)), np.empty(0))
    weight, fields, target = np.empty(lines.x.shape[1]), np.empty(lines.x.size), np.empty(lines.x.shape[1])
    centre = np.empty(p)
    while next_line(pair, rules, L, lines):
        count = fill_line(L, lines, weight, fields)
        pair.ridge_value(k, fields[: k * count], target[:count])
        for n in range(count):
            for m in range(p):
                centre[m] = along_line(A, m, lines) + A[m, k - 1] * lines.x[k - 1, n]
            for i in range(p if weight[n] > LEAST_WEIGHT else 0):
                for j in range(i + 1):
                    components(C, i, j, pairs.first, pairs.second)
                    total[i, j] += weight[n] * variance_term(system, hinges, rules, C, i, j, centre, target[n], pairs)
