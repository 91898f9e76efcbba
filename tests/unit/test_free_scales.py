"""Phase retrieval whose norms or second layer are not fixed: the closed forms against the drifts and the ODE."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

import sweeplib
from sweeplib.networks import theory
from sweeplib.networks.maths.expectations import expectations
from tests import plain

SETTINGS = [(1, 0.12, 0.0), (1, 0.05, 1.5), (2, 0.3, 0.5), (8, 1.5, 0.0)]
SMALL = 1e-6


def drifts(p, gamma, Delta, *, norm=1.0, a=1.0):
    """Return the drifts of one overlap, one norm and one weight of the second layer around M = 0, Q = q I, over m."""
    one = np.ones((1, 1))
    M = np.eye(p)[:, :1] * SMALL
    drift_M, drift_Q, drift_Var, drift_a = plain.drifts(
        expectations("square"), norm * np.eye(p), M, one, np.full(p, a), one[0], Delta
    )
    return drift_M[0, 0] / SMALL, (drift_Q + gamma / p * drift_Var)[0, 0], drift_a[0]


@pytest.mark.parametrize(("p", "gamma", "Delta"), SETTINGS)
def test_free_norms_rest_while_overlaps_grow(p, gamma, Delta):
    norm = float(theory.free_norm(gamma, p, Delta))
    rate, of_norm, _ = drifts(p, gamma, Delta, norm=norm)
    assert of_norm == pytest.approx(0.0, abs=1e-9)
    assert rate == pytest.approx(theory.free_escape_rate(gamma, p, Delta), rel=1e-9)


@pytest.mark.parametrize(("p", "gamma", "Delta"), SETTINGS)
def test_a_trained_layer_rests_while_overlaps_grow(p, gamma, Delta):
    rate, of_norm, of_layer = drifts(p, gamma, Delta, a=p / (p + 2))
    assert of_layer == pytest.approx(0.0, abs=1e-9)
    assert rate - of_norm / 2 == pytest.approx(theory.trained_escape_rate(gamma, p, Delta), rel=1e-9)


@pytest.mark.parametrize(
    ("optimum", "rate"),
    [
        (theory.free_optimal_learning_rate, theory.free_escape_rate),
        (theory.trained_optimal_learning_rate, theory.trained_escape_rate),
    ],
)
@pytest.mark.parametrize(("p", "Delta"), [(1, 0.0), (1, 1.0), (3, 0.0), (64, 2.0)])
def test_optima_with_a_free_scale_minimise_the_steps(optimum, rate, p, Delta):
    known = float(optimum(p, Delta))
    best = minimize_scalar(
        lambda gamma: -gamma * rate(gamma, p, Delta),
        bounds=(0.5 * known, min(1.08 * known, 2 * known)),
        method="bounded",
        options={"xatol": 1e-9 * known},
    )
    assert known == pytest.approx(best.x, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "Delta"), [(1, 0.0), (1, 6.0), (2, 0.0)])
def test_free_norms_grow_without_bound_from_the_maximal_learning_rate_on(p, Delta):
    def final(gamma):
        def slope(time, norm):
            return [drifts(p, gamma, Delta, norm=norm[0])[1]]

        def large(time, norm):
            return norm[0] - 50.0

        large.terminal = True
        return solve_ivp(slope, (0.0, 300.0), [1.0], events=large).y[0, -1]

    largest = float(theory.free_maximal_learning_rate(p, Delta))
    assert final(0.98 * largest) < 10.0 < final(1.02 * largest)
    assert np.isfinite(theory.free_norm(0.98 * largest, p, Delta))
    assert np.isinf(theory.free_norm(1.02 * largest, p, Delta))


def test_one_free_unit_has_the_largest_rate_of_the_sphere():
    Delta = np.array([0.0, 1.0, 3.9])
    assert theory.free_maximal_learning_rate(1, Delta) == pytest.approx(theory.maximal_learning_rate(1, Delta))


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.05, 0.14])
def test_the_ode_with_free_norms_grows_by_the_factor(gamma):
    problem = sweeplib.Problem(p=1, k=1, d=10**6, gamma=gamma, Delta=0.0, activation="square", start="sphere", m0=1e-4)
    run = sweeplib.simulate(problem, "ode", times=[0.0, 1.8], observables=["overlap_M", "overlap_Q"])
    M, Q = (run[name].isel(time=-1).item() for name in ("overlap_M", "overlap_Q"))
    growth = M / np.sqrt(Q) / 1e-4
    expected = theory.free_growth_factor(gamma, 1, 0) * np.exp(1.8 * theory.free_escape_rate(gamma, 1, 0))
    assert growth == pytest.approx(expected, rel=0.02)


def test_width_gains_less_where_the_scale_is_free():
    """(12 + Δ)/(2 + Δ) = 6 is the gain of fixed norms and a frozen second layer."""
    wide = 1e9

    def gain(optimum, rate):
        one, many = (float(optimum(p, 0) / p * rate(optimum(p, 0), p, 0)) for p in (1, wide))
        return many / one

    assert gain(theory.optimal_learning_rate, theory.escape_rate) == pytest.approx(6.0)
    free = gain(theory.free_optimal_learning_rate, theory.free_escape_rate)
    assert free == pytest.approx((np.sqrt(3) - 1) / (np.sqrt(2) - 1))
    assert gain(theory.trained_optimal_learning_rate, theory.trained_escape_rate) == pytest.approx(4 / 3)
