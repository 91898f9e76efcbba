"""Noise of the weights: numbers of an independent code, NumPy, a linear unit, random walks, limits, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from sweeplib import DYNAMICS, InputError, Overlaps, Problem, simulate
from sweeplib.networks.simulation import Case, Recording
from tests.numpy_sgd import SHOWN, takes_the_steps_of_numpy
from tests.tiers import slow_among

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=40, Delta=0.1, activation="erf", a=(1.0, -0.7), temperature=0.1)
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
ON_SPHERE = dataclasses.replace(START, Q=np.array([[1.0, 0.2], [0.2, 1.0]]))
LINEAR = Problem(gamma=0.5, p=1, k=1, d=10, Delta=0.2, activation="linear", temperature=0.05)
NAN = math.nan


def entries(ds, time=-1):
    """Return M 11 12 21 22 and Q 11 12 22 of all seeds, as columns."""
    Q, M = (ds[name].isel(time=time).values.reshape(len(ds.seed), -1) for name in SHOWN[:2])
    return np.hstack([M, Q[:, [0, 1, 3]]])


KNOWN = {
    "plain": (
        {},
        START,
        [0.072727514, 0.48190867, 0.39750979, -0.13169792, 0.19791989, 1.37361531, 0.39816588, 1.08928047],
    ),
    "decay": ({"weight_decay": 0.3}, START, [0.0578757179, *[NAN] * 7]),
    "sphere": ({"spherical": True}, ON_SPHERE, [0.0688475529, *[NAN] * 5, 0.30579718, 1.0]),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_the_ode_with_weight_noise_has_the_numbers_of_another_code(kind):
    more, start, expected = KNOWN[kind]
    problem = dataclasses.replace(COMMITTEE, **more)
    ds = simulate(problem, "ode", times=[2.0], initial=start, observables=("risk", *SHOWN))
    found = np.array([ds.risk.item(), *entries(ds)[0]])
    np.testing.assert_allclose(found, np.where(np.isnan(expected), found, expected), atol=5e-9)


MEANS = {
    "plain": ({}, [0.3722, 0.2187, -0.0507, 0.3217, 1.0532, 0.2852, 0.8206]),
    "clipped": ({"update": "clipped", "clip_norm": 0.3}, [0.3370, NAN, NAN, NAN, 1.0470, 0.2599, 0.8329]),
}
ERRORS = np.array([3e-4] * 4 + [5e-4, 4e-4, 4e-4])


@pytest.mark.rest
@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 2000), ("sgd_chain", 10_000)], ("sgd", 2000)))
def test_means_with_weight_noise_are_those_of_another_code(dynamics, count, kind):
    """At d = 30 after 40 steps: |z| < 4.5 for all means, with the errors of the numbers."""
    more, numbers = MEANS[kind]
    problem = dataclasses.replace(COMMITTEE, d=30, temperature=0.05, **more)
    times = [40 * problem.step_time()]
    runs = entries(simulate(problem, dynamics, times=times, seeds=range(count), initial=START, observables=SHOWN))
    z = (runs.mean(axis=0) - numbers) / np.hypot(runs.std(axis=0, ddof=1) / math.sqrt(count), ERRORS)
    assert np.nanmax(np.abs(z)) < 4.5


KINDS = {
    "one sample": {},
    "decay, schedule": {"weight_decay": 0.3, "schedule": "1/(1 + t)"},
    "sphere": {"spherical": True},
    "batches, both layers": {"batch_size": 6, "second_layer_rate": 0.5},
    "momentum": {"update": "heavy_ball", "momentum": 0.5},
    "clipped": {"update": "clipped", "clip_norm": 0.3, "batch_size": 3},
    "muon": {"update": "muon", "momentum": 0.5, "batch_size": 3},
    "tangent": {"update": "tangent", "spherical": True},
    "dropout, noise of inputs": {"keep_probability": 0.6, "input_noise": 0.4},
    "a training set": {"samples": 7, "batch_size": 7},
    "a training set of one": {"samples": 1, "batch_size": 1, "spherical": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_with_weight_noise_takes_the_steps_of_numpy(kind):
    """And finds the exit where NumPy does."""
    takes_the_steps_of_numpy(dataclasses.replace(COMMITTEE, **KINDS[kind]), 1e-9)


@pytest.mark.parametrize("more", [{"batch_size": 2}, {"samples": 6, "batch_size": 2}], ids=str)
def test_each_use_of_a_batch_has_noise_of_its_own_whatever_is_recorded(more):
    """A record between two uses leaves the path as it is, to the bit; the noise of r uses is that of r steps."""
    problem = dataclasses.replace(COMMITTEE, repeats=3, **more)
    all_times = (np.array(steps) * problem.step_time() for steps in ([9], [4, 5, 9]))
    ends = [simulate(problem, "sgd", times=times, seeds=3) for times in all_times]
    np.testing.assert_array_equal(ends[0].risk[:, -1], ends[1].risk[:, -1])
    still = dataclasses.replace(problem, a=0.0, temperature=0.3)
    Q = simulate(still, "sgd", times=[0.0, 9 * still.step_time()], seeds=300, observables=SHOWN).overlap_Q
    grown = (Q[:, 1, 0, 0] - Q[:, 0, 0, 0]).values
    assert abs(grown.mean() - 2 * 0.3 * 9 * still.step_time()) < 4.5 * grown.std() / math.sqrt(300)


def linear_means(problem, m, q, steps):
    """m and q of a linear unit after some steps, exact at every d."""
    g, s = problem.step_time(), problem.weight_decay * problem.step_time()
    for _ in range(steps):
        V = (1.0 + 2.0 / problem.d) * (1.0 - 2.0 * m + q) + problem.Delta
        q = (1 - s) ** 2 * q + 2 * (1 - s) * g * (m - q) + g * problem.gamma * V + 2 * problem.temperature * g
        m = (1 - s) * m + g * (1.0 - m)
    return np.array([m, q])


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_stationary_means_of_a_linear_unit_are_known(decay):
    """Of d = 10: without decay 2R = (γΔ + 2T)/(2 − γ(1 + 2/d)); with it the fixed point of the means."""
    m, q = linear_means(dataclasses.replace(LINEAR, weight_decay=decay), 0.3, 1.0, 4000)
    expected = {0.0: (1.0, 1.1428571, 0.1428571), 0.3: (0.7692308, 0.7083733, 1.0 - 2 * 0.7692308 + 0.7083733)}[decay]
    np.testing.assert_allclose([m, q, 1.0 - 2.0 * m + q], expected, atol=1e-7)


@pytest.mark.parametrize("dynamics", slow_among(["sgd", "sgd_chain", "sde"], "sde"))
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_means_of_a_linear_unit_are_exact_at_every_d(dynamics, decay):
    """After 20 steps and near the end, of 4000 runs in d = 10: |z| < 4.5; the SDE has no exact ones."""
    problem = dataclasses.replace(LINEAR, weight_decay=decay, temperature=0.3)
    start = Overlaps([[1.0]], [[0.3]], [[1.0]])
    steps = np.array([20, 200])
    common = {"times": steps * problem.step_time(), "initial": start, "observables": SHOWN}
    ds = simulate(problem, dynamics, seeds=range(4000), **common)
    for at, count in enumerate(steps):
        found = np.array([ds[name].isel(time=at).values.ravel() for name in ("overlap_M", "overlap_Q")])
        error = found.std(axis=1, ddof=1) / math.sqrt(4000)
        allowed = 0.003 if dynamics == "sde" else 0.0
        difference = np.abs(found.mean(axis=1) - linear_means(problem, 0.3, 1.0, count))
        assert (difference < 4.5 * error + allowed).all()


def test_the_ode_the_flow_and_the_map_of_a_linear_unit_have_their_means():
    """ODE: m = P/(1 + λ), q = [2m(1 − γ) + γ(P + Δ) + 2T]/(2(1 + λ) − γ); γ → 0 for the flow; the map step by step."""
    problem = dataclasses.replace(LINEAR, weight_decay=0.3, temperature=0.2)
    start, m = Overlaps([[1.0]], [[0.3]], [[1.0]]), 1.0 / 1.3
    for dynamics, gamma in (("ode", 0.5), ("gradient_flow", 0.0)):
        ds = simulate(problem, dynamics, times=[40.0], initial=start, observables=SHOWN)
        q = (2 * m * (1 - gamma) + gamma * (1.0 + problem.Delta) + 2 * 0.2) / (2 * 1.3 - gamma)
        np.testing.assert_allclose([ds.overlap_M.item(), ds.overlap_Q.item()], [m, q], atol=1e-8)
    ds = simulate(problem, "overlap_map", times=[20 * problem.step_time()], initial=start, observables=SHOWN)
    found = [ds.overlap_M.item(), ds.overlap_Q.item()]
    stretched = linear_means(problem, 0.3, 1.0, 20)
    np.testing.assert_allclose(found, stretched, rtol=1e-9)


WALKS = {
    "three dimensions for the span": {"d": 3},
    "one more": {"d": 4},
    "many": {"d": 40},
    "batches": {"d": 7, "batch_size": 3},
    "large batches": {"d": 7, "batch_size": 40},
    "momentum": {"d": 9, "update": "heavy_ball", "momentum": 0.5},
}


WALKERS = [(dynamics, kind) for kind in WALKS for dynamics in ("sgd", "sgd_chain")]
SLOW = [(dynamics, kind) for dynamics, kind in WALKERS if kind in ("batches", "large batches", "many")]
SLOW.append(("sgd_chain", "momentum"))
"""The last needs a kernel that no other quick test needs."""


@pytest.mark.parametrize(("dynamics", "kind"), slow_among(WALKERS, *SLOW))
def test_without_a_gradient_the_rows_walk_at_random(dynamics, kind):
    """With a = 0, d Q_ii/(2Tt) ~ χ²_d(d Q_ii(0)/(2Tt)) and M_ir ~ N(M_ir(0), 2Tt P_rr/d), after seven steps.

    And the cosines of Q_12. Kolmogorov-Smirnov p-values at 1e-4 for 60 in all: false alarms 6·10⁻³.
    """
    problem = Problem(gamma=2.0, p=2, k=1, Delta=0.1, activation="erf", a=0.0, temperature=0.4, **WALKS[kind])
    start, time = Overlaps([[1.0, 0.2], [0.2, 0.8]], [[0.3], [-0.5]], [[2.0]]), 7 * problem.step_time()
    ds = simulate(problem, dynamics, times=[time], seeds=range(1500), initial=start, observables=SHOWN)
    Q, M = ds.overlap_Q.values[:, 0], ds.overlap_M.values[:, 0, :, 0]
    d, spread = problem.d, 2 * 0.4 * time / problem.d
    for i in range(2):
        law = stats.ncx2(d, start.Q[i, i] / spread)
        assert stats.kstest(Q[:, i, i] / spread, law.cdf).pvalue > 1e-4
        law = stats.norm(start.M[i, 0], math.sqrt(spread * 2.0))
        assert stats.kstest(M[:, i], law.cdf).pvalue > 1e-4
    # w_1 + w_2 and w_1 − w_2 are two more rows, with twice the noise
    for sign in (1, -1):
        law = stats.ncx2(d, (1.8 + 2 * sign * 0.2) / (2 * spread))
        assert stats.kstest((Q[:, 0, 0] + Q[:, 1, 1] + 2 * sign * Q[:, 0, 1]) / (2 * spread), law.cdf).pvalue > 1e-4


TWO = {"data": "spectrum", "eigenvalues": (3.0, 0.5), "fractions": (2.0, 12.0)}


# no other quick test needs the kernel of the chain with noise in blocks
@pytest.mark.parametrize("dynamics", slow_among(["sgd", "sgd_chain"], "sgd_chain"))
def test_without_a_gradient_rows_walk_in_all_blocks_of_inputs(dynamics):
    """Given its start, d Q/(2Tt) ~ χ²_d(d Q(0)/(2Tt)): one block with coordinates beyond p + k, one without.

    False alarms 10⁻⁴.
    """
    problem = Problem(gamma=2.0, p=1, k=1, d=14, Delta=0.1, activation="erf", a=0.0, temperature=0.4, **TWO)
    times = [0.0, 7 * problem.step_time()]
    norm = simulate(problem, dynamics, times=times, seeds=range(1500), observables=("student_norm",)).student_norm
    spread = 2 * 0.4 * times[1] / problem.d
    uniform = stats.ncx2.cdf(norm[:, 1] / spread, problem.d, norm[:, 0] / spread)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("dynamics", ["ode", "overlap_map"])
def test_without_a_gradient_norms_grow_by_the_sizes_of_blocks(dynamics):
    """Q_b,ii = (1 + 2Tt) d_b/d up to the fluctuations of starts in d = 10⁶, and M_b stays."""
    problem = Problem(gamma=2e5, p=1, k=1, d=10**6, Delta=0.1, activation="erf", a=0.0, temperature=0.4, **TWO)
    problem = dataclasses.replace(problem, batch_size=10**6)
    shown = {"observables": ("student_norm", "cosine_of_block"), "seeds": 1}
    ds = simulate(problem, dynamics, times=[0.0, 3.0], **shown)
    growth = np.diff(ds.student_norm.values.ravel())
    np.testing.assert_allclose(growth, 2 * 0.4 * 3.0, rtol=1e-9)
    cosines = ds.cosine_of_block.values.reshape(2, 2)
    np.testing.assert_allclose(cosines[1] / cosines[0], (1 + 2 * 0.4 * 3.0) ** -0.5, rtol=5e-3)


@pytest.mark.parametrize("spherical", [False, True])
def test_blocks_of_one_eigenvalue_are_no_blocks(spherical):
    """The ODE of a spectrum of two equal levels is that without, for the sums over blocks."""
    plain = dataclasses.replace(COMMITTEE, spherical=spherical, d=200, a=1.0)
    equal = {"data": "spectrum", "eigenvalues": (1.0, 1.0), "fractions": (1.0, 3.0)}
    shown = {"times": [1.0], "seeds": 2, "pair_by": ["seed"], "observables": SHOWN}
    one, other = (simulate(each, "ode", **shown) for each in (plain, dataclasses.replace(plain, **equal)))
    for name in SHOWN:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("more", [{}, {"spherical": True}, {"weight_decay": 0.5, "schedule": "1/(1 + t)"}], ids=str)
def test_a_wide_student_of_one_unit_is_the_flow(more):
    """For p = 1 the limit of wide students with d → ∞ is gradient flow."""
    problem = dataclasses.replace(COMMITTEE, p=1, a=1.0, d=50, **more)
    one, other = (
        simulate(problem, dynamics, times=[2.0], seeds=2, pair_by=["seed"], observables=("risk", "self_overlap"))
        for dynamics in ("mean_field_hd", "gradient_flow")
    )
    for name in ("risk", "self_overlap"):
        np.testing.assert_allclose(one[name].values.ravel(), other[name].values.ravel(), rtol=2e-6)


@pytest.mark.rest
# no other quick test needs the kernel of the chain with noise on the sphere
@pytest.mark.parametrize("spherical", slow_among([False, True], True))
def test_increments_of_the_sde_have_the_covariance_of_those_of_the_chain(spherical):
    """20,000 first steps in d = 1000: all variances and covariances within 4.5 errors; means within the SDE's order."""
    problem = dataclasses.replace(COMMITTEE, d=1000, temperature=0.4, spherical=spherical, a=(0.3, -0.2))
    start, time = ON_SPHERE if spherical else START, problem.step_time()
    moments = []
    for dynamics in ("sgd_chain", "sde"):
        ds = simulate(problem, dynamics, times=[time], seeds=range(20_000), initial=start, observables=SHOWN)
        x = entries(ds)[:, [0, 1, 2, 3, 5] if spherical else slice(None)]
        centred = x - x.mean(axis=0)
        products = centred[:, :, None] * centred[:, None, :]
        moments.append([x.mean(axis=0), x.std(axis=0), products.mean(axis=0), products.std(axis=0)])
    (mean, spread, covariance, error), (other_mean, _, other, other_error) = moments
    root = math.sqrt(20_000)
    assert (np.abs(mean - other_mean) < 4.5 * math.sqrt(2) * spread / root).all()
    assert (np.abs(covariance - other) < 4.5 * np.hypot(error, other_error) / root).all()


