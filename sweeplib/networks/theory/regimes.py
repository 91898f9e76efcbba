"""Regimes of one-pass SGD as d → ∞ with the learning rate γ = γ0 d^−δ and the width p = p0 d^κ.

Everything follows from the weight γ/p ~ d^−(κ+δ) of Ψ^Var in Q̇ = Ψ^GF + (γ/p) Ψ^Var and from the spread √(γ/(pd)) of
SGD around its ODE. Sources: arXiv 2202.00293, figure 1 and theorem; the talk "Dimension-free limits of SGD" (2023).
All functions take the exponents δ and κ.
"""

import numpy as np

from sweeplib.networks.theory.labelled import Real, labelled

REGIMES = ("undecided", "perfect_learning", "plateau", "bad_learning", "no_ode")
"""Names by code. Theory decides everywhere; a measurement may not."""
BOUNDARIES = (0.0, -0.5)
"""The values of κ + δ between perfect and bad learning, where the plateau is, and at and below which no ODE holds."""
ROUNDING = 1e-9
"""Sums κ + δ that differ from a boundary by less are on it."""


@labelled(r"\kappa+\delta", "exponent of p/γ")
def coupling_exponent(delta: Real, kappa: Real) -> Real:
    """κ + δ, by which p/γ grows; all regimes are functions of it."""
    return delta + kappa


@labelled("", "regime of theory")
def regime(delta: Real, kappa: Real) -> Real:
    """The place in `REGIMES`: perfect_learning for κ+δ > 0, plateau at 0, bad_learning above −½, no_ode from there."""
    s = delta + kappa
    learning = np.where(np.abs(s) < ROUNDING, 2.0, np.where(s > 0.0, 1.0, 3.0))
    return np.where(s < BOUNDARIES[1] + ROUNDING, 4.0, learning)


@labelled("x_n", "exponent of the steps")
def steps_exponent(delta: Real, kappa: Real) -> Real:
    """The exponent x ≥ 0 of the steps ∝ d^x to learn, x = 1 + κ+δ, or to be swept away by noise, x = 1 + 2(κ+δ)."""
    s = delta + kappa
    return np.maximum(1.0 + np.where(s > 0.0, s, 2.0 * s), 0.0)


@labelled("x_R", "exponent of the excess risk")
def excess_risk_exponent(delta: Real, kappa: Real) -> Real:
    """The exponent x of SGD's final risk ∝ d^−x above that of gradient flow: κ+δ of the floor γΔ/p, or 0."""
    return np.maximum(delta + kappa, 0.0)


@labelled("x_V", "exponent of the weight of the noise")
def noise_weight_exponent(delta: Real, kappa: Real) -> Real:
    """The exponent x = κ+δ of the ratio ∝ d^−x of what (γ/p) Ψ^Var and Ψ^GF change; nan where there is no ODE."""
    s = delta + kappa
    return np.where(s >= BOUNDARIES[1] + ROUNDING, s, np.nan)


@labelled("x_D", "exponent of the deviation from the ODE")
def deviation_exponent(delta: Real, kappa: Real) -> Real:
    """The exponent x of SGD's spread ∝ d^−x around its ODE: √(γ/(pd)) for κ+δ ≥ 0, else 1/√steps, and 0 from −½ on.

    x = (1 + κ+δ)/2, then ½ + κ+δ: the clock of bad learning has d^{1+2(κ+δ)} steps.
    """
    s = delta + kappa
    return np.maximum(0.5 + np.where(s > 0.0, 0.5 * s, s), 0.0)
