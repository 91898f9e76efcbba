"""The potentials in which the units of a wide network move as particles (arXiv 1804.06561).

A network f = (1/N) Σ_i σ*(x; θ_i) of units θ = (a, w), σ*(x; θ) = a σ(w·x), has the loss
R_N = E[(y − f)²] = E[y²] + 2 ∫ V dρ_N + ∬ U dρ_N dρ_N, with ρ_N = (1/N) Σ_i δ(θ_i),
V(θ) = −E[y σ*(x; θ)] and U(θ, θ') = E[σ*(x; θ) σ*(x; θ')]. R_N is 2R + Δ with the risk R of this library.

Both follow from risks of networks of one and two units, R(a) = ½ E[(f* − f)²], because these are polynomials in the
second layer: V(θ) = a [R(1) − R(−1)]/2 and U(θ, θ') = a a' [R(1, 1) + R(−1, −1) − R(1, −1) − R(−1, 1)]. They are
therefore right for every activation, target and law of the data that has risks.

Units have weights W (N, d) and second layers a, one number or (N,); others W' (N', d) and b. The teacher has W* (k, d).
"""

from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.problem.data import DATA
from sweeplib.networks.problem.problem import problem_expectations
from sweeplib.networks.problem.teacher_layers import teacher_layer

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Risks
    from sweeplib.networks.problem import Problem


def external_potential(problem: "Problem", W: Array, W_star: Array, a: Array | float = 1.0) -> Array:
    """Return V(θ) = −E[y a σ(w·x)] (N,) of units with weights W (N, d) and second layer a, for a teacher W* (k, d)."""
    n, d = W.shape
    W, W_star = _of_fields(problem, W), _of_fields(problem, W_star)
    M = (W @ W_star.T / d)[:, None]
    Q = np.einsum("ij,ij->i", W, W)[:, None, None] / d
    up, down = (_risks(problem, Q, M, W_star, np.full((n, 1), sign)) for sign in (1.0, -1.0))
    return np.asarray(a * (up - down) / 2.0)


def pair_potential(
    problem: "Problem", W: Array, others: Array, a: Array | float = 1.0, b: Array | float = 1.0
) -> Array:
    """Return U(θ, θ') = E[a σ(w·x) b σ(w'·x)] (N, N') of units (W, a) and `others` (W', b).

    It does not depend on the teacher: one of zero weights stands for it.
    """
    rows, columns = np.indices((len(W), len(others))).reshape(2, -1)
    pairs = _of_fields(problem, np.stack([W[rows], others[columns]], axis=1))
    Q, W_star = pairs @ pairs.transpose(0, 2, 1) / W.shape[1], np.zeros((problem.k, W.shape[1]))
    M = np.zeros((len(rows), 2, problem.k))
    risk = {
        signs: _risks(problem, Q, M, W_star, np.tile(np.array(signs), (len(rows), 1)))
        for signs in ((1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
    }
    mean = risk[1.0, 1.0] + risk[-1.0, -1.0] - risk[1.0, -1.0] - risk[-1.0, 1.0]
    return np.asarray(
        np.multiply.outer(np.broadcast_to(a, len(W)), np.broadcast_to(b, len(others))) * mean.reshape(len(W), -1)
    )


def first_variation(
    problem: "Problem", W: Array, W_star: Array, others: Array, a: Array | float = 1.0, b: Array | float = 1.0
) -> Array:
    """Return Ψ(θ; ρ) = δR_N/δρ(θ) = 2 V(θ) + 2 ∫ U(θ, θ') dρ(θ') (N,), ρ the mean over the units `others` (W', b)."""
    return 2.0 * (external_potential(problem, W, W_star, a) + pair_potential(problem, W, others, a, b).mean(axis=1))


def _of_fields(problem: "Problem", W: Array) -> Array:
    """Return the weights (..., d) whose products are the covariances of fields: along its eigenvalues, √λ times W."""
    return W * np.sqrt(np.repeat(*problem.blocks)) if problem.has_spectrum else W


def _risks(problem: "Problem", Q: Array, M: Array, W_star: Array, a: Array) -> Array:
    """Return the risks (n,) of networks of overlaps Q (n, p, p), M (n, p, k), second layers a (n, p), for W* (k, d)."""
    n, law = len(Q), DATA[problem.data]
    values = {name: np.full(n, getattr(problem, name)) for name in law.numbers}
    rule: Risks = law.expectations(problem.activation, problem_expectations(problem), **values)
    P = np.broadcast_to(W_star @ W_star.T / W_star.shape[1], (n, problem.k, problem.k)).copy()
    a_star = np.repeat(np.array([teacher_layer(problem.a_star, problem.k)]), n, axis=0)
    return rule.risks(Q, M, P, a, a_star)
