"""The classical limit of one-pass SGD, γ/p → 0: the ODE without its variance term (arXiv 2302.05882, section 3)."""

import numpy as np

from sweeplib.dynamics.dynamics import DYNAMICS, Array
from sweeplib.dynamics.ode import IntegrationOptions, Ode


class GradientFlow(Ode):
    """Gradient flow on the population risk: Ṁ = Ψ^M, Q̇ = Ψ^GF, ȧ = ε Ψ^a, in the time t = νγ/(pd)."""

    name = "gradient_flow"
    label = "gradient flow"
    Options = IntegrationOptions

    def _noise(self) -> Array:
        return np.zeros(len(self.replicas))


DYNAMICS.register("gradient_flow", GradientFlow)