@pytest.mark.parametrize("dynamics", ["sgd_chain", "sde"])
def test_a_replica_with_weight_noise_does_not_depend_on_others(dynamics):
    """To the bit; those without noise are in other groups, with a kernel of their own."""
    problem = dataclasses.replace(COMMITTEE, p=3, a=1.0)
    few, many = (
        simulate(problem, dynamics, times=[30 * problem.step_time()], seeds=range(count), observables=SHOWN)
        for count in (3, 50)
    )
    for name in SHOWN:
        np.testing.assert_array_equal(few[name], many[name][:3])
    without = dataclasses.replace(problem, temperature=0.0)
    assert Case(problem, dynamics, 0, Recording((1.0,))).shape != Case(without, dynamics, 0, Recording((1.0,))).shape


def test_exits_with_noise_are_where_the_risk_is():
    """No bound of the change of f is known: the risk is computed at every step."""
    problem = dataclasses.replace(COMMITTEE, d=200, temperature=0.01, a=1.0)
    found = simulate(problem, "sgd_chain", times=[0.0, 8.0], thresholds=[0.3], stop="exit", seeds=range(16))
    assert found.exit_steps.notnull().all()
    for seed, steps in enumerate(found.exit_steps.values[:, 0]):
        times = np.array([0.0, steps - 1, steps]) * problem.step_time()
        risk = simulate(problem, "sgd_chain", times=times, seeds=[seed]).risk[0].values
        assert risk[2] <= 0.7 * risk[0] < risk[1]


def test_weight_noise_is_refused_where_it_is_not_defined():
    """In one line, with the dynamics that take it; the chain does not take it beside batches in several steps."""
    takes = {"sgd", "sgd_chain", "sde", "ode", "gradient_flow", "overlap_map", "mean_field_hd"}
    full = dataclasses.replace(COMMITTEE, a=1.0, batch_size=80, samples=80)
    for dynamics in DYNAMICS:
        for problem in (dataclasses.replace(COMMITTEE, a=1.0), full):
            try:
                Case(dataclasses.replace(problem, temperature=0.0), dynamics, 0, Recording((0.5,))).check()
            except InputError:
                continue
            if dynamics in takes:
                Case(problem, dynamics, 0, Recording((0.5,))).check()
                continue
            with pytest.raises(InputError, match=f"{dynamics} does not act on temperature.* sgd, sgd_chain") as caught:
                Case(problem, dynamics, 0, Recording((0.5,))).check()
            assert "\n" not in str(caught.value)
    with pytest.raises(
        InputError, match=r"noise of each use adds directions to the frame.*; got 3; expected 1 with a temperature in"
    ):
        Case(dataclasses.replace(COMMITTEE, repeats=3), "sgd_chain", 0, Recording((0.5,))).check()
