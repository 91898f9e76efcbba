"""The map of the overlaps: products of mean gradients, gradient descent, the ODE, the mean of a step, how runs end."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import erf

from sweeplib import Overlaps, Problem, simulate
from sweeplib.engine.status import Status
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.maths.mean_gradients import mean_gradient_products
from sweeplib.networks.maths.overlaps import lower_factors
from sweeplib.networks.problem import target

SHOWN = ("overlap_Q", "overlap_M", "second_layer")
FUNCTIONS = {
    "erf": (lambda x: erf(x / math.sqrt(2)), lambda x: math.sqrt(2 / math.pi) * np.exp(-x * x / 2)),
    "he3": (lambda x: (x * x - 3) * x / math.sqrt(6), lambda x: (3 * x * x - 3) / math.sqrt(6)),
}
STAIRCASE = "lam1 + lam1*lam2"
TARGETS = {
    "committee": lambda lam_star, activation: FUNCTIONS[activation][0](lam_star).mean(axis=0),
    STAIRCASE: lambda lam_star, _: lam_star[0] + lam_star[0] * lam_star[1],
}


@cache
def grid(dimension, nodes=18):
    """Nodes (dimension, n) and weights (n,) of a product of Gauss-Hermite rules."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    one = np.meshgrid(*[weights / weights.sum()] * dimension, indexing="ij")
    return np.reshape(np.meshgrid(*[points] * dimension, indexing="ij"), (dimension, -1)), np.prod(one, axis=0).ravel()


def displaced(Q, M, P, a, activation, of):
    """u, weights, λ and E without label noise, at the nodes of a product rule."""
    u, weights = grid(len(Q) + len(P))
    fields = lower_factors(Q, M, P) @ u
    lam_star, lam = fields[: len(P)], fields[len(P) :]
    return u, weights, lam, TARGETS[of](lam_star, activation) - a @ FUNCTIONS[activation][0](lam) / len(Q)


def rows(p=2, k=2, d=5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(p, d)), rng.normal(size=(k, d))


def overlaps(W, W_star):
    d = W.shape[1]
    return W @ W.T / d, W @ W_star.T / d, W_star @ W_star.T / d


def changed(which, W, W_star):
    """The rows, such that Ω is singular."""
    if which == "aligned":
        W[1] = W[0]
    elif which == "opposite":
        W[1] = -1.3 * W[0]
    elif which == "a zero row":
        W[1] = 0.0
    elif which == "on a teacher":
        W[1] = W_star[0]
    elif which == "all learned":
        W[:] = W_star
    elif which == "equal teachers":
        W_star[1] = W_star[0]
    return W, W_star


@pytest.mark.rest
@pytest.mark.parametrize("which", ["", "aligned", "opposite", "a zero row", "on a teacher", "equal teachers", "d = 1"])
@pytest.mark.parametrize("of", TARGETS)
def test_the_products_of_mean_gradients_are_those_of_their_coordinates(which, of):
    """E[c_i u] at the nodes, u the coordinates of a sample, also where Ω is singular."""
    W, W_star = changed(which, *rows(d=1 if which == "d = 1" else 5))
    a = np.array([1.0, -0.6])
    for activation in FUNCTIONS:
        Q, M, P = overlaps(W, W_star) if activation == "he3" else (0.3 * part for part in overlaps(W, W_star))
        u, weights, lam, E = displaced(Q, M, P, a, activation, of)
        gradients = (weights * a[:, None] * FUNCTIONS[activation][1](lam) * E) @ u.T
        drifts = target(of).expectations(activation, activation).drifts_of(System(Q, M, P, a, np.ones(2), 0.3, 1.0))
        parts = (part[None] for part in (drifts.M, drifts.GF, Q, M, P))
        found, lack = mean_gradient_products(*parts, np.full(1, 1e-10))
        assert (lack < 1e-8).all()
        np.testing.assert_allclose(found[0], gradients @ gradients.T, rtol=1e-6, atol=1e-8)


