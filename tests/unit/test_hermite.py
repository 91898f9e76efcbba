"""Hermite coefficients compared to their analytic values, and the error estimate to the true error."""

import math

import numpy as np
import pytest

from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import Activation, activation
from sweeplib.networks.maths.activations.activation import kink
from sweeplib.networks.maths.hermite import hermite_polynomials, hermite_series, information_exponent


def test_polynomials_are_orthonormal() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    values = hermite_polynomials(nodes, 12)
    gram = (values * weights / math.sqrt(2.0 * math.pi)) @ values.T
    np.testing.assert_allclose(gram, np.eye(13), atol=1e-12)


def test_polynomial_has_its_own_coefficients() -> None:
    series = hermite_series(lambda z: 2.0 + z**3, degree=5)
    expected = [2.0, 3.0, 0.0, math.sqrt(6.0), 0.0, 0.0]
    np.testing.assert_allclose(series.coefficients, expected, atol=1e-13)
    assert (np.abs(series.coefficients - expected) <= series.errors).all()


def test_kink_at_zero_costs_no_accuracy() -> None:
    series = hermite_series(lambda z: max(z, 0.0), degree=4)
    expected = [1 / math.sqrt(2 * math.pi), 0.5, 1 / math.sqrt(4 * math.pi), 0.0, -1 / math.sqrt(48 * math.pi)]
    np.testing.assert_allclose(series.coefficients, expected, atol=1e-13)


def test_error_estimate_covers_a_kink_elsewhere() -> None:
    series = hermite_series(lambda z: max(z - 0.3, 0.0), degree=0)
    tail = 0.5 * math.erfc(0.3 / math.sqrt(2.0))
    error = abs(series.coefficients[0] - (math.exp(-0.045) / math.sqrt(2.0 * math.pi) - 0.3 * tail))
    assert 1e-8 < error <= series.errors[0] < 1e-3


def test_erf_coefficients() -> None:
    """By parts: c_1 = E σ′ and √6 c_3 = E σ‴ = E (z² − 1) σ′ with σ′ = √(2/π) exp(−z²/2)."""
    series = hermite_series(lambda z: math.erf(z / math.sqrt(2.0)), degree=3)
    expected = [0, 1 / math.sqrt(math.pi), 0, -1 / math.sqrt(24 * math.pi)]
    np.testing.assert_allclose(series.coefficients, expected, atol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_information_exponent_of_hermite_polynomials(order: int) -> None:
    def value(z: float) -> float:
        return float(hermite_polynomials(np.asarray(z), order)[order])

    assert information_exponent(Activation("he", "h", value, value, order)) == order


def test_constant_has_no_information_exponent() -> None:
    with pytest.raises(InputError, match="no Hermite coefficient"):
        information_exponent(Activation("one", "1", lambda z: 1.0, lambda z: 0.0, 0))


@pytest.mark.parametrize("name", ["hermite(0, 0, 0, 0, 1e308, 0, 1e308)", "hermite(0, 1e308, 0, 1e308)"])
def test_coefficients_whose_powers_are_infinite_are_refused(name):
    with pytest.raises(InputError, match="too large coefficients"):
        activation(name)


def test_a_smooth_function_has_no_kink_however_large_it_is():
    for name in ("hermite(0, 0, 400)", "hermite(0, 0, 0, 0, 4000)", "hermite(0, 0, 1e12)", "tanh", "erf"):
        assert kink(activation(name)) == 0.0
    assert kink(activation("relu")) == 1.0
