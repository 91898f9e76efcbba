"""The least risks of two Gaussians: the Bayes risk and networks of infinite width, by Monte Carlo and closed forms.

Scores are at fixed seeds; with a new one, each |z| < 4 fails with 6·10⁻⁵.
"""

import math

import numpy as np
import pytest
import scipy
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

from sweeplib import InputError, Problem, simulate
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.theory import bayes_risk, least_network_risk
from sweeplib.networks.theory.two_gaussians import optimal_measure, residuals
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.risk_curves import least_risk

RAMP, DIP = "piecewise(0.5, -2.5, 1.5, 7.5)", "piecewise(0, -2.5, 0.5, -4, 1.5, 7.5)"


def samples(rng, n, d, contrast):
    """Inputs √d x (n, d) and their labels."""
    y = rng.choice([-1.0, 1.0], n)
    return (1.0 + y * contrast)[:, None] * rng.standard_normal((n, d)), y


def score(values, expected):
    return (np.mean(values) - expected) / (np.std(values) / math.sqrt(len(values)))


@pytest.mark.parametrize(("contrast", "d"), [(0.3, 1), (0.9, 2), (0.2, 17), (0.05, 400)])
def test_the_bayes_risk_is_that_of_the_posterior_mean(contrast, d):
    x, y = samples(np.random.default_rng(0), 20_000, d, contrast)
    squares, scales = (x**2).sum(axis=1)[:, None], np.array([1.0 - contrast, 1.0 + contrast])
    below, above = (-0.5 * squares / scales**2 - d * np.log(scales)).T
    mean = np.tanh(0.5 * (above - below))
    assert abs(score(0.5 * (y - mean) ** 2, bayes_risk(contrast, d))) < 4.0


def test_the_bayes_risk_has_its_limits():
    assert bayes_risk(0.0, 7) == 0.5
    assert bayes_risk(1e-4, 7) == pytest.approx(0.5 * (1.0 - 2.0 * 7 * 1e-8), abs=1e-10)
    assert bayes_risk(1.0 - 1e-9, 3) < 1e-9
    assert bayes_risk(0.1, math.inf) == 0.0
    h = 0.5
    gaussian = quad(lambda z: norm.pdf(z) / (1.0 + math.exp(4.0 * h * h + math.sqrt(8.0) * h * z)), -12.0, 12.0)[0]
    assert bayes_risk(h / 1e6, 1e12) == pytest.approx(gaussian, abs=1e-10)
    assert np.isnan(bayes_risk([1.0, -0.1, 0.5], [3, 3, 0])).all()


@pytest.mark.parametrize("d", [1, 2, 40, 1000, math.inf])
def test_squares_and_relus_have_one_number_to_choose(d):
    """f = A ρ²/d, or A ρ/√d, A ≥ 0: R = ½(1 − E[yf]²/E[f²]); the mean of y f is 2c, or c E ρ/√d."""
    c, mean = 0.8, quad(lambda r: math.sqrt(r) * chi_squared(r, d), 0.0, np.inf)[0] if d < 100 else 1.0 - 0.25 / d
    square = 0.5 * (1.0 - 4.0 * c**2 / ((1.0 + 6.0 * c**2 + c**4) * (1.0 + 2.0 / d)))
    assert least_network_risk("square", c, d) == pytest.approx(square, rel=1e-10)
    assert least_network_risk("relu", c, d) == pytest.approx(0.5 * (1.0 - (c * mean) ** 2 / (1.0 + c**2)), rel=1e-6)


def chi_squared(r, d):
    """The density of ρ²/d."""
    return math.exp(0.5 * d * math.log(0.5 * d) + (0.5 * d - 1.0) * math.log(r) - 0.5 * d * r - math.lgamma(0.5 * d))


@pytest.mark.parametrize(("name", "least"), [("erf", 0.5), ("tanh", 0.5), ("linear", 0.5), ("sigmoid", 0.625)])
def test_odd_activations_know_only_a_constant(name, least):
    assert least_network_risk(name, 0.8, np.array([3, 40])) == pytest.approx(least, abs=1e-8)


@pytest.mark.parametrize("name", [RAMP, DIP])
def test_the_optimum_of_piecewise_activations_has_its_limits(name):
    """Without contrast R is that of the best constant, and in many dimensions the norm of an input tells its class."""
    assert least_network_risk(name, 0.0, 40) == pytest.approx(0.5, abs=1e-12)
    risks = least_network_risk(name, np.array([0.01, 0.1, 0.3, 0.6, 0.9]), 40)
    assert (np.diff(risks) < 0.0).all()
    assert risks[0] == pytest.approx(0.5, abs=0.02)
    assert least_network_risk(name, 0.8, math.inf) == pytest.approx(0.0, abs=1e-12)
    assert 0.02 < 40 * least_network_risk(name, 0.8, 40) < 0.1
    assert 1000 * least_network_risk(name, 0.8, 1000) == pytest.approx(40 * least_network_risk(name, 0.8, 40), rel=0.05)


