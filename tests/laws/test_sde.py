"""The SDE has SGD's mean step, covariance and third cumulants, and at d of 100 and more the law of SGD.

Kolmogorov-Smirnov p-values at 1e-4 unless a test says otherwise, some 20 of them: one false alarm in 500 changes of the
random numbers.
"""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.dynamics.sde import multiplier
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.tiers import slow_but

LEVEL = 1e-4


def published_covariance(m, gamma, Delta):
    """Σ of (M, Q) for one square unit at Q = 1 (arXiv 2305.18502, appendix, at 2γ)."""
    var_M = 48 + 4 * Delta + (144 + 8 * Delta) * m**2 - 192 * m**4
    var_Q = 1280 + 48 * Delta - 22272 * gamma - 1088 * gamma * Delta + 124416 * gamma**2 + 7680 * gamma**2 * Delta
    var_Q += 128 * gamma**2 * Delta**2 - 46080 * gamma**2 * m**6
    var_Q += m**2 * (-1600 + 44544 * gamma + 1088 * gamma * Delta - 294912 * gamma**2 - 9984 * gamma**2 * Delta)
    var_Q += m**4 * (320 - 22272 * gamma + 216576 * gamma**2 + 2304 * gamma**2 * Delta)
    cov = m * (480 + 24 * Delta - 2880 * gamma - 144 * gamma * Delta)
    cov += m**3 * (-480 + 5760 * gamma + 144 * gamma * Delta) - 2880 * gamma * m**5
    return np.array([[var_M, cov], [cov, var_Q]])


@pytest.mark.parametrize(("m", "gamma", "Delta"), [(0.0, 0.05, 0.5), (0.6, 0.1, 0.0), (0.9, 0.02, 2.0)])
def test_increments_have_the_published_covariance(m, gamma, Delta):
    """20,000 first steps: every entry within 4.5 standard errors (false alarms 6·10⁻⁵ in all), the mean too."""
    problem = Problem(gamma=gamma, p=1, k=1, d=10_000, Delta=Delta, activation="square")
    X = first_steps(problem, "sde", Overlaps([[1.0]], [[m]], [[1.0]]), 20_000)
    X -= X.mean(axis=0)
    products = X[:, :, None] * X[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(X))
    assert (np.abs(products.mean(axis=0) - published_covariance(m, gamma, Delta)) < 4.5 * error).all()


@pytest.mark.parametrize(("step", "samples"), [(1.0, 2), (3.0, 2), (150.0, 2), (8.0, 16)])
def test_multipliers_have_the_cumulants_of_as_many_steps(step, samples):
    """Σ η² and Σ η³ over the samples are `step` in the mean: with them covariances and third cumulants are SGD's."""
    share, spread = multiplier(step, samples)
    assert samples * (share**2 + spread**2) == pytest.approx(step, rel=1e-12)
    assert samples * (share**3 + 3.0 * share * spread**2) == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize(("step", "samples"), [(0.01, 2), (1.0, 3), (1.0, 1024)])
def test_multipliers_of_short_steps_have_the_covariance_and_become_symmetric(step, samples):
    share, spread = multiplier(step, samples)
    assert samples * (share**2 + spread**2) == pytest.approx(step, rel=1e-12)
    third = share**3 + 3.0 * share * spread**2
    assert samples * third / step == pytest.approx(np.sqrt(2.0 * step / samples), rel=1e-12)


class Alike:
    """Return the starts of replicas that all have the same overlaps."""

    def __init__(self, start):
        self._start = start

    def overlaps(self, i):
        return self._start

    def teacher_overlaps(self, i):
        return self._start.P


def first_steps(problem, dynamics, start, count):
    """Return the changes (count, entries) of M and Q in one step from `start`, over γ/(pd)."""
    case = Case(problem, dynamics, 0, Recording((problem.step_time(),)))
    one = replicas_of([case], start)
    many = {f.name: getattr(one, f.name) for f in fields(one) if f.name != "thresholds"}
    many = {name: np.repeat(part, count, axis=0) for name, part in many.items() if isinstance(part, np.ndarray)}
    parameters = {name: np.repeat(values, count) for name, values in one.parameters.items()}
    own = {"seeds": np.arange(count, dtype=np.uint64), "starts": Alike(start), "parameters": parameters}
    run = DYNAMICS[dynamics](replace(one, **many | own), case.numerical_options())
    run.advance(0)
    changes = (run.M - start.M).reshape(count, -1), (run.Q - start.Q).reshape(count, -1)
    return np.hstack(changes) / problem.step_time()


