"""What the rule of the steps makes of a step of the overlap map: factors of gradients, and velocities.

The rows of the mean gradient of a batch have the products K/d, K = (d/n_b) Ψ^Var + (1 − 1/n_b) DΩDᵀ. Its squared norm
tr K/d has relative fluctuations of order 1/√min(n_b, d): the factor h of a rule is that of the mean, a step one of the
time h T, and memories take the mean.

With momentum β the state has the overlaps of the velocities v_i: N = v·w*/d, S_ij = w_i·v_j/d and U = v·v/d. With
H_ij = E[c_i x·v_j] = Σ_m D_im S_mj + Σ_r D_ir* N_jr, G_ij = E[c_i λ_j] and X_ij = v'_i·w_j/d a step is

    N' = β N + T Ψ^M,    X = β Sᵀ + T G,    U' = β² U + β T (H + Hᵀ) + T² K,
    M' = M + N',    Q' = Q + X + Xᵀ + U',    S' = Xᵀ + U'.

The decay s of the weights is part of the gradient: T c_i x less s w_i takes the place of T c_i x.

Spectral steps have G in place of the plain move T G, N ← β N + G, the products U' of which are K without momentum, and

    M' = (1 − s) M + H N',    Q' = (1 − s)² Q + (1 − s) (H X + Xᵀ H) + H U' H,    S' = (1 − s) Xᵀ + H U',

with the one matrix H = T h(U'/d) for all blocks of inputs, and the decay s of the weights.

Arrays (..., p, p) are of n replicas, or of each of L blocks of inputs of theirs: (n, p, p) or (n, L, p, p).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.steps import factor_address, spectrum_address
from sweeplib.networks.maths.expectations.system import Drifts
from sweeplib.networks.numerics.compiled import call_by_address
from sweeplib.networks.problem import UPDATES, Limit, Problem, Rule
from sweeplib.networks.problem.combinations import RESCALED, SIGNS, SPECTRUM, TANGENT

FEWEST_SAMPLES = 16
"""The smallest batch whose gradient has a norm close to the root of its mean square, to some percent."""


class Velocities(NamedTuple):
    """Overlaps of velocities: N (..., p, k) with W*, S (..., p, p) of W with them, U (..., p, p) with each other."""

    N: Array
    S: Array
    U: Array


def resting_velocities(M: Array) -> Velocities:
    """The velocities at the start, zero, beside overlaps M (..., p, k)."""
    square = (*M.shape[:-1], M.shape[-2])
    return Velocities(np.zeros(M.shape), np.zeros(square), np.zeros(square))


def rescaled_times(rule: Rule, T: Array, square: Array, memory: Array) -> tuple[Array, Array]:
    """The times h T (n,) of steps with the factor h of a rule, and its memories (n,) after the step.

    T, square, memory (n,) : times of plain steps, squared norms tr K/d of the gradients, and memories before.
    """
    # copies, in which the function replaces squared norms by factors, and memories
    factors, memory = np.array(square, float, order="C"), np.array(memory, float, order="C")
    call_by_address(
        factor_address(rule.update), np.array(rule.numbers, float), np.ascontiguousarray(T), factors, memory
    )
    return factors * T, memory


def with_velocities(
    Q: Array,
    M: Array,
    before: Velocities,
    beta: float,
    moves: tuple[Array, Array],
    turns: Array,
    square: Array,
    matrix_of: Callable[[Array], Array] | None = None,
    shrink: Array | float = 1.0,
) -> tuple[Array, ...]:
    """Q, M, N, S and U after a step of momentum β, 0 for a spectral step without momentum.

    before : N, S and U.
    moves : T Ψ^M (..., p, k) and T G (..., p, p). turns : T H_ij (..., p, p). square : T² K (..., p, p). Of a spectral
        step they have 1 in place of T.
    matrix_of : of a spectral step, the function that returns the matrices H (..., p, p) by U'; otherwise None.
    shrink : the part 1 − s of W that stays.
    """
    N, S, U = before
    # of a plain gradient, decay is a part; spectral steps are beside it
    s = 1.0 - shrink if matrix_of is None else 0.0
    turns, square = turns - s * S, square - s * (moves[1] + moves[1].swapaxes(-1, -2)) + s**2 * Q
    N, X = beta * N + moves[0] - s * M, beta * S.swapaxes(-1, -2) + moves[1] - s * Q
    U = beta**2 * U + beta * (turns + turns.swapaxes(-1, -2)) + square
    if matrix_of is None:
        return Q + X + X.swapaxes(-1, -2) + U, M + N, N, X.swapaxes(-1, -2) + U, U
    H = matrix_of(U)
    across, along = shrink * (H @ X), H @ U
    Q = shrink**2 * Q + across + across.swapaxes(-1, -2) + along @ H
    return Q, shrink * M + H @ N, N, shrink * X.swapaxes(-1, -2) + along, U


def spectral_matrices(rule: Rule, S: Array) -> Array:
    """The matrices h(S) (n, p, p) of a rule with a spectrum; NaN where S (n, p, p) is not finite."""
    finite = np.isfinite(S).all(axis=(1, 2), keepdims=True)
    values, vectors = np.linalg.eigh(np.where(finite, S, 0.0))
    values = np.maximum(values, 0.0)
    sums = [np.repeat(of(axis=1), values.shape[1]) for of in (values.max, values.sum)]
    factors = values.ravel()
    call_by_address(spectrum_address(rule.update), np.array(rule.numbers, float), factors, *sums)
    turned = vectors * factors.reshape(values.shape)[:, None, :]
    return np.where(finite, turned @ vectors.swapaxes(1, 2), np.nan)


def along_sphere(
    drifts: Drifts, products: Array, slopes: tuple[Array, Array], Q: Array, M: Array
) -> tuple[Drifts, Array]:
    """The drifts and the products DΩDᵀ of steps along the sphere: each c_i x without its part along w_i, Q_ii = 1.

    The module's docstring of `overlap_map` has the formulas.
    drifts, products (n, p, p) : those of plain steps. slopes : the two blocks D, D* of their mean gradients.
    Q (n, p, p), M (n, p, k) : the covariances of the fields.
    """
    D, D_star = slopes
    G = D @ Q + D_star @ M.transpose(0, 2, 1)
    along = np.einsum("nii->ni", G)[:, :, None]
    X, crossed = G - along * Q, along * G.transpose(0, 2, 1)
    products = products - crossed - crossed.transpose(0, 2, 1) + along * along.transpose(0, 2, 1) * Q
    return drifts._replace(M=drifts.M - along * M, GF=X + X.transpose(0, 2, 1)), products


def _is_small(problem: Problem) -> bool:
    """Whether the batch is too small for the mean norm of its gradient; a memory, a sum over steps, needs none."""
    return UPDATES[problem.update].memory is None and problem.batch_size < FEWEST_SAMPLES


# the last text of a limit is what is expected instead, in an error
LIMITS = (
    Limit("update", "no overlap map", "plain with {beside} in overlap_map", SPECTRUM, TANGENT.is_of),
    Limit("update", "no overlap map of signs", beside=SIGNS),
    Limit(
        "batch_size",
        "no overlap map",
        f"at least {FEWEST_SAMPLES} with {{beside}} in overlap_map: the gradient of a small batch varies; "
        "sgd_chain takes it",
        RESCALED,
        _is_small,
    ),
)