class Descent:
    """Gradient descent on the population risk of weights, with derivatives of the risk by central differences."""

    def __init__(self, problem, W, W_star):
        self.problem, self.W, self.W_star, self.a = problem, W, W_star, np.full(problem.p, problem.a)

    def risk(self, W, a):
        _, weights, _, E = displaced(*overlaps(W, self.W_star), a, self.problem.activation, self.problem.target)
        return 0.5 * weights @ E**2

    def slope(self, function, at):
        slopes = np.empty(at.size)
        for i, unit in enumerate(np.eye(at.size)):
            forth, back = (function(at + sign * 1e-5 * unit.reshape(at.shape)) for sign in (1, -1))
            slopes[i] = (forth - back) / 2e-5
        return slopes.reshape(at.shape)

    def step(self):
        problem, W, a = self.problem, self.W, self.a
        rate = problem.second_layer_rate * problem.step_time() * problem.p
        self.W = W - problem.gamma * self.slope(lambda at: self.risk(at, a), W)
        self.a = a - rate * self.slope(lambda at: self.risk(W, at), a)
        if problem.spherical:
            self.W *= math.sqrt(problem.d) / np.linalg.norm(self.W, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "of", "spherical"),
    [("he3", "committee", False), ("he3", "committee", True), ("erf", "committee", True), ("erf", STAIRCASE, False)],
)
def test_an_infinite_batch_takes_the_steps_of_gradient_descent_on_the_population_risk(activation, of, spherical):
    """Long steps of both layers, to 1e-6."""
    given = {"spherical": spherical, "second_layer_rate": 0.7, "a": 0.8, "target": of}
    length = 0.8 if activation == "erf" else 0.05
    p, k, d = 2, 2, 3
    problem = Problem(gamma=length * p * d, p=p, k=k, d=d, Delta=0.3, activation=activation, batch_size=10**18, **given)
    W, W_star = rows(p, k, d)
    W *= math.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    W_star = np.linalg.qr(W_star.T)[0].T * math.sqrt(d)
    times = np.arange(3) * problem.step_time()
    found = simulate(problem, "overlap_map", times=times, initial=(W, W_star), observables=SHOWN).isel(seed=0)
    descent = Descent(problem, W, W_star)
    for time in range(3):
        expected = *overlaps(descent.W, W_star)[:2], descent.a
        for name, value in zip(SHOWN, expected, strict=True):
            np.testing.assert_allclose(found[name][time], value, atol=1e-6)
        descent.step()


@pytest.mark.slow
@pytest.mark.parametrize("spherical", [False, True], ids=["plain", "sphere"])
def test_short_steps_with_one_sample_are_those_of_the_ode(spherical):
    """To 1e-6, by Richardson's extrapolation to d = ∞ of three dimensions."""
    start = Overlaps([[1.0, 0.2], [0.2, 1.0]], [[0.4, 0.1], [-0.2, 0.3]], np.eye(2))
    fields = {"gamma": 1.0, "p": 2, "k": 2, "Delta": 0.3, "activation": "erf", "second_layer_rate": 0.5}

    def last(dynamics, d):
        problem = Problem(d=d, spherical=spherical, **fields)
        ds = simulate(problem, dynamics, times=[0.5], initial=start, observables=SHOWN)
        return np.concatenate([ds[name].values.ravel() for name in SHOWN])

    one, two, four = (last("overlap_map", d) for d in (60, 120, 240))
    np.testing.assert_allclose((8 * four - 6 * two + one) / 3, last("ode", 60), atol=1e-6)
    assert np.abs(one - last("ode", 60)).max() > 1e-4


TWO = Overlaps([[1.0, 0.1], [0.1, 0.9]], [[0.4], [-0.2]], [[1.0]])
ON_SPHERE = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.4], [-0.2]], [[1.0]])


def problem_of(activation, length, d, alpha=1.0, **more):
    """A problem with steps of this length and batches of αd samples."""
    fields = {"p": 2, "k": 1, "Delta": 0.3, "batch_size": round(alpha * d)}
    return Problem(gamma=length * 2 * d, d=d, activation=activation, **fields | more)


