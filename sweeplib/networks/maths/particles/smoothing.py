"""Means of an activation over one coordinate ω of a random direction: E σ(b + sω), E σ'(b + sω) and E ω σ'(b + sω).

ω is a coordinate of a direction that is uniform on the sphere of D dimensions, or N(0, 1). Closed forms: polynomials
for every D, and sums of error functions for N(0, 1), E erf((b + sω) c/√2) = erf(b c'/√2) with c' = c/√(1 + s²c²).
Other activations are κ_j (x − c_j)⁺ summed over their knots, closed but for two functions of one number that are
tabulated, and a smooth rest by a Gauss rule. Functions take the `rule`, a `Smoothing`, and
fill `means`, the `Means`.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.maths.activations.activation import Activation, hinges_of
from sweeplib.networks.maths.activations.hermite import power_coefficients
from sweeplib.networks.maths.particles.rules import coordinates, moments
from sweeplib.networks.numerics.arc_sine import arc_sine
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import over_arrays, without_references
from sweeplib.networks.numerics.elementary import error_function, exponential

POLYNOMIAL, ERROR_FUNCTIONS, NODES = 0, 1, 2
"""Kinds of rules."""
TABLE = 4096
"""Intervals of the tables."""
REACH = 9.0
"""Standard deviations of ω that they reach."""
NEGLIGIBLE = 1e-300
"""In place of a deviation s = 0, by which is divided."""


class Smoothing(NamedTuple):
    """A rule for the means of an activation.

    kind : POLYNOMIAL, ERROR_FUNCTIONS or NODES.
    powers (3, J, n) : of each of the three means Σ_jm powers[., j, m] s^j b^m, for polynomials.
    error_functions (terms, 2) : the weights and slopes of σ = offset + Σ weight · erf(slope · x/√2); none for others.
    offset : of these; of other activations a constant beside the knots.
    omega (2, nodes) : nodes and weights of ω.
    value, slope : addresses of functions (x, out) for the rest of σ and of σ'.
    knots (2, J) : places c_j and jumps κ_j of the slope.
    table (4, TABLE + 1) : P(ω > −y), E[ω 1(ω > −y)] and their slopes times the interval, at equally spaced places
        between −reach and reach: y, or arcsin y on a sphere.
    angular, dimension : whether ω is on a sphere, and its dimension D.
    """

    kind: int
    powers: Array
    offset: float
    error_functions: Array
    omega: Array
    value: Any
    slope: Any
    knots: Array
    table: Array
    reach: float
    angular: bool
    dimension: float


class Means(NamedTuple):
    """The arguments b and s (p,) of p particles, the means over ω of σ, σ' and ωσ' at b + sω, and work arrays.

    value, slope, along (p,) : E σ, E σ' and E ωσ'.
    smoothed (terms, p) : the slopes c' of the error functions after the mean over ω, which depend on s alone.
    work (p,), x, out (p nodes,) : work arrays: arguments at nodes of ω, and the function there.
    """

    b: Array
    s: Array
    smoothed: Array
    value: Array
    slope: Array
    along: Array
    work: Array
    x: Array
    out: Array


@cache
def smoothing(activation: Activation, D: float, nodes: int) -> Smoothing:
    """The rule for an activation in D dimensions: N(0, 1) for D = ∞, ω = 0 for D = 0.

    `nodes` of ω if they are needed.
    """
    angular, kind = 0.0 < D < math.inf, NODES
    law = D if angular else math.inf
    powers, offset, error_functions = np.zeros((3, 1, 1)), 0.0, np.empty((0, 2))
    if activation.hermite is not None:
        kind, powers = POLYNOMIAL, _powers(power_coefficients(activation.hermite), law)
    elif activation.error_functions is not None and math.isinf(D):
        kind, (offset, parts) = ERROR_FUNCTIONS, activation.error_functions
        error_functions = np.array(parts, dtype=float).reshape(-1, 2)
    constant, terms = hinges_of(activation)
    knots = np.array(terms).reshape(-1, 2).T.copy()
    smooth = without_knots(activation, knots, constant)
    # a sum of ramps alone has nothing to be averaged by nodes
    offset = constant if smooth is None else offset
    value, slope = smooth or (activation.value, activation.derivative)
    omega = np.empty((2, 0))
    if kind == NODES and smooth is not None:
        omega = coordinates(law, nodes) if D else np.array([[0.0], [1.0]])
    return Smoothing(
        kind,
        powers,
        offset,
        error_functions,
        omega,
        over_arrays(value),
        over_arrays(slope),
        knots,
        *_table(law),
        angular,
        float(law),
    )


def means(p: int, rule: Smoothing) -> Means:
    """The `Means` of p particles by a rule, to be filled."""
    size, smoothed = p * rule.omega.shape[1], np.empty((len(rule.error_functions), p))
    b, s, value, slope, along, work = (np.empty(p) for _ in range(6))
    return Means(b, s, smoothed, value, slope, along, work, np.empty(size), np.empty(size))


Function = Callable[[float], float]
"""A function of one field, such as σ."""


def without_knots(activation: Activation, knots: Array, constant: float) -> tuple[Function, Function] | None:
    """The smooth rests of σ and of σ' without the terms of the knots (2, J); None if the rest is only the constant."""
    if not knots.size:
        return activation.value, activation.derivative
    places, jumps = (tuple(row.tolist()) for row in knots)
    of_sigma = {"function": activation.value, "places": places, "jumps": jumps}
    of_slope = {"function": activation.derivative, "places": places, "jumps": jumps}
    value, slope = bound(_without_ramps, **of_sigma), bound(_without_steps, **of_slope)
    fields = np.linspace(-3.7, 3.7, 40).tolist()
    varies = any(abs(value(z) - constant) > 1e-11 or abs(slope(z)) > 1e-11 for z in fields)
    return (value, slope) if varies else None