def test_no_network_is_better_than_bayes():
    contrast, d = np.array([0.1, 0.4, 0.8])[:, None], np.array([3, 5, 20])
    assert (least_network_risk(DIP, contrast, d) > bayes_risk(contrast, d) - 1e-4).all()


@pytest.mark.parametrize(("name", "d"), [(RAMP, 40), (DIP, 40), (DIP, 3), ("he4", 1000), ("he4", math.inf)])
def test_no_norm_lowers_the_risk(name, d):
    """R is convex, so that R(ρ) − min R ≤ −2 min_q of the derivative of R towards a norm: an optimum on all norms."""
    found = optimal_measure(name, 0.6, d)
    norms = np.geomspace(1e-3, 20.0 if name == "he4" else 1e7, 3001)
    output = residuals(name, 0.6, d, found.norms) @ found.weights
    assert found.weights.sum() == pytest.approx(1.0)
    assert (output @ residuals(name, 0.6, d, norms)).min() > 2.0 * found.risk - 1e-5


@pytest.mark.parametrize(("name", "d"), [(RAMP, 40), (DIP, 3), ("he4", 200)])
def test_the_risk_is_that_of_networks_with_these_norms(name, d):
    """2R = E[(y − f)(y − f')] with two networks f, f' of 30 independent neurons and 50 samples, 400 times."""
    found, rng = optimal_measure(name, 0.6, d), np.random.default_rng(1)
    value, products = np.vectorize(activation(name).value, otypes=[float]), []
    for _ in range(400):
        x, y = samples(rng, 50, d, 0.6)
        v = rng.standard_normal((d, 60))
        v *= rng.choice(found.norms, 60, p=found.weights) / np.linalg.norm(v, axis=0)
        rest = y[:, None] - value(x @ v).reshape(50, 2, 30).mean(axis=2)
        products.append(0.5 * rest.prod(axis=1).mean())
    assert abs(score(products, found.risk)) < 4.0


def test_arrays_and_labels_are_broadcast():
    contrast, d = xr.DataArray([0.2, 0.8], dims="contrast"), xr.DataArray([3.0, 40.0], dims="d")
    for found in (bayes_risk(contrast, d), least_network_risk(RAMP, contrast, d)):
        assert (found.dims, found.attrs["units"]) == (("contrast", "d"), "1")
    assert found[1, 1] == least_network_risk(RAMP, 0.8, 40)
    assert np.isnan(least_network_risk(RAMP, 1.0, 40))
    assert np.isnan(least_network_risk(RAMP, 0.5, 2.5))
    with pytest.raises(InputError, match="rmap"):
        least_network_risk("rmap", 0.5, 40)


DATA = {"data": "two_gaussians", "k": 0, "contrast": 0.8, "gamma": 0.5, "p": 4, "d": 40, "Delta": 0.0}


@pytest.mark.parametrize(
    "fields", [{"spherical": True}, {"second_layer_rate": 0.5}, {"a": 2.0}, {"data": "teacher_student"}]
)
def test_the_optimum_is_that_of_plain_students_of_two_gaussians(fields):
    plain = DATA | {"activation": RAMP}
    assert least_risk(xr.Dataset(attrs=plain)) == least_network_risk(RAMP, 0.8, 40)
    assert np.isnan(least_risk(xr.Dataset(attrs=plain | fields)))


@pytest.mark.slow
def test_risk_curves_have_the_optimum_of_each_activation():
    parts = [simulate(Problem(**DATA, activation=name), "sgd", times=[0.0, 0.1, 0.2]) for name in (RAMP, DIP)]
    ds = xr.concat(parts, xr.Variable("activation", [RAMP, DIP]), combine_attrs="drop_conflicts")
    ds = ds.expand_dims(dynamics=["sgd"])
    drawing = FIGURES["risk_curves"](ds, hue="activation")
    level = [set(line.get_ydata()) for line in drawing.axes[0].lines if len(set(line.get_ydata())) == 1]
    assert level == [{least_network_risk(name, 0.8, 40).item()} for name in (RAMP, DIP)]
    assert "least at infinite width" in [text.get_text() for text in drawing.legends[0].get_texts()]


@pytest.mark.parametrize("ending", ["raises", "elsewhere"])
def test_the_optimum_is_found_where_nnls_of_an_earlier_scipy_ends_elsewhere(ending, monkeypatch):
    """As those of SciPy 1.14 and 1.15 do at times."""
    expected = optimal_measure("he4", 0.6, 1000.0)

    def nnls(columns, goal):
        if ending == "raises":
            raise RuntimeError("Maximum number of iterations reached.")
        return np.eye(columns.shape[1])[0], 1.0

    monkeypatch.setattr(scipy.optimize, "nnls", nnls)
    optimal_measure.cache_clear()
    try:
        assert optimal_measure("he4", 0.6, 1000.0).risk == pytest.approx(expected.risk, rel=1e-9)
    finally:
        optimal_measure.cache_clear()
