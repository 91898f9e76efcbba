"""tr Cov ε of batches of fresh samples by Gauss-Hermite quadrature over the fields, for every d."""

from math import prod, sqrt

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.observables.gradient_norm import gradient_norm
from sweeplib.networks.views import OverlapView


def he3(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (z**3 - 3 * z) / sqrt(6), (3 * z**2 - 3) / sqrt(6)


def tanh(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.tanh(z), 1 - np.tanh(z) ** 2


@pytest.mark.rest
@pytest.mark.parametrize("d", [2, 5, 20, 300])
@pytest.mark.parametrize(("name", "function", "step", "error"), [("he3", he3, 0.3, 3e-8), ("tanh", tanh, 0.1, 0.0)])
def test_it_is_that_of_the_gradients_in_any_dimension(name, function, step, error, d):  # type: ignore[no-untyped-def]
    """The squared length of a sample given its coordinates u (2,) in the span of both rows is (|u|² + d − 2)/d.

    A sum of error functions for tanh has errors, which are stated and below 10⁻⁶ of the trace.
    """
    m, Delta = 0.3, 0.2
    problem = Problem(gamma=0.01, p=1, k=1, d=d, Delta=Delta, activation=name)
    start = Overlaps([[1.0]], [[m]], [[1.0]])
    run = simulate(problem, "sgd", times=[0], initial=start, observables=["noise_trace"])
    z = np.arange(-round(9 / step), round(9 / step) + 1) * step
    weight = np.exp(-0.5 * z**2)
    u, v = np.meshgrid(z, z)
    weights = np.outer(weight, weight) / weight.sum() ** 2
    (value, slope), (label, _) = function(u), function(m * u + sqrt(1 - m**2) * v)
    c = slope * (label - value)
    second_moment = (weights * (c**2 + Delta * slope**2) * (u**2 + v**2 + d - 2)).sum() / d
    square = ((weights * c * u).sum() ** 2 + (weights * c * v).sum() ** 2) / d
    stated = run.noise_trace_error.item() if error == 0.0 else error * run.noise_trace.item()
    assert abs(run.noise_trace.item() - (second_moment - square)) <= stated < 1e-6 * run.noise_trace.item()


def test_it_is_that_of_the_gradients_of_a_polynomial_of_degree_eight() -> None:
    """A unit without a teacher's direction: E[σ'² (σ* − σ)²] ‖x‖² by enough Gauss nodes, at d = 3."""
    name, d = "hermite(0, 0, 0, 0, 0, 0, 0, 0, 1)", 3
    problem = Problem(gamma=0.01, p=1, k=1, d=d, Delta=0.0, activation=name)
    run = simulate(problem, "sgd", times=[0], initial=Overlaps([[1.0]], [[0.0]], [[1.0]]), observables=["noise_trace"])
    z, weight = np.polynomial.hermite_e.hermegauss(20)
    scale = sqrt(prod(range(1, 9)))
    value, slope = (np.polynomial.hermite_e.hermeval(z, row) / scale for row in (np.eye(9)[8], 8 * np.eye(9)[7]))
    u, v = np.meshgrid(z, z)
    weights, c = np.outer(weight, weight) / weight.sum() ** 2, slope * (value[:, None] - value)
    second_moment = (weights * c**2 * (u**2 + v**2 + d - 2)).sum() / d
    expected = second_moment - ((weights * c * u).sum() ** 2 + (weights * c * v).sum() ** 2) / d
    assert run.noise_trace.item() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", ["square", "erf", "linear", "relu"])
def test_the_gradient_near_what_has_been_learned_is_the_root_of_the_distance(name: str) -> None:
    """‖∇R‖ = c √ε at M = P = 1, Q = 1 + ε, within its error, which is small where drifts are in closed form."""

    def estimate(distance: float):  # type: ignore[no-untyped-def]
        one = np.ones((1, 1, 1))
        layers = np.ones((1, 1)), np.ones((1, 1)), np.zeros(1)
        return gradient_norm(OverlapView(one * (1 + distance), one, one, *layers, expectations(name), d=np.ones(1)))

    far, near = estimate(1e-6), estimate(4e-11)
    expected = far.value * sqrt(4e-5)
    assert abs(near.value - expected) <= near.error + 1e-5 * expected
    assert near.error <= (5.0 if name == "relu" else 0.0) * expected
