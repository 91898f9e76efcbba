"""The stated errors of tanh and sigmoid as sums of error functions, against quadrature of tanh and sigmoid."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.system import System

OVERLAP, DELTA = 0.3, 0.2
NODES = np.arange(-90, 91) * 0.1


def tanh(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.tanh(z), 1.0 - np.tanh(z) ** 2


def sigmoid(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = 0.5 + 0.5 * np.tanh(0.5 * z)
    return value, value * (1.0 - value)


ACTIVATIONS = {"tanh": tanh, "sigmoid": sigmoid}


def means(function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Return the risk and the drifts of one unit of norm one with the overlap `OVERLAP`, on a grid of both fields."""
    weight = np.exp(-0.5 * NODES**2)
    u, v = np.meshgrid(NODES, NODES, indexing="ij")
    weights = np.outer(weight, weight) / weight.sum() ** 2
    of_teacher = OVERLAP * u + sqrt(1.0 - OVERLAP**2) * v
    (value, slope), (label, _) = function(u), function(of_teacher)
    c = slope * (label - value)
    parts = {"risk": 0.5 * (label - value) ** 2, "M": c * of_teacher, "GF": 2.0 * c * u, "a": value * (label - value)}
    parts["Var"] = c**2 + DELTA * slope**2
    return {name: float((weights * part).sum()) for name, part in parts.items()}


def problem(name: str, **more: float) -> Problem:
    return Problem(gamma=0.5, p=1, k=1, d=1000, Delta=DELTA, activation=name, **more)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_ode_states_the_error_of_drifts(name: str) -> None:
    true, one = means(ACTIVATIONS[name]), np.ones((1, 1))
    drifts = expectations(name).drifts_of(System(one, OVERLAP * one, one, np.ones(1), np.ones(1), DELTA, 1.0))
    off = max(abs(getattr(drifts, key).item() - true[key]) for key in ("M", "GF", "Var", "a"))
    largest = max(abs(true[key]) for key in ("M", "GF", "Var", "a"))
    start = Overlaps([[1.0]], [[OVERLAP]], [[1.0]])
    run = simulate(problem(name), "ode", times=[0.0], initial=start)
    assert off / largest <= run.drift_error.item() < 1e-6


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_mean_fields_state_the_error_of_risks_and_drifts(name: str) -> None:
    """For D → ∞ their units are smoothed by the form."""
    run = simulate(problem(name, m0=OVERLAP), "mean_field_hd", times=[0.0])
    off = abs(run.risk.item() - means(ACTIVATIONS[name])["risk"])
    assert off <= run.risk_error.item() < 1e-6
    assert run.risk_error.item() > 1e-10 and run.drift_error.item() > 1e-10