def limit(problem, start):
    """Return the change of M and Q over γ/(pd) as d → ∞: the ODE's right-hand side."""
    p, k = start.M.shape
    pair = replicas_of([Case(problem, "sde", 0, Recording((1.0,)))], start).equations
    drifts = pair.drifts_of(System(start.Q, start.M, start.P, np.ones(p), np.ones(k), problem.Delta, 1.0))
    drift_M, drift_Q = drifts.M, drifts.GF + problem.gamma / (p * problem.batch_size) * drifts.Var
    drift_M, drift_Q = drift_M - problem.weight_decay * start.M, drift_Q - 2.0 * problem.weight_decay * start.Q
    if problem.spherical:
        norms = np.diag(drift_Q).copy()
        drift_M -= 0.5 * start.M * norms[:, None]
        drift_Q -= 0.5 * start.Q * (norms[:, None] + norms)
    return np.concatenate([drift_M.ravel(), drift_Q.ravel()])


ONE = Overlaps([[1.0]], [[0.5]], [[1.0]])
TWO = Overlaps([[1.0, 0.3], [0.3, 1.0]], [[0.5], [-0.2]], [[1.0]])

MEANS = {
    "square": (Problem(gamma=0.1, p=1, k=1, d=40, Delta=0.3, activation="square"), ONE),
    "square, p=2": (Problem(gamma=0.2, p=2, k=1, d=40, Delta=0.3, activation="square"), TWO),
    "spherical erf": (Problem(gamma=3.0, p=1, k=1, d=60, Delta=1.0, activation="erf", spherical=True), ONE),
    "spherical erf, p=2": (Problem(gamma=6.0, p=2, k=1, d=80, Delta=1.0, activation="erf", spherical=True), TWO),
    "spherical batches of erf": (
        Problem(gamma=12.0, p=2, k=1, d=40, Delta=1.0, activation="erf", spherical=True, batch_size=7),
        TWO,
    ),
    "decay of erf": (
        Problem(gamma=3.0, p=2, k=1, d=40, Delta=0.3, activation="erf", weight_decay=4.0),
        TWO,
    ),
    "spherical decay of erf": (
        Problem(gamma=6.0, p=2, k=1, d=80, Delta=1.0, activation="erf", spherical=True, weight_decay=8.0),
        TWO,
    ),
    "spherical correlation": (
        Problem(gamma=3.0, p=2, k=1, d=40, Delta=1.0, activation="erf", spherical=True, loss="correlation"),
        TWO,
    ),
    "spherical square": (Problem(gamma=0.1, p=1, k=1, d=40, Delta=0.3, activation="square", spherical=True), ONE),
}


@pytest.mark.parametrize("name", slow_but(MEANS, "spherical erf"))
def test_the_mean_of_a_step_is_that_of_the_chain(name):
    """400,000 steps of each: no mean differs by 4.5 standard errors (32 of them: one false alarm in 5000 changes).

    The mean of the chain differs from its limit by more than 5: the terms of order 1/d are visible.
    """
    problem, start = MEANS[name]
    ours, chain = (first_steps(problem, dynamics, start, 400_000) for dynamics in ("sde", "sgd_chain"))
    moving = chain.std(axis=0) > 1e-9
    error = np.sqrt((ours.var(axis=0) + chain.var(axis=0))[moving] / len(ours))
    mean = chain.mean(axis=0)
    assert (np.abs((ours.mean(axis=0) - mean)[moving]) < 4.5 * error).all()
    assert (np.abs((limit(problem, start) - mean)[moving]) / error).max() > 5.0


@pytest.mark.slow
def test_products_of_increments_with_a_strong_decay_are_those_of_the_chain():
    """Where a step takes a third of the weights, beside which c x is added: covariances within 5 standard errors."""
    problem = Problem(gamma=0.5, p=2, k=1, d=40, Delta=0.3, activation="erf", weight_decay=50.0)
    pairs = []
    for dynamics in ("sde", "sgd_chain"):
        X = first_steps(problem, dynamics, TWO, 200_000)
        X -= X.mean(axis=0)
        pairs.append(X[:, :, None] * X[:, None, :])
    error = np.sqrt(sum(products.var(axis=0) for products in pairs) / 200_000)
    assert (np.abs(pairs[0].mean(axis=0) - pairs[1].mean(axis=0)) < 5.0 * error).all()


FLOWS = {
    "decay": {"weight_decay": 0.5, "second_layer_rate": 0.7, "second_layer_decay": 0.4},
    "decay on the sphere": {"weight_decay": 0.5, "spherical": True},
    "annealed labels": {"noise_schedule": "20*exp(-3*t)", "schedule": "1/(1 + t)"},
    "correlation": {"loss": "correlation", "weight_decay": 1.0},
}


