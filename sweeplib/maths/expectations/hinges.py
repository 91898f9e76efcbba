"""Piecewise linear activations on both sides, σ(z) = o + Σ_j κ_j (z − c_j)⁺, with knots elsewhere than at zero.

Of two fields of deviations s, s' and covariance s s' sin ϑ_0, the second derivative of E[σ σ'] in the covariance is
Σ_jl κ_j κ'_l times the Gaussian density at (c_j, c'_l). Its integral, with h = c/s, is

E[σ σ'] = E[σ] E[σ'] + s s' sin ϑ_0 E[dσ] E[dσ']
    + s s'/2π Σ_jl κ_j κ'_l ∫_0^ϑ_0 (sin ϑ_0 − sin ϑ) exp(−(h_j² + h'_l² − 2 h_j h'_l sin ϑ)/(2 cos²ϑ)) dϑ,

E[σ] = o + Σ_j κ_j (s φ(h_j) − c_j Φ(−h_j)), E[dσ] = Σ_j κ_j Φ(−h_j). With ψ = π/2 − |ϑ|, in which nothing cancels,
the integrand changes on the scale |h_j − h'_l| at small ψ: Gauss-Legendre quadrature in panels whose ends are in
geometric progression towards ψ = 0; for |sin ϑ_0| < .3, where it is smooth in sin ϑ, seven nodes. Error: below 10⁻¹¹ of
the largest κ κ' s s'.
"""

import math
from typing import Any

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations import gauss
from sweeplib.maths.expectations.grids import hinges_row
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import compiled, inlined, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]

SMALLEST = 1e-140
"""A field of a smaller standard deviation counts as zero: the squares of its h would overflow."""

PANELS, WIDEST, NARROWEST, RATIO = 11, 0.7, 1e-4, 3.0
"""At most so many panels, the first of which ends at ψ = .7; below ψ = 10⁻⁴ a last one has less than 10⁻¹²."""

WEAK = 0.3
"""Up to this correlation, few nodes in sin ϑ are enough."""

arc: tuple[float, ...] = ()
arc_weights: tuple[float, ...] = ()
chord: tuple[float, ...] = ()
chord_weights: tuple[float, ...] = ()


@compiled
def mean_of(scale: float, hinges: Array) -> float:
    """E[σ(s u)], u ~ N(0, 1)."""
    total = hinges[0]
    for j in range(1, len(hinges), 2):
        knot, jump = hinges[j], hinges[j + 1]
        if scale == 0.0:
            total += jump * max(-knot, 0.0)
        else:
            h = knot / scale
            density = math.exp(-0.5 * h * h) / math.sqrt(2.0 * math.pi)
            total += jump * (scale * density - 0.5 * knot * math.erfc(h * math.sqrt(0.5)))
    return total


@inlined
def mean_slope(scale: float, hinges: Array) -> float:
    """E[σ'(s u)]; zero where s is."""
    total = 0.0
    if scale != 0.0:
        for j in range(1, len(hinges), 2):
            total += hinges[j + 1] * 0.5 * math.erfc(hinges[j] / scale * math.sqrt(0.5))
    return total


@inlined
def scale_of(variance: float) -> float:
    """√q, or zero where it is tiny; NaN stays NaN."""
    scale = math.sqrt(max(variance, 0.0)) if variance < math.inf else variance
    return 0.0 if scale < SMALLEST else scale


@inlined
def densities(hinges: Array, others: Array, scale: float, other: float, square: float, plus: float) -> float:
    """Σ κ_j κ'_l exp(−(h_j − h'_l)²/square − h_j h'_l/plus)."""
    total = 0.0
    for j in range(1, len(hinges), 2):
        h = hinges[j] / scale
        for k in range(1, len(others), 2):
            g = others[k] / other
            total += hinges[j + 1] * others[k + 1] * math.exp(-(h - g) * (h - g) / square - h * g / plus)
    return total


def bent(hinges: Array, others: Array, scale: float, other: float, covariance: float) -> float:
    """The last term of E[σ σ']."""
    rho, total = max(min(covariance / scale / other, 1.0), -1.0), 0.0
    if abs(rho) <= WEAK:
        for node in range(len(chord)):
            sine = rho * chord[node]
            rest = (1.0 - sine) * (1.0 + sine)
            inner = densities(hinges, others, scale, other, 2.0 * rest, 1.0 + sine)
            total += rho * chord_weights[node] * (rho - sine) / math.sqrt(rest) * inner
        return scale * other / (2.0 * math.pi) * total
    least, signed = math.acos(abs(rho)), math.copysign(other, rho)
    end, low = 0.5 * math.pi, WIDEST
    for _ in range(PANELS):
        begin = max(low, least)
        for node in range(len(arc)):
            psi = begin + (end - begin) * arc[node]
            inner = densities(hinges, others, scale, signed, 2.0 * math.sin(psi) ** 2, 1.0 + math.cos(psi))
            gap = 2.0 * math.sin(0.5 * (psi + least)) * math.sin(0.5 * (psi - least))
            total += (end - begin) * arc_weights[node] * gap * inner
        if begin <= least:
            break
        end, low = begin, low / RATIO if low > NARROWEST else 0.0
    return scale * other / (2.0 * math.pi) * total


@without_references
def has_part(hinges: Array) -> bool:
    """Whether a row of hinges has an offset or a jump."""
    total = abs(hinges[0])
    for j in range(2, len(hinges), 2):
        total += abs(hinges[j])
    return total > 0.0


@inlined
def hinge_product(hinges: Array, others: Array, s: float, t: float, c: float) -> float:
    """E[σ(z) σ'(z')] of fields of standard deviations s and t and covariance c; zero if either function is."""
    if not (has_part(hinges) and has_part(others)):
        return 0.0
    product = mean_of(s, hinges) * mean_of(t, others) + c * mean_slope(s, hinges) * mean_slope(t, others)
    return product + bent_term(hinges, others, s, t, c) if s != 0.0 and t != 0.0 else product


def products(series: Array, omega: Array, out: Array) -> None:
    """Fill E[σ_m σ_n] (n, n) of fields of the covariance omega (n, n), each with a function of its own (n, 1 + 2J)."""
    for m in range(len(series)):
        for q in range(m + 1):
            s, t = scale_of(omega[m, m]), scale_of(omega[q, q])
            out[m, q] = out[q, m] = hinge_product(series[m], series[q], s, t, omega[m, q])


_ARC, _CHORD = gauss.legendre(12), gauss.legendre(7)
bent_term = inlined(bound(bent, arc=_ARC[0], arc_weights=_ARC[1], chord=_CHORD[0], chord_weights=_CHORD[1]))


def hinge_means(form: Activation, scales: Array) -> Array:
    """E[σ(s u)], u ~ N(0, 1), for each s of an array."""
    series = np.array(hinges_row(form))
    return np.array([mean_of(scale, series) for scale in scales.ravel().tolist()]).reshape(scales.shape)
