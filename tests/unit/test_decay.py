"""Decay of both layers, with each loss: known numbers, SGD by NumPy on the same samples, exits, limits."""

import dataclasses
import math

import numpy as np
import plain
import pytest
from scipy.integrate import solve_ivp

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.problem import problem_expectations
from sweeplib.networks.simulation import Case, Recording
from tests.losses import FORCES, with_loss
from tests.numpy_sgd import SHOWN, steps_by_numpy, takes_the_steps_of_numpy
from tests.tiers import slow_among

COMMITTEE = Problem(
    gamma=1.0,
    p=2,
    k=2,
    d=40,
    Delta=0.1,
    activation="erf",
    a=(1.0, -0.7),
    weight_decay=0.3,
    second_layer_rate=0.5,
    second_layer_decay=0.2,
)
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))


def test_the_ode_has_the_numbers_of_an_independent_code():
    ds = simulate(COMMITTEE, "ode", times=[2.0], initial=START, observables=("risk", *SHOWN)).isel(seed=0, time=-1)
    shown = [ds.risk, ds.overlap_M[0, 0], *ds.overlap_Q[0], *ds.second_layer]
    expected = [0.0495158928, 0.31445424, 0.36626903, 0.06581859, 0.8237127, -0.52272282]
    np.testing.assert_allclose([float(value) for value in shown], expected, atol=5e-9)


@pytest.mark.parametrize(
    ("gamma", "decay", "time", "m", "q"),
    [(0.5, 0.01, 5.0, 0.98375314, 1.00174509), (0.5, 0.3, 2.0, 0.71209725, 0.57678233)],
)
def test_a_linear_unit_follows_its_linear_equations(gamma, decay, time, m, q):
    """ṁ = P − (1 + λ) m, q̇ = 2m − 2(1 + λ) q + γ(P − 2m + q + Δ), from m = 0, q = 1."""
    problem = Problem(gamma=gamma, p=1, k=1, d=100, Delta=0.1, activation="linear", weight_decay=decay)
    start = Overlaps(np.eye(1), np.zeros((1, 1)), np.eye(1))
    ds = simulate(problem, "ode", times=[time], initial=start, observables=SHOWN)
    np.testing.assert_allclose([ds.overlap_M.item(), ds.overlap_Q.item()], [m, q], atol=2e-8)


@pytest.mark.parametrize("dynamics", slow_among(["sgd", "sgd_chain"], "sgd"))
def test_means_at_finite_d_are_those_of_an_independent_code(dynamics):
    """Of erf in d = 10 after 50 steps, against 10⁵ runs on weights: |z| < 4 for three means."""
    rates = {"weight_decay": 0.5, "second_layer_rate": 0.7, "second_layer_decay": 0.4}
    problem = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.1, activation="erf", **rates)
    start = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
    ds = simulate(problem, dynamics, times=[5.0], seeds=range(4000), initial=start, observables=SHOWN)
    expected = {"overlap_M": (0.29348, 17e-5), "overlap_Q": (0.11243, 12e-5), "second_layer": (0.37834, 16e-5)}
    for name, (mean, error) in expected.items():
        own = float(ds[name].std(ddof=1)) / math.sqrt(4000)
        assert abs(float(ds[name].mean()) - mean) < 4.0 * math.hypot(own, error)


KINDS = {
    "fresh": {},
    "on the sphere": {"spherical": True},
    "batches": {"batch_size": 6},
    "a training set, one by one": {"samples": 1, "batch_size": 1},
    "a training set": {"samples": 7, "batch_size": 7},
    **{f"{loss}, {labels}": with_loss(loss, labels) for loss in FORCES for labels in ("real", "sign")},
    **{f"{loss}, batches": with_loss(loss) | {"batch_size": 6} for loss in ("huber", "logistic")},
    "logistic, a training set": with_loss("logistic", "sign") | {"samples": 7, "batch_size": 7},
    "huber, a training set": with_loss("huber") | {"samples": 7, "batch_size": 7},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_with_decay_and_each_loss_takes_the_steps_of_numpy(kind):
    """And finds the exit where NumPy does, by the risk at each step."""
    assert takes_the_steps_of_numpy(dataclasses.replace(COMMITTEE, **KINDS[kind]), 1e-10)


def test_a_strong_decay_over_many_steps_keeps_its_precision():
    """Half of the weights is lost at each of 400 steps: the factor of a row is applied before it underflows."""
    problem = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.1, activation="erf", weight_decay=5.0)
    case = Case(problem, "sgd", 0, Recording((0.0,)))
    Q, M, _ = steps_by_numpy(case, 400)
    ds = simulate(problem, "sgd", times=[40.0], seeds=[0], observables=SHOWN)
    np.testing.assert_allclose([ds.overlap_Q.item(), ds.overlap_M.item()], [Q.item(), M.item()], rtol=1e-9)


