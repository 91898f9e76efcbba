"""Where phase retrieval with one student unit ends: σ(λ) = λ², p = k = 1, on the sphere, a = a* = 1.

ṁ = m [4(1−6γ)(1−m²) − 2γΔ] (arXiv 2305.18502, eq. 12). Wider students have no such closed form: their differences are
marginal around the solution, decay algebraically, and at large γ the fixed points are not symmetric in the units.
"""

import numpy as np

from sweeplib.theory.labelled import Real, labelled


@labelled(r"m_\infty", "overlap at the fixed point")
def fixed_point_overlap(gamma: Real, Delta: Real) -> Real:
    """|m| = √(1 − γΔ/(2(1−6γ))) at the stable fixed point of the ODE; 0 from γ = 2/(12+Δ) on."""
    learns = gamma * (12.0 + Delta) < 2.0
    return np.where(learns, np.sqrt(1.0 - 0.5 * gamma * Delta / (1.0 - 6.0 * gamma)), 0.0)


@labelled(r"\mathcal{R}_\infty", "asymptotic excess risk")
def asymptotic_risk(gamma: Real, Delta: Real) -> Real:
    """R = 2(1 − m²) = γΔ/(1−6γ) at the stable fixed point of the ODE; 2, that of m = 0, from γ = 2/(12+Δ) on."""
    learns = gamma * (12.0 + Delta) < 2.0
    return np.where(learns, gamma * Delta / (1.0 - 6.0 * gamma), 2.0)
