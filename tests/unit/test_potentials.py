"""The potentials of Mei, Montanari and Nguyen, by samples and by the risk of networks."""

from typing import Any

import numpy as np
import pytest
from scipy.special import erf

from sweeplib.networks.maths.overlaps import Overlaps
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import simulate
from sweeplib.networks.theory.potentials import external_potential, first_variation, pair_potential

d, N, k = 12, 5, 2
pytestmark = pytest.mark.slow  # rules of four pairs of activations are compiled
RNG = np.random.default_rng(0)
W, W_star = RNG.standard_normal((N, d)), RNG.standard_normal((k, d))
a = np.array([1.0, -0.5, 0.3, 2.0, 0.8])


def problem(**fields: Any) -> Problem:
    values = {"p": N, "k": k, "d": d, "gamma": 0.1, "Delta": 0.3, "activation": "erf", "a": tuple(a)}
    return Problem(**values | fields)


TEACHERS = {
    "erf": problem(),
    "square": problem(activation="square"),
    "relu for erf": problem(activation="relu", teacher_activation="erf"),
    "a formula": problem(activation="erf", target="lam1*lam2 + he2(lam1)"),
}


def risk(of: Problem, weights: np.ndarray, second_layer: np.ndarray) -> float:
    """R of a network, by the ODE at the time 0."""
    fields = {"p": len(weights), "a": tuple(map(float, second_layer))}
    own = problem(**{name: getattr(of, name) for name in ("activation", "teacher_activation", "target")} | fields)
    return float(simulate(own, "ode", times=[0], initial=Overlaps.from_weights(weights, W_star)).risk.item())


@pytest.mark.parametrize("name", TEACHERS)
def test_the_loss_is_the_energy_of_the_particles(name: str) -> None:
    """E y² + 2 ∫ V dρ + ∬ U dρ dρ = 2R + Δ; without units the loss is E y²."""
    of = TEACHERS[name]
    energy = 2.0 * external_potential(of, W, W_star, a).mean() + pair_potential(of, W, W, a, a).mean()
    without = risk(of, W[:1], np.zeros(1))
    assert energy == pytest.approx(2.0 * (risk(of, W, a) - without), rel=1e-7)


@pytest.mark.parametrize("name", ["erf", "relu for erf"])
def test_the_first_variation_is_the_change_of_the_loss_by_a_unit(name: str) -> None:
    """Of 2R when the fraction h of the mass moves to one unit: h (Ψ(θ; ρ) − ∫ Ψ dρ) + O(h²)."""
    of, h = TEACHERS[name], 1e-4
    slope = first_variation(of, W, W_star, W, a, a)

    def moved(h: float) -> float:
        mass = np.full(N, (1.0 - h) / N)
        mass[1] += h
        return 2.0 * risk(of, W, N * mass * a)

    assert (moved(h) - moved(-h)) / (2.0 * h) == pytest.approx(slope[1] - slope.mean(), rel=1e-6)


def test_the_law_of_the_units_flows_down_the_first_variation() -> None:
    """∂_t ρ = + (d/2) ∇·(ρ∇Ψ), so that dR/dt = −(d/4) ⟨|∇Ψ|²⟩ along gradient flow; by a minus the risk would grow."""
    of, h, t = TEACHERS["erf"], 1e-4, 1e-4
    steps = h * np.eye(d)
    ups, downs = (
        np.array([first_variation(of, W + sign * step, W_star, W, a, a) for step in steps]) for sign in (1.0, -1.0)
    )
    fall = d / 4.0 * (((ups - downs) / (2.0 * h)) ** 2).sum(axis=0).mean()
    run = simulate(of, "gradient_flow", times=[0, t, 2.0 * t], initial=Overlaps.from_weights(W, W_star))
    first, second, third = run.risk.values.ravel()
    assert (-3.0 * first + 4.0 * second - third) / (2.0 * t) == pytest.approx(-fall, rel=1e-4)


def test_potentials_are_means_over_samples() -> None:
    """Of erf for erf; four standard errors, one false alarm in 300 runs of all entries."""
    of, rng = TEACHERS["erf"], np.random.default_rng(1)
    x = rng.standard_normal((200_000, d)) / np.sqrt(d)
    units, y = a * erf(x @ W.T / np.sqrt(2.0)), erf(x @ W_star.T / np.sqrt(2.0)).mean(axis=1)
    for mine, samples in (
        (external_potential(of, W, W_star, a), -y[:, None] * units),
        (pair_potential(of, W, W[:1], a, a[:1])[:, 0], units * units[:, :1]),
    ):
        error = samples.std(axis=0) / np.sqrt(len(x))
        assert (np.abs(mine - samples.mean(axis=0)) < 4.0 * error).all()


def test_two_gaussians_have_potentials() -> None:
    """V = −E[y σ] by samples of the two classes."""
    of = Problem(p=N, k=0, d=d, gamma=0.1, Delta=0.0, activation="relu", data="two_gaussians", contrast=0.8)
    rng = np.random.default_rng(2)
    y = rng.choice([-1.0, 1.0], 200_000)
    x = (1.0 + 0.8 * y)[:, None] * rng.standard_normal((len(y), d)) / np.sqrt(d)
    samples = -y[:, None] * np.maximum(x @ W.T, 0.0)
    error = samples.std(axis=0) / np.sqrt(len(y))
    assert (np.abs(external_potential(of, W, np.zeros((0, d))) - samples.mean(axis=0)) < 4.0 * error).all()


def test_fields_have_the_spectrum_of_the_inputs() -> None:
    """Of linear units V = −wᵀΣw*/d and U = wᵀΣw'/d."""
    of = problem(activation="linear", p=1, k=k, a=1.0, data="spectrum", eigenvalues=(4.0, 1.0), fractions=(1.0, 1.0))
    values = np.repeat(*of.blocks)
    assert np.ptp(values) > 1.0
    np.testing.assert_allclose(external_potential(of, W, W_star), -((W * values) @ W_star.T / d).mean(axis=1))
    np.testing.assert_allclose(pair_potential(of, W, W), (W * values) @ W.T / d, atol=1e-12)
