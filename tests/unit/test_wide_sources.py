"""Claims of the sources on wide networks, each by another route than the notebook that retells it."""

import numpy as np
import pytest
from scipy.special import erf

from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.theory.potentials import first_variation

Vector = np.ndarray


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["erf", "square"])
def test_the_flow_over_overlaps_and_norms_is_a_gradient_flow(activation: str) -> None:
    """HDMF-ODE: ṁ_i = −p P ∂R/∂m_i, q̇_i = −4 p q_i ∂R/∂q_i, by differences of the risk of overlaps with Ξ = 1.

    That is the gradient in u, P = L L^T and m = L u, and √q, the coordinates of the weights.
    """
    rng, p, k, d, t, h = np.random.default_rng(0), 6, 2, 12, 2e-4, 1e-4
    W, W_star = rng.standard_normal((p, d)), rng.standard_normal((k, d))
    a, P = rng.standard_normal(p), W_star @ W_star.T / d
    problem = Problem(p=p, k=k, d=d, gamma=1.0, Delta=0.0, activation=activation, a=tuple(a))
    asked = {"times": [0.0, t, 2 * t], "observables": ["overlap_M", "self_overlap"], "initial": (W, W_star)}
    run = simulate(problem, "mean_field_hd", options={"rtol": 1e-10, "atol": 1e-13}, **asked).isel(seed=0)
    m = run.overlap_M.values
    q = run.self_overlap.values - np.einsum("tir,rs,tis->ti", m, np.linalg.inv(P), m)
    velocities = [(-3 * x[0] + 4 * x[1] - x[2]) / (2 * t) for x in (m, q)]

    def risk(m: Vector, q: Vector) -> float:
        Q = m @ np.linalg.solve(P, m.T) + np.diag(q)
        systems = (Q[None], m[None], P[None], a[None], np.ones((1, k)))
        return float(expectations(activation, activation).risks(*systems)[0])

    slopes = np.zeros((p, k)), np.zeros(p)
    for i in range(p):
        for r in range(k):
            step = h * np.outer(np.eye(p)[i], np.eye(k)[r])
            slopes[0][i, r] = (risk(m[0] + step, q[0]) - risk(m[0] - step, q[0])) / (2 * h)
        step = h * np.eye(p)[i]
        slopes[1][i] = (risk(m[0], q[0] + step) - risk(m[0], q[0] - step)) / (2 * h)
    for velocity, gradient in zip(velocities, (-p * slopes[0] @ P, -4 * p * q[0] * slopes[1]), strict=True):
        np.testing.assert_allclose(velocity, gradient, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())


def attraction(theta: Vector, others: Vector) -> Vector:
    """The gradients (..., N, D) by θ of the mean over others of E[σ(⟨θ, x⟩) σ(⟨θ', x⟩)], x ~ N(0, I), of erf."""
    n, m = (1.0 + (points**2).sum(axis=-1) for points in (theta, others))
    root = np.sqrt(n[..., :, None] * m[..., None, :])
    sine = theta @ others.swapaxes(-1, -2) / root
    factor = 2.0 / np.pi / np.sqrt(1.0 - sine**2) / others.shape[-2]
    return (factor / root) @ others - (factor * sine).sum(axis=-1, keepdims=True) / n[..., None] * theta


def drift(theta: Vector, others: Vector, teacher: Vector) -> Vector:
    """The velocity −∇V − ∇ ∫U dρ of units in the field of others, half of −∇Ψ."""
    return attraction(theta, teacher) - attraction(theta, others)


def sample_velocity(theta: Vector, teacher: Vector, x: Vector) -> Vector:
    """The velocities (R, N, D) of a sample x (R, D) of each of R runs: (y − f) ∇σ."""
    fields, of_teacher = np.einsum("rnd,rd->rn", theta, x), x @ teacher[0]
    error = erf(of_teacher / np.sqrt(2)) - erf(fields / np.sqrt(2)).mean(axis=1)
    slope = np.sqrt(2 / np.pi) * np.exp(-(fields**2) / 2)
    return np.asarray((error[:, None] * slope)[..., None] * x[:, None, :])


@pytest.mark.slow
def test_the_drift_of_the_proof_is_the_gradient_of_the_first_variation() -> None:
    """−∇Ψ/2 by differences of `first_variation`, whose rows are √D θ."""
    rng, N, D, h = np.random.default_rng(0), 4, 3, 1e-4
    theta, teacher = rng.standard_normal((N, D)), rng.standard_normal((1, D))
    problem = Problem(p=N, k=1, d=D, gamma=1.0, Delta=0.0, activation="erf")
    steps = h * np.eye(D)

    def energy(step: Vector) -> Vector:
        return first_variation(problem, np.sqrt(D) * (theta + step), np.sqrt(D) * teacher, np.sqrt(D) * theta)

    slopes = np.stack([(energy(step) - energy(-step)) / (2 * h) for step in steps], axis=1)
    np.testing.assert_allclose(drift(theta, theta, teacher), -slopes / 2, atol=1e-6)


def test_what_samples_add_to_the_drift_is_a_martingale() -> None:
    """E|ε Σ ξ_k|² = ε² Σ E|ξ_k|² for ξ = sample velocity − drift: noise of different steps has no correlation.

    Means over 4000 runs of 20 steps, four standard errors; the drift of a run's own units, which are few.
    """
    rng, runs, N, D, epsilon = np.random.default_rng(1), 4000, 3, 3, 0.2
    theta, teacher = np.tile(rng.standard_normal((N, D)), (runs, 1, 1)), np.array([[1.0, 0.0, 0.0]])
    total, squares = np.zeros_like(theta), np.zeros((runs, N))
    for _ in range(20):
        velocity = sample_velocity(theta, teacher, rng.standard_normal((runs, D)))
        noise = velocity - drift(theta, theta, teacher)
        total, squares = total + epsilon * noise, squares + epsilon**2 * (noise**2).sum(axis=2)
        theta = theta + epsilon * velocity
    assert (np.abs(total.mean(axis=0)) < 4 * total.std(axis=0) / np.sqrt(runs)).all()
    excess = (total**2).sum(axis=2) - squares
    assert (np.abs(excess.mean(axis=0)) < 4 * excess.std(axis=0) / np.sqrt(runs)).all()
    assert (excess.std(axis=0) / np.sqrt(runs) < 0.05 * squares.mean(axis=0)).all()


@pytest.mark.slow
def test_the_variance_of_steps_counts_as_their_length_times_the_dimension() -> None:
    """sup |R(ODE) − R(gradient flow)| ∝ γ/p = εD, ε = γ/(pd): twice for twice the length or the dimension at one ε."""
    p, times = 4, np.linspace(0.0, 4.0, 9)
    start = Overlaps(np.eye(p) + 0.1, np.full((p, 1), 0.2), np.eye(1))

    def apart(epsilon: float, d: int) -> float:
        problem = Problem(p=p, k=1, d=d, gamma=epsilon * p * d, Delta=0.0, activation="erf")
        runs = [simulate(problem, name, times=times, initial=start).risk.values for name in ("ode", "gradient_flow")]
        return float(np.abs(runs[0] - runs[1]).max())

    once = apart(1e-4, 100)
    assert apart(2e-4, 100) == pytest.approx(2 * once, rel=0.02)
    assert apart(1e-4, 200) == pytest.approx(2 * once, rel=0.02)
