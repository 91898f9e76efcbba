"""What every activation and every pair with Gaussian expectations promises, checked by independent routes.

Monte Carlo: 2·10⁵ samples, every entry of risk, Ψ^M, Ψ^GF, Ψ^Var and Ψ^a within 5 standard errors. Seeds are fixed; a
fresh one would fail with probability below 6·10⁻⁷ an entry, that is below 10⁻⁴ for the whole file.
"""

import numpy as np
import pytest

from sweeplib.maths.activations import ACTIVATIONS
from sweeplib.maths.compiled import specialised
from sweeplib.maths.expectations import expectations
from sweeplib.maths.hermite import information_exponent

SAMPLES = 200_000
PAIRS = ["erf|erf", "square|square"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivative_is_the_slope(name):
    """Central differences at h = 10⁻⁵, away from the integers, where an activation may have a kink."""
    activation, step = ACTIVATIONS[name], 1e-5
    for field in np.arange(-3.95, 4.0, 0.3):
        slope = (activation.value(field + step) - activation.value(field - step)) / (2 * step)
        assert activation.derivative(field) == pytest.approx(slope, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_information_exponent_is_that_of_the_hermite_coefficients(name):
    assert information_exponent(ACTIVATIONS[name]) == ACTIVATIONS[name].information_exponent


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_compiled_and_plain_agree(name):
    activation = ACTIVATIONS[name]
    for function in (activation.value, activation.derivative):
        compiled = specialised(function)
        assert [compiled(z) for z in (-1.7, 0.0, 0.4)] == pytest.approx([function(z) for z in (-1.7, 0.0, 0.4)])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_has_expectations_with_itself(name):
    assert expectations(name).name == f"{name}|{name}"


def factors(p, k):
    """Factors F of Ω = F Fᵀ: random, nearly singular (two units 10⁻⁵ apart, one tiny), rank deficient (p > d)."""
    rng = np.random.default_rng(17)
    full = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k)
    near = full.copy()
    near[1] = near[0] + 1e-5 * near[1]
    near[p - 1] *= 1e-5
    return {"random": full, "nearly singular": near, "rank deficient": full[:, :2]}


def moments(pair, fields, p, a, a_star, Delta):
    """Samples of risk, Ψ^M, Ψ^GF, Ψ^Var, Ψ^a, shape (samples, entries); the label noise is averaged by hand."""
    student, teacher = (ACTIVATIONS[name] for name in pair.split("|"))
    value, slope, target = (
        np.vectorize(function, otypes=[float]) for function in (student.value, student.derivative, teacher.value)
    )
    lam, lam_star = fields[:, :p], fields[:, p:]
    error = target(lam_star) @ a_star / len(a_star) - value(lam) @ a / p
    slopes = slope(lam) * a
    rows = (slopes * error[:, None])[:, :, None]
    flow = rows * lam[:, None, :]
    variance = slopes[:, :, None] * slopes[:, None, :] * (error**2 + Delta)[:, None, None]
    second_layer = value(lam) * error[:, None]
    parts = (0.5 * error**2, rows * lam_star[:, None, :], flow + flow.transpose(0, 2, 1), variance, second_layer)
    return np.concatenate([part.reshape(len(fields), -1) for part in parts], axis=1)


def closed_forms(pair, omega, p, a, a_star, Delta):
    k = len(omega) - p
    Q, M, P = (np.ascontiguousarray(block) for block in (omega[:p, :p], omega[:p, p:], omega[p:, p:]))
    drifts = np.empty((p, k)), np.empty((p, p)), np.empty((p, p)), np.empty(p)
    needed = expectations(*pair.split("|"))
    specialised(needed.drifts)(Q, M, P, a, a_star, Delta, *drifts)
    risk = needed.risks(Q[None], M[None], P[None], a[None], a_star[None])
    return np.concatenate([risk, *(drift.ravel() for drift in drifts)])


@pytest.mark.parametrize("kind", ["random", "nearly singular", "rank deficient"])
@pytest.mark.parametrize("pair", PAIRS)
def test_expectations_equal_monte_carlo(pair, kind):
    p, k, Delta = 3, 2, 0.3
    factor = factors(p, k)[kind]
    a, a_star = np.array([1.0, -0.7, 1.3]), np.array([0.8, 1.5])
    fields = np.random.default_rng(1).normal(size=(SAMPLES, factor.shape[1])) @ factor.T
    samples = moments(pair, fields, p, a, a_star, Delta)
    error = samples.std(axis=0) / np.sqrt(SAMPLES)
    difference = closed_forms(pair, factor @ factor.T, p, a, a_star, Delta) - samples.mean(axis=0)
    assert (error > 0.0).all()
    assert np.abs(difference / error).max() < 5.0


@pytest.mark.parametrize("pair", PAIRS)
def test_expectations_equal_gauss_hermite_quadrature(pair):
    """p = k = 1 on a 200 x 200 grid of nodes: 10⁻⁷, and far better for polynomials; kinks would need another rule."""
    factor = np.array([[0.8, 0.0], [0.3, 0.9]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    grid = np.stack([part.ravel() for part in np.meshgrid(nodes, nodes)], axis=1)
    weight = np.outer(weights, weights).ravel() / (2.0 * np.pi)
    a, a_star = np.array([1.2]), np.array([0.7])
    quadrature = weight @ moments(pair, grid @ factor.T, 1, a, a_star, 0.3)
    closed = closed_forms(pair, factor @ factor.T, 1, a, a_star, 0.3)
    np.testing.assert_allclose(closed, quadrature, rtol=1e-7, atol=1e-9)
