"""Mixtures of error functions: their distance from tanh and the logistic function, and exact special cases."""

import itertools

import numpy as np
import pytest
from scipy.special import erf

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.error_functions import MOST_LANES
from tests import plain

NAMES = ("erf", "tanh", "sigmoid")
MIXTURE_ERROR = {"erf": 1e-15, "tanh": 4e-9, "sigmoid": 2e-9}


def flat(pair, omega, p, a, a_star, Delta):
    system = *plain.blocks(omega, p), a, a_star
    found = plain.drifts(pair, *system, Delta)
    return np.concatenate([[plain.risk(pair, *system)], *map(np.ravel, found)])


@pytest.mark.rest
@pytest.mark.parametrize("name", NAMES)
def test_the_mixture_is_the_activation(name):
    """The approximation is uniform over the line; the slope is exact to 2.4·10⁻⁸ of its scale."""
    z = np.linspace(-60, 60, 200_001)
    offset, terms = activation(name).error_functions
    value = offset + sum(weight * erf(slope * z / np.sqrt(2)) for weight, slope in terms)
    slopes = sum(w * s * np.sqrt(2 / np.pi) * np.exp(-((s * z) ** 2) / 2) for w, s in terms)
    exact = np.array([[activation(name).value(x), activation(name).derivative(x)] for x in z]).T
    assert np.abs(value - exact[0]).max() <= MIXTURE_ERROR[name]
    assert np.abs(slopes - exact[1]).max() <= 5e-8


def published(c, p, a, a_star, Delta):
    """Return the drifts of erf by the integrals I2, I3, I4 and J2 as printed by Saad and Solla, appendix A."""
    k = len(c) - p
    b = np.concatenate([-a / p, a_star / k])
    one = 1 + np.diag(c)

    def i2(i, m):
        return 2 / np.pi * np.arcsin(c[i, m] / np.sqrt(one[i] * one[m]))

    def i3(i, j, m):
        root = np.sqrt(one[i] * one[m] - c[i, m] ** 2)
        return 2 / np.pi * (c[j, m] * one[i] - c[i, j] * c[i, m]) / (one[i] * root)

    def j2(i, j):
        return 2 / np.pi / np.sqrt(one[i] * one[j] - c[i, j] ** 2)

    def i4(i, j, m, n):
        l4 = one[i] * one[j] - c[i, j] ** 2
        l0 = l4 * c[m, n] - c[j, m] * c[j, n] * one[i] - c[i, m] * c[i, n] * one[j]
        l0 += c[i, j] * (c[i, m] * c[j, n] + c[i, n] * c[j, m])
        l1, l2 = (
            l4 * one[q] - c[j, q] ** 2 * one[i] - c[i, q] ** 2 * one[j] + 2 * c[i, j] * c[i, q] * c[j, q]
            for q in (m, n)
        )
        return 4 / np.pi**2 / np.sqrt(l4) * np.arcsin(l0 / np.sqrt(l1 * l2))

    every, ours = range(p + k), range(p)
    pairs = list(itertools.product(every, every))
    risk = 0.5 * sum(b[m] * b[n] * i2(m, n) for m, n in pairs)
    flow = np.array([[a[i] * sum(b[m] * i3(i, j, m) for m in every) for j in every] for i in ours])
    variance = [
        a[i] * a[j] * (sum(b[m] * b[n] * i4(i, j, m, n) for m, n in pairs) + Delta * j2(i, j))
        for i, j in itertools.product(ours, ours)
    ]
    second_layer = [sum(b[m] * i2(i, m) for m in every) for i in ours]
    return np.concatenate([[risk], flow[:, p:].ravel(), (flow[:, :p] + flow[:, :p].T).ravel(), variance, second_layer])


@pytest.mark.parametrize(("p", "k"), [(1, 1), (3, 2), (2, 4), (11, 2)])
def test_erf_equals_the_published_integrals(p, k):
    """With 11 students there are more pairs than are computed side by side."""
    rng = np.random.default_rng(p + k)
    factor = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k)
    arguments = factor @ factor.T, p, rng.normal(size=p), rng.normal(size=k), 0.4
    assert MOST_LANES < 11 * 12 / 2
    np.testing.assert_allclose(flat(expectations("erf"), *arguments), published(*arguments), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("student", "teacher"), [pair for pair in itertools.product(NAMES, NAMES) if pair != ("erf", "erf")]
)
def test_one_unit_equals_quadrature_of_the_true_functions(student, teacher):
    """p = k = 1 by 120 x 120 Gauss-Hermite nodes with the exact tanh and logistic function: to 3·10⁻⁷."""
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


@pytest.mark.rest
def test_the_error_of_a_risk_has_that_of_the_mixture():
    """Of an orthogonal unit: R = ½ (a² + 1) E[tanh²] by equal steps, for norms up to 30."""
    found, x, a = expectations("tanh", "tanh"), np.linspace(-9.0, 9.0, 20_001), 5.0
    norms, weight = np.geomspace(0.1, 30.0, 9), np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    risks = 0.5 * (a * a + 1.0) * np.tanh(norms[:, None] * x) ** 2 @ weight
    square, ones = norms[:, None, None] ** 2, np.ones((9, 1))
    system = square, 0.0 * square, square, a * ones, ones
    error, stated = np.abs(found.risks(*system) - risks), found.risk_errors(risks, *system)
    assert (error <= stated).all()
    assert stated.max() <= 100.0 * error.max()
