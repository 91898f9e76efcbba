"""Schedules of the learning rate: their meaning and spelling, the steps against NumPy, the ODE against scipy."""

import dataclasses

import numpy as np
import plain
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from sweeplib import InputError, Problem, simulate
from sweeplib.engine.language import Expression, schedule
from sweeplib.networks.numerics.compiled import call_by_address, over_arrays
from sweeplib.networks.numerics.random import normals
from sweeplib.networks.problem import problem_expectations
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.tiers import slow_among, slow_but

COMMITTEE = Problem(gamma=0.5, p=2, k=2, d=40, Delta=0.1, activation="erf")
SHOWN = ("overlap_Q", "overlap_M", "second_layer")
TIMES = np.array([1e-9, 0.3, 1.0, 7.0])
MEANINGS = {
    "1/(1 + t)": 1 / (1 + TIMES),
    "min(1, t/5)": np.minimum(1, TIMES / 5),
    "t**-0.25": TIMES**-0.25,
    "max(0.1, 1 - t, exp(-t))": np.maximum.reduce([np.full(4, 0.1), 1 - TIMES, np.exp(-TIMES)]),
    "sqrt(2)*log(1 + t) + 2**t": np.sqrt(2) * np.log1p(TIMES) + 2**TIMES,
    "3": np.full(4, 3.0),
    "1 if t < 1 else 0.1": np.where(TIMES < 1, 1.0, 0.1),
    "(t < 1)/2 + (not 0.1 < t <= 1)": (TIMES < 1) / 2 + ~((TIMES > 0.1) & (TIMES <= 1)),
    "t and 2 or 3": np.full(4, 2.0),
    "floor(3*t)/2 + ceil(t) + abs(1 - t)": np.floor(3 * TIMES) / 2 + np.ceil(TIMES) + np.abs(1 - TIMES),
    "round(t/3, 1) + round(t)": np.round(TIMES / 3, 1) + np.round(TIMES),
    "log(t, 2)**2 + t // 2 + t % 2": np.log2(TIMES) ** 2 + TIMES // 2 + TIMES % 2,
}
SPELLINGS = [
    ("1/(1+t)", "1 / (1 + t)"),
    ("1.0 / ((1) + (t))", "1 / (1 + t)"),
    ("t**(-1/4)", "t ** (-0.25)"),
    ("+t**-.25", "t ** (-0.25)"),
    ("2*3 - t", "6 - t"),
    (" min( 1,t/5 )", "min(1, t / 5)"),
    ("-(-1)", "1"),
]
REFUSED = [
    ("1/(1 + x)", ["unknown name: `x` at character 8", "got '1/(1 + x)'", "the time t"]),
    ("lam1", ["unknown name: `lam1` at character 1"]),
    ("t +", ["not a schedule", "got 't +'"]),
    ("1 + exp", ["unknown name: `exp` at character 5", "as in `exp(t)`"]),
    ("1 + min(t)", ["wrong number of arguments: `min(t)` at character 5"]),
    ("exp(t, 2)", ["wrong number of arguments: `exp(t, 2)`", "one, not 2"]),
    ("t.real", ["not allowed in a schedule: `t.real`"]),
    ("[t]", ["not allowed in a schedule"]),
    ("sqr(t)", ["unknown function at character 1", "did you mean 'sqrt'"]),
    ("__import__('os')", ["unknown function at character 1"]),
    ("t + 1/0", ["not a finite number: `1/0` at character 5"]),
    ("t*10**10**10", ["not a finite number: `10**10**10` at character 3"]),
    ("(-1)**0.5 + t", ["not a finite number"]),
    ("True", ["not allowed in a schedule"]),
    ("", ["not a schedule"]),
    ("t" + " + t" * 1000, ["schedule too long"]),
    ("(" * 150 + "t" + ")" * 150 + "-" * 199, ["not a schedule"]),
]


def rates_at(times, text):
    """The factors of the learning rate, as a config's expressions have them."""
    return np.array(Expression(text).evaluated({"t": np.ravel(times).tolist()}, np.size(times))).reshape(
        np.shape(times)
    )


@pytest.mark.rest
@pytest.mark.parametrize("text", MEANINGS)
def test_it_means_what_it_says(text):
    """For NumPy, which checks it before a run, and for kernels."""
    found = np.empty(4)
    call_by_address(over_arrays(schedule(text).function), TIMES, found)
    np.testing.assert_allclose(found, MEANINGS[text], rtol=1e-14)
    for evaluated in ([schedule(text).function(time) for time in TIMES], rates_at(TIMES, text)):
        np.testing.assert_allclose(evaluated, MEANINGS[text], rtol=1e-14)


