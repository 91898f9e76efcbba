"""E[σ(z) σ*(z*)], E[σ'(z) u σ*(z*)] and E[σ'(z) v σ*(z*)] of a student and any function.

Here z = s u and z* = along u + across v.

All drifts but Ψ^Var are sums of these: a third field has a covariance with u and one with v, and is independent beyond.
Functions are hinges and a smooth rest, as in `products`. Means of two hinges are in closed form, those of two rests are
sums over equally spaced u and v, and those of a rest and a hinge integrals over the field of the rest.
"""

import math

from sweeplib.arrays import Array
from sweeplib.maths.expectations.hinges import hinge_product, hinge_slopes, split
from sweeplib.maths.expectations.products import bend_sums, rest_sums
from sweeplib.maths.expectations.system import Pair
from sweeplib.numerics.compiled import without_references


@without_references
def slope_means(
    pair: Pair, rule: Array, other: int, s: float, t: float, c: float, room: Array
) -> tuple[float, float, float]:
    """The three means of the student and the function `other`, of deviations s and t and covariance c."""
    hinges, others = pair.series[0], pair.series[other]
    both = hinge_product(hinges, others, s, t, c)
    first, second = hinge_slopes(hinges, others, s, t, c)
    along, across = split(s, t, c)
    back, behind = split(t, s, c)
    for j in range(-1, len(others) if pair.steps[0, 0] < math.inf else -1, 2):
        jump, knot, bends = (others[0], -1.0, 0.0) if j < 0 else (others[j + 1], others[j], 1.0)
        if jump != 0.0:
            sums = bend_sums(pair, rule, 0, s, bends * along, bends * across, knot, True, room)
            both, first, second = both + jump * sums[0], first + jump * sums[1], second + jump * sums[2]
    for j in range(-1, len(hinges) if pair.steps[0, other] < math.inf else -1, 2):
        jump, knot, bends = (hinges[0], -1.0, 0.0) if j < 0 else (hinges[j + 1], hinges[j], 1.0)
        if jump != 0.0:
            sums = bend_sums(pair, rule, other, t, bends * back, bends * behind, knot, True, room)
            both += jump * sums[0]
            first += bends * jump * sums[3] / s if s > 0.0 else 0.0
            second += bends * jump * across * sums[4] / t if t > 0.0 else 0.0
    if max(pair.steps[0, 0], pair.steps[0, other]) < math.inf:
        sums_of_rests = rest_sums(pair, 0, other, s, t, c, True, room)
        both, first, second = both + sums_of_rests[0], first + sums_of_rests[1], second + sums_of_rests[2]
    nothing = 0.0 * (s + t + c)  # NaN stays NaN
    return both + nothing, first + nothing, second + nothing
