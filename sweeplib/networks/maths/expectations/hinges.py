"""Piecewise linear activations on both sides, σ(z) = o + Σ_j κ_j (z − c_j)⁺, with knots elsewhere than at zero.

Of two fields of deviations s, s' and covariance s s' sin ϑ_0, the second derivative of E[σ σ'] in the covariance is
Σ_jl κ_j κ'_l times the Gaussian density at (c_j, c'_l). Its integral, with h = c/s, is

E[σ σ'] = E[σ] E[σ'] + s s' sin ϑ_0 E[dσ] E[dσ']
    + s s'/2π Σ_jl κ_j κ'_l ∫_0^ϑ_0 (sin ϑ_0 − sin ϑ) exp(−(h_j² + h'_l² − 2 h_j h'_l sin ϑ)/(2 cos²ϑ)) dϑ,

E[σ] = o + Σ_j κ_j (s φ(h_j) − c_j Φ(−h_j)), E[dσ] = Σ_j κ_j Φ(−h_j). With ψ = π/2 − |ϑ|, in which nothing cancels,
the integrand changes on the scale |h_j − h'_l| at small ψ: Gauss-Legendre quadrature in panels whose ends are in
geometric progression towards ψ = 0; for |sin ϑ_0| < .3, where it is smooth in sin ϑ, seven nodes. Error: below 10⁻¹¹ of
the largest κ κ' s s'.

`hinges` and `others` are rows (1 + 2J,) of two functions: o, then c_1, κ_1, c_2, κ_2, ...; u and v are N(0, 1).
"""

import math

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.maths.expectations.grids import hinges_row
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import compiled, inlined, without_references

SMALLEST = 1e-140
"""A field of a smaller standard deviation counts as zero: the squares of its h would overflow."""

PANELS, WIDEST, NARROWEST, RATIO = 15, 0.7, 1e-6, 3.0
"""At most so many panels, the first of which ends at ψ = .7; below ψ = 10⁻⁶ there is a last one."""

ROUNDING = 1e-15
"""The relative variance of a part that is zero."""

WEAK = 0.3
"""Up to this correlation, few nodes in sin ϑ are enough."""

arc: tuple[float, ...] = ()
arc_weights: tuple[float, ...] = ()
chord: tuple[float, ...] = ()
chord_weights: tuple[float, ...] = ()
"""Nodes and weights of panels in ψ, and of those in sin ϑ for weak correlations: bound in `bent`."""


@without_references
def lifted(mean: float, scale: float) -> float:
    """The mean E[x⁺] at x = mean + scale u."""
    if scale <= 0.0:
        return max(mean, 0.0)
    h = mean / scale
    return 0.5 * mean * math.erfc(-h * math.sqrt(0.5)) + scale * math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)


@compiled
def hinge_mean(hinges: Array, mean: float, scale: float) -> float:
    """The mean E[σ(mean + scale u)] of hinges."""
    total = hinges[0]
    for j in range(1, len(hinges), 2):
        if hinges[j + 1] != 0.0:
            total += hinges[j + 1] * lifted(mean - hinges[j], scale)
    return total


@without_references
def mean_slope(scale: float, hinges: Array) -> float:
    """The mean E[σ'(scale u)] of hinges; for a scale of zero without a knot at zero."""
    total = 0.0
    for j in range(1, len(hinges), 2):
        if scale != 0.0:
            total += hinges[j + 1] * 0.5 * math.erfc(hinges[j] / scale * math.sqrt(0.5))
        elif hinges[j] < 0.0:
            total += hinges[j + 1]
    return total


@without_references
def scale_of(variance: float) -> float:
    """The standard deviation √q of a variance q, or zero where it is tiny; NaN stays NaN."""
    scale = math.sqrt(max(variance, 0.0)) if variance < math.inf else variance
    return 0.0 if scale < SMALLEST else scale


@without_references
def split(s: float, t: float, c: float) -> tuple[float, float]:
    """The parts of a field of deviation t along and across one of deviation s, if their covariance is c."""
    along = max(min(c / s, t), -t) if s > 0.0 else 0.0
    # not t² − along², which loses its digits where the two are nearly equal
    remainder = (t - along) * (t + along)
    return along, math.sqrt(remainder) if remainder > ROUNDING * t * t else 0.0


@inlined
def correlation(covariance: float, scale: float, other: float) -> float:
    """The correlation ρ of two fields with this covariance and the deviations `scale` and `other`.

    It is ±1 where it is that up to rounding, 0 for a field without variance.
    """
    if scale == 0.0 or other == 0.0:
        return 0.0
    # two divisions: the product of two tiny scales would lose its digits, or be zero
    rho = covariance / scale / other
    return math.copysign(1.0, rho) if abs(rho) > 1.0 - 1e-15 else rho


@without_references
def densities(hinges: Array, others: Array, scale: float, other: float, square: float, plus: float) -> float:
    """The sum Σ κ_j κ'_l exp(−(h_j − h'_l)²/square − h_j h'_l/plus) over the knots of two functions.

    scale, other : the deviations of their fields, with which h = c/s.
    """
    total = 0.0
    for j in range(1, len(hinges), 2):
        h = hinges[j] / scale
        for k in range(1, len(others), 2):
            g = others[k] / other
            total += hinges[j + 1] * others[k + 1] * math.exp(-(h - g) * (h - g) / square - h * g / plus)
    return total


