"""The square on both sides, σ(λ) = σ*(λ) = λ², with any second layers, by Isserlis' theorem.

All fields share one index, z = (λ, λ*) ~ N(0, Ω), and E = zᵀBz + √Δ ζ with B = diag(−a/p, a*/k).
Then, with τ = tr BΩ,
E[(zᵀBz)²] = τ² + 2 tr(BΩ)²,  E[z z' zᵀBz] = τΩ + 2ΩBΩ  and
E[z z' (zᵀBz)²] = (τ² + 2 tr(BΩ)²) Ω + 4τ ΩBΩ + 8 ΩBΩBΩ.
For a = a* = 1 these are the formulas of arXiv 2305.18502, appendix A.

`risk` has Q (p, p, lanes), M (p, k, lanes), P (k, k, lanes), a (p, lanes), a_star (k, lanes) and out (lanes,), systems
in lanes; `drifts` one `System`.
"""

from typing import Any

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import Activation
from sweeplib.networks.maths.expectations.expectations import FAMILIES, Expectations, Family, in_vectors
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System
from sweeplib.networks.numerics.compiled import in_any_order
from sweeplib.networks.numerics.vectors import everywhere


def risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = τ²/2 + tr(BΩ)² of each of the systems that the last axis of all arrays counts (lanes).

    `pair` is not read: the form is closed. out (lanes,) : the risks.
    """
    p, k, lanes = M.shape
    student, teacher = 1.0 / p, 1.0 / k
    for lane in range(lanes):
        out[lane] = 0.0
    # τ, and half its square
    for r in range(k):
        for lane in range(lanes):
            out[lane] += teacher * a_star[r, lane] * P[r, r, lane]
    for i in range(p):
        for lane in range(lanes):
            out[lane] -= student * a[i, lane] * Q[i, i, lane]
    for lane in range(lanes):
        out[lane] *= 0.5 * out[lane]
    for r in range(k):
        for s in range(k):
            for lane in range(lanes):
                weight = teacher * teacher * a_star[r, lane] * a_star[s, lane]
                out[lane] += weight * P[r, s, lane] * P[r, s, lane]
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                weight = 2.0 * student * teacher * a[i, lane] * a_star[r, lane]
                out[lane] -= weight * M[i, r, lane] * M[i, r, lane]
        for j in range(p):
            for lane in range(lanes):
                out[lane] += student * student * a[i, lane] * a[j, lane] * Q[i, j, lane] * Q[i, j, lane]


@in_any_order
def weighted_product(weights: Array, x: Array, y: Array) -> Any:
    """The sum Σ_j w_j x_j y_j of arrays (n,), in any order."""
    total = 0.0
    for j in range(len(x)):
        total += weights[j] * x[j] * y[j]
    return total


def drifts(system: System, out: Drifts) -> None:
    """Fill Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of one system, from ΩBΩ and ΩBΩBΩ, in O(p² (p + k)).

    Without label noise Ψ^Var is of degree 3 in Ω; `stretch` enters by its powers.
    """
    Q, M, P, a, a_star, stretch = system.Q, system.M, system.P, system.a, system.a_star, system.stretch
    p, k = M.shape
    student, teacher = 1.0 / p, 1.0 / k
    trace, square = 0.0, 0.0  # τ and tr (BΩ)²
    for r in range(k):
        trace += teacher * a_star[r] * P[r, r]
        square += teacher * teacher * a_star[r] * weighted_product(a_star, P[r], P[r])
    for i in range(p):
        trace -= student * a[i] * Q[i, i]
        for r in range(k):
            # out.M and out.GF are (ΩBΩ) first, which Ψ^Var needs, and the drifts last
            of_teacher = teacher * weighted_product(a_star, M[i], P[r])
            out.M[i, r] = of_teacher - student * weighted_product(a, Q[i], M[:, r])
        for j in range(i + 1):
            of_teacher = teacher * weighted_product(a_star, M[i], M[j])
            out.GF[i, j] = out.GF[j, i] = of_teacher - student * weighted_product(a, Q[i], Q[j])
        square -= student * a[i] * (out.GF[i, i] + of_teacher)

    cube = stretch * stretch * stretch
    second_moment = cube * (trace * trace + 2.0 * square) + stretch * system.Delta
    for i in range(p):
        out.a[i] = trace * Q[i, i] + 2.0 * out.GF[i, i]
        for j in range(0 if everywhere(stretch == 0.0) else i + 1):
            of_teacher = teacher * weighted_product(a_star, out.M[i], M[j])
            twice = of_teacher - student * weighted_product(a, out.GF[i], Q[j])
            variance = second_moment * Q[i, j] + cube * (4.0 * trace * out.GF[i, j] + 8.0 * twice)
            out.Var[i, j] = out.Var[j, i] = 4.0 * a[i] * a[j] * variance
    for i in range(p):
        for r in range(k):
            out.M[i, r] = 2.0 * a[i] * (trace * M[i, r] + 2.0 * out.M[i, r])
        for j in range(i + 1):
            out.GF[i, j] = out.GF[j, i] = 2.0 * (a[i] + a[j]) * (trace * Q[i, j] + 2.0 * out.GF[i, j])


def pair_expectations(student: Activation, teacher: Activation) -> Expectations | None:
    """The expectations of the square with itself; None for other pairs."""
    both = student.name == teacher.name == "square"
    return Expectations("square|square", risk, drifts, in_vectors(drifts)) if both else None


FAMILIES.add(Family("square", 0, pair_expectations))