@pytest.mark.parametrize(("text", "spelling"), SPELLINGS)
def test_it_has_one_spelling(text, spelling):
    assert schedule(text).text == schedule(spelling).text == spelling


def test_spellings_of_one_schedule_are_one_case():
    one, other, constant = (
        dataclasses.replace(COMMITTEE, schedule=text) for text in ("1/(1+t)", "(1) / (1.0+t)", "2-1")
    )
    cases = [Case(problem, "sgd", 0, Recording((1.0,))) for problem in (one, other, constant, COMMITTEE)]
    identities = [case.identity() for case in cases]
    assert identities[0] == identities[1] != identities[2] == identities[3]


@pytest.mark.parametrize(("text", "parts"), REFUSED)
def test_what_is_no_schedule_is_refused_with_its_position(text, parts):
    with pytest.raises(InputError) as refused:
        dataclasses.replace(COMMITTEE, schedule=text)
    assert refused.value.key == "schedule"
    assert all(part in str(refused.value) for part in parts), str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("dynamics", "text", "parts"),
    [
        ("sgd", "1 - t", ["no learning rate at t = 1.0", "schedule", "got '1 - t'", "zero or more"]),
        ("sgd_chain", "log(t)", ["no learning rate at t = 0.003125"]),
        ("sde", "1/(1.5 - t)", ["no learning rate at t = 1.5"]),
        ("ode", "sqrt(1 - t)", ["no learning rate at t = 1.0"]),
        ("ode", "t**-0.25", ["no learning rate at t = 0", "such as `(t + 0.001) ** (-0.25)`"]),
        ("ode", "1 + round(t, 400)", ["no learning rate at t = 0"]),
        ("ode", "round(1e300*t, 10)", ["no learning rate at t = ", "zero or more"]),
        ("gradient_flow", "log(t)", ["no learning rate at t = 0;", "zero or more"]),
    ],
)
def test_rates_that_are_negative_or_not_finite_are_refused_before_a_run(dynamics, text, parts):
    with pytest.raises(InputError) as refused:
        simulate(dataclasses.replace(COMMITTEE, schedule=text), dynamics, times=[2.0])
    assert all(part in str(refused.value) for part in parts), str(refused.value)


def test_the_ode_at_finite_d_refuses_a_schedule():
    problem = dataclasses.replace(COMMITTEE, schedule="1/(1 + t)")
    with pytest.raises(InputError, match=r"schedule: no equations at finite d.*constant rate"):
        simulate(problem, "ode", times=[1.0], options={"finite_d": True})


