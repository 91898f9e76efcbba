"""The right-hand side of the overlaps' ODE with averages w̄ of the weights, ẇ̄ = κ(t) (w − w̄), κ(t) = κ + η/t.

The state is that of `overlap_flow` with M̄ (p, k), X = w̄wᵀ/d (p, p) and the upper triangle of Q̄ before the time:
dM̄ = κ(t)(M − M̄), dQ̄ = κ(t)(X + Xᵀ − 2Q̄) and dX_ij = κ(t)(Q_ij − X_ij) + E[c_j λ̄_i] − λX_ij, on the sphere − ½Φ_jj X_ij.
The means E[c_j λ̄_i] are drifts of a student of 2p units, the averages with the second layer zero; as its output is a
mean over 2p units, the other ones have twice their second layer, and drifts are halved.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.overlap_flow import (
    Systems,
    Work,
    example,
    factors_now,
    fill_slope,
    state_risk,
    unpack,
    work_space,
)
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import inlined
from sweeplib.networks.numerics.integrators.dop853 import EquationRule, Equations

FIRST = 1e-10
"""The first time at which η/t is what it is, over the last time: before it w̄ is w to rounding."""


class AverageWork(NamedTuple):
    """Work arrays: those of one system, and of the student with its averages."""

    student: Work
    both: Work


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `average_rule`")


of_student = risk_of_student = _unbound


def fill_average_slope(i: int, state: Array, systems: Systems, work: AverageWork, slope: Array) -> None:
    """Fill `slope` (size,) for system i: that of the student, and of the overlaps of its averages behind it."""
    student, both, numbers = work.student, work.both, systems.numbers
    of_student(i, state, systems, student, slope)
    Q, M, a, flow = student.Q, student.M, student.a, student.drifts.GF
    (p, k), last = M.shape, state.shape[0] - 1
    first = last - p * k - p * p - p * (p + 1) // 2
    at_X, at_Q = first + p * k, first + p * k + p * p
    both.Q[:p, :p], both.M[:p] = Q, M
    at = at_Q
    for i_bar in range(p):
        both.a[i_bar], both.a[p + i_bar] = 2.0 * a[i_bar], 0.0
        for r in range(k):
            both.M[p + i_bar, r] = state[first + i_bar * k + r]
        for j in range(p):
            both.Q[p + i_bar, j] = both.Q[j, p + i_bar] = state[at_X + i_bar * p + j]
        for j in range(i_bar, p):
            both.Q[p + i_bar, p + j] = both.Q[p + j, p + i_bar] = state[at]
            at += 1
    rate, chi = factors_now(i, state, systems, student.clock)
    Delta = numbers.Delta[i] * chi
    system = System(both.Q, both.M, systems.P[i], both.a, systems.a_star[i], Delta, 0.0, systems.pair, None)
    if len(systems.L_star) > 0:
        systems.inside(both.Q, both.M, systems.L_star[i], False)
    if systems.is_disturbed:
        keep, input_noise = numbers.keep_probability[i], numbers.input_noise[i]
        systems.disturbed(systems.drifts, keep, input_noise, False, system, both.drifts)
    else:
        systems.drifts(system, both.drifts)
    kappa = numbers.averaging_rate[i] + numbers.averaging_order[i] / max(state[last], FIRST * systems.end[i])
    pull = 0.5 if systems.spherical else 0.0
    at = at_Q
    for i_bar in range(p):
        for r in range(k):
            slope[first + i_bar * k + r] = kappa * (M[i_bar, r] - both.M[p + i_bar, r])
        for j in range(p):
            X = both.Q[p + i_bar, j]
            drift = 0.5 * systems.factor * both.drifts.GF[p + i_bar, j] - numbers.weight_decay[i] * X
            slope[at_X + i_bar * p + j] = kappa * (Q[i_bar, j] - X) + rate * (drift - pull * flow[j, j] * X)
        for j in range(i_bar, p):
            slope[at] = kappa * (both.Q[p + i_bar, j] + both.Q[p + j, i_bar] - 2.0 * both.Q[p + i_bar, p + j])
            at += 1


def average_risk(i: int, state: Array, systems: Systems, work: AverageWork) -> float:
    """The population risk of the student of system i."""
    return float(risk_of_student(i, state, systems, work.student))


@cache
def average_rule() -> EquationRule:
    """`fill_average_slope` for an integrator, compiled once for all activations."""
    slope, risk = (inlined(bound(template, unpacked=inlined(unpack))) for template in (fill_slope, state_risk))
    filled, level = bound(fill_average_slope, of_student=slope), bound(average_risk, risk_of_student=risk)
    return EquationRule(filled, example(), AverageWork(work_space(1, 1), work_space(2, 1)), level)


def average_equations(systems: Systems) -> Equations:
    """The equations of systems with averages."""
    p, k = systems.a.shape[1], systems.a_star.shape[1]
    return Equations(average_rule(), systems, AverageWork(work_space(p, k), work_space(2 * p, k)))


def with_averages(states: Array, Q: Array, M: Array) -> Array:
    """The states (n, size) with the overlaps of averages, which are the weights with these Q and M, before the time."""
    rows, columns = np.triu_indices(Q.shape[1])
    n = len(states)
    parts = M.reshape(n, -1), Q.reshape(n, -1), Q[:, rows, columns]
    return np.concatenate([states[:, :-1], *parts, states[:, -1:]], axis=1)


def averages_of(states: Array, p: int, k: int) -> tuple[Array, Array]:
    """Q̄ (n, p, p) and M̄ (n, p, k) of states with averages."""
    rows, columns = np.triu_indices(p)
    Q, end = np.empty((len(states), p, p)), states.shape[1] - 1
    Q[:, rows, columns] = Q[:, columns, rows] = states[:, end - len(rows) : end]
    first = end - len(rows) - p * p - p * k
    return Q, states[:, first : first + p * k].reshape(-1, p, k).copy()
