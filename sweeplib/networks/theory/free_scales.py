"""Phase retrieval whose scale is not fixed, by norms or a second layer: σ(λ) = λ², one teacher unit, a* = 1.

The scale relaxes before anything is learned, at M = 0 and Q = q I, from a = q = 1. g = γ/p, s = 1 + 2/p, r = 1 + 4/p.

*Standard SGD*, free norms, a = 1: q̇ = 4q [1 − s q + g (3 + Δ − 2s q + s r q²)] = 4q g s r (q − q₁)(q − q₂). If 1 < q₂
they come to rest at q₁, and the overlaps grow at the rate 6 − 2s q₁.

*On the sphere, the second layer trained*, at any rate ε > 0: ȧ = ε (1 − s a). At rest, a = 1/s, overlaps grow at the
rate (4/s)[1 − (g/(2s))(1 + Δ + r/s)]. With both fixed q = a = 1 for ever (`learning_rates`).

Arguments: γ, the width p, and the variance Δ of the label noise.
"""

import numpy as np

from sweeplib.networks.theory.labelled import Real, labelled


@labelled("q_1", "mean squared norm at rest before learning")
def free_norm(gamma: Real, p: Real, Delta: Real) -> Real:
    """q₁, the smaller root of g s r q² − s(1 + 2g) q + 1 + g(3 + Δ): Q_ii = 1 tends to it while M is small.

    1/3 for γ → 0 at p = 1. inf from `free_maximal_learning_rate` on, where the norms grow without bound.
    """
    low, high = _resting_norms(gamma, p, Delta)
    return np.where(high > 1.0, low, np.inf)


@labelled(r"\omega_M^{\mathrm{free}}", "escape rate with free norms")
def free_escape_rate(gamma: Real, p: Real, Delta: Real) -> Real:
    """ω = 6 − 2(1 + 2/p) q₁: ṁ_j = ω m_j once the norms have come to rest, in ODE time t = νγ/(pd)."""
    return 6.0 - 2.0 * (1.0 + 2.0 / p) * free_norm(gamma, p, Delta)


@labelled("K", "growth of the cosine that the norms cost")
def free_growth_factor(gamma: Real, p: Real, Delta: Real) -> Real:
    """K of cos ϑ(t) = K cos ϑ(0) e^{ωt}, what the norms on their way from 1 to q₁ change in the growth of the cosine.

    K = q₁^(−1/2) [q₁ (q₂ − 1)/(q₂ − q₁)]^(1/(2 g r q₂)): 1 for γ → 0, where the cosine grows alike at any norm, and
    zero where the start is at q₂.
    """
    low, high = _resting_norms(gamma, p, Delta)
    power = 0.5 / (gamma / p * (1.0 + 4.0 / p) * high)
    return np.where(high > 1.0, low**-0.5 * (low * (high - 1.0) / (high - low)) ** power, 0.0)


@labelled(r"\gamma_{\mathrm{opt}}^{\mathrm{free}}", "optimal learning rate with free norms")
def free_optimal_learning_rate(p: Real, Delta: Real) -> Real:
    """The learning rate that minimises the steps ∝ p/(γ ω) to escape with free norms, at leading order in log d.

    With x = s q₁ and c = (p + 4)/(p + 2), g = (x − 1)/(c x² − 2x + 3 + Δ), and g ω = g (6 − 2x) is largest at the
    positive root of (2c − 1) x² − (3c − 3 − Δ) x − (3 + 2Δ) = 0. .1524 at p = 1, Δ = 0, where the sphere has 1/12.
    """
    ratio = _ratio(p)
    half = 0.5 * (3.0 * ratio - 3.0 - Delta)
    best = (half + np.sqrt(half**2 + (2.0 * ratio - 1.0) * (3.0 + 2.0 * Delta))) / (2.0 * ratio - 1.0)
    return p * (best - 1.0) / (ratio * best**2 - 2.0 * best + 3.0 + Delta)


@labelled(r"\gamma_{\mathrm{max}}^{\mathrm{free}}", "maximal learning rate with free norms")
def free_maximal_learning_rate(p: Real, Delta: Real) -> Real:
    """The learning rate from which on norms that start at 1 grow without bound.

    There q₁ and q₂ meet, if they do so above the start, (4c(3 + Δ) − 4) g² + 4(c − 1) g = 1; else q₂ is the start,
    g (2 + Δ + 2/p + 8/p²) = 2/p. One unit has the 2/(12 + Δ) of the sphere, up to Δ = 4.
    """
    ratio = _ratio(p)
    square = ratio * (3.0 + Delta) - 1.0
    meeting = 0.5 * (np.sqrt((ratio - 1.0) ** 2 + square) - ratio + 1.0) / square
    norm = (1.0 + 2.0 * meeting) / (2.0 * meeting * (1.0 + 4.0 / p))
    passing = 2.0 / p / (2.0 + Delta + 2.0 / p + 8.0 / p**2)
    return p * np.where(norm >= 1.0, meeting, passing)


@labelled(r"\omega_M^{\mathrm{trained}}", "escape rate with a trained second layer")
def trained_escape_rate(gamma: Real, p: Real, Delta: Real) -> Real:
    """ω = (4/s)[1 − (γ/(2ps))(1 + Δ + r/s)]: ṁ_j = ω m_j on the sphere once a has come to rest at 1/s = p/(p + 2)."""
    scale = 1.0 + 2.0 / p
    return 4.0 / scale * (1.0 - 0.5 * gamma / (p * scale) * (1.0 + Delta + _ratio(p)))


@labelled(r"\gamma_{\mathrm{opt}}^{\mathrm{trained}}", "optimal learning rate with a trained second layer")
def trained_optimal_learning_rate(p: Real, Delta: Real) -> Real:
    """The learning rate (p + 2)/(1 + Δ + (p + 4)/(p + 2)) that minimises the steps ∝ p/(γ ω) to escape.

    1.125 at p = 1, Δ = 0, where the frozen layer has 1/12. Of the escape only: what is learned has a = 1 and needs a
    smaller rate. The gain of width, steps at p = 1 over those at p, tends to (8/3 + Δ)/(2 + Δ).
    """
    return (p + 2.0) / (1.0 + Delta + _ratio(p))


def _resting_norms(gamma: Real, p: Real, Delta: Real) -> tuple[Real, Real]:
    """Return q₁ and q₂, the norms at which q̇ = 0; nan where there are none."""
    noise, sum_of_roots = gamma / p, 1.0 + 2.0 * gamma / p
    root = np.sqrt(sum_of_roots**2 - 4.0 * _ratio(p) * noise * (1.0 + noise * (3.0 + Delta)))
    low = 2.0 * (1.0 + noise * (3.0 + Delta)) / (1.0 + 2.0 / p) / (sum_of_roots + root)
    return low, (sum_of_roots + root) / (2.0 * noise * (1.0 + 4.0 / p))


def _ratio(p: Real) -> Real:
    """Return c = r/s = (p + 4)/(p + 2)."""
    return (p + 4.0) / (p + 2.0)
