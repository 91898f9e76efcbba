"""Batches, fresh and used in several steps: the step against NumPy, a batch of one against plain SGD, and exits."""

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.networks.numerics.random import normals
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.tiers import slow_among

FIELDS = {"gamma": 0.3, "p": 3, "k": 2, "d": 50, "Delta": 0.2, "activation": "square"}
SHOWN = ("overlap_Q", "overlap_M", "second_layer")


def steps_by_numpy(case, count):
    """Return Q, M, a after some steps w_i += (γ/p)(1/n_b) Σ a_i σ'(λ_i) E x, x the samples of the stream in order."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d = W.copy(), samples_key(case), problem.batch_size, problem.d
    layer = np.full(problem.p, problem.a)
    for step in range(count):
        first = step // problem.repeats * n_b
        draws = np.array([normals(key, case.seed, first + s, 32 * (d // 32 + 1)) for s in range(n_b)])
        x, z = draws[:, :d], draws[:, d]
        lam, lam_star = x @ W.T / np.sqrt(d), x @ W_star.T / np.sqrt(d)
        error = (lam_star**2).mean(axis=1) + np.sqrt(problem.Delta) * z - lam**2 @ layer / problem.p
        W += problem.gamma / problem.p * (2 * layer * lam * error[:, None]).T @ x / np.sqrt(d) / n_b
        layer = layer + problem.second_layer_rate * problem.step_time() * (lam**2 * error[:, None]).mean(axis=0)
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T / d, W @ W_star.T / d, layer


@pytest.mark.parametrize("batches", [(2, 1), (4, 1), (7, 1), (1, 4), (7, 2)], ids=str)
@pytest.mark.parametrize("more", [{}, {"spherical": True}, {"second_layer_rate": 0.5}], ids=["plain", "sphere", "both"])
def test_a_step_moves_by_the_mean_over_the_batch(batches, more):
    problem = Problem(batch_size=batches[0], repeats=batches[1], **FIELDS, **more)
    case = Case(problem, "sgd", 3, Recording((20 * problem.step_time(),), (), SHOWN))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=SHOWN)
    for name, expected in zip(SHOWN, steps_by_numpy(case, 20), strict=True):
        np.testing.assert_allclose(ds[name][0, 0], expected, rtol=1e-9, atol=1e-12)
    assert ds.end_steps == 20


@pytest.mark.parametrize("more", [{}, {"spherical": True, "second_layer_rate": 0.5}], ids=["plain", "both"])
def test_records_between_two_uses_of_a_batch_are_those_of_sgd_in_numpy_after_as_many_steps(more):
    """In one run, at steps 0, 1, 2, 2, ... of batches that are used three times."""
    problem = Problem(batch_size=2, repeats=3, **FIELDS, **more)
    steps = [0, 1, 2, 2, 3, 7, 8, 13]
    times = tuple(problem.step_time() * (step + 0.01 * place) for place, step in enumerate(steps))
    case = Case(problem, "sgd", 3, Recording(times, (), SHOWN))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=SHOWN)
    assert ds.steps.values.tolist() == steps
    assert ds.end_steps == 13
    for place, step in enumerate(steps):
        for name, expected in zip(SHOWN, steps_by_numpy(case, step), strict=True):
            np.testing.assert_allclose(ds[name][0, place], expected, rtol=1e-9, atol=1e-12)


BATCHES = [
    ("sgd", {"batch_size": 5}),
    ("sgd", {"batch_size": 5, "repeats": 3}),
    ("sgd_chain", {"batch_size": 5}),
    ("sgd_chain", {"batch_size": 40}),
    ("sgd_chain", {"repeats": 3}),
    ("sgd_chain", {"batch_size": 5, "repeats": 3}),
]
REUSED = [{"repeats": 3}, {"batch_size": 5, "repeats": 3}]
"""Batches for which the chain has kernels of its own, which only slow tests compile."""


OF_CHAIN = slow_among([batches for dynamics, batches in BATCHES if dynamics == "sgd_chain"], *REUSED)


@pytest.mark.parametrize(
    ("dynamics", "batches"), slow_among(BATCHES, *[("sgd_chain", batches) for batches in REUSED]), ids=str
)
@pytest.mark.parametrize("spherical", [False, True])
def test_exits_are_those_of_the_risks_of_each_step(dynamics, batches, spherical):
    """Of each batch, if it is used in several."""
    problem = Problem(spherical=spherical, **FIELDS | {"activation": "erf", "gamma": 0.6}, **batches)
    times = np.arange(400) * problem.repeats * problem.step_time()
    thresholds = [0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2]
    every = simulate(problem, dynamics, times=times, seeds=range(4))
    exits = simulate(problem, dynamics, times=times[-1:], seeds=range(4), thresholds=thresholds)
    for place, threshold in enumerate(thresholds):
        below = every.risk.values <= (1 - threshold) * every.risk.values[:, :1]
        assert below.any(axis=1).all()
        np.testing.assert_array_equal(exits.exit_steps[:, place], problem.repeats * below.argmax(axis=1))


BETWEEN = [
    ("sgd", {"batch_size": 3}),
    ("sgd", {"batch_size": 3, "samples": 7}),
    ("sgd", {"batch_size": 3, "samples": 7, "sampling": "epochs"}),
    ("sgd_chain", {}),
    ("sgd_chain", {"batch_size": 5, "spherical": True}),
]


@pytest.mark.parametrize(
    ("dynamics", "more"), slow_among(BETWEEN, *[each for each in BETWEEN if each[0] == "sgd_chain"]), ids=str
)
def test_a_record_between_two_uses_of_a_batch_changes_no_path(dynamics, more):
    """Its state is that of a run in which batches are used so many times, and later states keep their bits."""
    common = {"seeds": 20, "observables": ("risk", *SHOWN), "pair_by": ["d"]}
    problem = Problem(repeats=3, **FIELDS | {"activation": "erf"}, **more)
    T = problem.step_time()
    every = simulate(problem, dynamics, times=np.arange(8) * T, **common)
    last = simulate(problem, dynamics, times=[6 * T, 7 * T], **common)
    twice = simulate(Problem(**problem.canonical() | {"repeats": 2}), dynamics, times=np.arange(3) * T, **common)
    for name in common["observables"]:
        np.testing.assert_array_equal(every[name][:, 6:], last[name])
        np.testing.assert_allclose(every[name][:, :3], twice[name], rtol=1e-12, atol=1e-14)
    steps = np.diff(every.overlap_M.values.reshape(20, 8, -1), axis=1)
    assert (np.abs(steps).max(axis=2) > 0.0).all()
    assert (every.end_steps == 7).all()


def test_an_exit_between_records_ends_a_run_at_the_last_use_of_its_batch():
    problem = Problem(batch_size=5, repeats=3, **FIELDS | {"activation": "erf", "gamma": 0.6})
    times = np.arange(400) * problem.step_time()
    run = simulate(problem, "sgd", times=times, seeds=8, thresholds=[0.1], stop="exit")
    out = run.exit_steps.values[:, 0]
    assert (out % 3 == 0).all()
    np.testing.assert_array_equal(run.end_steps, out)
    np.testing.assert_array_equal(np.isfinite(run.risk), run.steps.values <= out[:, None])


def test_larger_batches_scatter_less():
    """The covariance over seeds of a step's increment is that of one sample over n_b: its trace within 5 deviations."""
    spread = []
    for batch_size in (1, 16):
        problem = Problem(batch_size=batch_size, **FIELDS | {"activation": "erf"})
        W = replicas_of([Case(problem, "sgd", 0, Recording((0.0,)))]).weights(0)
        once = simulate(
            problem, "sgd", times=[problem.step_time()], seeds=range(800), initial=W, observables=["overlap_M"]
        )
        squares = ((once.overlap_M - once.overlap_M.mean("seed")) ** 2).sum(["time", "student", "teacher"])
        spread.append((squares.mean().item(), squares.std().item() / np.sqrt(800)))
    (one, one_error), (many, many_error) = spread
    assert abs(one - 16 * many) < 5 * np.hypot(one_error, 16 * many_error) < 0.5 * one


