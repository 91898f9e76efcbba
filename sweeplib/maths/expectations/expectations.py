"""What the dynamics need to know of a pair of activations: population risk and drifts of the overlaps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweeplib.errors import InputError
from sweeplib.maths.compiled import specialised
from sweeplib.registry import Registry

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expectations:
    """Expectations over the fields (λ, λ*) ~ N(0, Ω), Ω = [[Q, M], [Mᵀ, P]], for one pair of activations.

    With E = f* + √Δ z − f, f = (1/p) Σ a_i σ(λ_i), f* = (1/k) Σ a*_r σ*(λ*_r):

    `risk(Q, M, P, a, a_star, out)` fills `out` with ½ E[(f* − f)²]. The last axis of every array counts
    independent systems (lanes): Q (p, p, n), M (p, k, n), P (k, k, n), a (p, n), a_star (k, n), out (n,).
    A lane's value never depends on the others.

    `drifts(Q, M, P, a, a_star, Delta, drift_M, drift_GF, drift_Var)` fills, for one system,
    Ψ^M_ir = a_i E[σ'(λ_i) λ*_r E], Ψ^GF_ij = a_i E[σ'(λ_i) λ_j E] + (i ↔ j) and
    Ψ^Var_ij = a_i a_j E[σ'(λ_i) σ'(λ_j) E²], label noise included (arXiv 2302.05882, eqs. 8 to 10).

    Both are plain Python that numba compiles, without calls to other Python functions.
    """

    name: str
    risk: Callable[..., None]
    drifts: Callable[..., None]

    def risks(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The population risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
        matrices = (np.ascontiguousarray(matrix.transpose(1, 2, 0)) for matrix in (Q, M, P))
        layers = (np.ascontiguousarray(layer.T) for layer in (a, a_star))
        out = np.empty(len(M))
        specialised(self.risk)(*matrices, *layers, out)
        return out


EXPECTATIONS: Registry[Expectations] = Registry("pair of activations")


def expectations(activation: str, teacher_activation: str | None = None) -> Expectations:
    """The expectations of a student's and a teacher's activation, the student's on both sides unless given.

    Raises InputError for a pair without closed forms.
    """
    pair = f"{activation}|{teacher_activation or activation}"
    if pair not in EXPECTATIONS:
        raise InputError(
            "no Gaussian expectations for student|teacher",
            value=pair,
            choices=EXPECTATIONS,
        )
    return EXPECTATIONS[pair]
