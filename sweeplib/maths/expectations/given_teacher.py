"""Any function f* of the teacher's fields and any smooth activation, by quadrature conditional on λ*.

Given λ* = L z, z ~ N(0, I_k), P = L Lᵀ, the students' fields are N(A z, C), A = M L⁻ᵀ and C = Q − A Aᵀ. The terms with
f* are sums over nodes z with weights w: with E' the mean given λ*,
Ψ^a_i ∋ Σ w f* E'[σ_i],  Ψ^M_ir ∋ a_i Σ w f* λ*_r E'[σ'_i],  E[σ'_i λ_j f*] = Σ w f* E'[σ'_i λ_j],
Ψ^Var_ij ∋ a_i a_j Σ w (f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f]).
The terms without f* are those of `quadrature`. Nodes are those of Gauss and Hermite: f* and σ should be smooth, and
finer nodes tell the error.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sweeplib.maths.activations import Activation
from sweeplib.maths.expectations import quadrature
from sweeplib.maths.expectations.addresses import fields_address
from sweeplib.maths.expectations.expectations import Expectations
from sweeplib.maths.expectations.nodes import nodes_of, rules_of
from sweeplib.maths.expectations.plane import components
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.numerics.compiled import inlined, over_arrays, specialised, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_FIELDS = 6
"""The largest k."""


@without_references
def factorise(Q: Array, M: Array, P: Array, L: Array, A: Array, C: Array) -> None:
    """Fill the lower L, A and C; rows of L are zero where P is singular."""
    p, k = M.shape
    for r in range(k):
        for s in range(r + 1):
            rest = P[r, s]
            for q in range(s):
                rest -= L[r, q] * L[s, q]
            if s < r:
                L[r, s] = rest / L[s, s] if L[s, s] > 0.0 else 0.0
            else:
                L[r, r] = math.sqrt(rest) if rest > 1e-14 * P[r, r] else 0.0
    for i in range(p):
        for r in range(k):
            rest = M[i, r]
            for s in range(r):
                rest -= A[i, s] * L[r, s]
            A[i, r] = rest / L[r, r] if L[r, r] > 0.0 else 0.0
        for j in range(i + 1):
            rest = Q[i, j]
            for r in range(k):
                rest -= A[i, r] * A[j, r]
            C[i, j] = C[j, i] = rest if i != j else max(rest, 0.0)


@without_references
def fill_nodes(rule: Array, L: Array, A: Array, weight: Array, lam_star: Array, mean: Array) -> None:
    """Fill the weights (n,), λ* (k, n) and the means A z (p, n) of the product of rules (2, nodes)."""
    k, count = lam_star.shape
    p, nodes = len(mean), rule.shape[1]
    for n in range(count):
        weight[n], rest = 1.0, n
        for r in range(k):
            lam_star[r, n] = 0.0
        for i in range(p):
            mean[i, n] = 0.0
        for s in range(k):
            node = rest % nodes
            rest //= nodes
            weight[n] *= rule[1, node]
            for r in range(s, k):
                lam_star[r, n] += L[r, s] * rule[0, node]
            for i in range(p):
                mean[i, n] += A[i, s] * rule[0, node]


@inlined
def add_first_moments(
    system: System, rule: Array, C: Array, lam_star: Array, mean: Array, factor: Array, out: Any
) -> None:
    """Add the terms of Ψ^a, Ψ^M and E[σ'_i λ_j f*] to out, with the factors w f* (n,)."""
    pair, nodes = system.pair, rule.shape[1]
    to_a, to_M, flow = out
    field, value, slope = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for n in range(len(factor)):
        for i in range(len(mean)):
            scale = math.sqrt(C[i, i])
            for q in range(nodes):
                field[q] = mean[i, n] + scale * rule[0, q]
            pair.student_value(field, value)
            pair.student_slope(field, slope)
            values, slopes, tilted = 0.0, 0.0, 0.0
            for q in range(nodes):
                values += rule[1, q] * value[q]
                slopes += rule[1, q] * slope[q]
                tilted += rule[1, q] * slope[q] * rule[0, q]
            to_a[i] += factor[n] * values
            for r in range(len(lam_star)):
                to_M[i, r] += system.a[i] * factor[n] * lam_star[r, n] * slopes
            for j in range(len(mean)):
                along = C[i, j] / scale if scale > 0.0 else 0.0
                flow[i, j] += system.a[i] * factor[n] * (mean[j, n] * slopes + along * tilted)


class Pairs(NamedTuple):
    """Work arrays of a pair of students at the nodes (u_1, u_2) of a product of rules.

    u, v, weight (nodes²,) : the nodes and their weights.
    slopes (2, nodes²) : σ'_i and σ'_j.
    network (nodes²,) : E'[f | λ_i, λ_j].
    first, second (p,) : covariances of the students with u_1 and u_2.
    field, value (nodes³,) : fields of a student and the values of σ.
    """

    u: Array
    v: Array
    weight: Array
    slopes: Array
    network: Array
    first: Array
    second: Array
    field: Array
    value: Array


@inlined
def pairs_of(p: int, rule: Array) -> Pairs:
    """Work arrays for p students."""
    square = rule.shape[1] ** 2
    grid, students = np.empty((4, square)), np.empty((2, p))
    work = np.empty((2, square * rule.shape[1]))
    network, slopes = grid[3], np.empty((2, square))
    return Pairs(grid[0], grid[1], grid[2], slopes, network, students[0], students[1], work[0], work[1])


@without_references
def fill_grid(rule: Array, in_plane: bool, pairs: Pairs) -> int:
    """Fill the nodes in the plane or on a line, and return their number."""
    nodes = rule.shape[1]
    others = nodes if in_plane else 1
    for q in range(nodes):
        for w in range(others):
            at = q * others + w
            pairs.u[at], pairs.v[at] = rule[0, q], rule[0, w] if in_plane else 0.0
            pairs.weight[at] = rule[1, q] * (rule[1, w] if in_plane else 1.0)
    return nodes * others


@inlined
def fill_slopes(system: System, count: int, side: int, m: int, mean: Array, pairs: Pairs) -> None:
    """Fill σ' of student m."""
    for at in range(count):
        pairs.field[at] = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
    system.pair.student_slope(pairs.field[:count], pairs.slopes[side, :count])


@inlined
def fill_network(system: System, rule: Array, C: Array, count: int, mean: Array, pairs: Pairs) -> None:
    """Fill E'[f | λ_i, λ_j]: the students beyond the pair are averaged over what they have beyond u_1 and u_2."""
    for at in range(count):
        pairs.network[at] = 0.0
    for m in range(len(mean)):
        variance = C[m, m] - pairs.first[m] * pairs.first[m] - pairs.second[m] * pairs.second[m]
        scale = math.sqrt(variance) if variance > 1e-12 * C[m, m] else 0.0
        inner = rule.shape[1] if scale > 0.0 else 1
        for at in range(count):
            centre = mean[m] + pairs.first[m] * pairs.u[at] + pairs.second[m] * pairs.v[at]
            for q in range(inner):
                pairs.field[at * inner + q] = centre + scale * rule[0, q] if scale > 0.0 else centre
        system.pair.student_value(pairs.field[: count * inner], pairs.value[: count * inner])
        for at in range(count):
            for q in range(inner):
                share = rule[1, q] if scale > 0.0 else 1.0
                pairs.network[at] += system.a[m] / len(mean) * share * pairs.value[at * inner + q]


@inlined
def variance_term(
    system: System, rule: Array, C: Array, i: int, j: int, mean: Array, target: float, count: int, pairs: Pairs
) -> float:
    """f*² E'[σ'_i σ'_j] − 2 f* E'[σ'_i σ'_j f] at one node of λ*, by the `count` nodes of the pair."""
    fill_slopes(system, count, 0, i, mean, pairs)
    fill_slopes(system, count, 1, j, mean, pairs)
    fill_network(system, rule, C, count, mean, pairs)
    total = 0.0
    for at in range(count):
        share = pairs.weight[at] * pairs.slopes[0, at] * pairs.slopes[1, at]
        total += share * target * (target - 2.0 * pairs.network[at])
    return total


def drifts(system: System, out: Drifts) -> None:
    """The drifts without f* by `quadrature`, and the terms with f*; Ψ^Var at Ω times `stretch`."""
    without_target(system, out)
    a, pair = system.a, system.pair
    p, k = system.M.shape
    rules = rules_of(pair.nodes)
    count = rules.teacher.shape[1] ** k
    L, A, C, flow = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p)), np.zeros((p, p))
    weight, lam_star, mean = np.empty(count), np.empty((k, count)), np.empty((p, count))
    target, factor = np.empty(count), np.empty(count)
    factorise(system.Q, system.M, system.P, L, A, C)
    fill_nodes(rules.teacher, L, A, weight, lam_star, mean)
    pair.ridge_value(k, lam_star.reshape(k * count), target)
    for n in range(count):
        factor[n] = weight[n] * target[n]
    add_first_moments(system, rules.student, C, lam_star, mean, factor, (out.a, out.M, flow))

    root = math.sqrt(system.stretch)
    for i in range(p):
        for n in range(count):
            mean[i, n] *= root
        for j in range(p):
            C[i, j] *= system.stretch
    for r in range(k):
        for n in range(count):
            lam_star[r, n] *= root
    pair.ridge_value(k, lam_star.reshape(k * count), target)
    pairs, centre = pairs_of(p, rules.student), np.empty(p)
    for i in range(p):
        for j in range(i + 1):
            total = 0.0
            components(C, i, j, pairs.first, pairs.second)
            nodes = fill_grid(rules.student, i != j and pairs.second[j] != 0.0, pairs)
            for n in range(count):
                for m in range(p):
                    centre[m] = mean[m, n]
                total += weight[n] * variance_term(system, rules.student, C, i, j, centre, target[n], nodes, pairs)
            out.Var[i, j] += a[i] * a[j] * total
            out.GF[i, j] += flow[i, j] + flow[j, i]
            if i != j:
                out.Var[j, i], out.GF[j, i] = out.Var[i, j], out.GF[i, j]


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """½ E f² by `quadrature`, and Σ w f* (½ f* − E'[f]), every lane on its own."""
    risk_without_target(pair, Q, M, P, a, a_star, out)
    p, k, lanes = M.shape
    rules = rules_of(pair.nodes)
    nodes, count = rules.student.shape[1], rules.teacher.shape[1] ** k
    L, A, C = np.zeros((k, k)), np.zeros((p, k)), np.zeros((p, p))
    weight, lam_star, mean, target = np.empty(count), np.empty((k, count)), np.empty((p, count)), np.empty(count)
    own, ours, theirs = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    field, value = np.empty(nodes), np.empty(nodes)
    for lane in range(lanes):
        quadrature.take_lane(lane, Q, own)
        quadrature.take_lane(lane, M, ours)
        quadrature.take_lane(lane, P, theirs)
        factorise(own, ours, theirs, L, A, C)
        fill_nodes(rules.teacher, L, A, weight, lam_star, mean)
        pair.ridge_value(k, lam_star.reshape(k * count), target)
        for n in range(count):
            out[lane] += 0.5 * weight[n] * target[n] * target[n]
            for i in range(p):
                for q in range(nodes):
                    field[q] = mean[i, n] + math.sqrt(C[i, i]) * rules.student[0, q]
                pair.student_value(field, value)
                for q in range(nodes):
                    out[lane] -= weight[n] * target[n] * a[i, lane] / p * rules.student[1, q] * value[q]


without_target, risk_without_target = specialised(quadrature.drifts), specialised(quadrature.risk)


def of_labels(name: str, student: Activation, labels: Callable[..., None], k: int) -> Expectations:
    """The expectations of a smooth activation and a function `labels(lam_star, a_star, out)` of k fields."""

    def pair(finer: int) -> Pair:
        return Pair(
            over_arrays(student.value),
            over_arrays(student.derivative),
            fields_address(labels),
            which=np.full(1, -1),
            kinks=np.zeros(2),
            rests=np.ones(2),
            directions=np.ones((1, k)),
            weights=np.zeros(1),
            nodes=nodes_of(finer, len(student.hermite or ()), k),
            series=np.empty((0, 0)),
        )

    usual, finer = (Expectations(name, risk, drifts, functions=partial(pair, nodes)) for nodes in (1, 2))
    return replace(usual, finer=finer)