@pytest.mark.parametrize("batches", OF_CHAIN, ids=str)
def test_a_replica_of_the_chain_does_not_depend_on_others(batches):
    """Alone, in a group, and in the second of two groups of other widths."""
    problem = Problem(**FIELDS | {"activation": "erf"}, **batches)
    common = {"times": [12 * problem.step_time()], "observables": SHOWN}
    alone, many = (simulate(problem, "sgd_chain", seeds=seeds, **common) for seeds in ([140], range(150)))
    for name in SHOWN:
        np.testing.assert_array_equal(alone[name][0], many[name][140])


@pytest.mark.parametrize("batches", OF_CHAIN, ids=str)
def test_units_that_are_equal_stay_equal_in_the_chain(batches):
    """To rounding: an Ω without full rank is no trouble."""
    problem = Problem(**FIELDS | {"activation": "erf"}, **batches)
    W = np.random.default_rng(0).normal(size=(5, problem.d))
    W[1] = W[0]
    common = {"times": [60 * problem.step_time()], "seeds": range(4), "observables": SHOWN, "initial": (W[:3], W[3:])}
    Q = simulate(problem, "sgd_chain", **common).overlap_Q.values[:, 0]
    difference = Q[:, 0, 0] - 2 * Q[:, 0, 1] + Q[:, 1, 1]
    np.testing.assert_allclose(difference, 0.0, atol=1e-13)


@pytest.mark.parametrize("batches", OF_CHAIN, ids=str)
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
def test_a_rate_that_is_too_large_ends_as_a_divergence(dynamics, batches):
    problem = Problem(**FIELDS | {"gamma": 1e6}, **batches)
    run = simulate(problem, dynamics, times=[300 * problem.step_time()], seeds=range(3))
    assert (run.status == 2).all()
    assert (run.end_steps < 300).all()
    assert (run.end_steps % problem.repeats == 0).all()
    every = simulate(problem, dynamics, times=np.arange(300) * problem.step_time(), seeds=range(3))
    np.testing.assert_array_equal(every.end_steps, run.end_steps)
    assert not np.isfinite(every.risk.values[every.steps.values > run.end_steps.values[:, None]]).any()


def test_the_chain_refuses_to_reuse_a_batch_of_which_it_cannot_keep_the_gram_matrix():
    with pytest.raises(InputError, match=r"batch_size: .* got 129; expected at most 128 with repeats > 1 in sgd_chain"):
        simulate(Problem(batch_size=129, repeats=2, **FIELDS), "sgd_chain", times=[0.1])


def test_the_sde_refuses_a_batch_without_pairs_of_samples():
    with pytest.raises(InputError, match=r"samples: .* got 1; expected at least 2"):
        simulate(Problem(batch_size=2, **FIELDS), "sde", times=[0.1], options={"samples": 1})
