"""The right-hand side of the overlaps' ODE on a flat state, compiled.

The state is the upper triangle of Q row by row, then M, then a where the second layer is trained; for spherical
students the triangle is strict, because Q_ii = 1. With a schedule the last variable is the time, and with AdaGrad-norm
the sum B of squared gradients. Ψ^M, Ψ^GF, Ψ^Var and Ψ^a are the drifts of docs/theory.md, ξ and χ the schedules of the
learning rate and of the label noise. `systems` are the constants of n systems, i the number of one, `work` its work
arrays.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.numbers import Numbers
from sweeplib.networks.maths.expectations.lines import fill_given_teacher
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System, empty_drifts
from sweeplib.networks.maths.overlaps import on_sphere
from sweeplib.networks.numerics.compiled import inlined, pointer, without_references

ROUNDING = 1e-14
"""The rounding error of Ψ^M relative to its bound √(Ψ^Var P): where M = 0 has no drift, it would start an escape."""


class Systems(NamedTuple):
    """The constants of n systems.

    spherical, trained : whether students stay on the sphere, and whether the second layer is trained.
    numbers : `Numbers` (n,), whose noise is the factor of Ψ^Var, γ/p in the Saad-Solla ODE.
    P (n, k, k), a (n, p), a_star (n, k) : the teacher's overlaps, second layers at the start and of the teacher.
    pair, drifts, risk : the argument of the rules for drifts and risk, and their addresses.
    L_star : for rules by quadrature the factors L* of P (n, k, k), otherwise none (0, k, k).
    inside : address of `take_inside`.
    scheduled : whether anything depends on the time.
    rates, anneals, noise : address of ξ; whether the label noise has a schedule; address of χ.
    end (n,) : the last times at which ξ and χ are needed.
    factor, adapts : the factor of c in steps of the weights, and of their decay; whether that of c is 1/√B instead.
    is_disturbed, disturbed : whether there is dropout or noise of inputs, and the address of `disturbed`.
    """

    spherical: bool
    trained: bool
    numbers: Any
    P: Array
    a: Array
    a_star: Array
    pair: Pair
    drifts: Any
    risk: Any
    L_star: Array
    inside: Any
    scheduled: bool
    rates: Any
    anneals: bool
    noise: Any
    end: Array
    factor: float
    adapts: bool
    is_disturbed: bool
    disturbed: Any


class Work(NamedTuple):
    """Work arrays of one system: Q (p, p), M (p, k), a (p,), their drifts, a risk (1,), a time and ξ there (2, 1)."""

    Q: Array
    M: Array
    a: Array
    drifts: Drifts
    risk: Array
    clock: Array


def work_space(p: int, k: int) -> Work:
    """Empty work arrays for systems of p student units and k teacher units."""
    return Work(np.empty((p, p)), np.empty((p, k)), np.empty(p), empty_drifts(p, k), np.empty(1), np.empty((2, 1)))


@cache
def inside_address() -> Any:
    """`take_inside` as an argument of compiled code, for which it is compiled once."""
    matrix = numba.types.Array(numba.types.float64, 2, "C")
    return pointer(take_inside, numba.void(matrix, matrix, matrix, numba.types.boolean))


def take_inside(Q: Array, M: Array, L_star: Array, spherical: bool) -> None:
    """Replace Q (p, p) by the nearest with Ω ≥ 0 at the same M (p, k) and L* (k, k); divide spherical rows by norms.

    Closed forms go on smoothly beyond Ω ≥ 0. Nodes cannot: at a field without variance they lose its correlations.
    """
    p, k = M.shape
    A, remainder = np.zeros((p, k)), np.empty((p, p))
    fill_given_teacher(Q, M, L_star, A, remainder)
    if is_covariance(remainder.copy()) or not np.isfinite(remainder).all():
        return
    values, vectors = np.linalg.eigh(remainder)
    # what is negative beyond the teacher is taken away
    for m in range(p):
        for i in range(p if values[m] < 0.0 else 0):
            for j in range(p):
                Q[i, j] -= values[m] * vectors[i, m] * vectors[j, m]
    for i in range(p if spherical else 0):  # element by element: numba compiles two seconds for `M[i] /= norm`
        norm = math.sqrt(Q[i, i])
        for r in range(k):
            M[i, r] /= norm
        for j in range(p):
            Q[i, j] /= norm
        for j in range(p):
            Q[j, i] /= norm


@inlined
def is_covariance(matrix: Array) -> bool:
    """Whether a symmetric matrix (p, p), which is overwritten, is positive semi-definite, by its pivots."""
    for j in range(len(matrix)):
        for i in range(j + 1, len(matrix)):
            if matrix[j, j] < 0.0 or (matrix[j, j] == 0.0 and matrix[i, j] != 0.0):
                return False
            for l in range(j + 1, i + 1):  # noqa: E741
                matrix[i, l] -= matrix[i, j] * matrix[l, j] / matrix[j, j] if matrix[j, j] > 0.0 else 0.0
    return len(matrix) == 0 or bool(matrix[-1, -1] >= 0.0)


def unpack(state: Array, spherical: bool, trained: bool, Q: Array, M: Array, a: Array) -> None:
    """Fill Q (p, p), M (p, k) and, if it is `trained`, a (p,) from the flat state (size,); otherwise a stays."""
    p, k = M.shape
    first = 1 if spherical else 0
    at = 0
    for i in range(p):
        Q[i, i] = 1.0
        for j in range(i + first, p):
            Q[i, j] = Q[j, i] = state[at]
            at += 1
    for i in range(p):
        for r in range(k):
            M[i, r] = state[at]
            at += 1
    if trained:
        for i in range(p):
            a[i] = state[at + i]


unpacked = inlined(unpack)
"""`unpack` for kernels; Python calls it too."""


def overlaps_of(states: Array, p: int, k: int, spherical: bool) -> tuple[Array, Array, Array]:
    """Q (n, p, p) and M (n, p, k) of flat states (n, size), and their columns behind those (n, others): a, the last."""
    rows, columns = np.triu_indices(p, 1 if spherical else 0)
    Q, end = np.ones((len(states), p, p)), len(rows) + p * k
    Q[:, rows, columns] = Q[:, columns, rows] = states[:, : len(rows)]
    return Q, states[:, len(rows) : end].reshape(-1, p, k).copy(), states[:, end:]


def pack(Q: Array, M: Array, a: Array, spherical: bool, trained: bool, last: Array | None = None) -> Array:
    """The flat states (n, size) of n systems at time zero; rows of spherical students are normalised first.

    Q (n, p, p), M (n, p, k), a (n, p). last (n,) : the last variable, a time or the sum B; None without one.
    """
    if spherical:
        Q, M = on_sphere(Q, M)
    rows, columns = np.triu_indices(Q.shape[1], 1 if spherical else 0)
    parts = [Q[:, rows, columns], M.reshape(len(M), -1), *([a] if trained else [])]
    parts += [] if last is None else [last[:, None]]
    return np.concatenate(parts, axis=1)


def chosen_systems(systems: Systems, order: NDArray[np.intp]) -> Systems:
    """The systems at the places `order` (m,), some of which may be the same, as m systems of their own."""
    arrays: dict[str, Any] = {name: getattr(systems, name)[order] for name in ("P", "a", "a_star", "end")}
    # rules in closed form have no factors
    factors = systems.L_star[order] if len(systems.L_star) else systems.L_star
    numbers = Numbers(*(values[order] for values in systems.numbers))
    return systems._replace(numbers=numbers, L_star=factors, **arrays)


@without_references
def factors_now(i: int, state: Array, systems: Systems, clock: Array) -> tuple[float, float]:
    """ξ and χ of system i at the time of its state, or at its last time `end` past that.

    clock (2, 1) : a work array.
    """
    if not systems.scheduled:
        return 1.0, 1.0
    clock[0, 0] = min(state[state.shape[0] - 1], systems.end[i])
    # functions by address have arrays as arguments
    systems.noise(clock[0], clock[1])
    chi = clock[1, 0]
    systems.rates(clock[0], clock[1])
    return clock[1, 0], chi


@inlined
def needs_variance(noise: float, adapts: bool, M: Array) -> bool:
    """Whether the equations need Ψ^Var: for the noise, for B, or as the scale of the rounding error of an M_ir = 0."""
    needed = noise > 0.0 or adapts
    for j in range(M.shape[0]):
        for r in range(M.shape[1]):
            needed |= M[j, r] == 0.0
    return needed


def fill_slope(i: int, state: Array, systems: Systems, work: Work, slope: Array) -> None:
    """Fill `slope`: Ṁ = Ψ^M, Q̇ = Ψ^GF + (γ/p) Ψ^Var (arXiv 2302.05882, eq. 7), ȧ = ε Ψ^a, of system i at `state`.

    With decays Ψ^M has −λM beside it, Ψ^GF −2λQ and Ψ^a −λ_a a; noise of the weights adds 2T to Q̇_ii. With a schedule
    all of Ṁ, Q̇, ȧ have the factor ξ(t), and so has γ/p; Δ has the factor χ(t). Past the last time, ξ and χ are those
    of the last time. With a factor h of c in steps of the weights Ψ^M and Ψ^GF have h, and Ψ^Var h²; that of momentum
    counts for λ too. Ḃ = tr Ψ^Var.
    For Φ = Q̇, spherical students have Ṁ_ir −= M_ir Φ_ii/2 and Q̇_ij −= Q_ij (Φ_ii + Φ_jj)/2.
    """
    Q, M, a, drifts, _, clock = work
    spherical, trained, numbers = systems.spherical, systems.trained, systems.numbers
    p, k = M.shape
    for j in range(p):
        # what stays if the second layer is not trained: then the state has none
        a[j] = systems.a[i, j]
    unpacked(state, spherical, trained, Q, M, a)
    rate, chi = factors_now(i, state, systems, clock)
    Delta, with_variance = numbers.Delta[i] * chi, needs_variance(numbers.noise[i], systems.adapts, M)
    # zero asks the rule to leave Ψ^Var out
    stretch = 1.0 if with_variance else 0.0
    system = System(Q, M, systems.P[i], a, systems.a_star[i], Delta, stretch, systems.pair, None)
    # rules by quadrature have factors L*, and need an Ω ≥ 0
    if len(systems.L_star) > 0:
        systems.inside(Q, M, systems.L_star[i], spherical)
    if systems.is_disturbed:
        keep, input_noise = numbers.keep_probability[i], numbers.input_noise[i]
        systems.disturbed(systems.drifts, keep, input_noise, with_variance, system, drifts)
    else:
        systems.drifts(system, drifts)
    # rules may have left it unfilled, and zero times NaN is NaN
    if not with_variance:
        drifts.Var[:] = 0.0
    flow, factor, decay = drifts.GF, systems.factor, systems.factor * numbers.weight_decay[i]
    if systems.adapts:
        factor = 1.0 / math.sqrt(state[state.shape[0] - 1])
    for j in range(p):
        for l in range(p):  # noqa: E741
            noise = rate * numbers.noise[i] * factor * factor * drifts.Var[j, l]
            flow[j, l] = factor * flow[j, l] + (noise - 2.0 * decay * Q[j, l])
        flow[j, j] += 2.0 * numbers.temperature[i]
    first, pull = (1, 0.5) if spherical else (0, 0.0)
    at = 0
    for j in range(p):
        for l in range(j + first, p):  # noqa: E741
            slope[at] = flow[j, l] - pull * Q[j, l] * (flow[j, j] + flow[l, l])
            at += 1
    for j in range(p):
        for r in range(k):
            slope[at] = factor * drifts.M[j, r] - decay * M[j, r] - pull * M[j, r] * flow[j, j]
            # the overlap of a student that knows nothing of this unit: its drift is a rounding error
            if M[j, r] == 0.0 and abs(slope[at]) <= ROUNDING * math.sqrt(drifts.Var[j, j] * systems.P[i, r, r]):
                slope[at] = 0.0
            at += 1
    if systems.adapts:
        slope[slope.shape[0] - 1] = 0.0
        for j in range(p):
            slope[slope.shape[0] - 1] += drifts.Var[j, j]
    finish_slope(i, at, rate, systems, work, slope)


@without_references
def finish_slope(i: int, at: int, rate: float, systems: Systems, work: Work, slope: Array) -> None:
    """Fill ȧ from place `at` on, if a is trained; with a schedule multiply all by ξ `rate`.

    The time has the slope 1.
    """
    numbers, a = systems.numbers, work.a
    if systems.trained:
        for j in range(len(a)):
            slope[at + j] = numbers.second_layer_rate[i] * (work.drifts.a[j] - numbers.second_layer_decay[i] * a[j])
    if systems.scheduled:
        for v in range(slope.shape[0]):
            slope[v] *= rate
        slope[slope.shape[0] - 1] = 1.0


def state_risk(i: int, state: Array, systems: Systems, work: Work) -> float:
    """The population risk of the flat state (size,) of system i."""
    Q, M, a = work.Q, work.M, work.a
    for j in range(len(a)):
        a[j] = systems.a[i, j]
    unpacked(state, systems.spherical, systems.trained, Q, M, a)
    # as for drifts (`fill_slope`)
    if len(systems.L_star) > 0:
        systems.inside(Q, M, systems.L_star[i], systems.spherical)
    return float(network_risk(i, systems, work))


@without_references
def network_risk(i: int, systems: Systems, work: Work) -> float:
    """The population risk of system i at the overlaps and the second layer in `work`."""
    p, k = work.M.shape
    # rules for risks take many systems, the last axis
    fields = work.Q.reshape((p, p, 1)), work.M.reshape((p, k, 1)), systems.P[i].reshape((k, k, 1))
    systems.risk(systems.pair, *fields, work.a.reshape((p, 1)), systems.a_star[i].reshape((k, 1)), work.risk)
    return float(work.risk[0])
