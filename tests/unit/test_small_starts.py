"""Exits and risks of the ODE from overlaps far below its absolute tolerance, by closed forms and another integrator."""

from math import log
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp

from sweeplib import Overlaps, Problem, simulate
from sweeplib.engine.status import Status
from tests.tiers import slow_but

GAMMA, DELTA = 0.05, 0.1


def retrieval(p: int = 1, k: int = 1, **more: Any) -> Problem:
    return Problem(
        **{"gamma": GAMMA * p, "p": p, "k": k, "d": 1000, "Delta": DELTA, "activation": "square", "spherical": True}
        | more
    )


def exact(m0: float, gamma: float, T: float) -> tuple[float, float]:
    """Return the exit time and the risk there by the logistic law of m², for one unit on the sphere.

    In logarithms: K − u0 and u, T + (1 − T) u0, do not cancel.
    """
    u0, slope = m0**2, 4.0 * (1.0 - 6.0 * gamma)
    rate = slope - 2.0 * gamma * DELTA
    K, u = rate / slope, T + (1.0 - T) * u0
    return (log(u / (K - u)) + log(K - u0) - 2.0 * log(m0)) / (2.0 * rate), 2.0 * (1.0 - u)


@pytest.mark.parametrize("m0", slow_but([1e-3, 1e-12, 1e-14, 1e-20, 1e-50, 1e-100], 1e-14, 1e-100))
@pytest.mark.parametrize("dynamics", ["ode", "gradient_flow"])
def test_an_escape_from_any_start_is_on_time(dynamics: str, m0: float) -> None:
    """Risk and exit within their errors, which are small: half of the risk is lost at the second exit."""
    gamma = GAMMA if dynamics == "ode" else 0.0
    (early, _), (late, risk) = exact(m0, gamma, 0.01), exact(m0, gamma, 0.5)
    start = Overlaps([[1.0]], [[m0]], [[1.0]])
    run = simulate(retrieval(), dynamics, times=[late, 1.1 * late], thresholds=[0.01, 0.5], initial=start)
    assert run.status == Status.ok
    off = np.abs(run.exit_time.values[0] - [early, late])
    assert (off <= 3.0 * run.exit_time_error.values[0]).all()
    assert (run.exit_time_error < 1e-5).all()
    np.testing.assert_allclose(run.exit_steps_error, run.exit_time_error * 1000 / GAMMA)
    assert abs(run.risk.values[0, 0] - risk) <= 3.0 * run.risk_error.values[0, 0] < 1e-4


def slope(p: int, k: int, gamma: float) -> Any:
    """Return the right-hand side of (Q, M) on the sphere, as matrices (PHYSICS of σ(λ) = λ²); all terms have M or Q."""
    P = np.eye(k)

    def right_hand_side(_: float, state: np.ndarray) -> np.ndarray:
        Q, M = state[: p * p].reshape(p, p), state[p * p :].reshape(p, k)
        A, of_teacher, of_student, square = np.trace(P) / k - np.trace(Q) / p, np.trace(P), np.trace(Q), M @ M.T
        drift = 4 * A * Q + 8 * (square / k - Q @ Q / p)
        noise = 4 / k**2 * ((of_teacher**2 + 2 * np.trace(P @ P)) * Q + 4 * of_teacher * square + 8 * M @ P @ M.T)
        cross = (
            (of_teacher * of_student + 2 * np.trace(square)) * Q
            + 2 * of_student * square
            + 2 * of_teacher * Q @ Q
            + 4 * (square @ Q + Q @ square)
        )
        noise = noise - 8 / (p * k) * cross + 4 * DELTA * Q
        noise = noise + 4 / p**2 * ((of_student**2 + 2 * np.trace(Q @ Q)) * Q + 4 * of_student * Q @ Q + 8 * Q @ Q @ Q)
        drift = drift + gamma / p * noise
        pull = 0.5 * np.diag(drift)
        of_M = 2 * A * M + 4 * (M @ P / k - Q @ M / p) - M * pull[:, None]
        return np.concatenate([(drift - Q * (pull[:, None] + pull)).ravel(), of_M.ravel()])

    return right_hand_side