@pytest.mark.parametrize("name", slow_but(FLOWS, "decay"))
def test_the_mean_in_many_dimensions_is_the_ode(name):
    """d = 10⁵ in steps of 50: fluctuations of 2·10⁻³, and an error of the steps that is half their time."""
    problem = Problem(gamma=1.0, p=2, k=2, d=100_000, Delta=0.1, activation="erf", a=(1.0, -0.7), **FLOWS[name])
    start = Overlaps(np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
    given = {"times": [1.0], "initial": start, "observables": ("risk", "overlap_Q", "overlap_M", "second_layer")}
    ours = simulate(problem, "sde", seeds=range(48), options={"step": 50.0}, **given).isel(time=-1)
    ode = simulate(problem, "ode", **given).isel(time=-1, seed=0)
    for shown in given["observables"]:
        off = np.abs(ours[shown].mean("seed") - ode[shown])
        assert (off < 4.0 * ours[shown].std("seed", ddof=1) / 48**0.5 + 50 * problem.step_time()).all()


def law(problem, dynamics, seeds, until, thresholds, **options):
    """Return the compared quantities of each run: overlaps, second layer and risk at the end, and exit steps.

    Missing exits, and the ends of runs that diverged, count as late. A uniform number is added to exit steps: without
    ties p-values are uniform.
    """
    shown = ("overlap_M", "overlap_Q", "second_layer", "risk")
    recorded = {"observables": shown, "thresholds": thresholds, "root_seed": 5, "options": options}
    run = simulate(problem, dynamics, seeds=seeds, times=[0.0, until], **recorded).isel(time=-1)
    last = [run[name].fillna(1e9).values.reshape(len(run.seed), -1) for name in shown]
    exits = run.exit_steps.fillna(1e9).values
    return np.hstack([*last, exits + np.random.default_rng(seeds.start).random(exits.shape)]).T


def p_values(problem, until, thresholds, count, **options):
    """Return the same number of runs of each dynamics, of all columns that vary."""
    ours = law(problem, "sde", range(count), until, thresholds, **options)
    chain = law(problem, "sgd_chain", range(count, 2 * count), until, thresholds)
    pairs = [(x, y) for x, y in zip(ours, chain, strict=True) if np.ptp(y) > 1e-9]
    return np.array([stats.ks_2samp(x, y, method="asymp").pvalue for x, y in pairs])


def committee(activation, teacher, gamma, p, d, spherical):
    """Return a problem with this γ/p and one start overlap."""
    pair = {"activation": activation, "teacher_activation": teacher}
    return Problem(gamma=gamma * p, p=p, k=1, d=d, Delta=0.5, spherical=spherical, m0=0.2, **pair)


SHORT = [(1, 100, False), (1, 300, True), (2, 100, True), (2, 300, False)]
"""Each value of p, d and spherical with each of the others."""
EVERY = product((1, 2), (100, 300), (False, True))


@pytest.mark.parametrize(
    ("p", "d", "spherical"),
    [
        *slow_but(SHORT),
        *(pytest.param(*which, marks=pytest.mark.long) for which in EVERY if which not in SHORT),
    ],
)
def test_phase_retrieval_agrees_with_the_chain(p, d, spherical):
    """2000 runs of each: no p-value below .001. Of 50, one false alarm in 20 changes of random numbers."""
    problem = committee("square", "square", 0.08 if spherical else 0.05, p, d, spherical)
    assert p_values(problem, 2.0, (0.15, 0.5), 2000).min() > 1e-3


KINDS = {"erf": ("erf", "erf", 0.5), "relu": ("relu", "relu", 0.3), "he3": ("he3", "he3", 0.02)}
KINDS |= {"linear for he3": ("linear", "he3", 0.2), "erf for tanh": ("erf", "tanh", 0.5)}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "p", "d", "spherical"), [*product(KINDS, (1, 2), (100, 300), (False, True))])
def test_other_activations_agree_with_the_chain(kind, p, d, spherical):
    """2000 runs of each: no p-value below .001. Of 250, one false alarm in 4 changes of random numbers."""
    problem = committee(*KINDS[kind], p, d, spherical)
    assert p_values(problem, 1.0, (0.15, 0.3), 2000).min() > 1e-3


