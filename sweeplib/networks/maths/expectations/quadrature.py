"""Any activation and any sum of ridge functions, known by value and derivative alone, by quadrature.

The functions are called by address, so the rules are compiled once for all of them.

All fields share one index, z = (λ, κ) ~ N(0, Ω) with κ_r = v_r·λ*, and E = Σ_m b_m σ_m(z_m) + √Δ ζ with b = (−a/p, c).
E[σ'_i z_j σ_m] = cov(z_j, u) E[σ'_i u σ_m] + cov(z_j, v) E[σ'_i v σ_m], z_i along u and z_m in the plane of u and v.
All drifts but Ψ^Var are sums of these (`slope_means`): a third field has a covariance with u and one with v, and is
independent beyond.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.activations.activation import bends_off_zero, lipschitz
from sweeplib.networks.maths.expectations.addresses import ridge_address
from sweeplib.networks.maths.expectations.conditional import givens, room_of, variance_mean
from sweeplib.networks.maths.expectations.expectations import FAMILIES, Expectations, Family, refined
from sweeplib.networks.maths.expectations.fields import counts, fill_fields, function_number
from sweeplib.networks.maths.expectations.grids import filled_up, hinges_row, reach, rest_step
from sweeplib.networks.maths.expectations.hinges import hinge_product, hinge_slopes, scale_of, split
from sweeplib.networks.maths.expectations.nodes import nodes_of, rules_of
from sweeplib.networks.maths.expectations.parts import parts_of
from sweeplib.networks.maths.expectations.plane import components
from sweeplib.networks.maths.expectations.products import MOST_NODES, ROWS, bend_sums, rest_sums, risk
from sweeplib.networks.maths.expectations.system import Drifts, Pair, Ridges, System, ridge_arrays
from sweeplib.networks.numerics.compiled import over_arrays, without_references


def drifts(system: System, out: Drifts) -> None:
    """Fill the drifts: Ψ^a, Ψ^M and Ψ^GF by `slope_means`, and Ψ^Var at Ω times `stretch` by `conditional`."""
    a, pair = system.a, system.pair
    p, k = system.M.shape
    functions, size = counts(pair.weights, p, k)
    omega, weight, number = np.empty((size, size)), np.empty(functions), np.empty(functions, np.int64)
    fill_fields(pair, system.Q, system.M, system.P, a, system.a_star, omega, weight)
    first, second, flow = np.empty(size), np.empty(size), np.zeros((p, size))
    room, rule = np.empty((ROWS, 2 * pair.side + 1)), rules_of(pair.nodes).panel
    for m in range(functions):
        number[m] = function_number(pair.which, p, m)
    for i in range(p):
        out.a[i] = 0.0
        for m in range(functions):
            if weight[m] == 0.0:
                continue
            components(omega, i, m, first, second)
            s, t = scale_of(omega[i, i]), scale_of(omega[m, m])
            # E[σ_i σ_m], and E[σ'_i u σ_m] and E[σ'_i v σ_m], of which z_j has the parts `first` and `second`
            both, by_first, by_second = slope_means(pair, rule, number[m], s, t, omega[i, m], room)
            out.a[i] += weight[m] * both
            for j in range(size):
                flow[i, j] += a[i] * weight[m] * (first[j] * by_first + second[j] * by_second)
        for r in range(k):
            out.M[i, r] = flow[i, size - k + r]
    for i in range(p):
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = flow[i, j] + flow[j, i]

    # Ψ^Var, which nobody reads at the stretch 0
    if system.stretch == 0.0:
        return
    for m in range(size):
        for n in range(size):
            omega[m, n] *= system.stretch
    parts = parts_of(pair, number, weight, p)
    law, work = givens(parts, size, pair.side), room_of(pair, len(parts.field))
    for i in range(p):
        for j in range(i + 1):
            variance = variance_mean(pair, parts, law, omega, system.Delta, i, j, work)
            out.Var[i, j] = out.Var[j, i] = a[i] * a[j] * variance


@cache
def pair_expectations(student: Activation, teacher: Activation) -> Expectations:
    """The expectations of any two activations."""
    result = of_ridges(f"{student.name}|{teacher.name}", student, (teacher,))
    return replace(result, resolved=not (bends_off_zero(student) or bends_off_zero(teacher)))


def of_ridges(name: str, student: Activation, functions: tuple[Activation, ...], ridges: Ridges = ()) -> Expectations:
    """The expectations of an activation and Σ_r c_r τ_r(v_r·λ*); without ridges a committee of the one function.

    functions : the τ. Drifts have the errors that knots elsewhere than at zero cause: callers say whether they count.
    """
    sides = (student, *functions)
    degree = max(len(side.hermite or ()) for side in sides)

    def pair(finer: float) -> Pair:
        """Return the `Pair` of rules with nodes `finer` times as dense."""
        return Pair(
            over_arrays(student.value),
            over_arrays(student.derivative),
            ridge_address(tuple(side.value for side in functions)),
            **ridge_arrays(ridges),
            nodes=nodes_of(finer, degree),
            series=filled_up([hinges_row(side) for side in sides]),
            reach=reach(degree),
            steps=np.array([[rest_step(side) for side in sides]]) / finer,
            side=round(MOST_NODES * finer),
            most=0.0,
        )

    return replace(refined(Expectations(name, risk, drifts), pair), lipschitz=lipschitz(student))


FAMILIES.add(Family("quadrature", 100, pair_expectations))


@without_references
def slope_means(
    pair: Pair, rule: Array, other: int, s: float, t: float, c: float, room: Array
) -> tuple[float, float, float]:
    """The means E[σ(z) σ*(z*)], E[σ'(z) u σ*(z*)] and E[σ'(z) v σ*(z*)], z = s u, of the student and a function σ*.

    other : the number of σ*; its field z* has the deviation t, and the covariance c with z.
    rule (2, nodes), room (ROWS, nodes) : Gauss's rule for panels, and work arrays.
    Functions are hinges and a smooth rest, as in `products`: means of two hinges are in closed form, those of two rests
    are sums over equally spaced u and v, and those of a rest and a hinge integrals over the field of the rest.
    """
    hinges, others = pair.series[0], pair.series[other]
    both = hinge_product(hinges, others, s, t, c)
    first, second = hinge_slopes(hinges, others, s, t, c)
    along, across = split(s, t, c)
    back, behind = split(t, s, c)
    # the student's rest with the hinges of σ*; j = −1 is their offset, the hinge (z + 1)⁺ at z = 0 for all u
    for j in range(-1, len(others) if pair.steps[0, 0] < math.inf else -1, 2):
        jump, knot, bends = (others[0], -1.0, 0.0) if j < 0 else (others[j + 1], others[j], 1.0)
        if jump != 0.0:
            sums = bend_sums(pair, rule, 0, s, bends * along, bends * across, knot, True, room)
            both, first, second = both + jump * sums[0], first + jump * sums[1], second + jump * sums[2]
    # the student's hinges with the rest of σ*, by parts
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
    nan_or_zero = 0.0 * (s + t + c)  # NaN stays NaN
    return both + nan_or_zero, first + nan_or_zero, second + nan_or_zero
