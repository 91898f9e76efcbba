"""The mean first passage of noisy phase retrieval to its exit, at every learning rate and every T d.

Same setting as `exit_times`. Around the origin SGD is the diffusion dm_j = ω_M m_j dt + √(γV/(pd)) dB_j, independent
for each unit, and r² = d Σ_j m_j² a radial Ornstein-Uhlenbeck process in p dimensions. Its mean time from r² = μ0 to
r² = μ solves (σ²/2)(f'' + (p−1)f'/r) + ω r f' = −1: with σ² = γV/p,
t = G(μ) − G(μ0), G(μ) = (μ/σ²) h(ω_M μ/σ²), h(s) = (1/p) ∫₀¹ 1F1(1; 1 + p/2; −s v) dv.
"""

import functools

import numpy as np

from sweeplib.arrays import Array
from sweeplib.late_modules import scipy
from sweeplib.theory.exit_times import noise_variance
from sweeplib.theory.labelled import Real, labelled
from sweeplib.theory.learning_rates import escape_rate
from sweeplib.theory.starts import starts_and_exits

_NODES = 64


@labelled(r"t_{\mathrm{ext}}^{\mathrm{fp}}", "mean first-passage time to the exit")
def first_passage_exit_time(gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The mean exit time of the linearised SDE from a random start, for every γ.

    Finite also for γ ≥ 2 γ_opt, where noise alone makes the exit. Tends to the noise-corrected exit time for T d → ∞.
    Neglects the curvature of the drift, of relative order T, and the discreteness of steps.
    """
    rate, diffusion = escape_rate(gamma, p, Delta), gamma / p * noise_variance(p, Delta)
    return np.vectorize(_mean_first_passage, otypes=[float])(rate, diffusion, p, d, T)


@functools.lru_cache(maxsize=4096)
def _mean_first_passage(rate: float, diffusion: float, p: float, d: float, T: float) -> float:
    start, end, weights = starts_and_exits(p, d, T)
    times = end * _scaled_passage(rate * end / diffusion, p) - start * _scaled_passage(rate * start / diffusion, p)
    return float(np.sum(weights * times) / diffusion)


def _scaled_passage(s: Array, p: float) -> Array:
    """h(s) above; for s > 0 in the variable log(1 + s v), in which the integrand is smooth up to s → ∞."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    v, half = 0.5 * (nodes + 1.0), 0.5 * weights / p
    stretch = np.log1p(np.maximum(s, 0.0))[..., None]
    growing = stretch[..., 0] * (
        np.exp(stretch * v) * scipy.special.hyp1f1(1.0, 1.0 + p / 2.0, -np.expm1(stretch * v)) @ half
    )
    decaying = scipy.special.hyp1f1(1.0, 1.0 + p / 2.0, -np.minimum(s, 0.0)[..., None] * v) @ half
    return np.where(s > 0.0, growing / np.where(s > 0.0, s, 1.0), decaying)