function = unbound
"""Bound by `without_knots`."""
places: tuple[float, ...] = (0.0,)
"""Bound by `without_knots`: the places c_j of jumps of the slope."""
jumps: tuple[float, ...] = (0.0,)
"""Bound by `without_knots`: the jumps κ_j."""


def _without_ramps(x: float) -> float:
    """The rest of a function, σ(x) − Σ_j κ_j (x − c_j)⁺."""
    total = function(x)
    for j in range(len(places)):
        total -= jumps[j] * max(x - places[j], 0.0)
    return total


def _without_steps(x: float) -> float:
    """The rest of a slope, σ'(x) − Σ_j κ_j 1(x > c_j)."""
    total = function(x)
    for j in range(len(places)):
        total -= jumps[j] if x > places[j] else 0.0
    return total


def _powers(coefficients: tuple[float, ...], D: float) -> Array:
    """The `powers` of a `Smoothing` for σ(x) = Σ_n coefficients[n] x^n, from the moments E ω^j in D dimensions."""
    degree = len(coefficients) - 1
    mu, powers = moments(D, degree + 1), np.zeros((3, degree + 1, degree + 1))
    for n, coefficient in enumerate(coefficients):
        for j in range(n + 1):
            powers[0, j, n - j] += coefficient * math.comb(n, j) * mu[j]
        for j in range(n):
            powers[1, j, n - 1 - j] += n * coefficient * math.comb(n - 1, j) * mu[j]
            powers[2, j, n - 1 - j] += n * coefficient * math.comb(n - 1, j) * mu[j + 1]
    return powers


def _table(D: float) -> tuple[Array, float]:
    """The `table` and the `reach` of a `Smoothing` with knots, for ω in D dimensions."""
    reach = REACH if math.isinf(D) else min(0.5 * math.pi, REACH / math.sqrt(D))
    at = np.linspace(-reach, reach, TABLE + 1)
    interval = at[1] - at[0]
    if math.isinf(D):
        density = np.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)
        # P, E[ω 1(ω > −y)] = φ(y), and their slopes times the interval
        return np.array([scipy.special.ndtr(at), density, interval * density, -interval * at * density]), reach
    # arcsin ω has the density scale · cos^(D−2)
    scale = math.exp(scipy.special.gammaln(0.5 * D) - scipy.special.gammaln(0.5 * (D - 1))) / math.sqrt(math.pi)
    sine, cosine = np.sin(at), np.cos(at)
    # P(ω > −y) = (1 ± I)/2 with I = P(ω² < y²), an incomplete beta function
    above = 0.5 + 0.5 * np.sign(at) * scipy.special.betainc(0.5, 0.5 * (D - 1), np.minimum(sine * sine, 1.0))
    density = scale * cosine ** (D - 2)
    return np.array([above, density * cosine / (D - 1), interval * density, -interval * sine * density]), reach


