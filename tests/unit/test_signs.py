"""Steps of signs (signSGD): NumPy, numbers of another code, closed forms, units that never part, a chain."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.simulation import Case, Recording
from tests.numpy_sgd import takes_the_steps_of_numpy, weights_by_numpy
from tests.tiers import slow_but

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=100, Delta=0.1, activation="erf", a=(1.0, -0.7), update="sign")
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
UNIT = Problem(gamma=0.5, p=1, k=1, d=600, Delta=0.1, activation="linear", update="sign")
REST = Overlaps([[1.0]], [[0.0]], [[1.0]])
SHOWN = ("overlap_M", "overlap_Q")
MU = {1: math.sqrt(2.0 / math.pi), 5: math.sqrt(2.0) * math.gamma(3.0) / math.gamma(2.5)}
"""μ_n = √2 Γ((n + 1)/2)/Γ(n/2)."""

KINDS = {
    "one sample": {},
    "batches, both layers, decay": {"batch_size": 5, "second_layer_rate": 0.5, "weight_decay": 0.3},
    "sphere, schedule": {"spherical": True, "schedule": "1/(1 + t)"},
    "training set": {"samples": 7, "batch_size": 7},
    "logistic, weight noise": {"loss": "logistic", "labels": "sign", "temperature": 0.1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_takes_the_signs_of_numpy(kind):
    takes_the_steps_of_numpy(dataclasses.replace(COMMITTEE, d=40, **KINDS[kind]), 1e-9)


@pytest.mark.parametrize("samples", [1, 2])
def test_units_with_equal_signs_never_part_with_one_sample(samples):
    """At σ' > 0 their steps are the same: their difference stays, to rounding; with two samples it does not."""
    problem = dataclasses.replace(COMMITTEE, a=(1.0, 0.3), d=40, batch_size=samples)
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    weights, _ = weights_by_numpy(case, 30)
    times = np.array([0, 30]) * problem.step_time()
    Q = simulate(problem, "sgd", times=times, seeds=[3], observables=SHOWN).overlap_Q[0]
    parted = (Q[:, 0, 0] + Q[:, 1, 1] - 2.0 * Q[:, 0, 1]).values
    assert parted[0] == pytest.approx(((weights[0][0] - weights[0][1]) ** 2).sum() / problem.d, rel=1e-12)
    moved = abs(parted[1] / parted[0] - 1.0)
    assert moved < 1e-12 if samples == 1 else moved > 1e-3


TIMES = [0.5, 1.0, 2.0, 4.0]
NUMBERS = [[0.21128, 0.86454], [0.40274, 0.82270], [0.70580, 0.91659], [0.95901, 1.16090]]


def speed(n, gamma, Delta):
    """The slopes of m and q of a linear unit with P = 1, by the closed form for n samples."""

    def slope(_, state):
        m, q = state
        rate = math.sqrt(2.0 / math.pi) * MU[n] / math.sqrt(1.0 - 2.0 * m + q + Delta)
        return [rate * (1.0 - m), 2.0 * rate * (m - q) + gamma]

    return slope


@pytest.mark.rest
def test_the_ode_of_a_linear_unit_has_the_numbers_of_another_code():
    """And those of its closed form by SciPy, to all digits; its floor is r, K²r² = r + Δ, K = 2c₀μ₁/γ."""
    ds = simulate(UNIT, "ode", times=[*TIMES, 40.0], initial=REST, observables=("risk", *SHOWN))
    found = np.column_stack([ds[name].values.ravel() for name in SHOWN])
    np.testing.assert_allclose(found[:4], NUMBERS, atol=6e-6)
    exact = solve_ivp(speed(1, 0.5, 0.1), (0.0, 4.0), [0.0, 1.0], "DOP853", TIMES, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[:4], exact.y.T, atol=1e-7)
    K = 2.0 * (2.0 / math.pi) / 0.5
    floor = (1.0 + math.sqrt(1.0 + 4.0 * K**2 * 0.1)) / (2.0 * K**2)
    assert floor == pytest.approx(0.2232796, abs=5e-8)
    assert 2.0 * ds.risk[0, -1].item() == pytest.approx(floor, abs=1e-7)


