"""The law of the exit time of phase retrieval, not only its mean: setting and symbols of `exit_times`.

In the linear regime a run exits when μ0 e^{2ω_M t} reaches T p (p+1) d/(2p) + (1−T)(μ0 − τ0/(2p)), so that
P(t_ext > t) is a probability of the start, μ0 ~ χ²_p and τ0 ~ 2 χ²_{p(p−1)/2} for d → ∞.
"""

import numpy as np

from sweeplib.late_modules import scipy
from sweeplib.theory.exit_times import noise_variance
from sweeplib.theory.labelled import Real, labelled
from sweeplib.theory.learning_rates import escape_rate
from sweeplib.theory.starts import chi_squared_rule


@labelled(r"P(t_{\mathrm{ext}}>t)", "quenched probability not to have exited")
def quenched_survival(t: Real, gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """E_τ0 P(μ0 < [T p (p+1) d − (1−T) τ0]/(2p (e^{2ω_M t} − 1 + T))): the law whose mean is the quenched exit time."""
    grown = np.exp(2.0 * escape_rate(gamma, p, Delta) * t)
    return _survival(grown - 1.0 + T, p, d, T)


@labelled(r"P(t_{\mathrm{ext}}>t)", "noise-corrected probability not to have exited")
def noise_corrected_survival(t: Real, gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The same with e^{2ω_M t} + s (e^{2ω_M t} − 1) for the growth, s = (γ/p) V/(2ω_M): SGD adds its noise to m.

    m_j(t) is Gaussian with that variance over d, of which the mean square of the start is a part.
    """
    rate = escape_rate(gamma, p, Delta)
    grown = np.exp(2.0 * rate * t)
    strength = gamma / p * noise_variance(p, Delta) / (2.0 * rate)
    return _survival(grown + strength * (grown - 1.0) - 1.0 + T, p, d, T)


def _survival(growth: Real, p: Real, d: Real, T: Real) -> Real:
    return np.vectorize(_mean_survival, otypes=[float])(growth, p, d, T)


def _mean_survival(growth: float, p: float, d: float, T: float) -> float:
    """E_τ0 P(μ0 growth < level), 1 before the start has grown at all."""
    half_tau, weights = chi_squared_rule(p * (p - 1.0) / 2.0)
    level = np.maximum(0.5 * T * (p + 1.0) * d - (1.0 - T) * half_tau / p, 0.0)
    return float(np.sum(weights * scipy.special.chdtr(p, level / growth)))
