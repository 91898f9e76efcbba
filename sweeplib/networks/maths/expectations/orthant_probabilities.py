"""Probabilities that Gaussian fields are above their knots, each at many means, and their derivatives.

With h = (μ − c)/s of a field of the mean μ, the deviation s and the knot c: Φ(h) of one field, Φ_2(h, g; ρ) of two with
the correlation ρ. Φ_2 is the integral of its density over the angle of ρ, in the panels of `hinges`. Φ_3 is the
probability of three fields x, y and z; its derivative in one correlation is the density of two fields at their knots,
times Φ of the third given these (Plackett, Biometrika 41, 351 (1954)). Errors are below 10⁻¹¹. φ is the density of
N(0, 1), and ρ̄² = 1 − ρ².

h, g and f are arrays (nodes,), of which the first `count` numbers are read; so are those that are filled.
"""

import math
from typing import Any

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.maths.expectations.hinges import NARROWEST, PANELS, RATIO, WEAK, WIDEST
from sweeplib.networks.numerics.compiled import loops, without_references
from sweeplib.networks.numerics.elementary import error_function, exponential

ARC, ARC_WEIGHTS = gauss.legendre(12)
"""Gauss's rule in a panel of the angle of ρ, or of a path of correlations."""
CHORD, CHORD_WEIGHTS = gauss.legendre(7)
"""Gauss's rule in a small ρ."""
FAR, FARTHEST, LEAST_RHO_BAR = 8.5, 50.0, 1e-9
"""Below −h of the first, Φ is zero; larger h count as the second, smaller ρ̄ as the third."""
ROOT_HALF, DENSITY = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
"""1/√2, and the density of N(0, 1) at 0."""


@loops
def fill_normal(h: Array, count: int, out: Array) -> None:
    """Fill out with Φ(h) of the first `count` numbers h."""
    for n in range(count):
        out[n] = 0.5 + 0.5 * error_function(ROOT_HALF * h[n])


@without_references
def rho_bar(rho: float) -> float:
    """The factor ρ̄ = √(1 − ρ²), at least LEAST_RHO_BAR, as it divides."""
    return max(math.sqrt((1.0 - rho) * (1.0 + rho)), LEAST_RHO_BAR)


@loops
def fill_given(h: Array, g: Array, rho: float, count: int, field: Array, out: Array) -> None:
    """Fill `field` with (h − ρ g)/ρ̄, what h is where the field of g is at its knot, and `out` with Φ of it."""
    bar = rho_bar(rho)
    for n in range(count):
        field[n] = max(min((h[n] - rho * g[n]) / bar, FARTHEST), -FARTHEST)
    fill_normal(field, count, out)


@loops
def add_densities(
    share: float, h: Array, g: Array, sign: float, by: float, plus: float, count: int, out: Array
) -> None:
    """Add share exp(−by (h ∓ g)² ∓ h g/plus) to the first `count` of out, with the upper signs for `sign` +1."""
    plus = sign / plus
    for n in range(count):
        gap = h[n] - sign * g[n]
        out[n] += share * exponential(-gap * gap * by - h[n] * g[n] * plus)


@loops
def add_arc(h: Array, g: Array, rho: float, count: int, out: Array) -> None:
    """Add Φ_2(h, g; ρ) − Φ(h) Φ(g) to the first `count` of out, by nodes in the angle of ρ, or in a small ρ."""
    if abs(rho) <= WEAK:
        for q in range(len(CHORD)):
            sine = rho * CHORD[q]
            remainder = (1.0 - sine) * (1.0 + sine)
            share = rho * CHORD_WEIGHTS[q] / (2.0 * math.pi * math.sqrt(remainder))
            add_densities(share, h, g, 1.0, 0.5 / remainder, 1.0 + sine, count, out)
        return
    least, end, low, sign = math.acos(abs(rho)), 0.5 * math.pi, WIDEST, math.copysign(1.0, rho)
    for _ in range(PANELS):
        begin = max(low, least)
        for q in range(len(ARC)):
            psi = begin + (end - begin) * ARC[q]
            share = sign * (end - begin) * ARC_WEIGHTS[q] / (2.0 * math.pi)
            add_densities(share, h, g, sign, 0.5 / math.sin(psi) ** 2, 1.0 + math.cos(psi), count, out)
        if begin <= least:
            break
        end, low = begin, low / RATIO if low > NARROWEST else 0.0


@loops
def add_plackett(
    share: float, fields: Any, rho: tuple[float, float, float], count: int, room: Array, out: Array
) -> None:
    """Add share · 2π ∂Φ_3/∂ρ_xy to out, at the fields (h, g, f) of x, y, z and the correlations (ρ_xy, ρ_xz, ρ_yz)."""
    (h, g, f), (xy, xz, yz) = fields, rho
    remainder = rho_bar(xy) ** 2
    det = max(remainder - xz * xz - yz * yz + 2.0 * xy * xz * yz, LEAST_RHO_BAR**2)
    by, first, second = 1.0 / math.sqrt(remainder * det), xz - yz * xy, yz - xz * xy
    for n in range(count):
        room[6, n] = (f[n] * remainder - h[n] * first - g[n] * second) * by
    fill_normal(room[6], count, room[7])
    share = share / math.sqrt(remainder)
    for n in range(count):
        square = h[n] * h[n] + g[n] * g[n] - 2.0 * xy * h[n] * g[n]
        out[n] += share * room[7, n] * exponential(-0.5 * square / remainder)
