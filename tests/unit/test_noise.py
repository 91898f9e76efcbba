"""Noise with a schedule, dropout, and noise of the student's inputs: numbers, NumPy, drifts, limits, refusals."""

import dataclasses
import itertools
import math

import numpy as np
import plain
import pytest
from scipy.integrate import solve_ivp

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.disturbed_drifts import disturbed_drifts
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.system import System, empty_drifts
from sweeplib.networks.maths.mean_gradients import mean_slopes
from sweeplib.networks.problem import problem_expectations
from sweeplib.networks.simulation import Case, Recording, run_cases
from tests.losses import with_loss
from tests.numpy_sgd import SHOWN, factor_at, takes_the_steps_of_numpy
from tests.tiers import slow_but

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=40, Delta=0.1, activation="erf", a=(1.0, -0.7))
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
BOTH = {"second_layer_rate": 0.5, "second_layer_decay": 0.2}
DECAY = {"weight_decay": 0.3}
DISTURBED = {"keep_probability": 0.6, "input_noise": 0.4}
ALL = {"noise_schedule": "exp(-t)", **DISTURBED}

KNOWN = [
    ({}, [0.0550755551, 0.47619845, 1.01805463, 0.33327114]),
    ({"Delta": 0.4, "noise_schedule": "exp(-2*t)"}, [0.0546200629, 0.47644173, 1.01462088, 0.33779806]),
    ({"keep_probability": 0.6}, [0.0564648476, 0.43485254, 0.88130717, 0.26361667]),
    ({"input_noise": 0.5}, [0.0592299769, 0.4360749, 0.98800925, 0.39613735]),
]


@pytest.mark.parametrize(("more", "expected"), KNOWN, ids=str)
def test_the_ode_with_noise_has_the_numbers_of_an_independent_code(more, expected):
    problem = dataclasses.replace(COMMITTEE, **more)
    ds = simulate(problem, "ode", times=[2.0], initial=START, observables=("risk", *SHOWN)).isel(seed=0, time=-1)
    found = [ds.risk, ds.overlap_M[0, 0], ds.overlap_Q[0, 0], ds.overlap_Q[0, 1]]
    np.testing.assert_allclose([float(value) for value in found], expected, atol=5e-9)


MEANS = [
    ({"noise_schedule": "exp(-t)"}, {"overlap_M": (0.89577, 23e-5), "overlap_Q": (0.89981, 41e-5)}),
    (
        {"keep_probability": 0.7, "second_layer_rate": 0.7},
        {"overlap_M": (0.83976, 38e-5), "overlap_Q": (0.97657, 58e-5), "second_layer": (0.59603, 26e-5)},
    ),
    ({"input_noise": 0.4}, {"overlap_M": (0.80732, 42e-5), "overlap_Q": (0.92317, 72e-5)}),
]


@pytest.mark.slow
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
@pytest.mark.parametrize(("more", "expected"), MEANS, ids=str)
def test_means_with_noise_at_finite_d_are_those_of_an_independent_code(dynamics, more, expected):
    """Of erf in d = 10 after 50 steps, against 10⁵ runs on weights: |z| < 4."""
    problem = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.1, activation="erf", **more)
    start = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
    ds = simulate(problem, dynamics, times=[5.0], seeds=range(8000), initial=start, observables=SHOWN)
    for name, (mean, error) in expected.items():
        own = float(ds[name].std(ddof=1)) / math.sqrt(8000)
        assert abs(float(ds[name].mean()) - mean) < 4.0 * math.hypot(own, error)