ERF = {"gamma": 0.5, "p": 2, "k": 2, "d": 100, "Delta": 0.1, "activation": "erf", "a": (1.0, -0.7)}
PROBLEMS = {
    "erf p=2 k=2": Problem(gamma=0.5, p=2, k=2, d=300, Delta=0.1, activation="erf"),
    "trained": Problem(gamma=0.3, p=2, k=1, d=300, Delta=0.1, activation="erf", a=0.5, second_layer_rate=1.0),
    "decay, both layers": Problem(**ERF, weight_decay=1.0, second_layer_rate=0.7, second_layer_decay=0.4),
    "decay, batches": Problem(**ERF | {"gamma": 2.5}, weight_decay=1.0, batch_size=7),
    "decay on the sphere": Problem(**ERF | {"gamma": 3.0}, weight_decay=20.0, spherical=True),
    "correlation on the sphere": Problem(**ERF, loss="correlation", spherical=True),
    "correlation, decay": Problem(**ERF, loss="correlation", weight_decay=0.5, second_layer_rate=0.7),
    "annealed labels": Problem(**ERF, noise_schedule="20*exp(-3*t)", schedule="1/(1 + t)", weight_decay=2.0),
    "batches": Problem(gamma=2.5, p=2, k=2, d=100, Delta=0.5, activation="erf", batch_size=7),
    "batches, trained, spherical": Problem(
        gamma=2.5, p=2, k=1, d=100, Delta=0.5, activation="erf", spherical=True, second_layer_rate=1.0, batch_size=7
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name.endswith("batches") else ()) for name in PROBLEMS],
)
def test_wide_teachers_second_layers_and_batches_agree_with_the_chain(name):
    assert p_values(PROBLEMS[name], 1.0, (0.3,), 1200).min() > LEVEL


@pytest.mark.long
@pytest.mark.parametrize(("p", "gamma"), [(1, 1 / 12), (2, 0.2)])
def test_escape_agrees_with_sgd(p, gamma):
    """Phase retrieval at d = 3000 from one overlap: the law of m(t) and of the exits, one point for the ODE."""
    problem = Problem(gamma=gamma, p=p, k=1, d=3000, Delta=0.5, activation="square", spherical=True, m0=0.03)
    common = {"times": np.linspace(0, 4, 9), "thresholds": (0.05, 0.5), "observables": ("risk", "overlap_M")}
    ours = simulate(problem, "sde", seeds=range(512), **common)
    weights = simulate(problem, "sgd", seeds=range(512, 640), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(1000, 3000), **common)
    ode = simulate(problem, "ode", seeds=range(8), **common)
    for other in (weights, chain):
        for place in range(1, 9):
            x, y = (ds.overlap_M.values[:, place].mean(axis=(1, 2)) for ds in (ours, other))
            assert stats.ks_2samp(x, y).pvalue > LEVEL
        for threshold in common["thresholds"]:
            x, y = (ds.exit_steps.sel(threshold=threshold).dropna("seed").values for ds in (ours, other))
            assert stats.ks_2samp(x, y).pvalue > LEVEL
    # The starts of p = 2 differ in Q_12 among the seeds, and with them the ODE's exits.
    assert bool((ours.exit_steps.std("seed") > 20 * ode.exit_steps.std("seed")).all())
    assert float(ours.risk.min()) >= 0.0


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("activation", ["erf", "square"])
def test_no_path_leaves_the_covariances(activation, spherical):
    """Steps far too long for their noise, rank-deficient starts: Ω ≥ 0 at every record, risks never negative."""
    problem = Problem(gamma=0.2, p=4, k=2, d=8, Delta=1.0, activation=activation, spherical=spherical)
    twins = np.repeat(np.eye(6)[:2], 2, axis=0) + 0.5 * np.eye(6)[4]
    start = Overlaps.from_weights(twins / np.linalg.norm(twins, axis=1, keepdims=True) * 6**0.5, np.eye(6)[:2] * 6**0.5)
    shown = ("risk", "overlap_Q", "overlap_M")
    run = simulate(problem, "sde", times=np.linspace(0, 3, 31), seeds=range(40), initial=start, observables=shown)
    alive = run.isel(seed=(run.status == 1).values)
    assert alive.sizes["seed"] > 10
    Q, M = alive.overlap_Q.values, alive.overlap_M.values
    P = np.broadcast_to(np.eye(2), (*M.shape[:2], 2, 2))
    omega = np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])
    assert (np.linalg.eigvalsh(omega)[..., 0] > -1e-9 * np.linalg.eigvalsh(omega)[..., -1]).all()
    assert (alive.risk >= 0).all()
    if spherical:
        np.testing.assert_allclose(np.diagonal(Q, axis1=-2, axis2=-1), 1.0, atol=1e-12)