@pytest.mark.rest
def test_erf_units_without_noise_have_the_equations_of_linear_ones():
    """For p = k = 1, a = 1, Δ = 0: sgn(erf λ* − erf λ) = sgn(λ* − λ)."""
    problems = (dataclasses.replace(UNIT, Delta=0.0, activation=name) for name in ("erf", "linear"))
    one, other = (simulate(problem, "ode", times=[1.0], initial=REST, observables=SHOWN) for problem in problems)
    for name in SHOWN:
        np.testing.assert_allclose(one[name], other[name], atol=1e-4)


@pytest.mark.rest
@pytest.mark.parametrize("samples", slow_but([1, 5], 1))
def test_sgd_of_signs_follows_the_equations(samples):
    """At d = 600: |z| < 4.5, and terms of order 1/d; n = 5 by its closed form, of which the ODE has none."""
    problem = dataclasses.replace(UNIT, batch_size=samples)
    ds = simulate(problem, "sgd", times=[1.0], seeds=100, initial=REST, observables=SHOWN)
    expected = solve_ivp(speed(samples, 0.5, 0.1), (0.0, 1.0), [0.0, 1.0], rtol=1e-10, atol=1e-10).y[:, -1]
    if samples == 5:
        np.testing.assert_allclose(expected, [0.89965, 0.89458], atol=6e-6)
    for name, value in zip(SHOWN, expected, strict=True):
        runs = ds[name].values.ravel()
        assert abs(runs.mean() - value) < 4.5 * runs.std() / 10.0 + 3.0 / 600.0


@pytest.mark.rest
def test_the_approximate_chain_has_the_means_of_delocalised_weights():
    """After 200 steps of γ/p = .5 at d = 100: M within .0035 of SGD on random rows, 400 runs, and 4.5 errors."""
    common = {"times": [200 * COMMITTEE.step_time()], "initial": START, "observables": SHOWN}
    weights = simulate(COMMITTEE, "sgd", seeds=400, **common)
    chain = simulate(COMMITTEE, "sgd_chain", seeds=4000, options={"delocalised": True}, **common)
    for name in SHOWN:
        x, y = (run[name].values.reshape(len(run.seed), -1) for run in (weights, chain))
        error = np.hypot(x.std(axis=0) / 20.0, y.std(axis=0) / math.sqrt(4000.0))
        assert (np.abs(x.mean(axis=0) - y.mean(axis=0)) < 0.0035 + 4.5 * error).all()


@pytest.mark.parametrize("p", [1, 8])
def test_the_chain_keeps_the_weights_of_few_coordinates_and_takes_their_signs(p):
    """With d ≤ k + p: in one dimension each of 20 steps moves each weight by γ/p. It moved them by normal numbers."""
    problem = Problem(gamma=0.5, p=p, k=1, d=1, Delta=0.1, activation="erf", update="sign")
    times = [0.0, 20 * problem.step_time()]
    ds = simulate(problem, "sgd_chain", times=times, seeds=8, observables=SHOWN, options={"delocalised": True})
    moves = ds.overlap_M.diff("time").values * p / 0.5
    np.testing.assert_allclose(moves, 2.0 * np.rint(0.5 * moves), atol=1e-12)
    assert np.ptp(moves) > 0.0


REFUSALS = (
    ("sgd_chain", {}, "no exact overlap chain of signs.* `delocalised: true`, an approximation"),
    ("sde", {}, "does not act on update"),
    ("ode", {"k": 3}, "drifts by nodes over p \\+ k fields"),
    ("ode", {"batch_size": 3}, "no drifts of batches"),
    ("ode", {"loss": "huber"}, "no drifts"),
    ("overlap_map", {"batch_size": 100}, "no overlap map of signs"),
)


@pytest.mark.parametrize(("dynamics", "more", "words"), REFUSALS)
def test_signs_are_refused_where_they_have_no_law_of_overlaps(dynamics, more, words):
    with pytest.raises(InputError, match=words) as caught:
        Case(dataclasses.replace(UNIT, d=60, **more), dynamics, 0, Recording((0.5,))).check()
    assert "\n" not in str(caught.value)