KINDS = {
    "noise schedule, rate schedule": {"noise_schedule": "exp(-t)", "schedule": "1/(1 + t)"},
    "noise schedule, batches": {"noise_schedule": "exp(-t)", "batch_size": 6},
    "noise schedule, decay, sphere": {"noise_schedule": "2*t", "spherical": True, **DECAY},
    "noise schedule, signs": {"noise_schedule": "exp(-t)"} | with_loss("huber", "sign"),
    "noise schedule, momentum": {"noise_schedule": "exp(-t)", "update": "heavy_ball", "momentum": 0.5},
    "noise schedule, adagrad_norm": {"noise_schedule": "exp(-t)", "update": "adagrad_norm", "adagrad_start": 0.3},
    "noise schedule, clipped": {"noise_schedule": "exp(-t)", "update": "clipped", "clip_norm": 0.3},
    "dropout": {"keep_probability": 0.6},
    "dropout, both layers, decay": {"keep_probability": 0.6, **BOTH, **DECAY},
    "dropout, many units": {"keep_probability": 0.3, "p": 6, "a": 1.0, **BOTH},
    "dropout, sphere": {"keep_probability": 0.6, "spherical": True, **BOTH},
    "dropout, batches": {"keep_probability": 0.6, "batch_size": 6, **BOTH},
    "input noise": {"input_noise": 0.4},
    "input noise, both layers, decay": {"input_noise": 0.4, **BOTH, **DECAY},
    "input noise, sphere": {"input_noise": 0.4, "spherical": True},
    "input noise, batches": {"input_noise": 0.4, "batch_size": 6},
    "all": ALL | BOTH | DECAY | {"schedule": "1/(1 + t)"},
    "all, huber": ALL | BOTH | with_loss("huber"),
    "dropout and input noise, logistic, batches": DISTURBED | with_loss("logistic", "sign") | {"batch_size": 6},
    "dropout and input noise, clipped": DISTURBED | {"update": "clipped", "clip_norm": 0.3},
    "dropout and input noise, adagrad_norm": DISTURBED | {"update": "adagrad_norm", "adagrad_start": 0.3},
    "dropout and input noise, momentum": DISTURBED | {"update": "heavy_ball", "momentum": 0.5},
    "dropout and input noise, tangent": DISTURBED | {"update": "tangent", "spherical": True},
    "dropout and input noise, muon": DISTURBED | {"update": "muon", "momentum": 0.5, "batch_size": 6},
    "dropout and input noise, batches used again": DISTURBED | BOTH | {"batch_size": 6, "repeats": 3},
    "dropout and input noise, one sample used again": DISTURBED | {"repeats": 2, "temperature": 0.2},
    "dropout, a training set": {"keep_probability": 0.6, "samples": 7, "batch_size": 7, **BOTH},
    "input noise, a training set": {"input_noise": 0.4, "samples": 2, "batch_size": 2, **DECAY},
    "all, a training set": DISTURBED | BOTH | {"samples": 20, "batch_size": 6, "sampling": "epochs", "repeats": 3},
    "all, a training set in two chunks": DISTURBED | {"samples": 300, "batch_size": 290, "p": 3, "a": 1.0},
    "all, a training set, huber, momentum": DISTURBED
    | with_loss("huber")
    | {"samples": 20, "batch_size": 6, "update": "heavy_ball"},
    "dropout and input noise, a spectrum": DISTURBED | {"data": "two_level", "level_ratio": 4.0, "batch_size": 3},
    "dropout and input noise, two Gaussians": DISTURBED | BOTH | {"data": "two_gaussians", "k": 0, "contrast": 0.4},
    "dropout and input noise, offsets": DISTURBED | BOTH | {"offset_scale": 0.7, "offset_rate": 1.5},
    "dropout and input noise, offsets, a training set": DISTURBED
    | {"offset_scale": 0.7, "offset_rate": 1.5, "samples": 6, "batch_size": 6},
    "all, tasks": ALL | BOTH | {"tasks": "in_turn", "switch_time": 0.3, "heads": "separate", "replay": 0.3},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_with_noise_takes_the_steps_of_numpy(kind):
    """And finds the exit where NumPy does, by the risk of all units and clean inputs at each step."""
    problem = dataclasses.replace(COMMITTEE, **KINDS[kind])
    has_exits = (
        problem.repeats == 1 and problem.data == "teacher_student" and not (problem.has_offsets or problem.in_turn)
    )
    assert takes_the_steps_of_numpy(problem, 1e-9) or not has_exits


def test_a_batch_used_again_has_labels_with_the_noise_of_its_round():
    """Of uses that begin at steps 0, 3, ..., the noise is that in the middle of the three."""
    times = np.array([0.0, 2.0]) * COMMITTEE.step_time()
    fields = {"repeats": 3, "Delta": 50.0}
    middle = 1.5 * COMMITTEE.step_time()
    annealed = dataclasses.replace(COMMITTEE, noise_schedule=f"1 if abs(t/{middle} - 1) < 0.1 else 9", **fields)
    constant = dataclasses.replace(COMMITTEE, **fields)
    both = (simulate(problem, "sgd", times=times, seeds=[0], pair_by=()) for problem in (annealed, constant))
    np.testing.assert_array_equal(*(ds.risk for ds in both))


def system_of(p, k, Delta, seed=3):
    """Return a system of fields none of which is independent of another."""
    factor = np.random.default_rng(seed).normal(size=(p + k, p + k + 2)) / math.sqrt(p + k + 2)
    omega, a = factor @ factor.T, np.array([1.0, -0.7, 0.5, 0.3])[:p]
    return *map(np.ascontiguousarray, (omega[:p, :p], omega[:p, p:], omega[p:, p:])), a, np.ones(k), Delta


def drifts_over_masks(needed, keep, noise, Q, M, P, a, a_star, Delta):
    """Return the means of the drifts over all sets of units that are kept, with Stein's lemma for noise of inputs."""
    total = empty_drifts(*M.shape)
    for part in total:
        part[:] = 0.0
    for kept in itertools.product([0.0, 1.0], repeat=len(a)):
        weight = np.prod([keep if one else 1.0 - keep for one in kept])
        layer = np.array(kept) / keep * a
        found = plain.drifts(needed, (1.0 + noise) * Q, M, P, layer, a_star, Delta, compiled=True)
        overlaps = (part[None] for part in (found.M, found.GF, (1.0 + noise) * Q, M, P))
        slopes, _ = mean_slopes(*overlaps, np.full(1, 1e-14))
        total.M[:] += weight * (found.M + noise * slopes[0] @ M)
        total.GF[:] += weight * found.GF
        total.Var[:] += weight * (1.0 + noise) * found.Var
        total.a[:] += weight * np.array(kept) / keep * found.a
    return total


@pytest.mark.parametrize("activation", slow_but(["erf", "square", "he3", "relu", "sigmoid"], "erf"))
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize(("keep", "noise"), [(0.35, 0.0), (1.0, 0.5), (0.6, 0.4)])
def test_drifts_are_means_over_the_units_that_are_kept(activation, width, keep, noise):
    """In two calls a unit and one a pair; the rows of the teacher that count twice, by Stein's lemma."""
    needed, system = expectations(activation), system_of(width, 2, 0.3)
    expected, given = drifts_over_masks(needed, keep, noise, *system), System(*system, 1.0)
    found = disturbed_drifts(needed, given, keep, noise)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    without = disturbed_drifts(needed, given, keep, noise, with_variance=False)
    for one, other in zip(found[:2], without[:2], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("keep", [1e-3, 1.0 - 1e-9])
def test_drifts_keep_their_digits_at_all_probabilities(keep):
    needed, system = expectations("erf"), system_of(3, 2, 0.3)
    expected, given = drifts_over_masks(needed, keep, 0.0, *system), System(*system, 1.0)
    found = disturbed_drifts(needed, given, keep, 0.0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def test_units_without_a_norm_have_no_drift_with_dropout():
    Q, M, P, *rest = system_of(2, 2, 0.3)
    Q[0], Q[:, 0], M[0] = 0.0, 0.0, 0.0
    found = disturbed_drifts(expectations("erf"), System(Q, M, P, *rest, 1.0), 0.5, 0.0)
    assert all(np.isfinite(part).all() for part in found)


@pytest.mark.parametrize(("keep", "noise"), [(0.6, 0.0), (1.0, 0.5), (0.6, 0.4)])
def test_the_error_of_the_drifts_is_that_of_those_with_noise(monkeypatch, keep, noise):
    """Of a rule with nodes four times as far apart, against sums over sets of units and Stein's lemma by the usual one.

    It is twice the difference: of errors at kinks. That of plain drifts is up to seven times smaller.
    """
    problem = dataclasses.replace(COMMITTEE, teacher_activation="he3", keep_probability=keep, input_noise=noise)
    usual, start = problem_expectations(problem), system_of(2, 2, 0.3)[:3]

    def coarser(factor):
        return dataclasses.replace(usual, functions=lambda: usual.pair._replace(steps=factor * usual.pair.steps))

    rule = dataclasses.replace(coarser(4.0), finer=coarser(2.5))
    monkeypatch.setattr(Replicas, "equations", rule)
    monkeypatch.setattr(Replicas, "expectations", rule)
    ds = simulate(problem, "ode", times=[0.0], initial=Overlaps(*start))
    system = *start, np.array(problem.a), np.ones(2), problem.Delta
    expected = np.concatenate([part.ravel() for part in drifts_over_masks(usual, keep, noise, *system)])
    found = np.concatenate([part.ravel() for part in disturbed_drifts(rule, System(*system, 1.0), keep, noise)])
    true = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1.4 * true < ds.drift_error.item() < 3.0 * true


def test_the_error_of_the_drifts_is_that_at_the_noise_now():
    problem = dataclasses.replace(COMMITTEE, teacher_activation="he3", Delta=50.0)
    later, same = (dataclasses.replace(problem, noise_schedule=text) for text in ("1 if t > 0 else 9", "9"))
    errors = [simulate(one, "ode", times=[0.0], initial=START).drift_error.item() for one in (problem, later, same)]
    assert errors[0] != errors[1] == errors[2]


PAIRS = {
    "noise schedule, rate schedule": {"noise_schedule": "exp(-t)", "schedule": "1/(1 + t)"},
    "noise schedule, batches": {"noise_schedule": "exp(-t)", "batch_size": 3},
    "dropout, decay": {"keep_probability": 0.6, **DECAY, **BOTH},
    "dropout, batches": {"keep_probability": 0.6, "batch_size": 3},
    "input noise, both layers": {"input_noise": 0.4, **BOTH},
    "all, sphere": ALL | BOTH | DECAY | {"schedule": "1/(1 + t)", "spherical": True},
}


@pytest.mark.parametrize("dynamics", ["ode", "gradient_flow"])
@pytest.mark.parametrize("name", PAIRS)
def test_the_flow_with_noise_is_that_of_scipy(name, dynamics):
    """By means over the units that are kept, and Stein's lemma."""
    problem = dataclasses.replace(COMMITTEE, **PAIRS[name])
    p, noisy, start = 2, dynamics == "ode", dataclasses.replace(START, Q=np.array([[1.0, 0.2], [0.2, 1.0]]))
    if not noisy:
        problem = dataclasses.replace(problem, noise_schedule=None, batch_size=1)
    needed, disturbances = problem_expectations(problem), (problem.keep_probability, problem.input_noise)

    def slope(t, state):
        Q, M, a = state[:4].reshape(2, 2), state[4:8].reshape(2, 2), state[8:]
        Delta, rate = problem.Delta * factor_at(problem.noise_schedule, t), factor_at(problem.schedule, t)
        drifts = drifts_over_masks(needed, *disturbances, Q, M, np.eye(2), a, np.ones(2), Delta)
        flow = drifts.GF - 2 * problem.weight_decay * Q + noisy * rate / (p * problem.batch_size) * drifts.Var
        to_teacher = drifts.M - problem.weight_decay * M
        if problem.spherical:
            to_teacher = to_teacher - M * np.diag(flow)[:, None] / 2
            flow = flow - Q * (np.diag(flow)[:, None] + np.diag(flow)) / 2
        layer = problem.second_layer_rate * (drifts.a - problem.second_layer_decay * a)
        return rate * np.concatenate([flow.ravel(), to_teacher.ravel(), layer])

    state = np.concatenate([start.Q.ravel(), start.M.ravel(), problem.a])
    expected = solve_ivp(slope, (0, 2), state, method="DOP853", rtol=1e-9, atol=1e-11).y[:, -1]
    ds = simulate(problem, dynamics, times=[2.0], initial=start, observables=SHOWN)
    found = np.concatenate([ds[name][0, -1].values.ravel() for name in SHOWN])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


BESIDE = {
    "correlation, sphere": {"loss": "correlation", "spherical": True},
    "momentum, both layers": {"update": "heavy_ball", "momentum": 0.5, "gamma": 0.5, **BOTH},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3},
    "tangent": {"update": "tangent", "spherical": True},
    "replay, separate heads": {"tasks": "in_turn", "switch_time": 0.4, "replay": 0.3, "heads": "separate", **BOTH},
}


@pytest.mark.parametrize("name", slow_but(BESIDE, "momentum, both layers"))
def test_means_of_the_chain_are_those_of_the_ode_with_noise(name):
    """Beside other losses, rules of steps and tasks, at d = 4000: |z| < 4, of some 12 numbers each."""
    problem = dataclasses.replace(COMMITTEE, d=4000, **DISTURBED | BESIDE[name])
    start = dataclasses.replace(START, Q=np.array([[1.0, 0.2], [0.2, 1.0]]))
    given = {"times": [0.3, 0.9], "initial": start, "observables": SHOWN}
    chain, ode = simulate(problem, "sgd_chain", seeds=range(64), **given), simulate(problem, "ode", **given)
    for shown in SHOWN:
        runs, limit = chain[shown].values, ode[shown].values[0]
        error = runs.std(axis=0, ddof=1) / 8.0
        assert (abs(runs.mean(axis=0) - limit) <= 4.0 * error + 1e-9).all(), shown


@pytest.mark.parametrize(
    "more",
    [pytest.param(with_loss("huber"), marks=pytest.mark.slow), {"update": "heavy_ball", "momentum": 0.5}],
    ids=str,
)
def test_other_losses_and_updates_have_the_noise_of_their_time(more):
    """At a constant χ, the noise is χ Δ."""
    problem = dataclasses.replace(COMMITTEE, p=1, k=1, a=1.0, **more)
    half, same = dataclasses.replace(problem, noise_schedule="0.5"), dataclasses.replace(problem, Delta=0.05)
    runs = (simulate(one, "ode", times=[1.0], observables=("risk", *SHOWN)) for one in (half, same))
    one, other = ([ds[name].values.ravel() for name in ("risk", *SHOWN)] for ds in runs)
    np.testing.assert_allclose(np.concatenate(one), np.concatenate(other), rtol=1e-8)


PLAIN = {"noise_schedule": "1", "keep_probability": 1.0, "input_noise": 0.0}


def test_the_limits_are_plain():
    assert dataclasses.replace(COMMITTEE, **PLAIN).text == COMMITTEE.text
    assert Case(dataclasses.replace(COMMITTEE, **PLAIN), "sgd", 0, Recording((1.0,))).identity() == (
        Case(COMMITTEE, "sgd", 0, Recording((1.0,))).identity()
    )


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "ode", "gradient_flow"])
@pytest.mark.parametrize("more", [{"keep_probability": 0.5}, {"input_noise": 0.4}], ids=str)
def test_a_plain_run_beside_others_has_the_bits_of_one_alone(dynamics, more):
    """In one group with a run with dropout, or with noise of inputs."""
    record = Recording((0.0, 1.0), (0.01,), ("risk", *SHOWN))
    cases = [
        Case(problem, dynamics, seed, record, pair_by=())
        for problem in (COMMITTEE, dataclasses.replace(COMMITTEE, **more))
        for seed in range(3)
    ]
    together, alone = run_cases(cases), run_cases(cases[:3])
    for name, values in alone.data.items():
        np.testing.assert_array_equal(together.data[name][:3], values)
        assert name != "risk" or not np.array_equal(together.data[name][3:], values)


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
def test_dropout_of_next_to_nothing_and_weak_noise_are_nearly_plain(dynamics):
    weak = dataclasses.replace(COMMITTEE, keep_probability=1.0 - 1e-12, input_noise=1e-24)
    runs = (simulate(problem, dynamics, times=[1.0], seeds=range(4), pair_by=()) for problem in (weak, COMMITTEE))
    one, other = (ds.risk.values for ds in runs)
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_the_penalty_of_dropout_may_raise_the_risk_of_gradient_flow():
    """From the teacher itself: that is no inaccuracy."""
    problem = Problem(gamma=1.0, p=2, k=2, d=100, Delta=0.0, activation="erf", keep_probability=0.5)
    start = Overlaps(np.eye(2), np.eye(2), np.eye(2))
    ds = simulate(problem, "gradient_flow", times=[0.0, 5.0], initial=start)
    assert ds.status == 1
    assert ds.risk[0, -1] > ds.risk[0, 0] + 1e-3


