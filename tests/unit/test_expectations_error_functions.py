"""Mixtures of error functions: how close to tanh and the logistic function, and exact where they are exact."""

import itertools

import numpy as np
import pytest
from scipy.special import erf

from sweeplib.maths.activations import activation
from sweeplib.maths.compiled import specialised
from sweeplib.maths.expectations import expectations
from sweeplib.maths.expectations.error_functions import of

NAMES = ("erf", "tanh", "sigmoid")
MIXTURE_ERROR = {"erf": 1e-15, "tanh": 4e-9, "sigmoid": 2e-9}


def flat(pair, omega, p, a, a_star, Delta):
    k = len(omega) - p
    out = np.empty((p, k)), np.empty((p, p)), np.empty((p, p)), np.empty(p)
    parts = [np.ascontiguousarray(part) for part in (omega[:p, :p], omega[:p, p:], omega[p:, p:])]
    specialised(pair.drifts)(*parts, a, a_star, Delta, *out)
    risk = pair.risks(*(part[None] for part in parts), a[None], a_star[None])
    return np.concatenate([risk, *(each.ravel() for each in out)])


@pytest.mark.parametrize("name", NAMES)
def test_the_mixture_is_the_activation(name):
    """Uniformly over the line; the slope to 2.4·10⁻⁸ of its scale."""
    z = np.linspace(-60, 60, 200_001)
    offset, terms = activation(name).error_functions
    value = offset + sum(weight * erf(slope * z / np.sqrt(2)) for weight, slope in terms)
    slopes = sum(w * s * np.sqrt(2 / np.pi) * np.exp(-((s * z) ** 2) / 2) for w, s in terms)
    exact = np.array([[activation(name).value(x), activation(name).derivative(x)] for x in z]).T
    assert np.abs(value - exact[0]).max() <= MIXTURE_ERROR[name]
    assert np.abs(slopes - exact[1]).max() <= 5e-8


def test_one_term_is_the_error_function():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 7)) / 2
    arguments = factor @ factor.T, 3, rng.normal(size=3), rng.normal(size=2), 0.4
    erf_itself = activation("erf")
    np.testing.assert_allclose(
        flat(of(erf_itself, erf_itself), *arguments), flat(expectations("erf"), *arguments), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("student", "teacher"), [pair for pair in itertools.product(NAMES, NAMES) if pair != ("erf", "erf")]
)
def test_one_unit_equals_quadrature_of_the_true_functions(student, teacher):
    """p = k = 1 by 120 x 120 Gauss-Hermite nodes with tanh and the logistic function themselves: to 3·10⁻⁷."""
    factor = np.array([[0.7, 0.0], [0.4, 0.8]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    fields = np.stack([part.ravel() for part in np.meshgrid(nodes, nodes)], axis=1) @ factor.T
    weight = np.outer(weights, weights).ravel() / (2 * np.pi)
    one, other = activation(student), activation(teacher)
    value, slope = (np.vectorize(function)(fields[:, 0]) for function in (one.value, one.derivative))
    a, a_star, Delta = 1.3, 0.8, 0.2
    error = a_star * np.vectorize(other.value)(fields[:, 1]) - a * value
    drift_M, drift_Q = (weight @ (a * slope * error * fields[:, j]) for j in (1, 0))
    variance = a * a * weight @ (slope**2 * (error**2 + Delta))
    expected = [0.5 * weight @ error**2, drift_M, 2 * drift_Q, variance, weight @ (value * error)]
    found = flat(expectations(student, teacher), factor @ factor.T, 1, np.array([a]), np.array([a_star]), Delta)
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-8)


def test_units_that_are_nothing_are_their_offsets():
    """At zero variance a sigmoid is ½ and tanh is 0, with the slopes ¼ and 1."""
    zero = np.zeros((2, 2))
    found = flat(expectations("sigmoid", "tanh"), zero, 1, np.array([2.0]), np.array([3.0]), 0.1)
    np.testing.assert_allclose(found, [0.5, 0.0, 0.0, 4 / 16 * (1.0 + 0.1), -0.5], rtol=3e-7, atol=1e-9)