@without_references
def fill_smoothed(rule: Smoothing, means: Means) -> None:
    """Fill means.smoothed with c' = c/√(1 + s²c²), c the slope of each error function; needed once for each s."""
    for term in range(rule.error_functions.shape[0]):
        c = rule.error_functions[term, 1]
        for i in range(means.s.shape[0]):
            means.smoothed[term, i] = c / math.sqrt(1.0 + (c * means.s[i]) ** 2)


@without_references
def fill_means(rule: Smoothing, means: Means) -> None:
    """Fill E σ, E σ' and E ωσ' of the particles from their b and s. After a change of s call `fill_smoothed` before."""
    if rule.kind == POLYNOMIAL:
        fill_polynomial(rule.powers[0], means, means.value)
        fill_polynomial(rule.powers[1], means, means.slope)
        fill_polynomial(rule.powers[2], means, means.along)
    elif rule.kind == ERROR_FUNCTIONS:
        fill_error_functions(rule, means)
    else:
        fill_by_nodes(rule, means)


@without_references
def fill_polynomial(powers: Array, means: Means, out: Array) -> None:
    """Fill out (p,) with Σ_jm powers[j, m] s^j b^m, by Horner's rule in both; powers (J, n)."""
    b, s, inner = means.b, means.s, means.work
    for i in range(out.shape[0]):
        out[i] = 0.0
    for j in range(powers.shape[0] - 1, -1, -1):
        last = powers.shape[1] - 1 - j
        for i in range(out.shape[0]):
            inner[i] = powers[j, max(last, 0)]
        for m in range(last - 1, -1, -1):
            for i in range(out.shape[0]):
                inner[i] = inner[i] * b[i] + powers[j, m]
        for i in range(out.shape[0]):
            out[i] = out[i] * s[i] + inner[i]


@without_references
def fill_error_functions(rule: Smoothing, means: Means) -> None:
    """Fill E σ, E σ' and E ωσ' for ω ~ N(0, 1) and a sum σ of error functions, by their `smoothed` slopes."""
    b, s, value, slope, along = means.b, means.s, means.value, means.slope, means.along
    for i in range(b.shape[0]):
        value[i], slope[i], along[i] = rule.offset, 0.0, 0.0
    for term in range(rule.error_functions.shape[0]):
        weight = rule.error_functions[term, 0]
        for i in range(b.shape[0]):
            # the smoothed slope c'
            smaller = means.smoothed[term, i]
            x = smaller * b[i]
            value[i] += weight * error_function(math.sqrt(0.5) * x)
            steep = weight * math.sqrt(2.0 / math.pi) * smaller * exponential(-0.5 * x * x)
            slope[i] += steep
            # E ωσ' = s E σ'' by parts, and E σ'' is the slope of E σ' in b
            along[i] -= steep * smaller * x * s[i]


@without_references
def fill_by_nodes(rule: Smoothing, means: Means) -> None:
    """Fill E σ, E σ' and E ωσ': sums over nodes of ω for the smooth rest of σ, and means of the ramps at its knots."""
    b, s, value, slope, along, x, out = means.b, means.s, means.value, means.slope, means.along, means.x, means.out
    p, nodes = b.shape[0], rule.omega.shape[1]
    for i in range(p):
        value[i], slope[i], along[i] = rule.offset, 0.0, 0.0
    # omega (2, nodes): nodes and weights
    for n in range(nodes):
        for i in range(p):
            x[n * p + i] = b[i] + s[i] * rule.omega[0, n]
    if nodes:
        rule.value(x, out)
        for n in range(nodes):
            for i in range(p):
                value[i] += rule.omega[1, n] * out[n * p + i]
        rule.slope(x, out)
        for n in range(nodes):
            weight, weighted = rule.omega[1, n], rule.omega[1, n] * rule.omega[0, n]
            for i in range(p):
                slope[i] += weight * out[n * p + i]
                along[i] += weighted * out[n * p + i]
    for j in range(rule.knots.shape[1]):
        add_knot(rule, rule.knots[0, j], rule.knots[1, j], means)


