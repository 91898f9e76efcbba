"""Exit times of phase retrieval, when the excess risk has fallen to (1 − T) of its start, in ODE time t = νγ/(pd).

σ(λ) = λ², one teacher unit, spherical students started uniformly on the sphere, a = a* = 1. In the linear regime around
the origin μ(t) = d Σ_j m_j² = μ0 exp(2 ω_M t), and the exit is at
t = log[(T p (p+1) d + (1−T)(2 p μ0 − τ0))/(2 p μ0)]/(2 ω_M), τ0 = 2d Σ_{j<l} Q_jl² (arXiv 2305.18502, section 4).
Learning rates γ ≥ 2 γ_opt never exit: inf.

Around the origin SGD is the diffusion dm_j = ω_M m_j dt + √(γV/(pd)) dB_j, independent for each unit, and
r² = d Σ_j m_j² a radial Ornstein-Uhlenbeck process in p dimensions. Its mean time from r² = μ0 to r² = μ solves
(σ²/2)(f'' + (p−1)f'/r) + ω r f' = −1: with σ² = γV/p, t = G(μ) − G(μ0), G(μ) = (μ/σ²) h(ω_M μ/σ²),
h(s) = (1/p) ∫₀¹ 1F1(1; 1 + p/2; −s v) dv.

Arguments: γ, the width p, the dimension d, the variance Δ of the label noise, the threshold T in (0, 1).
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.theory.labelled import Real, labelled
from sweeplib.networks.theory.learning_rates import escape_rate, maximal_learning_rate

_NODES = 64
"""Nodes of Gauss rules."""
_STEPS, _OUTSIDE = 400, 1e-16
"""Equal steps of the logarithm of μ0, and the probability beyond each of their ends."""
_LEAST_WEIGHT, _RARE, _AGREEMENT = 1e-14, 1e-6, 0.01
"""Nodes of less weight are left out of means; an optimum without rare ones, of less than _RARE, has to agree so far."""


@labelled(r"t_{\mathrm{ext}}^{\mathrm{anl}}", "annealed exit time")
def annealed_exit_time(gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """log[(p+1)(T d + 1 − T)/(2p)]/(2 ω_M): the exit time at the mean μ0 = p, τ0 = p(p−1) of the start."""
    return _time(np.log((p + 1.0) * (T * d + 1.0 - T) / (2.0 * p)), escape_rate(gamma, p, Delta))


@labelled(r"t_{\mathrm{ext}}^{\mathrm{qnc}}", "quenched exit time")
def quenched_exit_time(gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The exit time averaged over the start (μ0, τ0).

    With their laws for d → ∞, independent χ²_p and 2 χ²_{p(p−1)/2}: relative error O(1/d). Starts beyond the
    threshold of the linear regime count as exited at once.
    """
    return _time(mean_log_growth(p, d, T), escape_rate(gamma, p, Delta))