def deviations(problem, dynamics, steps, runs, start, **more):
    """M, Q and a of runs (runs, steps, values), minus those of the map."""
    common = {"times": (1 + np.arange(steps)) * problem.step_time(), "observables": SHOWN, "initial": start}
    ds = simulate(problem, dynamics, seeds=range(runs), **common, **more)
    expected = simulate(problem, "overlap_map", **common).isel(seed=0)
    return np.concatenate([(ds[name] - expected[name]).values.reshape(runs, steps, -1) for name in SHOWN], axis=2)


@pytest.mark.slow
@pytest.mark.parametrize("spherical", [False, True])
def test_a_step_of_a_schedule_is_one_at_its_rate_in_the_middle(spherical):
    """Step by step, each a run of its own at the constant rate γ ξ(t + T/2)."""
    common = {"p": 2, "k": 1, "d": 40, "Delta": 0.2, "activation": "erf", "batch_size": 8, "spherical": spherical}
    start = ON_SPHERE if spherical else TWO
    gamma, steps = 30.0, 4
    T = gamma / (2 * 40)
    scheduled = Problem(gamma=gamma, schedule="1/(1 + 2*t)", second_layer_rate=0.5, **common)
    found = simulate(
        scheduled, "overlap_map", times=T * np.arange(steps + 1), initial=start, observables=SHOWN, thresholds=[0.3]
    )
    state, a = start, (1.0, 1.0)
    for step in range(steps):
        own = Problem(gamma=gamma / (1 + (2 * step + 1) * T), second_layer_rate=0.5, a=a, **common)
        once = simulate(own, "overlap_map", times=[own.step_time()], initial=state, observables=SHOWN)
        for name in SHOWN:
            expected = once[name].isel(seed=0, time=0)
            np.testing.assert_allclose(found[name].isel(seed=0, time=step + 1), expected, rtol=1e-9, atol=1e-12)
        Q, M = once.overlap_Q.values[0, 0], once.overlap_M.values[0, 0]
        state, a = Overlaps(Q, M, [[1.0]]), tuple(once.second_layer.values[0, 0].tolist())


@pytest.mark.rest
def test_a_plain_step_is_the_mean_of_sgd_to_second_order():
    """At d = 12: without the 2/d of the length of samples |z| is 8."""
    apart = deviations(problem_of("relu", 1.0, 12, second_layer_rate=0.5), "sgd_chain", 1, 8_000, TWO)[:, 0]
    z = apart.mean(axis=0) / (apart.std(axis=0) / math.sqrt(len(apart)))
    assert np.abs(z).max() < 4.0


def typical(apart):
    """The median over the runs of the root mean square: polynomials have heavy tails."""
    return np.median(np.sqrt((apart**2).mean(axis=(1, 2))))


def exponent(sizes, spreads):
    return -np.polyfit(np.log(sizes), np.log(spreads), 1)[0]


@pytest.mark.slow
def test_sgd_departs_from_it_as_the_root_of_d():
    sizes, spreads = (60, 240, 960), []
    for d in sizes:
        apart = deviations(problem_of("erf", 1.0, d, 0.5), "sgd_chain", 3, 256, TWO)
        spreads.append(typical(apart))
        z = apart.mean(axis=0) / (apart.std(axis=0) / math.sqrt(len(apart)) + 1e-12)
    assert np.abs(z).max() < 4.5
    assert exponent(sizes, spreads) == pytest.approx(0.5, abs=0.1)


START = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.3, 0.1], [-0.1, 0.4]], np.eye(2))
SETTINGS = {
    "erf": {"activation": "erf", "length": 1.5},
    "erf on the sphere": {"activation": "erf", "length": 1.5, "spherical": True},
    "relu, both layers": {"activation": "relu", "length": 1.0, "second_layer_rate": 0.5},
    "he3": {"activation": "he3", "length": 0.02},
    "staircase": {"activation": "relu", "length": 0.7, "target": STAIRCASE},
}
STEPS = 3


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_deviation_of_sgd_falls_as_the_root_of_d(name, alpha):
    """d = 250, 1000, 4000 by the chain, 400 runs each; the mean of these, and of 24 runs of `sgd`, at d = 4000."""
    sizes, spreads, z = (250, 1000, 4000), [], {}
    for d in sizes:
        problem = problem_of(d=d, alpha=alpha, k=2, **SETTINGS[name])
        runs = {"sgd_chain": 400, **({"sgd": 24} if d == 4000 else {})}
        for dynamics, count in runs.items():
            apart = deviations(problem, dynamics, STEPS, count, START, root_seed=1)
            error = apart.std(axis=0, ddof=1) / math.sqrt(count)
            z[dynamics] = np.abs(apart.mean(axis=0) / (error + 1e-12)).max()
            if dynamics == "sgd_chain":
                spreads.append(typical(apart))
    assert exponent(sizes, spreads) == pytest.approx(0.5, abs=0.1)
    assert max(z.values()) < 4.0