def test_exits_of_the_chain_do_not_depend_on_the_bound_of_the_risk():
    """The risk is computed only when it may have reached its target; that of each step says where it did."""
    problem = dataclasses.replace(COMMITTEE, d=200, second_layer_rate=0.0, second_layer_decay=0.0, weight_decay=1.0)
    ends = {"thresholds": [0.3], "stop": "exit", "seeds": range(16)}
    exits = simulate(problem, "sgd_chain", times=[0.0, 8.0], **ends)
    assert exits.exit_steps.notnull().all()
    steps = exits.exit_steps.values[:, 0]
    for seed in range(16):
        times = np.array([0.0, steps[seed] - 1, steps[seed]]) * problem.step_time()
        risk = simulate(problem, "sgd_chain", times=times, seeds=[seed]).risk[0].values
        assert risk[2] <= 0.7 * risk[0] < risk[1]


def test_the_map_becomes_the_ode_for_short_steps_and_many_samples():
    """Without noise: gradient descent with decay, in steps of a thousandth."""
    fields = {"gamma": 2.0, "d": 1000, "batch_size": 10**7}
    problem = dataclasses.replace(COMMITTEE, **fields)
    found = simulate(problem, "overlap_map", times=[2.0], initial=START, observables=SHOWN)
    flow = simulate(problem, "ode", times=[2.0], initial=START, observables=SHOWN)
    for name in SHOWN:
        np.testing.assert_allclose(found[name], flow[name], atol=3e-3)