def test_noise_of_labels_is_that_of_the_problem_for_observables():
    problem = dataclasses.replace(COMMITTEE, noise_schedule="exp(-t)")
    ds = simulate(problem, "ode", times=[2.0], observables=("risk", "test_error"))
    assert ds.test_error.item() == pytest.approx(ds.risk.item() + 0.05)


REFUSED = [
    ("ode", ALL | with_loss("huber"), "loss: no drifts with dropout; got 'huber'; expected square with a keep_pro"),
    ("ode", {"input_noise": 0.4, "labels": "sign"}, "labels: no drifts with noise of inputs"),
    ("ode", {"keep_probability": 0.5, "update": "normalised", "p": 1, "a": 1.0}, "update: no drifts with dropout"),
    *(
        (name, {field: ALL[field], "data": "two_level", "level_ratio": 4.0}, "data: no drifts with .*expected teacher_")
        for name in ("ode", "gradient_flow")
        for field in DISTURBED
    ),
    ("sgd_chain", {"input_noise": 0.5, "repeats": 2}, "repeats: noise of each use adds directions to the frame"),
    ("sgd_chain", {"keep_probability": 0.5, "samples": 100}, "sgd_chain does not act on samples"),
    ("sgd", {"noise_schedule": "exp(-t)", "samples": 100}, "noise_schedule.*whose labels are drawn once"),
    ("ode", {"noise_schedule": "exp(-t)", "update": "adagrad_norm"}, "no equations of a memory and of the time"),
    ("sgd", {"noise_schedule": "1 - t"}, "noise_schedule: no label noise at t = 1"),
    ("ode", {"noise_schedule": "1/t"}, r"noise_schedule: no label noise at t = 0.*such as `1 / \(t \+ 0.001\)`"),
    ("sgd", {"noise_schedule": "optimal(3)"}, "noise_schedule.*unknown"),
    ("ode", {"input_noise": 0.5, "target": "lam1 + he3(lam2)"}, "no drifts with noise of inputs.*sgd, sgd_chain"),
    ("ode", {"keep_probability": 0.5, "schedule": "optimal(2)"}, "keep_probability.*no derivatives by the rate"),
    ("ode", {"noise_schedule": "exp(-t)", "schedule": "optimal(2)"}, "noise_schedule.*no derivatives by the rate"),
    *(
        (name, {field: ALL[field]}, f"{name} does not act on {field}")
        for name in ("sde", "mean_field")
        for field in ALL
        if (name, field) != ("sde", "noise_schedule")
    ),
    ("gradient_flow", {"noise_schedule": "exp(-t)"}, "gradient_flow does not act on noise_schedule"),
    ("sgd", {"keep_probability": 0.0}, "keep_probability.*a number greater than 0"),
    ("sgd", {"input_noise": -0.1}, "input_noise.*a number of at least 0"),
]


@pytest.mark.parametrize(("dynamics", "more", "said"), REFUSED, ids=str)
def test_what_nobody_checked_is_refused(dynamics, more, said):
    with pytest.raises(InputError, match=said):
        simulate(dataclasses.replace(COMMITTEE, **more), dynamics, times=[2.0])


@pytest.mark.parametrize("field", ALL)
def test_equations_at_finite_d_refuse_noise(field):
    problem = dataclasses.replace(COMMITTEE, **{field: ALL[field]})
    with pytest.raises(InputError, match=f"{field}.*no equations at finite d"):
        simulate(problem, "ode", times=[1.0], options={"finite_d": True})


@pytest.mark.parametrize("field", ["keep_probability", "input_noise"])
def test_drifts_of_undisturbed_students_are_not_recorded(field):
    problem = dataclasses.replace(COMMITTEE, **{field: ALL[field]})
    with pytest.raises(InputError, match="no drifts of a student with dropout or noise of inputs"):
        simulate(problem, "sgd", times=[1.0], observables=("noise_trace",))
