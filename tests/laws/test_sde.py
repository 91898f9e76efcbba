"""The SDE has the increments it is named after, and the law of SGD where d is large.

Kolmogorov-Smirnov p-values at 1e-4, 40 of them at most: one false alarm in 250 changes of the random numbers.
"""

import numpy as np
import pytest
from scipy import stats

from sweeplib import Overlaps, Problem, simulate

LEVEL = 1e-4


def increments(problem, start, count):
    """The changes (count, 2) of M and Q in the first step over γ/(pd)."""
    shown = {"observables": ("overlap_M", "overlap_Q"), "seeds": range(count), "initial": start}
    run = simulate(problem, "sde", times=(0.0, problem.step_time()), **shown)
    changes = [run[name].diff("time").values.ravel() for name in shown["observables"]]
    return np.stack(changes, axis=1) / problem.step_time()


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
    X = increments(problem, Overlaps([[1.0]], [[m]], [[1.0]]), 20_000)
    X -= X.mean(axis=0)
    products = X[:, :, None] * X[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(X))
    assert (np.abs(products.mean(axis=0) - published_covariance(m, gamma, Delta)) < 4.5 * error).all()


PROBLEMS = {
    "square p=2": Problem(gamma=0.1, p=2, k=1, d=500, Delta=0.5, activation="square", spherical=True),
    "erf p=2 k=2": Problem(gamma=0.5, p=2, k=2, d=300, Delta=0.1, activation="erf"),
    "trained": Problem(gamma=0.3, p=2, k=1, d=300, Delta=0.1, activation="erf", a=0.5, second_layer_rate=1.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_overlaps_agree_with_the_chain(name):
    problem, shown = PROBLEMS[name], ("overlap_Q", "overlap_M", "second_layer", "risk")
    common = {"times": [0.0, 1.0], "observables": shown, "root_seed": 5}
    ours = simulate(problem, "sde", seeds=range(600), **common).isel(time=-1)
    chain = simulate(problem, "sgd_chain", seeds=range(600, 1800), **common).isel(time=-1)
    for variable in shown:
        columns = (ds[variable].values.reshape(len(ds.seed), -1).T for ds in (ours, chain))
        for x, y in zip(*columns, strict=True):
            if np.ptp(x) > 1e-9:
                assert stats.ks_2samp(x, y).pvalue > LEVEL, variable


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
    assert float(ours.exit_steps.std("seed").min()) > 30 * float(ode.exit_steps.std("seed").max())
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