def bent(hinges: Array, others: Array, scale: float, other: float, covariance: float) -> tuple[float, float]:
    """The integral in E[σ σ'] with its factor, and its derivative in the covariance, the integral in E[dσ dσ'].

    scale, other, covariance : of the fields of both functions.
    """
    rho, total, slope = correlation(covariance, scale, other), 0.0, 0.0
    if abs(rho) <= WEAK:
        for node in range(len(chord)):
            sine = rho * chord[node]
            remainder = (1.0 - sine) * (1.0 + sine)
            inner = densities(hinges, others, scale, other, 2.0 * remainder, 1.0 + sine)
            slope += rho * chord_weights[node] / math.sqrt(remainder) * inner
            total += rho * chord_weights[node] * (rho - sine) / math.sqrt(remainder) * inner
        return scale * other / (2.0 * math.pi) * total, slope / (2.0 * math.pi)
    least, signed = math.acos(abs(rho)), math.copysign(other, rho)
    end, low = 0.5 * math.pi, WIDEST
    for _ in range(PANELS):
        begin = max(low, least)
        for node in range(len(arc)):
            psi = begin + (end - begin) * arc[node]
            inner = densities(hinges, others, scale, signed, 2.0 * math.sin(psi) ** 2, 1.0 + math.cos(psi))
            # cos least − cos ψ, without the difference of two numbers near one
            gap = 2.0 * math.sin(0.5 * (psi + least)) * math.sin(0.5 * (psi - least))
            slope += (end - begin) * arc_weights[node] * inner
            total += (end - begin) * arc_weights[node] * gap * inner
        if begin <= least:
            break
        end, low = begin, low / RATIO if low > NARROWEST else 0.0
    return scale * other / (2.0 * math.pi) * total, (slope if rho > 0.0 else -slope) / (2.0 * math.pi)


@without_references
def has_part(hinges: Array) -> bool:
    """Whether a row of hinges has an offset or a jump, and is not zero everywhere."""
    total = abs(hinges[0])
    for j in range(2, len(hinges), 2):
        total += abs(hinges[j])
    return total > 0.0


@without_references
def hinge_product(hinges: Array, others: Array, s: float, t: float, c: float) -> float:
    """The mean E[σ(z) σ'(z')] of fields of deviations s and t and covariance c; zero if either function is."""
    if not (has_part(hinges) and has_part(others)):
        return 0.0
    product = hinge_mean(hinges, 0.0, s) * hinge_mean(others, 0.0, t) + c * mean_slope(s, hinges) * mean_slope(
        t, others
    )
    return product + bent_term(hinges, others, s, t, c)[0] if s != 0.0 and t != 0.0 else product


@without_references
def hinge_square(hinges: Array, mean: float, scale: float) -> float:
    """The mean E[σ(mean + scale u)²] of hinges.

    E[(z − c)⁺ (z − c')⁺], c ≤ c', is the square of the second hinge and c' − c times its mean.
    """
    total = hinges[0] * (2.0 * hinge_mean(hinges, mean, scale) - hinges[0])
    for j in range(1, len(hinges), 2):
        # E[x⁺], E[x⁺²] for x = z − c
        above = mean - hinges[j]
        h = above / scale
        over, density = 0.5 * math.erfc(-h * math.sqrt(0.5)), math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)
        first = above * over + scale * density
        square = above * first + scale * scale * over
        total += hinges[j + 1] * hinges[j + 1] * square
        for k in range(1, j, 2):
            total += 2.0 * hinges[j + 1] * hinges[k + 1] * (square + (hinges[j] - hinges[k]) * first)
    return total


@without_references
def hinge_slopes(hinges: Array, others: Array, s: float, t: float, c: float) -> tuple[float, float]:
    """The means E[σ'(z) u σ*(z*)] and E[σ'(z) v σ*(z*)] of two functions of hinges, by parts.

    z = s u and z* = along u + across v, of the covariance c and the deviation t of z*. By parts they have the density
    of z at its knots, and E[dσ dσ*].
    """
    along, across = split(s, t, c)
    both, at_knots = mean_slope(s, hinges) * mean_slope(t, others), 0.0
    if s != 0.0 and t != 0.0:
        both += bent_term(hinges, others, s, t, c)[1]
    if s != 0.0:
        for j in range(1, len(hinges), 2):
            u = hinges[j] / s
            density = hinges[j + 1] * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
            at_knots += density * hinge_mean(others, along * u, across)
    return at_knots + along * both, across * both


def products(series: Array, omega: Array, out: Array) -> None:
    """Fill out (n, n) with E[σ_m σ_n] of fields with the covariance omega (n, n).

    series (n, 1 + 2J) : a row of hinges for each function.
    """
    for m in range(len(series)):
        for q in range(m + 1):
            s, t = scale_of(omega[m, m]), scale_of(omega[q, q])
            out[m, q] = out[q, m] = hinge_product(series[m], series[q], s, t, omega[m, q])


_ARC, _CHORD = gauss.legendre(12), gauss.legendre(7)
bent_term = inlined(bound(bent, arc=_ARC[0], arc_weights=_ARC[1], chord=_CHORD[0], chord_weights=_CHORD[1]))
"""The compiled `bent`."""


def hinge_means(form: Activation, scales: Array) -> Array:
    """The means E[σ(s u)] of a piecewise linear activation for each s of an array."""
    series = np.array(hinges_row(form))
    return np.array([hinge_mean(series, 0.0, scale) for scale in scales.ravel().tolist()]).reshape(scales.shape)