@pytest.mark.slow
def test_without_label_noise_no_run_stays_at_the_teacher():
    """Where the noise vanishes with the risk, runs reflected at Ω ≥ 0 continue as those of SGD: no risk is 0."""
    problem = Problem(gamma=0.08, p=1, k=1, d=30, Delta=0.0, activation="square", spherical=True, m0=0.3)
    common = {"times": [4.0], "observables": ("risk",)}
    ours, chain = (
        simulate(problem, name, seeds=seeds, **common).risk.values.ravel()
        for name, seeds in (("sde", range(1000)), ("sgd_chain", range(1000, 2000)))
    )
    assert stats.ks_2samp(ours, chain).pvalue > LEVEL
    assert ours.min() > 1e-13


def test_a_record_between_two_steps_is_at_the_end_of_a_shorter_one():
    """Of the length to the SGD step that the record is labelled with; the steps themselves do not change."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.5, activation="square", spherical=True, m0=0.1)
    common = {"seeds": 20, "observables": ("overlap_M", "risk")}
    times = np.array([0, 3, 10, 14, 20]) * problem.step_time()
    every = simulate(problem, "sde", times=times, options={"step": 10.0}, **common)
    whole = simulate(problem, "sde", times=times[[2, 4]], options={"step": 10.0}, **common)
    short = simulate(problem, "sde", times=times[[0, 1]], options={"step": 3.0}, **common)
    for name in common["observables"]:
        np.testing.assert_array_equal(every[name][:, [2, 4]], whole[name])
        np.testing.assert_array_equal(every[name][:, :2], short[name])
    assert (every.overlap_M[:, 3] != every.overlap_M[:, 2]).all()


@pytest.mark.slow
def test_shorter_steps_and_more_samples_keep_the_law():
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.5, activation="square", spherical=True, m0=0.1)
    common = {"times": [0.0, 1.0], "thresholds": (0.1,), "observables": ("overlap_M",)}
    runs = [
        simulate(problem, "sde", seeds=range(1000 * n, 1000 * n + 800), options=options, **common)
        for n, options in enumerate(({}, {"step": 0.25}, {"samples": 8}, {"step": 3.0}))
    ]
    for run in runs[1:]:
        for name in ("overlap_M", "exit_steps"):
            x, y = (ds[name].values.reshape(800, -1)[:, -1] for ds in (runs[0], run))
            assert stats.ks_2samp(x[np.isfinite(x)], y[np.isfinite(y)]).pvalue > LEVEL
    assert set(np.unique(runs[1].exit_steps % 1.0)) - {0.0}


@pytest.mark.parametrize(
    ("k", "spherical"), slow_but([(2, False), (2, True), (3, False), (3, True)], (2, True), (3, False))
)
def test_parallel_teacher_rows_have_the_law_of_sgd(k, spherical):
    """P is singular: two rows are one. A factor with rounding errors on its diagonal gave a risk ten times as high."""
    P = np.array([[1.0, 1.0, 0.4], [1.0, 1.0, 0.4], [0.4, 0.4, 1.0]])[:k, :k]
    start = Overlaps(np.eye(2), np.array([[0.1, 0.1, 0.3], [0.2, 0.2, -0.1]])[:, :k], P)
    problem = Problem(gamma=0.5, p=2, k=k, d=200, Delta=0.1, activation="erf", spherical=spherical)
    shown = ("risk", "overlap_M")
    sde, chain = (
        simulate(problem, name, times=[5], seeds=range(400), observables=shown, initial=start)
        for name in ("sde", "sgd_chain")
    )
    for name in shown:
        pairs = zip(*(run[name].values.reshape(400, -1).T for run in (sde, chain)), strict=True)
        assert min(stats.ks_2samp(x, y, method="asymp").pvalue for x, y in pairs) > LEVEL


@pytest.mark.parametrize(("p", "k", "d", "gamma"), [(1, 3, 2, 0.05), (2, 12, 10, 0.1)])
def test_more_teacher_rows_than_dimensions(p, k, d, gamma):
    """Each random start has a singular P; norms were 80 and more. Few dimensions: medians within a tenth."""
    problem = Problem(gamma=gamma, p=p, k=k, d=d, Delta=0.1, activation="erf", teacher_start="gaussian")
    sde, sgd = (
        simulate(problem, name, times=[5], seeds=range(200), observables=["risk", "student_norm"])
        for name in ("sde", "sgd")
    )
    for name in ("risk", "student_norm"):
        assert np.median(sde[name]) == pytest.approx(np.median(sgd[name]), rel=0.1)
