"""Gradient flow on the weights, ẇ_i = −p d ∇_i R in time t = νγ/(pd): the classical limit γ/p → 0 for small d.

Its solutions are those of `gradient_flow`, whose overlaps have p² entries; this one has p d coordinates and integrates
over all d coordinates of the input. Second layers follow ȧ_i = ε (E[σ(λ_i) E] − λ_a a_i), and weights have −λ w_i too.
"""

import numpy as np

from sweeplib.networks.dynamics.dynamics import DYNAMICS
from sweeplib.networks.dynamics.particle_dynamics import ParticleDynamics, ParticleOptions, Start
from sweeplib.networks.problem import Limit, Problem

MOST_DIMENSIONS = 16
"""With more, low-discrepancy points of the input give no drift to be relied on."""


class WeightFlow(ParticleDynamics):
    """The weights W (p, d), as particles without a rest of the input."""

    name = "weight_flow"
    label = "weight flow"
    limits = (
        *ParticleDynamics.limits,
        Limit(
            "d",
            "too many dimensions",
            f"at most {MOST_DIMENSIONS}; `gradient_flow` follows the overlaps instead",
            where=lambda problem: problem.d > MOST_DIMENSIONS,
        ),
    )
    Options = ParticleOptions

    def start_of(self, i: int) -> Start:
        """The weights over √d of replica i, as particles in all d dimensions of the input."""
        W, W_star = self.replicas.weights(i)
        scale = np.sqrt(W.shape[1])
        return Start(W.T / scale, np.zeros(len(W)), W_star / scale, 0)

    @classmethod
    def dimensions(cls, problem: Problem) -> int:
        """The number κ of coordinates u: all d."""
        return problem.d


DYNAMICS.register("weight_flow", WeightFlow)
