"""The risk of any student and any sum of ridge functions: R = ½ Σ_mn b_m b_n E[σ_m(z_m) σ_n(z_n)].

Every function is a sum of hinges, o + Σ_j κ_j (z − c_j)⁺, and a smooth rest τ. Means of two hinges are those of
`hinges`. With z_m = s u, the other field is z_n = (c/s) u + t̄ v, t̄² = t² − c²/s², c the covariance, and

E[τ_m τ_n] is a sum over equally spaced u and v, at steps that resolve τ_m(s u), τ_n(c u/s) and τ_n(t̄ v);
E[τ_m (z_n − x)⁺] = E[τ_m(s u) (μ Φ(μ/t̄) + t̄ φ(μ/t̄))], μ = c u/s − x, a function with a bend of the width w = t̄ s/|c|
around u = x s/c: Gauss-Legendre panels whose ends are there, ±2w, ±4w, ±8w, ... from there.

Errors are below 10⁻⁹ of E[σ_m²] for functions with analytic rests, at variances up to a hundred steps; beyond that
nodes are too few, and a finer rule tells.

number, other : of the functions σ_m and σ_n, 0 for the student's, then the target's. s, t, c : the deviations of their
fields, and the covariance. room (ROWS, nodes) : work arrays. rule (2, nodes) : of Gauss, in an interval of length one.
`pair` is what rules know of the activations and of the target. `risk` has Q (p, p, lanes), M (p, k, lanes),
P (k, k, lanes), a (p, lanes), a_star (k, lanes) of systems in lanes.
"""

import math

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.fields import counts, fill_fields, function_number
from sweeplib.networks.maths.expectations.grids import LONGEST, WIDEST, usable_step
from sweeplib.networks.maths.expectations.hinges import hinge_product, scale_of, split
from sweeplib.networks.maths.expectations.nodes import rules_of
from sweeplib.networks.maths.expectations.system import Pair, copy_lane
from sweeplib.networks.numerics.compiled import without_references
from sweeplib.networks.numerics.elementary import error_function, exponential

MOST_NODES = 400
"""The most nodes on each side of zero of the usual rule. Finer rules have more: they would agree where it fails."""
SHORTEST, PANEL_STEPS = 0.004, 10.0
"""The shortest panel, in standard deviations, and its length in steps that resolve the function."""
INVERSE_ROOT_2, INVERSE_ROOT_2_PI = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
SHARP = 1e-9
"""A bend of less width is a kink."""
ROWS = 6
"""Rows of the room for one mean."""
BESIDE = 1e-13
"""How far right of a place its slope is taken, as this may be a kink."""


@without_references
def fill_rest(pair: Pair, number: int, x: Array, out: Array) -> None:
    """Fill out with what a function has beyond its hinges at x (n,): the student's for number 0, else a target's."""
    if number == 0:
        pair.student_value(x, out)
    else:
        pair.ridge_value(number - 1, x, out)
    hinges = pair.series[number]
    for q in range(len(x)):
        out[q] -= hinges[0]
    for j in range(1, len(hinges), 2):
        if hinges[j + 1] != 0.0:
            for q in range(len(x)):
                out[q] -= hinges[j + 1] * max(x[q] - hinges[j], 0.0)


@without_references
def fill_rest_slope(pair: Pair, x: Array, out: Array) -> None:
    """Fill out with the slope of what the student has beyond its hinges, right of each x, which is overwritten."""
    for q in range(len(x)):
        x[q] += BESIDE
    pair.student_slope(x, out)
    hinges = pair.series[0]
    for j in range(1, len(hinges), 2):
        for q in range(len(x)):
            out[q] -= hinges[j + 1] if x[q] > hinges[j] else 0.0


@without_references
def resolved_by(step: float, across: float, along: float) -> float:
    """The step in u for the mean over v of a function of along u + across v that `step` resolves.

    The mean needs no shorter step than WIDEST times `across`, its width. The squares of 1/step of it and of the density
    of u, WIDEST, add up, as do those of frequencies of Gaussians in products.
    """
    return WIDEST / math.hypot(1.0, WIDEST * along / max(step, WIDEST * across)) if along != 0.0 else WIDEST