@pytest.mark.rest
@pytest.mark.parametrize(("p", "k", "m0"), slow_but([(2, 1, 1e-50), (3, 2, 1e-14), (4, 1, 1e-100)], (2, 1, 1e-50)))
def test_committees_escape_as_with_no_absolute_tolerance(p: int, k: int, m0: float) -> None:
    """SciPy at a relative tolerance of 10⁻¹² for M, whose drifts are multiples of M."""
    random = np.random.default_rng(p)
    Q, M = np.eye(p) + 0.05 * (np.ones((p, p)) - np.eye(p)), m0 * random.uniform(0.5, 2.0, (p, k))
    problem = retrieval(p, k)
    run = simulate(problem, "ode", times=[200.0], thresholds=[0.2], stop="exit", initial=Overlaps(Q, M, np.eye(k)))
    assert run.status == Status.ok
    start, atol = np.concatenate([Q.ravel(), M.ravel()]), np.repeat([1e-14, 1e-200], [p * p, p * k])
    end = run.exit_time.item()
    found = solve_ivp(slope(p, k, problem.gamma), (0.0, end), start, "DOP853", rtol=1e-12, atol=atol, max_step=1.0)
    state = found.y[:, -1]
    overlaps = [part.reshape(1, p, -1) for part in np.split(state, [p * p])]
    risks = [_risk(*overlaps, p, k), _risk(Q[None], M[None], p, k)]
    rate = (_risk(*_moved(overlaps, slope(p, k, problem.gamma)(0, state), 1e-6), p, k) - risks[0]) / 1e-6
    assert abs(risks[0] - 0.8 * risks[1]) / abs(rate) <= 3.0 * run.exit_time_error.item() < 1e-3


def _moved(overlaps: list[np.ndarray], slopes: np.ndarray, step: float) -> list[np.ndarray]:
    parts = np.split(slopes, [overlaps[0].size])
    return [part + step * drift.reshape(part.shape) for part, drift in zip(overlaps, parts, strict=True)]


def _risk(Q: np.ndarray, M: np.ndarray, p: int, k: int) -> float:
    of_student, square = np.trace(Q[0]), np.trace(M[0] @ M[0].T)
    return float(
        (k**2 + 2 * k) / (2 * k**2)
        - (k * of_student + 2 * square) / (p * k)
        + (of_student**2 + 2 * np.trace(Q[0] @ Q[0])) / (2 * p**2)
    )


def test_zeros_stay_and_cost_nothing() -> None:
    """A start of M = 0 has no exit and its risk to the last digit."""
    run = simulate(
        retrieval(), "ode", times=[1.0, 100.0], thresholds=[0.01], initial=Overlaps([[1.0]], [[0.0]], [[1.0]])
    )
    assert run.status == Status.ok and np.isnan(run.exit_time).all() and np.isnan(run.exit_time_error).all()
    assert (run.risk == 2.0).all()


@pytest.mark.parametrize("dynamics", ["ode", "gradient_flow", "sgd", "sgd_chain"])
def test_a_risk_of_rounding_has_no_exits(dynamics: str) -> None:
    """Student and teacher are one but for the last digit: what the risk does is rounding, or the noise of SGD."""
    start = Overlaps([[1.0]], [[1.0 - 1e-16]], [[1.0]])
    run = simulate(retrieval(Delta=0.0), dynamics, times=[1.0], thresholds=[0.01, 0.5], initial=start)
    assert np.isnan(run.exit_time).all()


def test_sums_that_rounding_makes_are_told() -> None:
    """Two units that differ by 10⁻⁵⁰ are equal after a step, and specialise by rounding: no result, not a wrong one."""
    problem = Problem(gamma=0.5, p=2, k=2, d=1000, Delta=0.001, activation="erf")
    start = Overlaps(np.eye(2), 1e-50 * np.eye(2), np.eye(2))
    times = [100.0, 300.0, 600.0, 1000.0, 1500.0, 2000.0, 4000.0]
    run: xr.Dataset = simulate(problem, "ode", times=times, thresholds=[0.2, 0.95], initial=start)
    assert run.status == Status.inaccurate and np.isfinite(run.risk.values[0, 0]) and np.isnan(run.risk.values[0, -1])
    assert (abs(run.exit_time - [0.43538656, 6.42796565]) < 1e-8).all()  # before the units differ
