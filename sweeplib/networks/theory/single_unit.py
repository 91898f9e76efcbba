"""Phase retrieval by one student unit, how its steps scatter and where it ends: σ(λ) = λ², p = k = 1, on the sphere.

a = a* = 1. In units of γ/d a step changes M by 2λλ*E and Q by 4λ²E + 4γλ²E², ‖x‖² = 1; on the sphere then m by the
first less m/2 times the second. Their covariances are polynomials in m (arXiv 2305.18502, appendix).
ṁ = m [4(1−6γ)(1−m²) − 2γΔ] (eq. 12). Wider students have no such closed form: their differences are marginal around
the solution, decay algebraically, and at large γ the fixed points are not symmetric in the units.

Arguments: the overlap m in [−1, 1] with the teacher, γ, and the variance Δ of the label noise.
"""

import numpy as np

from sweeplib.networks.theory.labelled import Real, labelled


@labelled(r"\mathrm{Var}\,\mathcal{M}", "variance of the increments of M")
def overlap_variance(m: Real, Delta: Real) -> Real:
    """Return Var[2λλ*E] = 48 + 4Δ + (144 + 8Δ)m² − 192m⁴, of the increment of M."""
    return 48.0 + 4.0 * Delta + (144.0 + 8.0 * Delta) * m**2 - 192.0 * m**4


@labelled(r"\mathrm{Var}\,\mathcal{Q}", "variance of the increments of Q")
def norm_variance(m: Real, gamma: Real, Delta: Real) -> Real:
    """Return Var[4λ²E + 4γλ²E²], of the increment of Q: a polynomial of the sixth degree in m."""
    constant = 1280.0 + 48.0 * Delta - gamma * (22272.0 + 1088.0 * Delta)
    constant += gamma**2 * (124416.0 + 7680.0 * Delta + 128.0 * Delta**2)
    second = -1600.0 + gamma * (44544.0 + 1088.0 * Delta) - gamma**2 * (294912.0 + 9984.0 * Delta)
    fourth = 320.0 - 22272.0 * gamma + gamma**2 * (216576.0 + 2304.0 * Delta)
    return constant + m**2 * (second + m**2 * (fourth - 46080.0 * gamma**2 * m**2))


@labelled(r"\mathrm{Cov}(\mathcal{M},\mathcal{Q})", "covariance of the increments of M and Q")
def overlap_norm_covariance(m: Real, gamma: Real, Delta: Real) -> Real:
    """Return Cov[2λλ*E, 4λ²E + 4γλ²E²], of the increments of M and Q: a polynomial of the fifth degree in m."""
    first = 480.0 + 24.0 * Delta - gamma * (2880.0 + 144.0 * Delta)
    third = -480.0 + gamma * (5760.0 + 144.0 * Delta)
    return m * (first + m**2 * (third - 2880.0 * gamma * m**2))


@labelled(r"V(m)", "variance of the noise of the overlap on the sphere")
def spherical_noise_variance(m: Real, gamma: Real, Delta: Real) -> Real:
    """V(m) = Var M − m Cov + (m²/4) Var Q: dm = ṁ dt + √(γV/d) dB; 48 + 4Δ at m = 0, that of the exit times."""
    covariance = overlap_norm_covariance(m, gamma, Delta)
    return overlap_variance(m, Delta) - m * covariance + 0.25 * m**2 * norm_variance(m, gamma, Delta)


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