@without_references
def tail(rule: Smoothing, place: float) -> tuple[float, float]:
    """The probability P(ω > −y) and E[ω 1(ω > −y)], by cubic interpolation at the place of y in the table.

    place : y, or arcsin y on a sphere.
    """
    last = rule.table.shape[1] - 1
    at = (min(max(place, -rule.reach), rule.reach) + rule.reach) * (last / (2.0 * rule.reach))
    # the integer of NaN may lie beyond the table; at any cell the result is NaN
    cell = 0 if math.isnan(at) else min(int(at), last - 1)
    t = at - cell
    remainder = 1.0 - t
    # weights of the values and slopes at both ends of the cell, for the cubic through them
    at_left, at_right = (1.0 + 2.0 * t) * remainder * remainder, t * t * (3.0 - 2.0 * t)
    slope_left, slope_right = t * remainder * remainder, -t * t * remainder
    above = at_left * rule.table[0, cell] + at_right * rule.table[0, cell + 1]
    above += slope_left * rule.table[2, cell] + slope_right * rule.table[2, cell + 1]
    first = at_left * rule.table[1, cell] + at_right * rule.table[1, cell + 1]
    first += slope_left * rule.table[3, cell] + slope_right * rule.table[3, cell + 1]
    return above, first


@without_references
def tail_moments(rule: Smoothing, y: float) -> tuple[float, float, float]:
    """The probability P(ω > −y), E[ω 1(ω > −y)] and E[ω² 1(ω > −y)].

    By parts the last is (P − (D − 1) y E[ω 1])/D on the sphere, and P − y E[ω 1] for ω ~ N(0, 1).
    """
    above, first = tail(rule, arc_sine(y) if rule.angular else y)
    within = min(max(y, -1.0), 1.0) if rule.angular else min(max(y, -rule.reach), rule.reach)
    if rule.angular:
        return above, first, (above - (rule.dimension - 1.0) * within * first) / rule.dimension
    return above, first, above - within * first


@without_references
def fill_products_of_pieces(rule: Smoothing, pieces: Array, means: Means, out: Array) -> None:
    """Fill out (4, p) with E[σ'²], E[σσ'²], E[σ²σ'²] and E[σ²] over ω, of a σ with the pieces (l, u, α, β).

    pieces (m, 4) : σ = α + βλ from l to u.
    """
    for row in range(4):
        for i in range(out.shape[1]):
            out[row, i] = 0.0
    for n in range(pieces.shape[0]):
        low, high, constant, slope = pieces[n, 0], pieces[n, 1], pieces[n, 2], pieces[n, 3]
        for i in range(out.shape[1]):
            b, s = means.b[i], max(means.s[i], NEGLIGIBLE)
            zero, first, second = tail_moments(rule, (b - low) / s)
            zero_above, one_above, two_above = tail_moments(rule, (b - high) / s)
            zero, first, second = zero - zero_above, first - one_above, second - two_above
            at, steep = constant + slope * b, slope * s
            linear = at * zero + steep * first
            square = at * at * zero + 2.0 * at * steep * first + steep * steep * second
            out[0, i] += slope * slope * zero
            out[1, i] += slope * slope * linear
            out[2, i] += slope * slope * square
            out[3, i] += square


@without_references
def add_knot(rule: Smoothing, place: float, jump: float, means: Means) -> None:
    """Add the means of the ramp jump · (x − place)⁺ to E σ, E σ' and E ωσ': it is not zero for a tail of ω."""
    b, s, value, slope, along, y = means.b, means.s, means.value, means.slope, means.along, means.work
    for i in range(b.shape[0]):
        y[i] = (b[i] - place) / max(s[i], NEGLIGIBLE)
    if rule.angular:
        for i in range(b.shape[0]):
            y[i] = arc_sine(y[i])
    for i in range(b.shape[0]):
        above, first = tail(rule, y[i])
        value[i] += jump * ((b[i] - place) * above + s[i] * first)
        slope[i] += jump * above
        along[i] += jump * first