@without_references
def rest_sums(
    pair: Pair, number: int, other: int, s: float, t: float, c: float, slopes: bool, room: Array
) -> tuple[float, float, float]:
    """The mean E[τ_m(z_m) τ_n(z_n)] of the rests of two functions, and two more or zeros.

    With the `slopes` of students, m, these two are E[τ'_m u τ_n] and E[τ'_m v τ_n].
    """
    along, across = split(s, t, c)
    step = min(resolved_by(pair.steps[0, number], 0.0, s), resolved_by(pair.steps[0, other], across, along))
    step = usable_step(pair.reach, step, pair.side)
    inner = usable_step(pair.reach, resolved_by(pair.steps[0, other], 0.0, across), pair.side)
    count, depth = int(pair.reach / step), int(pair.reach / inner) if across > 0.0 else 0
    # nodes x = s u along z_m, and `share`, the weights of nodes v; of v and −v they are the same
    x, value, share, slope = room[0, : 2 * count + 1], room[1, : 2 * count + 1], room[2], room[5, : 2 * count + 1]
    for n in range(len(x)):
        x[n] = s * step * (n - count)
    fill_rest(pair, number, x, value)
    if slopes:
        fill_rest_slope(pair, x, slope)
    for n in range(depth + 1):
        share[n] = inner * math.exp(-0.5 * (inner * n) * (inner * n)) / math.sqrt(2.0 * math.pi) if depth else 1.0
    total, first, second = 0.0, 0.0, 0.0
    for n in range(len(x)):
        u = step * (n - count)
        # nodes (u, v) are in a circle of the radius `reach`
        within = min(depth, int(math.sqrt(max(pair.reach * pair.reach - u * u, 0.0)) / inner))
        z, tau_n = room[3, : 2 * within + 1], room[4, : 2 * within + 1]
        for q in range(len(z)):
            z[q] = along * u + across * inner * (q - within)
        fill_rest(pair, other, z, tau_n)
        # the means of τ_n and v τ_n over v
        line, tilt = 0.0, 0.0
        for q in range(len(z)):
            line += share[abs(q - within)] * tau_n[q]
            tilt += share[abs(q - within)] * tau_n[q] * inner * (q - within)
        density = step * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        total += density * value[n] * line
        if slopes:
            first += density * slope[n] * u * line
            second += density * slope[n] * tilt
    return total, first, second


@without_references
def fill_hinge_means(u: Array, slope: float, across: float, knot: float, out: Array) -> None:
    """Fill out (3, n) with E[(z − knot)⁺], P(z > knot) and ∂P/∂u, all times the density φ(u).

    u (n,) is given; z = slope u + across v, and v is standard normal.
    """
    if across > 0.0:
        for q in range(len(u)):
            mean = slope * u[q] - knot
            h = mean / across
            above = 0.5 * (1.0 + error_function(h * INVERSE_ROOT_2))
            density = INVERSE_ROOT_2_PI * exponential(-0.5 * h * h)
            out[0, q] = mean * above + across * density
            out[1, q], out[2, q] = above, density * slope / across
    else:
        for q in range(len(u)):
            out[0, q] = max(slope * u[q] - knot, 0.0)
            out[1, q], out[2, q] = 1.0 if slope * u[q] > knot else 0.0, 0.0
    for q in range(len(u)):
        density = INVERSE_ROOT_2_PI * exponential(-0.5 * u[q] * u[q])
        for row in range(3):
            out[row, q] *= density