def steps_by_numpy(case, count):
    """Q, M and a of SGD for square after some rounds, with the samples of the case."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d, repeats = W.copy(), samples_key(case), problem.batch_size, problem.d, problem.repeats
    layer = np.full(problem.p, problem.a)
    for batch in range(count):
        numbers = np.arange(n_b) if problem.samples else batch * n_b + np.arange(n_b)
        draws = np.array([normals(key, case.seed, s, 32 * (d // 32 + 1)) for s in numbers])
        x, z = draws[:, :d] / np.sqrt(d), draws[:, d]
        gamma = problem.gamma * ((batch + 0.5) * repeats * problem.step_time()) ** -0.25
        for _ in range(repeats):
            lam, lam_star = x @ W.T, x @ W_star.T
            E = (lam_star**2).mean(axis=1) + np.sqrt(problem.Delta) * z - lam**2 @ layer / problem.p
            W += gamma / problem.p * (2 * layer * lam * E[:, None]).T @ x / n_b
            layer = layer + problem.second_layer_rate * gamma / (problem.p * d) * (lam**2 * E[:, None]).mean(axis=0)
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True) if problem.spherical else 1.0
    return W @ W.T / d, W @ W_star.T / d, layer


@pytest.mark.rest
@pytest.mark.parametrize("more", [{}, {"batch_size": 5}, {"repeats": 3}, {"batch_size": 9, "samples": 9, "repeats": 2}])
@pytest.mark.parametrize("spherical", [False, True])
def test_steps_of_sgd_are_those_by_numpy(more, spherical):
    given = {"gamma": 0.05, "activation": "square", "schedule": "t**-0.25", "second_layer_rate": 0.5}
    problem = dataclasses.replace(COMMITTEE, spherical=spherical, **given, **more)
    case = Case(problem, "sgd", 3, Recording((21 * problem.repeats * problem.step_time(),), (), SHOWN))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=SHOWN)
    for name, expected in zip(SHOWN, steps_by_numpy(case, 21), strict=True):
        np.testing.assert_allclose(ds[name][0, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "sde", "ode", "gradient_flow"])
def test_a_constant_schedule_is_none(dynamics):
    found = []
    for text in (None, "1", "max(1, 0*t)"):
        problem = dataclasses.replace(COMMITTEE, schedule=text, second_layer_rate=0.5)
        found.append(simulate(problem, dynamics, times=[0, 1.0], seeds=range(2), thresholds=[0.3], pair_by=["d"]))
    assert found[0].equals(found[1])
    for name in ("risk", "exit_time"):
        rounding = 1e-8 if dynamics in ("ode", "gradient_flow") else 0.0
        np.testing.assert_allclose(found[2][name], found[0][name], rtol=rounding)


@pytest.mark.rest
def test_a_constant_factor_is_that_of_the_rate():
    """γ ξ at ξ = ½ is γ/2, with half as much time for each step."""
    half = dataclasses.replace(COMMITTEE, gamma=COMMITTEE.gamma / 2, second_layer_rate=0.5, batch_size=3)
    slow = dataclasses.replace(COMMITTEE, schedule="0.5", second_layer_rate=0.5, batch_size=3)
    for dynamics in ("sgd", "sgd_chain", "sde", "ode", "gradient_flow"):
        if dynamics == "gradient_flow":
            half, slow = (dataclasses.replace(problem, batch_size=1) for problem in (half, slow))
        one = simulate(half, dynamics, times=[0.4], seeds=range(2), pair_by=["d"])
        other = simulate(slow, dynamics, times=[0.8], seeds=range(2), pair_by=["d"])
        np.testing.assert_allclose(other.risk.values, one.risk.values, rtol=1e-8)


def solved_by_scipy(problem, text, times, *, start=None):
    """Q, M and a of the ODE by scipy, drifts in plain Python, from the start of replica 0 or from another."""
    replica, p, k = replicas_of([Case(problem, "ode", 0, Recording((1.0,)))]), problem.p, problem.k
    needed, xi = problem_expectations(problem), schedule(text)
    shapes = [(p, p), (p, k), (p,)]
    ends = np.cumsum([p * p, p * k])

    def slope(t, state):
        Q, M, a = (part.reshape(shape) for part, shape in zip(np.split(state, ends), shapes, strict=True))
        drifts = plain.drifts(needed, Q, M, replica.P[0], a, replica.a_star[0], problem.Delta)
        rate = xi.function(t)
        flow = rate * drifts.GF + rate**2 * problem.gamma / (p * problem.batch_size) * drifts.Var
        drift_M = rate * drifts.M
        if problem.spherical:
            drift_M = drift_M - M * np.diag(flow)[:, None] / 2
            flow = flow - Q * (np.diag(flow)[:, None] + np.diag(flow)) / 2
        return np.concatenate([flow.ravel(), drift_M.ravel(), rate * problem.second_layer_rate * drifts.a])

    state = np.concatenate([part.ravel() for part in start or (replica.Q[0], replica.M[0], replica.a[0])])
    found = solve_ivp(slope, (0, times[-1]), state, t_eval=times, method="DOP853", rtol=1e-9, atol=1e-11, max_step=0.5)
    return [part.T.reshape(len(times), *shape) for part, shape in zip(np.split(found.y, ends), shapes, strict=True)]


@pytest.mark.rest
@pytest.mark.parametrize("text", ["1/(1 + t)", "min(1, t/2)", "(t + 0.001)**-0.25", "sqrt(3 - t)"])
@pytest.mark.parametrize("more", [{}, {"spherical": True, "batch_size": 4}])
def test_the_ode_is_that_of_scipy(text, more):
    problem = dataclasses.replace(COMMITTEE, gamma=2.0, schedule=text, second_layer_rate=0.5, **more)
    times = [0.5, 3.0]
    ds = simulate(problem, "ode", times=times, observables=SHOWN)
    assert ds.status == 1
    for name, expected in zip(SHOWN, solved_by_scipy(problem, text, times), strict=True):
        np.testing.assert_allclose(ds[name][0], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.rest
@pytest.mark.parametrize("drop", [0.5, 1.2345])
def test_the_ode_passes_a_drop_of_the_rate(drop):
    """At a rate of 1 until the drop and of ¼ after it, the end is that of the two parts, one run after the other."""
    problem = dataclasses.replace(COMMITTEE, gamma=2.0, schedule=f"1 if t < {drop} else 0.25")
    ds = simulate(problem, "ode", times=[3.0], observables=("risk", *SHOWN))
    first = simulate(problem, "ode", times=[drop], observables=SHOWN)
    start = [first[name].values[0, -1] for name in SHOWN]
    expected = solved_by_scipy(problem, "0.25", [3.0 - drop], start=start)
    for name, value in zip(SHOWN, expected, strict=True):
        np.testing.assert_allclose(ds[name][0, -1], value[-1], rtol=2e-6, atol=2e-7)


def test_a_short_pulse_is_not_missed():
    """It takes the time of its integral, 4/30; before it the state rests, and steps could be of any length."""
    pulse = dataclasses.replace(COMMITTEE, schedule="max(0, 1 - 100*(t - 5)**2)")
    found = simulate(pulse, "gradient_flow", times=[4.0, 10.0]).risk[0]
    after = simulate(COMMITTEE, "gradient_flow", times=[0.0, 4 / 30]).risk[0]
    np.testing.assert_allclose(found, after.values, rtol=1e-8)


def test_gradient_flow_changes_its_time():
    """With ξ = 1/(1 + t) it is at log(1 + t) of the constant rate."""
    decaying = dataclasses.replace(COMMITTEE, schedule="1/(1 + t)")
    ds = simulate(decaying, "gradient_flow", times=[1.0, 4.0], thresholds=[0.3])
    constant = simulate(COMMITTEE, "gradient_flow", times=np.log([2.0, 5.0]), thresholds=[0.3])
    np.testing.assert_allclose(ds.risk, constant.risk.values, rtol=1e-8)
    np.testing.assert_allclose(np.log1p(ds.exit_time), constant.exit_time, rtol=1e-8)


def start_of(problem):
    """Weights from which all runs start."""
    return replicas_of([Case(problem, "sgd", 0, Recording((0.0,)))]).weights(0)


@pytest.mark.rest
@pytest.mark.parametrize("more", slow_but([{}, {"batch_size": 4, "repeats": 2, "spherical": True}], {}))
def test_the_chain_has_the_law_of_sgd(more):
    """KS over 200 seeds each; p is 10⁻³⁷ with a rate of 4/5, and 10⁻⁷ without the factor t^(-1/4)."""
    schedule = "min(1, t)*t**-0.25"
    problem = dataclasses.replace(COMMITTEE, gamma=1.0, schedule=schedule, second_layer_rate=0.5, **more)
    given = {"times": [1.2], "seeds": range(200), "initial": start_of(problem), "observables": ("risk", "overlap_M")}
    found = [simulate(problem, name, root_seed=seed, **given) for name, seed in (("sgd", 0), ("sgd_chain", 1))]
    for values in ("risk", "overlap_M"):
        one, other = (ds[values].values.reshape(200, -1)[:, 0] for ds in found)
        assert stats.ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.rest
@pytest.mark.parametrize("more", [{}, {"batch_size": 4, "spherical": True, "second_layer_rate": 0.5}])
def test_the_sde_scatters_as_the_chain(more):
    problem = dataclasses.replace(COMMITTEE, d=400, gamma=2.0, schedule="0.1 + exp(-3*t)", **more)
    given = {"times": [1.0], "seeds": range(256), "initial": start_of(problem)}
    one, other = (simulate(problem, name, **given).risk.values[:, 0] for name in ("sgd_chain", "sde"))
    assert stats.ks_2samp(one, other).pvalue > 1e-4
    assert 0.75 < one.std() / other.std() < 1.33


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd_chain", "sde"])
def test_means_tend_to_the_ode_as_d_grows(dynamics):
    """The mean over seeds that share their start is the ODE's to order 1/d: within four standard errors and 5/d."""
    for d in (100, 3000):
        problem = dataclasses.replace(COMMITTEE, d=d, gamma=1.5, schedule="min(1, 2*t)/(1 + t)")
        given = {"times": [1.0], "initial": start_of(problem)}
        runs = simulate(problem, dynamics, seeds=range(64), **given).risk.values[:, 0]
        limit = simulate(problem, "ode", **given).risk.item()
        assert abs(runs.mean() - limit) < 4 * runs.std() / 8 + 5 * limit / d


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
@pytest.mark.parametrize("more", slow_among([{}, {"batch_size": 3}, {"repeats": 2}], {"repeats": 2}))
def test_exits_are_those_of_the_risks_of_each_step(dynamics, more):
    """Also where a run stops there, or records on the way."""
    problem = dataclasses.replace(COMMITTEE, schedule="t**-0.25", **more)
    times = np.arange(120) * problem.repeats * problem.step_time()
    every = simulate(problem, dynamics, times=times, seeds=range(3))
    given = {"seeds": range(3), "thresholds": [0.1, 0.2], "stop": "exit"}
    for recorded in (times[-1:], times[[7, 50, -1]]):
        exits = simulate(problem, dynamics, times=recorded, **given)
        for place, threshold in enumerate(given["thresholds"]):
            below = every.risk.values <= (1 - threshold) * every.risk.values[:, :1]
            np.testing.assert_array_equal(exits.exit_steps[:, place], problem.repeats * below.argmax(axis=1))
