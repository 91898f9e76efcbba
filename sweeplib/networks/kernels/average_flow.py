"""The right-hand side of the overlaps' ODE with averages w̄ of the weights, ẇ̄ = κ(t) (w − w̄), κ(t) = κ + η/t.

κ and η are the problem's `averaging_rate` and `averaging_order`. The state is that of `overlap_flow` with the overlaps
of the averages before the time: u M̄ (p, k), M̄ = w̄W*ᵀ/d; u X (p, p), X = w̄wᵀ/d; and the upper triangle of u² Q̄,
Q̄ = w̄w̄ᵀ/d. Here u = (t/t_end)^η takes 1/t out of the equations. With s = κ u + u̇ they are

    (u M̄)' = s M − κ u M̄,    (u² Q̄)' = s u (X + Xᵀ) − 2κ u² Q̄,
    (u X_ij)' = s Q_ij − κ u X_ij + u (E[c_j λ̄_i] − λX_ij), on the sphere − ½ u Φ_jj X_ij,

with c_j = a_j σ'(λ_j) E, the field λ̄_i = w̄_i·x, the weight decay λ and Φ = Q̇. The means E[c_j λ̄_i] are drifts of a
student of 2p units, first those of the student, then the averages, whose second layer is zero. As its output is a mean
over 2p units, the student's units have twice their second layer there, and drifts are halved. `systems` are the
constants of n systems, i the number of one, `work` its work arrays.
"""

from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.overlap_flow import (
    Systems,
    Work,
    factors_now,
    fill_slope,
    state_risk,
    work_space,
)
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import inlined
from sweeplib.networks.numerics.integrators.dop853 import Equations

LEAST = 1e-100
"""Below this u averages are the weights: they have had no time to differ."""


class AverageWork(NamedTuple):
    """Work arrays: of the student, and of `both`, the student of 2p units made of it and its averages."""

    student: Work
    both: Work


of_student, risk_of_student = inlined(fill_slope), inlined(state_risk)


def fill_average_slope(i: int, state: Array, systems: Systems, work: AverageWork, slope: Array) -> None:
    """Fill `slope` (size,) of a state (size,) of system i: of the student, and behind it of the averages' overlaps."""
    student, both, numbers = work.student, work.both, systems.numbers
    of_student(i, state, systems, student, slope)
    Q, M, a, flow = student.Q, student.M, student.a, student.drifts.GF
    (p, k), last = M.shape, state.shape[0] - 1
    # places of the state at which u M̄, u X and u² Q̄ begin
    at_M = last - p * k - p * p - p * (p + 1) // 2
    at_X, at_Q = at_M + p * k, at_M + p * k + p * p
    time, end, order = min(state[last], systems.end[i]), systems.end[i], numbers.averaging_order[i]
    u = (time / end) ** order
    # the student of 2p units; at the start, u = 0, averages are the weights
    both.Q[:p, :p], both.M[:p] = Q, M
    at = at_Q
    for i_bar in range(p):
        both.a[i_bar], both.a[p + i_bar] = 2.0 * a[i_bar], 0.0
        for r in range(k):
            both.M[p + i_bar, r] = state[at_M + i_bar * k + r] / u if u > LEAST else M[i_bar, r]
        for j in range(p):
            both.Q[p + i_bar, j] = state[at_X + i_bar * p + j] / u if u > LEAST else Q[i_bar, j]
            both.Q[j, p + i_bar] = both.Q[p + i_bar, j]
        for j in range(i_bar, p):
            both.Q[p + i_bar, p + j] = state[at] / (u * u) if u > LEAST else Q[i_bar, j]
            both.Q[p + j, p + i_bar] = both.Q[p + i_bar, p + j]
            at += 1
    rate, chi = factors_now(i, state, systems, student.clock)
    Delta = numbers.Delta[i] * chi
    system = System(both.Q, both.M, systems.P[i], both.a, systems.a_star[i], Delta, 0.0, systems.pair, None)
    # rules by quadrature have factors L*, and need an Ω ≥ 0
    if len(systems.L_star) > 0:
        systems.inside(both.Q, both.M, systems.L_star[i], False)
    if systems.is_disturbed:
        keep, input_noise = numbers.keep_probability[i], numbers.input_noise[i]
        systems.disturbed(systems.drifts, keep, input_noise, False, system, both.drifts)
    else:
        systems.drifts(system, both.drifts)
    # on the sphere rows of the weights lose their growth, ½ Φ_jj
    kappa, pull = numbers.averaging_rate[i], 0.5 if systems.spherical else 0.0
    s = kappa * u + (order / end * (time / end) ** (order - 1.0) if order > 0.0 else 0.0)
    at = at_Q
    for i_bar in range(p):
        for r in range(k):
            v = at_M + i_bar * k + r
            slope[v] = s * M[i_bar, r] - kappa * state[v]
        for j in range(p):
            v, X = at_X + i_bar * p + j, both.Q[p + i_bar, j]
            # halved, as the second layer is doubled
            drift = systems.factor * (0.5 * both.drifts.GF[p + i_bar, j] - numbers.weight_decay[i] * X)
            slope[v] = s * Q[i_bar, j] - kappa * state[v] + rate * u * (drift - pull * flow[j, j] * X)
        for j in range(i_bar, p):
            of_both = state[at_X + i_bar * p + j] + state[at_X + j * p + i_bar]
            slope[at] = s * of_both - 2.0 * kappa * state[at]
            at += 1


def average_risk(i: int, state: Array, systems: Systems, work: AverageWork) -> float:
    """The population risk of the student of system i."""
    return float(risk_of_student(i, state, systems, work.student))


def average_equations(systems: Systems) -> Equations:
    """The equations of n systems, for states with the overlaps of averages."""
    p, k = systems.a.shape[1], systems.a_star.shape[1]
    work = AverageWork(work_space(p, k), work_space(2 * p, k))
    return Equations(fill_average_slope, systems, work, average_risk)


def with_averages(states: Array, Q: Array, M: Array, u: Array) -> Array:
    """The states (n, size) with overlaps of averages before their last variable, the time; averages equal the weights.

    Q (n, p, p), M (n, p, k) : overlaps of the weights. u (n,) : (t/t_end)^η at these states.
    """
    rows, columns = np.triu_indices(Q.shape[1])
    n, u = len(states), u[:, None]
    parts = u * M.reshape(n, -1), u * Q.reshape(n, -1), u**2 * Q[:, rows, columns]
    return np.concatenate([states[:, :-1], *parts, states[:, -1:]], axis=1)


def averages_of(states: Array, Q: Array, M: Array, u: Array) -> tuple[Array, Array]:
    """Q̄ (n, p, p) and M̄ (n, p, k) of states (n, size) with averages; Q and M of the weights where u ≤ LEAST.

    u (n,) : (t/t_end)^η at these states.
    """
    p, (rows, columns) = Q.shape[1], np.triu_indices(Q.shape[1])
    Q, end, late = Q.copy(), states.shape[1] - 1, u > LEAST
    square, first = u[late, None] ** 2, end - len(rows) - p * p - M[0].size
    of_late = np.flatnonzero(late)[:, None]
    Q[of_late, rows, columns] = Q[of_late, columns, rows] = states[late, end - len(rows) : end] / square
    averages = states[late, first : first + M[0].size] / u[late, None]
    M = M.copy()
    M[late] = averages.reshape(-1, *M.shape[1:])
    return Q, M
