"""Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]) of smooth students, by sums over the means of pairs of students.

Given λ* = L z students' fields are N(A z, C), as in `given_teacher`, E' is the mean given λ*, w are weights of nodes of
λ*. Means given λ* of two students are smooth functions of μ_i and μ_j. Those at the nodes of λ* are interpolated by
polynomials of degree seven between equally spaced ones, so that the sum over nodes, the deposit D = Σ w f* and Σ w f*²
times the weights of the interpolation, is taken once for all functions of a pair. At equally spaced means

E'[g(λ_i) g'(λ_j)] = Σ_u w_u g(μ_i + s u) ĝ'(μ_j + c u),

with λ_j = μ_j + c u + b v, the means ĝ' over v tabulated. Of three students, the first is at nodes u as well.
`rules` are Gauss's rules of the pair.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.grids import WIDEST, usable_step
from sweeplib.networks.maths.expectations.lines import along_line, fill_line, lines_of, next_line
from sweeplib.networks.maths.expectations.nodes import MOST_AXES, Rules
from sweeplib.networks.maths.expectations.products import MOST_NODES, resolved_by
from sweeplib.networks.maths.expectations.system import Pair, System
from sweeplib.networks.maths.expectations.tables import INTERPOLATED, POINTS_A_STEP, weights_at
from sweeplib.networks.numerics.compiled import inlined, loops, without_references

SHARE = 0.8
"""The part of a step that resolves products of functions."""
LEAST_WEIGHT = 1e-15
"""The least weight of a node u."""
VALUE, SLOPE, SLOPED, SQUARE, SQUARED = range(5)
"""Rows of a table: σ, σ', σσ', σ'² and σσ'²."""


class Nodes(NamedTuple):
    """Weights and f* (n,) at the nodes of λ*, and the means of the students (p, n) there."""

    weight: Array
    target: Array
    mean: Array


class Means(NamedTuple):
    """Equally spaced means of one student: the first, their distance, and their number."""

    first: float
    step: float
    size: int


@without_references
def means_of(pair: Pair, spread: float, scale: float) -> Means:
    """Equally spaced means as far as nodes of a field with the deviation `spread` reach, for smoothing by `scale`."""
    end, width = pair.reach * spread, max(pair.steps[0, 0], WIDEST * scale)
    step = usable_step(end, width * MOST_NODES / (POINTS_A_STEP * pair.side), pair.side)
    half = int(end / step) + INTERPOLATED
    return Means(-half * step, step, 2 * half + 1)


@without_references
def step_of(pair: Pair, across: float, along: float) -> float:
    """The step of u for products of functions of along u + across v, averaged over v."""
    return resolved_by(SHARE * pair.steps[0, 0], across, along)


@inlined
def all_nodes(pair: Pair, rules: Rules, L: Array, A: Array) -> Nodes:
    """All nodes of λ*, with f* and the means A z of the students (p, n) there."""
    (p, k), count = A.shape, 0
    lines = lines_of(pair, rules, L, pair.most, np.empty((0, k)), np.empty(0))
    while next_line(pair, rules, L, lines):
        count += lines.sizes[k - 1]
    weight, target, mean, at = np.empty(count), np.empty(count), np.empty((p, count)), 0
    fields = np.empty(lines.x.size)
    lines = lines_of(pair, rules, L, pair.most, np.empty((0, k)), np.empty(0))
    while next_line(pair, rules, L, lines):
        size = fill_line(L, lines, weight[at:], fields)
        pair.ridge_value(k, fields[: k * size], target[at : at + size])
        for i in range(p):
            centre = along_line(A, i, lines)
            for n in range(size):
                mean[i, at + n] = centre + A[i, k - 1] * lines.x[k - 1, n]
        at += size
    return Nodes(weight, target, mean)


@inlined
def functions_at(pair: Pair, x: Array) -> Array:
    """The functions σ, σ', σσ', σ'² and σσ'² at x (n,), as rows (5, n)."""
    out = np.empty((5, len(x)))
    value, slope = out[VALUE], out[SLOPE]
    pair.student_value(x, value)
    pair.student_slope(x, slope)
    for n in range(len(x)):
        out[SLOPED, n], out[SQUARE, n] = value[n] * slope[n], slope[n] * slope[n]
        out[SQUARED, n] = value[n] * out[SQUARE, n]
    return out


@inlined
def normal_nodes(pair: Pair, step: float, spread: float) -> tuple[Array, Array]:
    """Equally spaced nodes u of N(0, 1) at about this step, and their weights; a single node if `spread` is zero."""
    step = usable_step(pair.reach, step, pair.side)
    half = int(pair.reach / step) if spread > 0.0 else 0
    u, weight = np.empty(2 * half + 1), np.empty(2 * half + 1)
    for n in range(len(u)):
        u[n] = step * (n - half)
        weight[n] = step * math.exp(-0.5 * u[n] * u[n]) / math.sqrt(2.0 * math.pi) if spread > 0.0 else 1.0
    return u, weight


@inlined
def smoothed(pair: Pair, first: float, step: float, size: int, scale: float) -> Array:
    """The means over v of the five functions of x + scale v, (5, size), at places x = first, first + step, ..."""
    v, weight = normal_nodes(pair, min(WIDEST, step_of(pair, 0.0, scale)), scale)
    total, x = np.zeros((5, size)), np.empty(size)
    for q in range(len(v)):
        for n in range(size):
            x[n] = first + step * n + scale * v[q]
        values = functions_at(pair, x)
        for row in range(5):
            for n in range(size):
                total[row, n] += weight[q] * values[row, n]
    return total


@without_references
def place_of(means: Means, mean: float, share: Array) -> int:
    """Fill share (8,) with the weights of eight means in the value at `mean`; return the number of the first."""
    return weights_at((mean - means.first) / means.step, means.size, share)


class Factors(NamedTuple):
    """What a pair of students has at each node u: of the five functions of one, and of the other given u.

    first (5, means, nodes u) : values times w_u. second (nodes u, 5, means) : means over v.
    """

    first: Array
    second: Array


@inlined
def factors_of(pair: Pair, first_means: Means, other: Means, variance: float, cross: float, others: float) -> Factors:
    """The `Factors` of two students with the variances `variance` and `others` and the covariance `cross`.

    first_means, other : the equally spaced means of both.
    """
    s = math.sqrt(max(variance, 0.0))
    along = cross / s if s > 0.0 else 0.0
    across = math.sqrt(max(others - along * along, 0.0))
    u, weight = normal_nodes(pair, min(step_of(pair, 0.0, s), step_of(pair, across, along)), s)
    # of one student the functions at μ + s u, times w_u
    first, x = np.empty((5, first_means.size, len(u))), np.empty(len(u))
    for r in range(first_means.size):
        for q in range(len(u)):
            x[q] = first_means.first + first_means.step * r + s * u[q]
        values = functions_at(pair, x)
        for row in range(5):
            for q in range(len(u)):
                first[row, r, q] = weight[q] * values[row, q]
    # of the other one the means over v at μ + along u: for each u all means are shifted alike in the table
    beyond = int(abs(along) * pair.reach / other.step) + INTERPOLATED
    size, share = other.size + 2 * beyond, np.empty(INTERPOLATED)
    table = smoothed(pair, other.first - beyond * other.step, other.step, size, across)
    second = np.zeros((len(u), 5, other.size))
    for q in range(len(u)):
        begin = weights_at(beyond + along * u[q] / other.step, size, share)
        for row in range(5):
            for m in range(INTERPOLATED):
                for n in range(other.size):
                    second[q, row, n] += share[m] * table[row, begin + m + n]
    return Factors(first, second)


@loops
def product_sum(factors: Factors, f: int, g: int, deposit: Array, row: Array) -> float:
    """The sum Σ D E'[f(λ_i) g(λ_j)] of two of the functions, by their numbers f and g.

    deposit (means, means) : D. row (means,) : a work array.
    """
    total = 0.0
    for r in range(len(deposit)):
        # most of a deposit is zero
        begin, end = 0, deposit.shape[1]
        while begin < end and deposit[r, begin] == 0.0:
            begin += 1
        while end > begin and deposit[r, end - 1] == 0.0:
            end -= 1
        for n in range(begin, end):
            row[n] = 0.0
        for q in range(factors.first.shape[2] if end > begin else 0):
            factor = factors.first[f, r, q]
            for n in range(begin, end):
                row[n] += factor * factors.second[q, g, n]
        for n in range(begin, end):
            total += deposit[r, n] * row[n]
    return total


@loops
def add_deposit(number: float, first_share: Array, second_share: Array, r: int, n: int, deposit: Array) -> None:
    """Add a number times the weights (8,) of two interpolations to a deposit (means, means) from (r, n) on."""
    for a in range(INTERPOLATED):
        weighted = number * first_share[a]
        for b in range(INTERPOLATED):
            deposit[r + a, n + b] += weighted * second_share[b]


@without_references
def spread_of(A: Array, i: int, more: float) -> float:
    """The deviation of μ_i = A_i z, with a part `more` beside it; for many axes as far as nodes reach in each."""
    square = 0.0
    for s in range(A.shape[1]):
        square += A[i, s] * A[i, s]
    return math.sqrt(square * (1.0 if A.shape[1] <= MOST_AXES else A.shape[1]) + more * more)


@inlined
def add_single(pair: Pair, nodes: Nodes, A: Array, C: Array, a: Array, i: int, total: Array) -> None:
    """Add the terms of student i alone to Var_ii in `total` (p, p); a (p,) is a/p."""
    scale = math.sqrt(C[i, i])
    means, share = means_of(pair, spread_of(A, i, 0.0), scale), np.empty(INTERPOLATED)
    table = smoothed(pair, means.first, means.step, means.size, scale)
    for n in range(len(nodes.weight)):
        begin, f = place_of(means, nodes.mean[i, n], share), nodes.target[n]
        both = 0.0
        for m in range(INTERPOLATED):
            both += share[m] * (f * table[SQUARE, begin + m] - 2.0 * a[i] * table[SQUARED, begin + m])
        total[i, i] += nodes.weight[n] * f * both


@inlined
def add_pair(pair: Pair, nodes: Nodes, A: Array, C: Array, a: Array, i: int, j: int, total: Array) -> None:
    """Add the terms of students i and j alone to Var_ij, Var_ii and Var_jj in `total` (p, p); a (p,) is a/p."""
    means = means_of(pair, spread_of(A, i, 0.0), math.sqrt(C[i, i]))
    other = means_of(pair, spread_of(A, j, 0.0), math.sqrt(C[j, j]))
    deposit, share, row = np.zeros((2, means.size, other.size)), np.empty((2, INTERPOLATED)), np.empty(other.size)
    for n in range(len(nodes.weight)):
        r, q = place_of(means, nodes.mean[i, n], share[0]), place_of(other, nodes.mean[j, n], share[1])
        number = nodes.weight[n] * nodes.target[n]
        add_deposit(number, share[0], share[1], r, q, deposit[0])
        add_deposit(number * nodes.target[n], share[0], share[1], r, q, deposit[1])
    factors = factors_of(pair, means, other, C[i, i], C[i, j], C[j, j])
    # f = Σ_l a_l σ_l has the terms l = i and l = j here; those of a third student are in `add_triple`
    total[i, j] += product_sum(factors, SLOPE, SLOPE, deposit[1], row)
    total[i, j] -= 2.0 * a[i] * product_sum(factors, SLOPED, SLOPE, deposit[0], row)
    total[i, j] -= 2.0 * a[j] * product_sum(factors, SLOPE, SLOPED, deposit[0], row)
    total[i, i] -= 2.0 * a[j] * product_sum(factors, SQUARE, VALUE, deposit[0], row)
    total[j, j] -= 2.0 * a[i] * product_sum(factors, VALUE, SQUARE, deposit[0], row)


@inlined
def add_triple(pair: Pair, nodes: Nodes, A: Array, C: Array, a: Array, order: Any, total: Array) -> None:
    """Add the terms with one of the students `order`, i > j > l, in f to the variances of the others in `total`.

    Given the normal number u of student i the others have the means μ + first u and μ + second u, so that there is a
    deposit with σ'_i and one with σ_i. a (p,) is a/p.
    """
    i, j, l = order  # noqa: E741
    s = math.sqrt(C[i, i])
    first, second = (C[i, j] / s, C[i, l] / s) if s > 0.0 else (0.0, 0.0)
    # the covariance of j and l given u
    variance, cross, others = C[j, j] - first * first, C[j, l] - first * second, C[l, l] - second * second
    step = min(step_of(pair, 0.0, s), step_of(pair, math.sqrt(max(variance, 0.0)), first))
    u, density = normal_nodes(pair, min(step, step_of(pair, math.sqrt(max(others, 0.0)), second)), s)
    means = means_of(pair, spread_of(A, j, first), math.sqrt(max(variance, 0.0)))
    other = means_of(pair, spread_of(A, l, second), math.sqrt(max(others, 0.0)))
    deposit, share, row = np.zeros((2, means.size, other.size)), np.empty((2, INTERPOLATED)), np.empty(other.size)
    x, value, slope = np.empty(len(u)), np.empty(len(u)), np.empty(len(u))
    for n in range(len(nodes.weight)):
        for m in range(len(u)):
            x[m] = nodes.mean[i, n] + s * u[m]
        pair.student_value(x, value)
        pair.student_slope(x, slope)
        for m in range(len(u)):
            if nodes.weight[n] * density[m] > LEAST_WEIGHT:
                r = place_of(means, nodes.mean[j, n] + first * u[m], share[0])
                q = place_of(other, nodes.mean[l, n] + second * u[m], share[1])
                number = nodes.weight[n] * nodes.target[n] * density[m]
                add_deposit(number * slope[m], share[0], share[1], r, q, deposit[0])
                add_deposit(number * value[m], share[0], share[1], r, q, deposit[1])
    factors = factors_of(pair, means, other, variance, cross, others)
    total[i, j] -= 2.0 * a[l] * product_sum(factors, SLOPE, VALUE, deposit[0], row)
    total[i, l] -= 2.0 * a[j] * product_sum(factors, VALUE, SLOPE, deposit[0], row)
    total[j, l] -= 2.0 * a[i] * product_sum(factors, SLOPE, SLOPE, deposit[1], row)


@inlined
def add_smooth_variance(system: System, rules: Rules, L: Array, A: Array, C: Array, total: Array) -> None:
    """Add the sums for all pairs j ≤ i of students to total (p, p); L (k, k), A (p, k), C (p, p) as in the module."""
    pair, a = system.pair, np.empty(len(A))
    nodes = all_nodes(pair, rules, L, A)
    for i in range(len(A)):
        a[i] = system.a[i] / len(A)
    for i in range(len(A)):
        add_single(pair, nodes, A, C, a, i, total)
        for j in range(i):
            add_pair(pair, nodes, A, C, a, i, j, total)
            for l in range(j):  # noqa: E741
                add_triple(pair, nodes, A, C, a, (i, j, l), total)