@pytest.mark.slow
@pytest.mark.parametrize("spherical", [False, True])
def test_exits_are_those_of_the_risks_of_each_step(spherical):
    problem = Problem(gamma=0.6, p=3, k=2, d=50, Delta=0.2, activation="erf", batch_size=5, spherical=spherical)
    times, thresholds = np.arange(200) * problem.step_time(), (0.02, 0.05)
    every = simulate(problem, "overlap_map", times=times, seeds=range(3))
    exits = simulate(problem, "overlap_map", times=times[[-1]], seeds=range(3), thresholds=thresholds)
    stopped = simulate(problem, "overlap_map", times=times, seeds=range(3), thresholds=thresholds, stop="exit")
    for place, threshold in enumerate(thresholds):
        below = every.risk.values <= (1 - threshold) * every.risk.values[:, :1]
        assert below.any(axis=1).all()
        np.testing.assert_array_equal(exits.exit_steps[:, place], below.argmax(axis=1))
    np.testing.assert_array_equal(stopped.exit_steps, exits.exit_steps)
    np.testing.assert_array_equal(stopped.end_steps, exits.exit_steps.max("threshold"))
    kept = np.arange(200) <= stopped.end_steps.values[:, None]
    np.testing.assert_array_equal(stopped.risk, np.where(kept, every.risk, np.nan))


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["square", "he3", "relu"])
def test_a_rate_that_is_too_large_ends_as_a_divergence(activation):
    """The replicas beside it go on."""
    problem = Problem(gamma=1e9, p=2, k=1, d=50, Delta=0.1, activation=activation, batch_size=3)
    run = simulate(problem, "overlap_map", times=[0.0, 300 * problem.step_time()], seeds=range(3), thresholds=[0.5])
    assert (run.status == Status.diverged).all()
    assert (run.end_steps < 300).all()
    assert np.isfinite(run.risk[:, 0]).all()
    assert np.isnan(run.risk[:, 1]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("p", "k"), [(1, 1), (4, 1)])
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_units_that_are_learned_stay_learned(p, k, activation):
    """Zero risk without label noise is a fixed point, though Ω is singular."""
    problem = Problem(gamma=10.0, p=p, k=k, d=10, Delta=0.0, activation=activation, batch_size=20)
    start = Overlaps(np.ones((p, p)), np.ones((p, k)), np.eye(k))
    run = simulate(problem, "overlap_map", times=[50 * problem.step_time()], initial=start, observables=SHOWN)
    np.testing.assert_allclose(run.overlap_Q[0, 0], 1.0, atol=1e-9)
    np.testing.assert_allclose(run.overlap_M[0, 0], 1.0, atol=1e-9)


@pytest.mark.slow
def test_a_zero_row_and_equal_rows_start():
    """An erf unit without weights starts to move; equal units stay equal."""
    problem = Problem(gamma=30.0, p=3, k=1, d=30, Delta=0.1, activation="erf", batch_size=30)
    Q, M = np.zeros((3, 3)), np.array([[0.0], [0.3], [0.3]])
    Q[1:, 1:] = 1.0
    start = Overlaps(Q, M, np.eye(1))
    run = simulate(problem, "overlap_map", times=[10 * problem.step_time()], initial=start, observables=SHOWN)
    found = run.overlap_Q[0, 0].values
    assert found[0, 0] > 0.1
    np.testing.assert_allclose(found[1, 1], found[2, 2], rtol=1e-9)
