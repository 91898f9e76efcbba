"""The mean-field limits of wide students: p → ∞ (arXiv 2302.05882, section 5).

Unit i has the overlaps m_i with the teacher's rows and the squared norm q_i beyond their span. `mean_field` averages
the drifts over the directions that the units have in the other d − k dimensions, which stay independent and uniform:
the cosines Ξ_ij of two units have the density ∝ (1 − Ξ²)^((d−k−3)/2), Ξ_ii = 1. It holds for p → ∞ at every d > k + 1.
`mean_field_hd` is its limit d → ∞, in which Ξ_ij = 0: a flow of the measure of (m, q), without d.

Given the teacher's fields and the length of the rest of the input, units with independent directions are independent,
so a right-hand side costs p times the number of nodes of this law, for every activation and target.

Units have coordinates u (κ, p) along the teacher's span, m = L* u; κ = k unless rows of the teacher are dependent.
"""

import math
from typing import ClassVar

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import DYNAMICS
from sweeplib.networks.dynamics.particle_dynamics import ParticleDynamics, Start
from sweeplib.networks.problem import Limit

SINGULAR = 1e-12
"""Eigenvalues of P, relative to the largest, below which a direction is not in the teacher's span."""


class MeanField(ParticleDynamics):
    """The limit p → ∞ at finite d: Ξ is averaged over the sphere of d − k dimensions."""

    name = "mean_field"
    label = "mean field"
    undefined: ClassVar[tuple[tuple[str, str], ...]] = (
        *ParticleDynamics.undefined,
        ("temperature", "at finite d noise of the weights moves m by other numbers in each unit"),
    )
    limits = (
        *ParticleDynamics.limits,
        Limit(
            "d",
            "no mean field in so few dimensions",
            lambda problem: f"at least k + 2 = {problem.k + 2}; or weight_flow",
            where=lambda problem: problem.d < problem.k + 2,
        ),
    )

    def start_of(self, i: int) -> Start:
        """The particles of SGD's own weights: u = L*⁺ m by the overlaps m, and q, the squared norm without |u|²."""
        m, norm = self.units_at_start(i)
        L_star = root(self.replicas.P[i])
        u = np.linalg.pinv(L_star) @ m.T
        return Start(u, np.maximum(norm - np.einsum("ri,ri->i", u, u), 0.0), L_star, self._dimension(i, L_star))

    def units_at_start(self, i: int) -> tuple[Array, Array]:
        """The overlaps m (p, k) and the squared norms (p,) over d of the units of replica i."""
        return self.replicas.particles(i)

    def _dimension(self, i: int, L_star: Array) -> float:
        """The dimension D of the rest of the input, beyond the teacher's span."""
        return int(self.replicas.d[i]) - L_star.shape[1]


class MeanFieldHighDimensional(MeanField):
    """The limit p → ∞ and d → ∞: Ξ_ij = 0 for i ≠ j."""

    name = "mean_field_hd"
    label = "mean field, d → ∞"
    undefined = ParticleDynamics.undefined
    reads = MeanField.reads | {"temperature"}
    limits = ParticleDynamics.limits

    def _dimension(self, i: int, L_star: Array) -> float:
        """Return infinity, whatever d is."""
        return math.inf


def root(P: Array) -> Array:
    """L* (k, κ) with L* L*ᵀ = P (k, k), κ the rank of P; P itself, (0, 0), without a teacher."""
    if not P.size:
        return P
    values, vectors = np.linalg.eigh(P)
    positive = values > SINGULAR * values[-1]
    return vectors[:, positive] * np.sqrt(values[positive])


DYNAMICS.register("mean_field", MeanField)
DYNAMICS.register("mean_field_hd", MeanFieldHighDimensional)
