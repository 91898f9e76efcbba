"""The overlap chain has exactly the law of SGD with batches, fresh and used in several steps.

Against SGD on the weights in NumPy, which shares no code with sweeplib, and against `sgd`.
"""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import erf

from sweeplib import Problem, simulate
from tests.losses import force, with_loss
from tests.tiers import slow_among

LEVEL = 1e-4
SHOWN = ("overlap_Q", "overlap_M", "second_layer")


def unit_rows(W):
    """Rows on the sphere of radius √d."""
    return W * np.sqrt(W.shape[-1]) / np.linalg.norm(W, axis=-1, keepdims=True)


def by_numpy(problem, steps, start, runs):
    """Q, M and a of runs (runs, ...) of SGD on the weights, for erf, after some steps."""
    rng = np.random.default_rng(4)
    d, p, n_b = problem.d, problem.p, problem.batch_size
    W, W_star = np.repeat(start[0][None], runs, axis=0), start[1]
    a = np.full((runs, p), problem.a)
    for first in range(0, steps, problem.repeats):
        x = rng.normal(size=(runs, n_b, d)) / np.sqrt(d)
        y = erf(x @ W_star.T / np.sqrt(2)).mean(axis=-1) + np.sqrt(problem.Delta) * rng.normal(size=(runs, n_b))
        for _ in range(min(problem.repeats, steps - first)):
            lam = x @ np.swapaxes(W, 1, 2)
            value, slope = erf(lam / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
            E = force(problem, (value * a[:, None]).mean(axis=-1), y)[..., None]
            T = problem.step_time()
            W = (1 - problem.weight_decay * T) * W + problem.gamma / (p * n_b) * np.swapaxes(
                a[:, None] * slope * E, 1, 2
            ) @ x
            a = a + problem.second_layer_rate * T * ((value * E).mean(axis=1) - problem.second_layer_decay * a)
            W = unit_rows(W) if problem.spherical else W
    return W @ np.swapaxes(W, 1, 2) / d, W @ W_star.T / d, a


def problem_of(p, d, n_b, repeats=1, *, k=1, spherical=False, second_layer_rate=0.0, decay=0.0, loss=()):
    """Students of erf whose steps have a length of order one and fluctuations of that order."""
    batches = {"batch_size": n_b, "repeats": repeats, "weight_decay": decay}
    batches |= {"second_layer_decay": decay if second_layer_rate else 0.0}
    geometry = with_loss(*loss or ["square"]) | {
        "spherical": spherical,
        "second_layer_rate": second_layer_rate,
        "a": 0.7,
    }
    gamma = 1.5 * p * np.sqrt(n_b)
    return Problem(gamma=gamma, p=p, k=k, d=d, Delta=0.3, activation="erf", **batches, **geometry)


PROBLEMS = {
    "fewer samples than units": problem_of(3, 20, 2, k=2, spherical=True, second_layer_rate=1.0),
    "no component outside the span": problem_of(1, 2, 7),
    "one dimension outside": problem_of(3, 6, 7, k=2, spherical=True),
    "more samples than lanes": problem_of(3, 20, 40, k=2, second_layer_rate=1.0),
    "more samples than all lanes": problem_of(2, 8, 300, spherical=True),
    "a sample in three steps": problem_of(3, 20, 1, 3, k=2, spherical=True, second_layer_rate=1.0),
    "a sample without component outside": problem_of(1, 2, 1, 3),
    "a batch in three steps": problem_of(2, 9, 7, 3, k=2, second_layer_rate=1.0),
    "a batch larger than d in two steps": problem_of(2, 5, 9, 2, spherical=True),
    "decay": problem_of(3, 20, 1, k=2, second_layer_rate=1.0, decay=2.0),
    "decay on the sphere": problem_of(3, 20, 1, k=2, spherical=True, second_layer_rate=1.0, decay=2.0),
    "batches and decay": problem_of(3, 20, 7, k=2, second_layer_rate=1.0, decay=2.0),
    "correlation": problem_of(3, 30, 1, k=2, second_layer_rate=1.0, loss=["correlation"]),
    "batches, signs, correlation, sphere": problem_of(2, 30, 7, k=2, spherical=True, loss=["correlation", "sign"]),
    "a batch in three steps, absolute": problem_of(2, 9, 7, 3, k=2, second_layer_rate=1.0, loss=["absolute"]),
    "logistic, signs": problem_of(3, 30, 1, k=2, second_layer_rate=1.0, loss=["logistic", "sign"]),
    "more samples than lanes, Huber": problem_of(3, 20, 40, k=2, second_layer_rate=1.0, loss=["huber"]),
    "batches, logistic of real labels": problem_of(2, 20, 7, k=2, loss=["logistic"]),
    "signs": problem_of(2, 20, 1, k=2, spherical=True, loss=["square", "sign"]),
    "a batch in three steps with decay": problem_of(2, 9, 7, 3, k=2, spherical=True, second_layer_rate=1.0, decay=1.0),
}
REPEATED = [name for name in PROBLEMS if PROBLEMS[name].repeats > 1]
PAIRED = ("decay", "decay on the sphere", "correlation", "batches, logistic of real labels", "signs")
"""What each of these has, another problem has together with something else."""


@pytest.mark.parametrize("name", slow_among(PROBLEMS, *REPEATED, *PAIRED))
def test_it_has_the_law_of_sgd_in_numpy(name):
    """From one start, to the last use of a batch but one.

    p-values at 1e-4, some 80 of them; one false alarm in 120 changes of the random numbers.
    """
    problem, runs, rounds = PROBLEMS[name], 1200 if PROBLEMS[name].batch_size < 300 else 300, 5
    rng = np.random.default_rng(1)
    W, W_star = rng.normal(size=(problem.p, problem.d)), unit_rows(rng.normal(size=(problem.k, problem.d)))
    start = unit_rows(W) if problem.spherical else W, W_star
    steps = rounds * problem.repeats - (problem.repeats > 1)
    times = [steps * problem.step_time()]
    chain = simulate(problem, "sgd_chain", times=times, seeds=range(runs), observables=SHOWN, initial=start)
    assert (chain.end_steps == steps).all()
    for shown, expected in zip(SHOWN, by_numpy(problem, steps, start, runs), strict=True):
        pairs = zip(chain[shown].values.reshape(runs, -1).T, expected.reshape(runs, -1).T, strict=True)
        for x, y in pairs:
            if np.ptp(y) > 1e-9:
                assert stats.ks_2samp(x, y, method="asymp").pvalue > LEVEL


REPEATS = 4
RUNS, RUNS_OF_CHAIN = 251, 601
"""Without a common divisor: with equally many, p-values come in jumps, not uniform for that alone."""


def columns(run, repeats, rng):
    """What varies of each run, as columns; exits a uniform number of rounds later, so that there are no ties."""
    last = run.isel(time=-1)
    continuous = np.hstack([last[name].values.reshape(len(run.seed), -1) for name in (*SHOWN, "risk")])
    exits = run.exit_steps.fillna(1e9).values
    return np.hstack([continuous, exits + repeats * rng.random(exits.shape)]).T


def p_values(problem, steps):
    """p-values of each repeat, one for each column that varies."""
    common = {"times": [steps * problem.step_time()], "observables": (*SHOWN, "risk"), "thresholds": (0.05,)}
    seeds, rng = REPEATS * RUNS, np.random.default_rng(problem.p)
    runs = (
        simulate(problem, "sgd", seeds=range(seeds), root_seed=11, **common),
        simulate(problem, "sgd_chain", seeds=range(seeds, seeds + REPEATS * RUNS_OF_CHAIN), root_seed=11, **common),
    )
    weights, chain = (columns(run, problem.repeats, rng) for run in runs)
    varying = np.ptp(weights, axis=1) > 1e-9
    for x, y in zip(*(np.split(side[varying], REPEATS, axis=1) for side in (weights, chain)), strict=True):
        yield [stats.ks_2samp(*pair, method="asymp").pvalue for pair in zip(x, y, strict=True)]


@pytest.mark.long
@pytest.mark.parametrize("repeats", [1, 3])
def test_p_values_are_uniform(repeats):
    """32 kinds of problems at d = 60, four independent repeats each: 128 p-values, of a statistic in turn.

    They are uniform (Kolmogorov-Smirnov at 1e-3), and no p-value of any statistic is below Bonferroni's bound at 1e-3.
    """
    chosen, everything = [], []
    kinds = itertools.product((1, 2, 7, 64), (1, 3), (False, True), (0.0, 1.0))
    for number, (n_b, p, spherical, second_layer_rate) in enumerate(kinds):
        problem = problem_of(p, 60, n_b, repeats, k=2, spherical=spherical, second_layer_rate=second_layer_rate)
        for repeat, values in enumerate(p_values(problem, 30)):
            chosen.append(values[(number + repeat) % len(values)])
            everything += values
    assert len(chosen) == 128
    assert stats.kstest(chosen, "uniform").pvalue > 1e-3
    assert min(everything) > 1e-3 / len(everything)
