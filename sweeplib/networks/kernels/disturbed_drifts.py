"""The drifts of the overlaps with dropout and noise of the student's inputs, by the rule for those without.

Dropout: drifts are means of those at the second layer D_l a_l over D_l = b_l/π, independent numbers of the mean 1 and
the variance r = (1 − π)/π. With b_i = 1 unit i has D_i = 1/π = 1 + r, and all others count on average: Ψ^M_ir/D_i,
E[c_i λ_i]/D_i and Ψ^a_i are linear in D. As E[σ'_i σ_i λ_j] = Q_ij E[σ'_i σ_i λ_i]/Q_ii, the change of E[c_i λ_i] gives
those of E[c_i λ_j]. W_ij = Ψ^Var_ij/(D_i D_j) is quadratic in D: it is taken at D_i = D_j = 1/π, and the mean over each
other D_l adds r times half the second derivative by it.

Noise of inputs: fields of the student are those of x + √ϱ ξ, of the covariance (1 + ϱ) Q. Rows of the teacher count
twice, with fields of x, which give the label, and with fields of x + √ϱ ξ, along which the student moves.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.networks.maths.expectations import Expectations
from sweeplib.networks.maths.expectations.addresses import DRIFTS, drifts_address, drifts_type, owned, system_type
from sweeplib.networks.maths.expectations.system import Drifts, System, drifts_room, empty_drifts
from sweeplib.networks.numerics.compiled import inlined, pointer
from sweeplib.networks.numerics.python_calls import compiled


def disturbed_drifts(
    needed: Expectations, system: System, keep: float, noise: float, *, with_variance: bool = True
) -> Drifts:
    """The drifts of one system with dropout and noise of inputs, by the rule `needed.drifts` for drifts without them.

    keep, noise : the probability π, and the variance ϱ. with_variance : whether Ψ^Var shall have dropout too.
    """
    out = empty_drifts(*system.M.shape)
    rules = disturbed_address(is_called=True), drifts_address(needed.drifts)
    compiled(_call)(*rules, float(keep), float(noise), with_variance, owned(system._replace(pair=needed.pair)), out)
    return out


def _call(address, rule, keep, noise, with_variance, system, out):  # type: ignore[no-untyped-def]
    """Call `disturbed`, or what has its signature, by its address."""
    address(rule, keep, noise, with_variance, system, out)


@cache
def disturbed_address(is_called: bool) -> Any:
    """The address of `disturbed` if it `is_called`; else of a function that does nothing and compiles in less time."""
    number, rule = types.float64, types.FunctionType(DRIFTS)
    signature = types.void(rule, number, number, types.boolean, system_type(0), drifts_type(0))
    return pointer(disturbed if is_called else undisturbed, signature)


def undisturbed(rule: Any, keep: float, noise: float, with_variance: bool, system: System, out: Drifts) -> None:
    """Do nothing, in place of `disturbed`: systems without dropout and noise have an address that they do not call."""


@inlined
def with_noisy_inputs(rule, noise, system, a, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the drifts of the system at the second layer a (p,), by the rule at a teacher with 2k rows.

    noise : the variance ϱ. The rows have fields of x, then fields of the student's inputs. As the rule takes
    f* = (1/2k) Σ a*_r σ*(λ*_r), rows with fields of x have 2a*_r; the others have a* = 0. `pair` serves 2k rows as it
    serves k, one function for all: `ode_limits` refuses other targets with noise of inputs.
    """
    Q, M, P, _, a_star, Delta, stretch, pair, others = system
    if noise == 0.0:
        rule(System(Q, M, P, a, a_star, Delta, stretch, pair, others), out)
        return
    (p, k), growth = M.shape, 1.0 + noise
    M_twice, P_twice, layer_twice = np.empty((p, 2 * k)), np.empty((2 * k, 2 * k)), np.zeros(2 * k)
    for r in range(k):
        layer_twice[r] = 2.0 * a_star[r]
        for i in range(p):
            M_twice[i, r], M_twice[i, k + r] = M[i, r], growth * M[i, r]
        for s in range(k):
            P_twice[r, s] = P_twice[r, k + s] = P_twice[k + r, s] = P[r, s]
            P_twice[k + r, k + s] = growth * P[r, s]
    drifts = Drifts(np.empty((p, 2 * k)), out.GF, out.Var, out.a)
    rule(System(growth * Q, M_twice, P_twice, a, layer_twice, Delta, stretch, pair, others), drifts)
    for i in range(p):
        for r in range(k):
            out.M[i, r] = drifts.M[i, k + r]
        for j in range(p):
            # the rule counts ‖x‖² as d: the student's inputs have (1 + ϱ) d
            out.Var[i, j] *= growth


