"""Averages of the iterates: numbers of an independent code, NumPy, a linear unit, laws, other features, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import erf

from sweeplib import DYNAMICS, InputError, Overlaps, Problem, simulate
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.laws.test_chain_of_updates import BOTH, COMMON, agree_in_law
from tests.numpy_sgd import iterates_by_numpy, weights_by_numpy
from tests.tiers import slow_among, slow_but

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=30, Delta=0.1, activation="erf", a=(1.0, -0.7))
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
LINEAR = Problem(gamma=0.5, p=1, k=1, d=10, Delta=0.2, activation="linear", temperature=0.05)
SHOWN = ("average_M", "average_Q")
STEP = COMMITTEE.step_time()


def entries(ds, time=-1):
    """Return M 11 12 21 22 and Q 11 12 22 of the averages of all seeds, as columns."""
    M, Q = (ds[name].isel(time=time).values.reshape(len(ds.seed), -1) for name in SHOWN)
    return np.hstack([M, Q[:, [0, 1, 3]]])


NAN = math.nan
KNOWN = {
    # the risk of the average, its M_11, and Q 11 12 22, with their digits
    "exponential": ({"averaging_rate": 3.0}, [0.0623760257, 0.45337332, 0.9975878, 0.3344284, 0.70838116], 6e-9),
    "Polyak": ({"averaging_order": 1.0}, [0.0818243, 0.39815, NAN, 0.312193, NAN], 4e-7),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_the_ode_of_averages_has_the_numbers_of_another_code(kind):
    more, expected, atol = KNOWN[kind]
    problem = dataclasses.replace(COMMITTEE, **more)
    ds = simulate(problem, "ode", times=[2.0], initial=START, observables=("risk", "risk_of_average", *SHOWN))
    found = np.array([ds.risk_of_average.item(), *entries(ds)[0, [0, 4, 5, 6]]])
    np.testing.assert_allclose(found, np.where(np.isnan(expected), found, expected), atol=atol)
    assert ds.risk.item() == pytest.approx(0.0550755551, abs=1e-10)


MEANS = {
    "exponential": ({"averaging_rate": 0.1 / STEP}, [0.3575, 0.9853, 0.2696, 0.7605]),
    "Polyak": ({"averaging_order": 1.0}, [0.3385, 0.9846, 0.2508, 0.7708]),
}


@pytest.mark.rest
@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 2000), ("sgd_chain", 10_000)], ("sgd", 2000)))
def test_means_of_averages_are_those_of_another_code(dynamics, count, kind):
    """At d = 30 after 40 steps: |z| < 4.5 for M_11 and Q, with the errors of the numbers."""
    more, numbers = MEANS[kind]
    problem = dataclasses.replace(COMMITTEE, **more)
    ds = simulate(problem, dynamics, times=[40 * STEP], seeds=range(count), initial=START, observables=SHOWN)
    runs = entries(ds)[:, [0, 4, 5, 6]]
    z = (runs.mean(axis=0) - numbers) / np.hypot(runs.std(axis=0, ddof=1) / math.sqrt(count), 2e-4)
    assert np.abs(z).max() < 4.5


KINDS = {
    "exponential": {"averaging_rate": 0.1 / STEP},
    "Polyak": {"averaging_order": 1.0},
    "both, schedule, decay": {
        "averaging_order": 2.0,
        "averaging_rate": 0.02 / STEP,
        "schedule": "1/(1 + t)",
        "weight_decay": 0.3,
    },
    "momentum, sphere": {"averaging_order": 1.0, "update": "tangent", "spherical": True},
    "batches, weight noise": {"averaging_rate": 0.3 / STEP, "batch_size": 3, "temperature": 0.1, **BOTH},
    "training set": {"averaging_order": 1.0, "samples": 7, "batch_size": 7},
    "spectrum": {"averaging_rate": 0.3 / STEP, "data": "two_level", "level_ratio": 4.0},
    "offsets": {"averaging_rate": 0.3 / STEP, "offset_scale": 0.7, "offset_rate": 1.5},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_averages_its_weights_as_numpy_does(kind):
    """Over 30 steps; and steps do not depend on the averages."""
    problem = dataclasses.replace(COMMITTEE, **KINDS[kind])
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    weights, W_star = weights_by_numpy(case, 30)
    average = weights[0]
    for n, W in enumerate(weights[1:], 1):
        share = min(1.0, problem.averaging_rate * problem.step_time() + problem.averaging_order / n)
        average = (1.0 - share) * average + share * W
    ds = simulate(problem, "sgd", times=[30 * problem.step_time()], seeds=[3], observables=("overlap_Q", *SHOWN))
    for name, expected in zip(SHOWN, (average @ W_star.T, average @ average.T), strict=True):
        np.testing.assert_allclose(ds[name][0, -1], expected / problem.d, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ds.overlap_Q[0, -1], weights[-1] @ weights[-1].T / problem.d, rtol=1e-9)


@pytest.mark.rest
@pytest.mark.parametrize(
    "fields", [{"data": "two_level", "level_ratio": 4.0}, {"offset_scale": 0.7, "offset_rate": 1.5}], ids=str
)
def test_the_risk_of_the_average_is_a_mean_over_samples(fields):
    """With the second layer and the offsets of now: of 10⁵ samples, within 1 per cent."""
    problem = dataclasses.replace(COMMITTEE, averaging_rate=0.02 / STEP, **fields)
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    (average, W_star), (eigenvalues, sizes) = replicas_of([case]).weights(0), problem.blocks
    iterates = list(iterates_by_numpy(case, 60))
    for W, _, _ in iterates:
        average = average + problem.averaging_rate * problem.step_time() * (W - average)
    _, layer, b = iterates[-1]
    rng, d = np.random.default_rng(0), problem.d
    x = rng.standard_normal((100_000, d)) * np.repeat(np.sqrt(eigenvalues), np.array(sizes, int)) / math.sqrt(d)
    y = erf(x @ W_star.T / math.sqrt(2)).mean(axis=1)
    f = erf((x @ average.T + b) / math.sqrt(2)) @ layer / problem.p
    ds = simulate(problem, "sgd", times=[60 * problem.step_time()], seeds=[3], observables=("risk", "risk_of_average"))
    assert ds.risk_of_average.item() == pytest.approx(0.5 * ((y - f) ** 2).mean(), rel=0.01)
    assert abs(ds.risk_of_average.item() / ds.risk.item() - 1.0) > 0.01


def floors(problem, number):
    """2R of the average of a stationary linear unit after so many steps, which began where averages began.

    r = 2R of the iterates; with ρ = 1 − γ/d their correlation over m steps is ρ^m.
    """
    g, d = problem.gamma / problem.d, problem.d
    r = (problem.gamma * problem.Delta + 2 * problem.temperature) / (2 - problem.gamma * (1 + 2 / d))
    if problem.averaging_order == 0.0:
        b = problem.averaging_rate * problem.step_time()
        return r * b * (2 - b - g * (1 - b)) / ((2 - b) * (b + g - b * g))
    rho = 1 - g
    return r / number * ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**number) / (number * (1 - rho) ** 2))


def test_floors_of_averages_have_the_numbers_of_another_code():
    exponential = dataclasses.replace(LINEAR, averaging_rate=0.03 / LINEAR.step_time())
    polyak = dataclasses.replace(LINEAR, averaging_order=1.0)
    assert floors(exponential, 0) == pytest.approx(0.0532510, abs=5e-8)
    assert floors(polyak, 1000) == pytest.approx(0.0054629, abs=5e-8)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("dynamics", "temperature"),
    # no other quick test needs the kernel of the chain with averages and noise of the weights
    slow_but([("sgd", 0.05), ("sgd_chain", 0.05), ("sgd_chain", 0.0)], ("sgd_chain", 0.0)),
)
def test_averages_of_a_linear_unit_are_known_at_every_d(dynamics, temperature):
    """2R of the exponential average at the floor, d = 10; that of Polyak, from the end of a run, by differences.

    w̄_n n − w̄_m m is the sum of the iterates between, but its overlaps are not recorded: at the floor from the start,
    1 + r with P = M = 1, both averages have their stationary means. 4000 runs, |z| < 4.5.
    """
    for more in ({"averaging_rate": 0.03 / LINEAR.step_time()}, {"averaging_order": 1.0}):
        problem = dataclasses.replace(LINEAR, temperature=temperature, **more)
        start = Overlaps([[1.0]], [[1.0]], [[1.0]])
        steps = 1000
        ds = simulate(
            problem,
            dynamics,
            times=[steps * problem.step_time()],
            seeds=range(4000),
            initial=start,
            observables=("risk_of_average",),
        )
        found = 2.0 * ds.risk_of_average.values.ravel()
        expected = of_a_linear_unit(problem, steps)
        assert abs(found.mean() - expected) < 4.5 * found.std() / math.sqrt(4000)


def of_a_linear_unit(problem, steps):
    """E|w̄ − w*|²/d of a linear unit from w = w*, exact: of v = w − w*, E v vᵀ/d, E v̄ vᵀ/d and E v̄ v̄ᵀ/d."""
    g, own, cross, both = problem.gamma / problem.d, 0.0, 0.0, 0.0
    for n in range(1, steps + 1):
        b = min(1.0, problem.averaging_rate * problem.step_time() + problem.averaging_order / n)
        own = own * (1 - 2 * g) + g * problem.gamma * ((1 + 2 / problem.d) * own + problem.Delta)
        own, cross = own + 2 * problem.temperature * g, (1 - g) * cross
        both, cross = (1 - b) ** 2 * both + 2 * b * (1 - b) * cross + b * b * own, (1 - b) * cross + b * own
    return both


def test_the_exact_means_of_a_linear_unit_tend_to_the_floor():
    exponential = dataclasses.replace(LINEAR, averaging_rate=0.03 / LINEAR.step_time())
    assert of_a_linear_unit(exponential, 2000) == pytest.approx(floors(exponential, 0), rel=1e-10)


def test_the_ode_averages_what_it_says():
    """Of a linear unit dM̄ = κ(t)(M − M̄): M̄ of Polyak is the mean of M over the time, M = 1 − .7 e^−t."""
    problem = dataclasses.replace(LINEAR, averaging_order=1.0)
    start = Overlaps([[1.0]], [[0.3]], [[1.0]])
    found = simulate(problem, "ode", times=[3.0], initial=start, observables=SHOWN).average_M.item()
    assert found == pytest.approx(1.0 - 0.7 * (1.0 - math.exp(-3.0)) / 3.0, abs=1e-9)


ODES = {
    "plain": {},
    "sphere, decay": {"spherical": True, "weight_decay": 0.5},
    "schedule, noise": {"schedule": "1/(1 + t)", "temperature": 0.2},
    "both layers": BOTH,
    "dropout": {"keep_probability": 0.6},
    "huber": {"loss": "huber", "huber_delta": 0.3, "p": 1, "k": 1, "a": 1.0},
}


@pytest.mark.rest
@pytest.mark.parametrize("kind", slow_but(ODES, "plain"))
@pytest.mark.parametrize("more", [{"averaging_rate": 3.0}, {"averaging_order": 2.0}], ids=str)
def test_averages_follow_their_ode(kind, more):
    """Of the chain in d = 2000: means of M̄, Q̄ within 4.5 errors and 3/d; 100 runs."""
    problem = dataclasses.replace(COMMITTEE, d=2000, gamma=0.5, **more, **ODES[kind])
    p = problem.p
    start = Overlaps(np.eye(p), START.M[:p, : problem.k], np.eye(problem.k))
    common = {"times": [1.0], "initial": start, "observables": ("risk_of_average", *SHOWN)}
    chain, ode = (
        simulate(problem, dynamics, **common, **seeds)
        for dynamics, seeds in (("sgd_chain", {"seeds": 100}), ("ode", {}))
    )
    for name in ("risk_of_average", *SHOWN):
        runs = chain[name].values.reshape(100, -1)
        difference = np.abs(runs.mean(axis=0) - ode[name].values.ravel())
        assert (difference < 4.5 * runs.std(axis=0, ddof=1) / 10.0 + 3.0 / problem.d).all()


LAWS = {
    "exponential": {"averaging_rate": 0.1 / STEP},
    "Polyak, both layers, decay": {"averaging_order": 1.0, "weight_decay": 0.5, **BOTH},
    "fewest dimensions": {"averaging_order": 1.0, "d": 6},
    "sphere": {"averaging_order": 1.0, "spherical": True, "gamma": 3.0},
    "tangent": {"averaging_order": 1.0, "spherical": True, "gamma": 3.0, "update": "tangent"},
    "momentum": {"averaging_order": 1.0, "update": "heavy_ball", "momentum": 0.8, "gamma": 0.3},
    "small batches": {"averaging_order": 1.0, "batch_size": 3},
    "large batches, clipped": {
        "averaging_order": 1.0,
        "batch_size": 40,
        "update": "clipped",
        "clip_norm": 0.05,
        "gamma": 5.0,
    },
    "tangent, batches": {
        "averaging_order": 1.0,
        "update": "tangent",
        "spherical": True,
        "gamma": 20.0,
        "batch_size": 7,
    },
    "muon": {"averaging_order": 1.0, "update": "muon", "momentum": 0.8, "batch_size": 3, "gamma": 0.5},
    "muon, one sample": {"averaging_order": 1.0, "update": "muon", "momentum": 0.8, "gamma": 0.5},
    "weight noise, sphere": {"averaging_order": 1.0, "temperature": 0.3, "spherical": True},
    "weight noise, momentum, batches": {
        "averaging_order": 1.0,
        "temperature": 0.3,
        "update": "heavy_ball",
        "momentum": 0.5,
        "batch_size": 3,
    },
    "dropout, noise of inputs, tails": {
        "averaging_order": 1.0,
        "keep_probability": 0.6,
        "input_noise": 0.4,
        "noise_tail": 0.3,
    },
    "three units": {"averaging_rate": 0.3 / STEP, "p": 3, "a": 1.0},
}


@pytest.mark.parametrize("name", slow_but(LAWS, "Polyak, both layers, decay"))
def test_averages_of_the_chain_have_the_law_of_those_of_the_weights(name):
    """Kolmogorov-Smirnov p-values at 10⁻⁴, some 500 in all: one false alarm in 20 changes of the random numbers."""
    agree_in_law(Problem(**COMMON | LAWS[name]))


@pytest.mark.parametrize("name", ["averaging_rate", "averaging_order"])
def test_averages_are_refused_where_there_are_none(name):
    problem = dataclasses.replace(COMMITTEE, a=1.0, **{name: 1.5})
    for dynamics in set(DYNAMICS) - {"sgd", "sgd_chain", "ode", "gradient_flow"}:
        full = {"batch_size": 30, "samples": 30} if dynamics in ("dmft", "training_flow") else {}
        with pytest.raises(InputError, match=f"does not act on {name}.* sgd, sgd_chain") as caught:
            Case(dataclasses.replace(problem, **full), dynamics, 0, Recording((0.5,))).check()
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no averages of the iterates"):
        Case(COMMITTEE, "ode", 0, Recording((0.5,), observables=("risk_of_average",))).check()
    for field, dynamics, more, words in (
        ("update", "ode", {"update": "adagrad_norm"}, "no equations of averages"),
        ("p", "ode", {"loss": "huber", "p": 1, "k": 2}, r"2 p \+ k of at most 3"),
        *(
            (field, dynamics, more, words)
            for dynamics in ("ode", "gradient_flow")
            for field, more, words in (
                ("data", {"data": "two_level", "level_ratio": 4.0}, "no equations of averages"),
                ("tasks", {"k": 2, "tasks": "in_turn", "switch_time": 0.2}, "no equations of averages"),
                ("averaging_order", {"averaging_order": 0.5}, "0, or 1 or more"),
            )
        ),
    ):
        with pytest.raises(InputError, match=words) as caught:
            Case(dataclasses.replace(problem, **more), dynamics, 0, Recording((0.5,))).check()
        assert caught.value.key == field