@pytest.mark.parametrize("more", [{}, {"spherical": True}, {"schedule": "1/(1 + t)"}, {"batch_size": 4}])
def test_the_ode_is_that_of_scipy(more):
    problem = dataclasses.replace(COMMITTEE, **more)
    p, needed = 2, problem_expectations(problem)
    start = dataclasses.replace(START, Q=np.array([[1.0, 0.2], [0.2, 1.0]]))

    def slope(t, state):
        Q, M, a = state[:4].reshape(2, 2), state[4:8].reshape(2, 2), state[8:]
        drifts = plain.drifts(needed, Q, M, np.eye(2), a, np.ones(2), problem.Delta)
        rate = 1 / (1 + t) if problem.schedule else 1.0
        flow = drifts.GF - 2 * problem.weight_decay * Q + rate / (p * problem.batch_size) * drifts.Var
        to_teacher = drifts.M - problem.weight_decay * M
        if problem.spherical:
            to_teacher = to_teacher - M * np.diag(flow)[:, None] / 2
            flow = flow - Q * (np.diag(flow)[:, None] + np.diag(flow)) / 2
        layer = problem.second_layer_rate * (drifts.a - problem.second_layer_decay * a)
        return rate * np.concatenate([flow.ravel(), to_teacher.ravel(), layer])

    state = np.concatenate([start.Q.ravel(), start.M.ravel(), problem.a])
    expected = solve_ivp(slope, (0, 3), state, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    ds = simulate(problem, "ode", times=[3.0], initial=start, observables=SHOWN)
    found = np.concatenate([ds[name][0, -1].values.ravel() for name in SHOWN])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_gradient_flow_with_decay_may_raise_the_risk():
    """From the teacher itself, weights shrink to where the penalty balances the risk: that is no inaccuracy."""
    problem = Problem(gamma=1.0, p=1, k=1, d=100, Delta=0.0, activation="linear", weight_decay=0.5)
    start = Overlaps(np.eye(1), np.eye(1), np.eye(1))
    ds = simulate(problem, "gradient_flow", times=[0.0, 20.0], initial=start, observables=("risk", "overlap_M"))
    assert ds.status == 1
    assert ds.overlap_M[0, -1].item() == pytest.approx(1 / 1.5)
    assert ds.risk[0, -1] > ds.risk[0, 0]


def test_a_reused_batch_with_decay_has_the_numbers_of_an_independent_code():
    """Five steps of the effective process of erf at n = 2d, of the time 1.2 each, which are known to 3·10⁻⁴."""
    of_set = {"gamma": 1200.0, "p": 1, "k": 1, "d": 1000, "samples": 2000, "batch_size": 2000}
    problem = Problem(**of_set, Delta=0.1, activation="erf", weight_decay=0.3)
    start = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
    ds = simulate(problem, "dmft", times=[6.0], initial=start, observables=SHOWN, options={"paths": 2**17})
    for name, known in (("overlap_M", 0.4256), ("overlap_Q", 0.2480)):
        assert ds[name].item() == pytest.approx(known, abs=4.0 * (ds[f"{name}_error"].item() + 3e-4))


@pytest.mark.slow
def test_a_reused_batch_with_decay_of_both_layers_is_that_of_sgd():
    """d = 2000, four steps: |z| < 4 for the means of 24 runs, and their error of order 1/d."""
    of_set = {"gamma": 1200.0, "d": 2000, "samples": 3000, "batch_size": 3000, "spherical": True}
    problem = dataclasses.replace(COMMITTEE, **of_set)
    given = {
        "times": [4 * problem.step_time()],
        "initial": dataclasses.replace(START, Q=np.eye(2)),
        "observables": SHOWN,
    }
    runs = simulate(problem, "sgd", seeds=range(24), **given).isel(time=-1)
    ds = simulate(problem, "dmft", options={"paths": 2**17}, **given).isel(time=-1, seed=0)
    for name in SHOWN:
        error = np.hypot(runs[name].std("seed", ddof=1) / math.sqrt(24), ds[f"{name}_error"])
        assert (abs(runs[name].mean("seed") - ds[name]) < 4.0 * error + 1e-3).all()


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "overlap_map", "sde"])
def test_a_step_that_leaves_nothing_of_the_weights_is_refused(dynamics):
    """At λ γ/(pd) = 1; just below, a run ends ok. The flow has no steps."""
    fields = {"gamma": 1.0, "p": 1, "k": 1, "d": 10, "Delta": 0.1, "activation": "erf"}
    with pytest.raises(InputError, match=r"weight_decay.*got 10.0; expected less than 10: a step of the time 0.1"):
        simulate(Problem(**fields, weight_decay=10.0), dynamics, times=[1.0])
    of_layer = {"second_layer_rate": 2.0, "second_layer_decay": 5.0}
    if dynamics != "overlap_map":
        with pytest.raises(InputError, match=r"nothing of a; got 5.0; expected less than 5: a step of the time 0.1"):
            simulate(Problem(**fields, **of_layer), dynamics, times=[1.0])
    assert simulate(Problem(**fields, weight_decay=9.9), dynamics, times=[1.0]).status == 1
    assert simulate(Problem(**fields, weight_decay=10.0), "ode", times=[1.0]).status == 1


@pytest.mark.parametrize(("update", "differs"), [("heavy_ball", True), ("spectral_momentum", False), ("plain", False)])
def test_cases_with_decay_of_velocities_are_in_other_groups_than_those_without(update, differs):
    """They have a kernel of their own: a case would have other random numbers beside others."""
    decaying = dataclasses.replace(COMMITTEE, update=update)
    shape, other = (
        Case(problem, "sgd_chain", 0, Recording((1.0,))).shape
        for problem in (decaying, dataclasses.replace(decaying, weight_decay=0.0))
    )
    assert (shape != other) == differs


def test_a_long_step_of_the_sde_that_leaves_nothing_of_the_weights_is_refused():
    problem = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.1, activation="erf", weight_decay=5.0)
    with pytest.raises(InputError, match=r"weight_decay.*got 5.0; expected less than 5: a step of the time 0.2"):
        simulate(problem, "sde", times=[1.0], options={"step": 2.0})