def disturbed(rule: Any, keep: float, noise: float, with_variance: bool, system: System, out: Drifts) -> None:
    """Fill `out` with the drifts by the address of a rule, at `keep` = π and `noise` = ϱ.

    with_variance : whether Ψ^Var has dropout too: then the rule is called 1 + 2p + p(p − 1)/2 times, otherwise 1 + p
    times, as W is known along D_l at 1, 2 and −1, and for each pair at 1/π.
    """
    Q, a = system.Q, system.a
    p, k = system.M.shape
    with_noisy_inputs(rule, noise, system, a, out)
    if keep == 1.0:
        return
    r, layer, flow = (1.0 - keep) / keep, a.copy(), np.empty(p)
    at_two, at_minus_one = drifts_room(p, k), drifts_room(p, k)
    before, change = out.Var.copy(), np.zeros((p, p))
    for l in range(p):  # noqa: E741
        # D_l = 2, all others at their mean 1
        layer[l] = 2.0 * a[l]
        with_noisy_inputs(rule, noise, system, layer, at_two)
        for s in range(k):
            out.M[l, s] += r * (0.5 * at_two.M[l, s] - out.M[l, s])
        out.a[l] += r * (at_two.a[l] - out.a[l])
        # by half, as Ψ^GF_ll counts E[c_l λ_l] twice
        flow[l] = 0.5 * r * (0.5 * at_two.GF[l, l] - out.GF[l, l])
        if with_variance:
            # D_l = −1
            layer[l] = -a[l]
            with_noisy_inputs(rule, noise, system, layer, at_minus_one)
            add_change(l, r, before, at_two.Var, at_minus_one.Var, change)
            for j in range(l):
                # both D_l and D_j at 1/π
                layer[l], layer[j] = a[l] / keep, a[j] / keep
                with_noisy_inputs(rule, noise, system, layer, at_two)
                change[l, j] += keep * keep * at_two.Var[l, j] - before[l, j]
                layer[j] = a[j]
        layer[l] = a[l]
    for i in range(p):
        for j in range(i + 1):
            share = 1.0 / keep if i == j else 1.0
            out.Var[i, j] = out.Var[j, i] = share * (before[i, j] + change[i, j])
            for unit in (i, j):
                out.GF[i, j] += Q[i, j] / Q[unit, unit] * flow[unit] if Q[unit, unit] > 0.0 else 0.0
            out.GF[j, i] = out.GF[i, j]


@inlined
def add_change(l, r, at_one, at_two, at_minus_one, change):  # type: ignore[no-untyped-def]  # noqa: E741
    """Add to `change` by how much W changes with D_l, in its mean over D_l or, of (l, l), at D_l = 1/π = 1 + r.

    at_one, at_two, at_minus_one (p, p) : Ψ^Var at D_l = 1, 2 and −1, the first of which is W too. r : (1 − π)/π.
    """
    for i in range(len(change)):
        for j in range(i + 1):
            count = (1 if i == l else 0) + (1 if j == l else 0)
            # W from Ψ^Var: without the factor D_l of each index that is l
            up, down = at_two[i, j] * 0.5**count, at_minus_one[i, j] * (-1.0) ** count
            # W(1 + h) = W(1) + s h + b h² is known at h = 1 and h = −2: this is b
            bend = (up - at_one[i, j] - 0.5 * (at_one[i, j] - down)) / 3.0
            # the mean of s h + b h² over h of the variance r, or its value at h = r; pairs (l, j) are taken apart
            if count == 0:
                change[i, j] += r * bend
            elif count == 2:
                change[i, j] += r * (up - at_one[i, j]) + r * (r - 1.0) * bend
