"""Claims of the five sources, each by another route than the notebook that retells it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from sweeplib.networks import theory
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import simulate

Vector = np.ndarray


def square_risk(W: Vector, W_star: Vector) -> float:
    """The risk of a student and a teacher of squares."""
    d, (p, k) = W.shape[1], (len(W), len(W_star))
    overlaps = (W @ W.T / d, W @ W_star.T / d, W_star @ W_star.T / d)
    systems = (*(array[None] for array in overlaps), np.ones((1, p)), np.ones((1, k)))
    return float(expectations("square", "square").risks(*systems)[0])


@pytest.mark.parametrize("p", [2, 4])
def test_the_annealed_time_is_that_of_the_mean_start(p: int) -> None:
    """The printed formula for p ≥ 1 at the means of μ0 and τ0 over unit vectors: five standard errors of 10⁴ draws."""
    rng, d, T, draws = np.random.default_rng(0), 40, 0.1, 10_000
    units = rng.standard_normal((draws, p + 1, d))
    units /= np.linalg.norm(units, axis=2, keepdims=True)
    products = units @ units.transpose(0, 2, 1)
    mu = d * (products[:, :p, p] ** 2).sum(axis=1)
    tau = d * ((products[:, :p, :p] ** 2).sum(axis=(1, 2)) - p)

    def time(mu: float, tau: float) -> float:
        inside = (T * p * (p + 1) * d + (2 * mu * p - tau) * (1 - T)) / (2 * mu * p)
        return float(np.log(inside) / (8 * (1 - 0.2 / p * (1 + 1 / p + 4 / p**2 + 0.25))))

    error = np.hypot(
        (time(p * 1.01, p * (p - 1)) - time(p, p * (p - 1))) / (0.01 * p) * mu.std(),
        (time(p, p * (p - 1) + 0.01) - time(p, p * (p - 1))) / 0.01 * tau.std(),
    ) / np.sqrt(draws)
    assert abs(time(mu.mean(), tau.mean()) - theory.annealed_exit_time(0.2, p, d, 0.5, T)) < 5 * error


def test_the_annealed_and_the_quenched_time_match_for_wide_students() -> None:
    """Their difference falls as 1/p, E log χ²_p − log p = −1/p + O(p⁻²), as the time itself does not."""
    widths = np.array([64.0, 128.0, 256.0])
    gamma = theory.optimal_learning_rate(widths, 0.0) / 2
    quenched, annealed = (
        formula(gamma, widths, 1e4, 0.0, 0.1) for formula in (theory.quenched_exit_time, theory.annealed_exit_time)
    )
    assert (quenched > annealed).all()
    assert widths * (quenched - annealed) * 2 * theory.escape_rate(gamma, widths, 0.0) == pytest.approx(1.0, rel=0.05)
    assert quenched == pytest.approx(1.04, rel=0.01)


@pytest.mark.slow
def test_the_start_of_the_haystack_is_a_fixed_point_that_repels() -> None:
    """From m = 0 the ODE stays there to the bit; from m = 10⁻⁶ it leaves at the rate ω_M, to O(m²)."""
    fields: dict[str, Any] = {"p": 1, "k": 1, "d": 1000, "gamma": 0.05, "Delta": 0.5, "activation": "square"}
    times = [0.0, 0.5, 1.0]

    def overlaps(m0: float) -> Vector:
        problem = Problem(**fields, spherical=True, m0=m0)
        return simulate(problem, "ode", times=times, observables=["overlap_M"]).overlap_M.values.ravel()

    assert (overlaps(0.0) == 0.0).all()
    growth = np.diff(np.log(overlaps(1e-6))) / np.diff(times)
    assert growth == pytest.approx(theory.escape_rate(0.05, 1, 0.5), rel=1e-5)


@pytest.mark.slow
def test_the_fastest_escape_is_not_the_fastest_learning() -> None:
    """Least steps of the integrated ODE from m = .02 by 1 % and by 90 % of the fall, at Δ = 1; at Δ = 0 they agree."""

    def steps(gamma: float, Delta: float, T: float) -> float:
        def slope(_: float, m: Vector) -> Vector:
            return m * (4 * (1 - 6 * gamma) * (1 - m**2) - 2 * gamma * Delta)

        def there(_: float, m: Vector) -> float:
            return float((1 - m[0] ** 2) - (1 - T) * (1 - 0.02**2))

        there.terminal = True  # type: ignore[attr-defined]
        events = solve_ivp(slope, (0, 100), [0.02], events=there, rtol=1e-9, atol=1e-12).t_events[0]
        return float(events[0]) / gamma if len(events) else np.inf

    def best(Delta: float, T: float) -> float:
        rates = np.linspace(0.04, 0.085, 46)
        return float(rates[np.argmin([steps(gamma, Delta, T) for gamma in rates])])

    assert best(1.0, 0.01) == pytest.approx(1 / 13, abs=0.0011)
    assert best(1.0, 0.9) < 0.9 / 13
    assert theory.asymptotic_risk(0.01, 1.0) < theory.asymptotic_risk(0.02, 1.0)
    ratios = [
        float(theory.exact_exit_time(0.02, gamma, 0.0, 0.9) / theory.exact_exit_time(0.02, gamma, 0.0, 0.01))
        for gamma in (0.05, 0.1)
    ]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-12)


def test_flat_directions_at_the_equator() -> None:
    """Hess of R on the sphere at w ⊥ w* is −(4/d²) w* w*ᵀ, by differences of the risk of a student: d − 2 flat ones."""
    rng, d, h = np.random.default_rng(0), 7, 1e-3
    w_star = rng.standard_normal(d)
    w = rng.standard_normal(d)
    w_star *= np.sqrt(d) / np.linalg.norm(w_star)
    w -= w @ w_star / d * w_star
    w *= np.sqrt(d) / np.linalg.norm(w)
    tangent = np.linalg.svd(w[None])[2][1:]

    def risk(v: Vector) -> float:
        moved = w + v @ tangent
        return square_risk((moved * np.sqrt(d) / np.linalg.norm(moved))[None], w_star[None])

    steps = h * np.eye(d - 1)
    hessian = [[risk(u + v) - risk(u - v) - risk(v - u) + risk(-u - v) for u in steps] for v in steps]
    along = tangent @ w_star
    assert np.allclose(np.array(hessian) / (4 * h * h), -4 / d**2 * np.outer(along, along), atol=1e-6)


@pytest.mark.parametrize("N", [1, 4, 16])
def test_draws_from_the_optimal_law_are_a_kth_of_n_from_it(N: int) -> None:
    """R of N squares drawn from ρ*, units Gaussian in the span of two teachers, R(ρ*) = 0: the mean is 2/N.

    ½ (∫ U(θ, θ) dρ* − ∬ U dρ* dρ*)/N = ½ (6 − 2)/N. Four standard errors of 4000 draws.
    """
    rng = np.random.default_rng(N)
    M = rng.standard_normal((4000, N, 2)) / np.sqrt(2)
    systems = (M @ M.transpose(0, 2, 1), M, np.tile(np.eye(2), (4000, 1, 1)), np.ones((4000, N)), np.ones((4000, 2)))
    risks = expectations("square", "square").risks(*systems)
    assert abs(risks.mean() - 2 / N) < 4 * risks.std() / np.sqrt(4000)


def line_potentials() -> tuple[Callable[[Vector], float], Callable[[Vector], Vector]]:
    """The loss of erf units θ_i x in one dimension that learn erf(x/√2), and the velocities −∂Ψ of the units."""

    def mean(u: Vector, v: Vector) -> Vector:
        return 2 / np.pi * np.arcsin(u * v / np.sqrt((1 + u * u) * (1 + v * v)))

    def loss(theta: Vector) -> float:
        return float(1 / 3 - 2 * mean(theta, np.ones(1)).mean() + mean(theta[:, None], theta).mean())

    def velocity(theta: Vector) -> Vector:
        h = 1e-5 * np.eye(len(theta))
        return -len(theta) * np.array([(loss(theta + e) - loss(theta - e)) / 2e-5 for e in h])

    return loss, velocity


@pytest.mark.slow
def test_minimising_movement_is_the_flow() -> None:
    """ρ_(t+ε) = argmin R + W₂²/2ε on a line, where W₂ pairs sorted units: off the flow by O(ε), half for ε/2."""
    loss, velocity = line_potentials()
    start = np.linspace(-0.5, 2.5, 6)
    flow = solve_ivp(lambda _, theta: velocity(theta), (0, 1), start, rtol=1e-9, atol=1e-11).y[:, -1]
    errors = list[float]()
    for count in (8, 16):
        theta = start
        for _ in range(count):
            before = theta
            theta = minimize(
                lambda new, old=before, rate=count / 2: loss(new) + rate * ((np.sort(new) - old) ** 2).mean(),
                before,
                tol=1e-12,
            ).x
            assert loss(theta) < loss(before)
        errors.append(np.abs(theta - flow).max())
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.05)
    assert errors[1] < 0.02