@without_references
def bend_sums(
    pair: Pair, rule: Array, number: int, s: float, slope: float, across: float, knot: float, slopes: bool, room: Array
) -> tuple[float, float, float, float, float]:
    """The mean E[τ_m(s u) (z − knot)⁺], z = slope u + across v, of the rest of function `number`, m; and four more.

    Nodes are in panels from the bend on, as far as the hinge is not zero.
    With `slopes`, the others are E[τ'_m u (z − knot)⁺] and E[τ'_m v (z − knot)⁺] for students, m, and
    E[τ_m z 1(z > knot)] and s E[τ'_m 1(z > knot)], by parts, for any m.
    """
    nodes, steep = rule.shape[1], abs(slope)
    u, x, value, tau = room[0, :nodes], room[1, :nodes], room[2, :nodes], room[3, :nodes]
    hinge_means_at = room[4, : 3 * nodes].reshape((3, nodes))
    # panels begin at the bend, or at zero where it is beyond all nodes, with the width of the bend, and double
    centre = knot / slope if abs(knot) < pair.reach * steep else 0.0
    longest = max(min(LONGEST, PANEL_STEPS * pair.steps[0, number] / s), SHORTEST) if s > 0.0 else LONGEST
    start = min(2.0 * across / steep, longest) if across > SHARP * steep and steep > 0.0 else longest
    total, first, second, within, odds = 0.0, 0.0, 0.0, 0.0, 0.0
    for side in (-1.0, 1.0):
        begin, length, limit = 0.0, start, pair.reach - side * centre
        while begin < limit and (side * slope >= 0.0 or slope * (centre + side * begin) - knot > -pair.reach * across):
            width = min(length, limit - begin)
            for q in range(nodes):
                u[q] = centre + side * (begin + width * rule[0, q])
                x[q] = s * u[q]
            fill_rest(pair, number, x, value)
            fill_hinge_means(u, slope, across, knot, hinge_means_at)
            for q in range(nodes):
                total += width * rule[1, q] * value[q] * hinge_means_at[0, q]
            if slopes:
                for q in range(nodes):
                    tau[q] = 0.0
                if number == 0:
                    fill_rest_slope(pair, x, tau)
                for q in range(nodes):
                    share = width * rule[1, q]
                    first += share * tau[q] * u[q] * hinge_means_at[0, q]
                    second += share * tau[q] * across * hinge_means_at[1, q]
                    # z 1(z > knot) = (z − knot)⁺ + knot 1(z > knot), and s E[τ' P] = E[τ (u P − ∂P/∂u)] by parts
                    within += share * value[q] * (hinge_means_at[0, q] + knot * hinge_means_at[1, q])
                    odds += share * value[q] * (u[q] * hinge_means_at[1, q] - hinge_means_at[2, q])
            length = min(2.0 * length, longest) if begin > 0.0 else length
            begin += width
    return total, first, second, within, odds


@without_references
def rest_and_hinges(
    pair: Pair, rule: Array, number: int, other: int, s: float, t: float, c: float, room: Array
) -> float:
    """The mean E[τ_m(z_m) σ_n(z_n)] of the rest of one function and the hinges of another."""
    hinges, total = pair.series[other], 0.0
    slope, across = split(s, t, c)
    for j in range(-1, len(hinges), 2):
        # the offset is a hinge without slope
        jump, knot = (hinges[0], -1.0) if j < 0 else (hinges[j + 1], hinges[j])
        if jump != 0.0:
            bends = 0.0 if j < 0 else 1.0
            total += jump * bend_sums(pair, rule, number, s, bends * slope, bends * across, knot, False, room)[0]
    return total


@without_references
def mean_product(pair: Pair, rule: Array, number: int, other: int, s: float, t: float, c: float, room: Array) -> float:
    """The mean E[σ_m(z_m) σ_n(z_n)] of two functions."""
    total = hinge_product(pair.series[number], pair.series[other], s, t, c)
    for _ in range(2):
        if pair.steps[0, number] < math.inf:
            total += rest_and_hinges(pair, rule, number, other, s, t, c, room)
        number, other, s, t = other, number, t, s
    if pair.steps[0, other] * s < pair.steps[0, number] * t:  # the steeper function first: fewer nodes
        number, other, s, t = other, number, t, s
    if max(pair.steps[0, number], pair.steps[0, other]) < math.inf:
        total += rest_sums(pair, number, other, s, t, c, False, room)[0]
    return total + 0.0 * (s + t + c)  # NaN stays NaN


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """Fill out (lanes,) with R of each system, which the last axis of all arrays counts.

    Functions are those of students first, then ridges or teachers, b = (−a/p, c).
    """
    p, k, lanes = M.shape
    functions, size = counts(pair.weights, p, k)
    omega, weight = np.empty((size, size)), np.empty(functions)
    Q_lane, M_lane, P_lane = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    layer, layer_star = np.empty(p), np.empty(k)
    room, rule = np.empty((ROWS, 2 * pair.side + 1)), rules_of(pair.nodes).panel
    for lane in range(lanes):
        copy_lane(lane, Q, Q_lane)
        copy_lane(lane, M, M_lane)
        copy_lane(lane, P, P_lane)
        for i in range(p):
            layer[i] = a[i, lane]
        for r in range(k):
            layer_star[r] = a_star[r, lane]
        fill_fields(pair, Q_lane, M_lane, P_lane, layer, layer_star, omega, weight)
        out[lane] = 0.0
        for m in range(functions):
            for n in range(m + 1):
                factor = (0.5 if m == n else 1.0) * weight[m] * weight[n]
                if factor != 0.0:
                    number, other = function_number(pair.which, p, m), function_number(pair.which, p, n)
                    s, t = scale_of(omega[m, m]), scale_of(omega[n, n])
                    out[lane] += factor * mean_product(pair, rule, number, other, s, t, omega[m, n], room)
