"""Learning rates of phase retrieval: σ(λ) = λ², one teacher unit, spherical students, a = a* = 1.

Sources: arXiv 2305.18502, section 3 (p = 1) and section 4 (any p). Arguments: γ, the width p, and the variance Δ of the
label noise.
"""

import numpy as np

from sweeplib.networks.theory.labelled import Real, labelled


@labelled(r"\gamma_{\mathrm{opt}}", "linearised optimal learning rate")
def optimal_learning_rate(p: Real, Delta: Real) -> Real:
    """γ_opt = p³/(8 + 2p + (2 + Δ) p²), which minimises the SGD steps ∝ p d/(γ ω_M) to escape; 1/(12 + Δ) at p = 1.

    Of the escape linearised at the origin. The ODE's own optimum is lower, by 0.09 % at p = 1, Δ = 0.5, T = 0.1 and
    d = 300: `exact_optimal_learning_rate`.
    """
    return p / _prefactor(p, Delta)


@labelled(r"\gamma_{\mathrm{max}}", "maximal learning rate")
def maximal_learning_rate(p: Real, Delta: Real) -> Real:
    """2 γ_opt, the learning rate at which the escape rate ω_M vanishes: nothing is learned from there on.

    For p in 2..6 the alignment rate ω_Q vanishes before it, at p²/8, and the student units align among themselves:
    `learnable_range`.
    """
    return 2.0 * p / _prefactor(p, Delta)


@labelled(r"\gamma_{\mathrm{range}}", "upper end of the learnable range")
def learnable_range(p: Real, Delta: Real) -> Real:
    """The end of the range 0 < γ < 2 γ_opt, p²/8 in which both linear regimes are those of learning.

    The escape rate ω_M is positive and, for p > 1, so is ω_Q, by which the student units forget their alignment: below
    7 units and Δ = 0 the latter is the stricter one. 2/(12 + Δ) at p = 1.
    Necessary, not sufficient: wide students may end elsewhere at large γ (docs/theory.md).
    """
    return np.where(p > 1.0, np.minimum(maximal_learning_rate(p, Delta), p**2 / 8.0), maximal_learning_rate(p, Delta))


@labelled(r"\omega_M", "escape rate")
def escape_rate(gamma: Real, p: Real, Delta: Real) -> Real:
    """ω_M = 4[1 − (γ/p)(1 + 1/p + 4/p² + Δ/2)]: ṁ_j = ω_M m_j at the origin, in ODE time t = νγ/(pd)."""
    return 4.0 * (1.0 - 0.5 * gamma / p * _prefactor(p, Delta))


@labelled(r"\omega_Q", "decay rate of the overlaps between student units")
def student_alignment_rate(gamma: Real, p: Real) -> Real:
    """ω_Q = (8/p)(1 − 8γ/p²): Q̇_jl = −ω_Q Q_jl at the origin, j ≠ l, in ODE time; label noise does not enter."""
    return 8.0 / p * (1.0 - 8.0 * gamma / p**2)


@labelled(r"n_{p=1}/n_p", "gain of overparametrisation")
def overparametrisation_gain(p: Real, Delta: Real) -> Real:
    """The steps to escape at p = 1 over those at p, each at its optimal learning rate, for d → ∞.

    (12 + Δ) p²/(8 + 2p + (2 + Δ) p²), which tends to (12 + Δ)/(2 + Δ); p may be infinite.
    """
    return (12.0 + Delta) / _prefactor(p, Delta)


def _prefactor(p: Real, Delta: Real) -> Real:
    """p/γ_opt = 2 + Δ + 2/p + 8/p²: the escape takes n ≈ 4 (p/γ_opt) d/8 · log d steps at the optimum."""
    return 2.0 + Delta + 2.0 / p + 8.0 / p**2