@labelled(r"t_{\mathrm{ext}}^{\mathrm{noise}}", "noise-corrected exit time")
def noise_corrected_exit_time(gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The quenched exit time less log(1 + s)/(2 ω_M), s = (γ/p) V/(2 ω_M): what the noise of SGD adds to the escape.

    While m grows, the noise adds to m_j(0) an independent Gaussian of variance s/d: the μ0 of the denominator becomes
    μ0 (1 + s) in law; that of the numerator, which is R(0), stays. V = Var[2 λ_j λ* E] at the origin
    (`noise_variance`). The leading order for T d → ∞; `first_passage_exit_time` needs no such limit. nan where the
    correction exceeds the exit time itself, next to 2 γ_opt.
    """
    rate = escape_rate(gamma, p, Delta)
    growth = mean_log_growth(p, d, T) - np.log1p(gamma / p * noise_variance(p, Delta) / (2.0 * rate))
    return _time(np.where(growth > 0.0, growth, np.nan), rate)


@labelled(r"\gamma_{\mathrm{opt}}^{\mathrm{noise}}", "noise-corrected optimal learning rate")
def noise_corrected_optimal_learning_rate(p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The learning rate that minimises the steps p d/γ times the noise-corrected exit time.

    It lies above γ_opt; at p = 1 their ratio does not depend on Δ. At γ = x · 2γ_opt, x in (0, 1), it is the first
    zero above x = ½ of the derivative, which has the sign of (L − log(1+s))(2x − 1) − c x/(1 − x + c x),
    s = c x/(1 − x), c = 2 γ_opt V/(8p) and L the mean log growth. To be trusted for T d of about 30 or more; nan where
    there is none: for T d of a few units the noise alone takes SGD to its exit, and the steps fall with γ all the way.
    """
    largest = maximal_learning_rate(p, Delta)
    strength = largest * noise_variance(p, Delta) / (8.0 * p)
    return largest * _of_numbers(_optimal_fraction, mean_log_growth(p, d, T), strength)


@labelled(r"t_{\mathrm{ext}}", "exact exit time of the ODE")
def exact_exit_time(m0: Real, gamma: Real, Delta: Real, T: Real) -> Real:
    """The exit time at p = 1 from overlap m0, without linearisation.

    u = m² follows a logistic law: w = 4(1−6γ) − 2γΔ, K = w/(4(1−6γ)), u_T = 1 − (1−T)(1−u0) and
    t = log[u_T (K − u0)/(u0 (K − u_T))]/(2w). inf where u_T is not below the fixed point K.
    """
    rate = 4.0 * (1.0 - 6.0 * gamma) - 2.0 * gamma * Delta
    limit = rate / (4.0 * (1.0 - 6.0 * gamma))
    start = m0**2
    end = 1.0 - (1.0 - T) * (1.0 - start)
    time = np.log(end * (limit - start) / (start * (limit - end))) / (2.0 * rate)
    return np.where((rate > 0.0) & (start > 0.0) & (end < limit), time, np.inf)


@labelled(r"\gamma_{\mathrm{opt}}^{\mathrm{ODE}}", "optimal learning rate of the ODE")
def exact_optimal_learning_rate(d: Real, Delta: Real, T: Real) -> Real:
    """The learning rate of least mean exit steps of the ODE at p = 1, from starts uniform on the sphere, d > 2.

    That is of E_m0[t(m0, γ)]/γ with the exact t, by Gauss quadrature. `optimal_learning_rate`, 1/(12 + Δ), is that of
    the escape linearised at the origin, to which it tends for T → 0 and d → ∞ with T d → ∞; at Δ = 0 they agree, as
    t ∝ 1/(1 − 6γ) from every start. At Δ = 0.5 and d = 300 it is 0.09 % lower at T = 0.1, 0.015 % at T = 0.01 and 0.6 %
    at T = 0.5. nan where starts next to the fixed point or above it, which never exit, count: in few dimensions, and
    where rare starts change it by a per cent, as at T = 0.99.
    """
    return _of_numbers(_exact_optimum, d, Delta, T)


@labelled("V", "variance of the overlap's noise at the origin")
def noise_variance(p: Real, Delta: Real) -> Real:
    """V = 4[15 − 6(p+2)/p + (p+2)(p+4)/p² + Δ] = Var[2 λ_j λ* E] at m = 0, Q = I; 48 + 4Δ at p = 1.

    A step changes m_j by γ/(pd) times that variable, hence dm_j = ω_M m_j dt + √(γV/(pd)) dB_j.
    """
    return 4.0 * (15.0 - 6.0 * (p + 2.0) / p + (p + 2.0) * (p + 4.0) / p**2 + Delta)


@labelled("L", "mean logarithm of the growth to the exit")
def mean_log_growth(p: Real, d: Real, T: Real) -> Real:
    """L = E log[(T p (p+1) d + (1−T)(2 p μ0 − τ0))/(2 p μ0)], 2 ω_M times the quenched exit time."""
    return _of_numbers(_mean_log_growth, _widths(p), d, T)


@functools.lru_cache(maxsize=4096)
def _exact_optimum(d: float, Delta: float, T: float) -> float:
    """The `exact_optimal_learning_rate` of numbers.

    E log m0² = ψ(½) − ψ(d/2) is the singular part of the mean exit time; the rest is smooth in m0².
    """
    if not (2.0 < d < math.inf and math.isfinite(Delta + T)):
        return math.nan
    best, without_rare = (_optimum_of(_sphere_rule(d), least, d, Delta, T) for least in (_LEAST_WEIGHT, _RARE))
    return best if abs(without_rare / best - 1.0) < _AGREEMENT else math.nan


def _optimum_of(rule: tuple[Array, Array], least: float, d: float, Delta: float, T: float) -> float:
    """The learning rate of least mean exit steps, by a rule for m0, from starts above the weight `least`; or nan."""
    counted = rule[1] > least
    m0, weights = rule[0][counted], rule[1][counted]
    end = T + (1.0 - T) * m0**2
    mean_log = scipy.special.digamma(0.5) - scipy.special.digamma(d / 2.0)

    def steps(gamma: float) -> float:
        """Return the mean exit steps over d at a learning rate; inf where a start that counts never exits."""
        slope = 4.0 * (1.0 - 6.0 * gamma)
        rate = slope - 2.0 * gamma * Delta
        limit = rate / slope
        if not (rate > 0.0 and (end < limit).all()):
            return np.inf
        growth = np.log(end * (limit - m0**2) / (limit - end)) @ weights
        return float((growth - mean_log) / (2.0 * rate * gamma))

    # up to the rate at which the last exit is the fixed point; where m0 = 1 counts too, there is no such rate
    rest_of_way = 1.0 if counted.all() else 1.0 - end.max()
    largest = 2.0 * rest_of_way / (Delta + 12.0 * rest_of_way)
    best = scipy.optimize.minimize_scalar(steps, bounds=(0.0, largest), method="bounded", options={"xatol": 1e-12})
    return float(best.x) if np.isfinite(best.fun) else math.nan


def _sphere_rule(d: float) -> tuple[Array, Array]:
    """Gauss nodes and weights, (128,) each, for a coordinate of a uniform unit vector in d > 2 dimensions."""
    n, order = np.arange(1.0, 2 * _NODES), 0.5 * d - 1.0
    off_diagonal = np.sqrt(n * (n + 2.0 * order - 1.0) / (4.0 * (n + order) * (n + order - 1.0)))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(np.zeros(2 * _NODES), off_diagonal)
    return nodes, vectors[0] ** 2


def _time(growth: Real, rate: Real) -> Real:
    """The exit time growth/(2 rate), `growth` the logarithm of that of μ to the exit; inf where nothing grows."""
    return np.where(rate <= 0.0, np.inf, growth / (2.0 * rate))


@functools.cache
def _mean_log_growth(p: float, d: float, T: float) -> float:
    """The `mean_log_growth` of numbers, by Gauss quadrature over (μ0, τ0); the singular E log μ0 is ψ(p/2) + log 2."""
    _, exit_mu, weights = starts_and_exits(p, d, T)
    return float(np.sum(weights * np.log(exit_mu)) - scipy.special.digamma(p / 2.0) - np.log(2.0))


def _optimal_fraction(growth: float, strength: float) -> float:
    """The fraction x of 2 γ_opt at which the noise-corrected number of steps has its first minimum; nan without one.

    growth : L. strength : c (`noise_corrected_optimal_learning_rate`).
    """

    def slope(x: Real) -> Real:
        """Return the derivative of the steps at a fraction x, but for a positive factor."""
        remaining = growth - np.log1p(strength * x / (1.0 - x))
        return remaining * (2.0 * x - 1.0) - strength * x / (1.0 - x + strength * x)

    fractions = np.linspace(0.5, 1.0, 1001)[:-1]  # fine enough to see a change of sign
    rising = np.flatnonzero(slope(fractions) > 0.0)
    if not (rising.size and math.isfinite(growth)):
        return math.nan
    return float(scipy.optimize.brentq(slope, fractions[rising[0] - 1], fractions[rising[0]], xtol=1e-14))


def starts_and_exits(p: float, d: float, T: float) -> tuple[Array, Array, Array]:
    """Nodes μ0 of the start, the levels μ at which their exit is in the linear regime, and their weights.

    μ = d Σ_j m_j². μ0 ~ χ²_p and τ0 = 2d Σ_{j<l} Q_jl² ~ 2 χ²_{p(p−1)/2}, independent, for d → ∞; the exit is at
    [T p (p+1) d + (1−T)(2 p μ0 − τ0)]/(2p), and at μ0 where that is less.
    Shapes (64, 1), (64, n), (64, n), n = 1 at p = 1.
    """
    mu, mu_weight = chi_squared_rule(p)
    half_tau, tau_weight = chi_squared_rule(p * (p - 1.0) / 2.0)
    start = mu[:, None]
    level = 0.5 * T * (p + 1.0) * d + (1.0 - T) * (start - half_tau / p)
    return start, np.maximum(level, start), np.outer(mu_weight, tau_weight)


@functools.lru_cache(maxsize=64)
def chi_squared_rule(freedom: float) -> tuple[Array, Array]:
    """Gauss nodes and weights for the law χ² of `freedom` degrees of freedom (Golub and Welsch 1969); one for 0."""
    if freedom == 0.0:
        return np.zeros(1), np.ones(1)
    shape, order = freedom / 2.0, np.arange(_NODES, dtype=float)
    off_diagonal = np.sqrt(order[1:] * (order[1:] + shape - 1.0))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(2.0 * order + shape, off_diagonal)
    return 2.0 * nodes, vectors[0] ** 2


@labelled(r"P(t_{\mathrm{ext}}>t)", "quenched probability not to have exited")
def quenched_survival(t: Real, gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """E_τ0 P(μ0 < [T p (p+1) d − (1−T) τ0]/(2p (e^{2ω_M t} − 1 + T))): the law whose mean is the quenched exit time."""
    grown = np.exp(2.0 * escape_rate(gamma, p, Delta) * t)
    return _survival(grown - 1.0 + T, p, d, T)


@labelled(r"P(t_{\mathrm{ext}}>t)", "noise-corrected probability not to have exited")
def noise_corrected_survival(t: Real, gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The quenched probability with e^{2ω_M t} + s (e^{2ω_M t} − 1) for the growth, s = (γ/p) V/(2ω_M).

    SGD adds its noise to m: m_j(t) is Gaussian with that variance over d, of which the mean square of the start is a
    part.
    """
    rate = escape_rate(gamma, p, Delta)
    # e^{2ω_M t} − 1 would be a rounding error where ω_M is one, as at twice the best rate
    grown = np.expm1(2.0 * rate * t)
    strength = gamma / p * noise_variance(p, Delta) / (2.0 * rate)
    # where ω_M = 0 the noise adds up in proportion to the time
    added = np.where(rate == 0.0, gamma / p * noise_variance(p, Delta) * t, strength * grown)
    return _survival(grown + added + T, p, d, T)


def _survival(growth: Real, p: Real, d: Real, T: Real) -> Real:
    """The probability not to have exited, of arrays: `_mean_survival`, which says what `growth` is."""
    return _of_numbers(_mean_survival, growth, _widths(p), d, T)


def _mean_survival(growth: float, p: float, d: float, T: float) -> float:
    """The probability E_τ0 P(μ0 growth < level) not to have exited; 1 before the start has grown at all.

    growth : e^{2ω_M t} − 1 + T, or the like with the noise of SGD; level : [T p (p+1) d − (1−T) τ0]/(2p).
    """
    if growth <= 0.0:
        return 1.0
    half_tau, weights = chi_squared_rule(p * (p - 1.0) / 2.0)
    # below zero no start is small enough: the probability is zero
    level = np.maximum(0.5 * T * (p + 1.0) * d - (1.0 - T) * half_tau / p, 0.0)
    return float(np.sum(weights * scipy.special.chdtr(p, level / growth)))


@labelled(r"t_{\mathrm{ext}}^{\mathrm{fp}}", "mean first-passage time to the exit")
def first_passage_exit_time(gamma: Real, p: Real, d: Real, Delta: Real, T: Real) -> Real:
    """The mean exit time of the linearised SDE from a random start, for every γ.

    Finite also for γ ≥ 2 γ_opt, where noise alone makes the exit. Tends to the noise-corrected exit time for T d → ∞.
    Neglects the curvature of the drift, of relative order T, and the discreteness of steps. At γ = 0, without noise, it
    is the quenched exit time.
    """
    rate, diffusion = escape_rate(gamma, p, Delta), gamma / p * noise_variance(p, Delta)
    times = _of_numbers(_mean_first_passage, rate, np.where(diffusion > 0.0, diffusion, np.nan), _widths(p), d, T)
    return np.where(diffusion == 0.0, _time(mean_log_growth(p, d, T), rate), times)


def _of_numbers(function: Callable[..., float], *arguments: Real) -> Real:
    """The values of a function of numbers at arrays, NaN where an argument is."""

    def value(*numbers: float) -> float:
        return math.nan if any(map(math.isnan, numbers)) else function(*numbers)

    return np.vectorize(value, otypes=[float])(*arguments)


def _widths(p: Real) -> Real:
    """The widths p, NaN where they are infinite or below 1: there is no law of the start."""
    return np.where((np.asarray(p) >= 1.0) & np.isfinite(p), p, np.nan)


@functools.lru_cache(maxsize=4096)
def _mean_first_passage(rate: float, diffusion: float, p: float, d: float, T: float) -> float:
    """The `first_passage_exit_time` of numbers, by the escape rate ω_M and σ², the `diffusion`."""
    _, end, weights = starts_and_exits(p, d, T)
    start, of_start = _steps_of_starts(p)
    last = np.sum(weights * end * _scaled_passage(rate * end / diffusion, p))
    return float(last - np.sum(of_start * start * _scaled_passage(rate * start / diffusion, p))) / diffusion


@functools.lru_cache(maxsize=64)
def _steps_of_starts(p: float) -> tuple[Array, Array]:
    """Nodes μ0 and their weights, in equal steps of log μ0: means of its logarithm are accurate, unlike Gauss's."""
    first, last = np.log(scipy.special.chdtri(p, [1.0 - _OUTSIDE, _OUTSIDE]))
    x = np.linspace(first, last, _STEPS) - math.log(p)
    density = np.exp(0.5 * p * (x - np.expm1(x)))
    return p * np.exp(x), density / density.sum()


def _scaled_passage(s: Array, p: float) -> Array:
    """The function h(s) of the module's docstring, of an array.

    For s > 0 it is integrated in the variable log(1 + s v), in which the integrand is smooth up to s → ∞.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    v, half = 0.5 * (nodes + 1.0), 0.5 * weights / p
    stretch = np.log1p(np.maximum(s, 0.0))[..., None]
    # 1 + s v′ = e^(stretch v): the exponential is the derivative of s v′ over `stretch`
    growing = stretch[..., 0] * (
        np.exp(stretch * v) * scipy.special.hyp1f1(1.0, 1.0 + p / 2.0, -np.expm1(stretch * v)) @ half
    )
    decaying = scipy.special.hyp1f1(1.0, 1.0 + p / 2.0, -np.minimum(s, 0.0)[..., None] * v) @ half
    return np.where(s > 0.0, growing / np.where(s > 0.0, s, 1.0), decaying)
