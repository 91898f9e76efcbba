"""The overlap chain has exactly the law of SGD on the weights: two simulators, one law.

Kolmogorov-Smirnov p-values at 1e-4; some 90 of them, so one false alarm in 110 changes of the random numbers.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from sweeplib import Problem, simulate
from tests.tiers import slow_but

LEVEL = 1e-4
SHOWN = ("overlap_Q", "overlap_M", "second_layer", "risk")

PROBLEMS = {
    "erf p=3 k=2 d=30": Problem(gamma=1.0, p=3, k=2, d=30, Delta=0.1, activation="erf"),
    "square p=2 d=50": Problem(gamma=0.3, p=2, k=1, d=50, Delta=0.1, activation="square", spherical=True),
    "square p=4 d=80": Problem(gamma=0.4, p=4, k=1, d=80, Delta=0.5, activation="square", spherical=True),
    "plain square": Problem(gamma=0.05, p=2, k=2, d=40, Delta=0.1, activation="square"),
    "no room outside the span": Problem(gamma=0.5, p=1, k=1, d=2, Delta=0.1, activation="erf"),
    "one dimension outside": Problem(gamma=0.3, p=2, k=1, d=4, Delta=0.1, activation="square", spherical=True),
    "relu, both layers": Problem(gamma=0.5, p=2, k=1, d=30, Delta=0.1, activation="relu", a=0.5, second_layer_rate=1.0),
    "He_3, both layers": Problem(
        gamma=0.05, p=2, k=1, d=40, Delta=0.1, activation="he3", spherical=True, a=0.5, second_layer_rate=1.0
    ),
    "second layers": Problem(gamma=0.5, p=2, k=2, d=30, Delta=0.1, activation="erf", a=(1.0, -0.5), a_star=(2.0, 1.0)),
}


def columns(run, rng):
    """Return all overlaps, the second layer, risk and exit steps of each run, as columns that vary.

    Missing values (the end of a diverged run, an exit) count as late. A uniform number is added to exit
    steps, which are whole: without ties p-values are uniform, and two distributions of steps are equal if these are.
    """
    last, late = run.isel(time=-1), 1e9
    continuous = np.hstack([last[name].fillna(late).values.reshape(len(run.seed), -1) for name in SHOWN])
    exits = run.exit_steps.fillna(late).values
    return np.hstack([continuous, exits + rng.random(exits.shape)]).T


@pytest.mark.parametrize("name", slow_but(PROBLEMS, "erf p=3 k=2 d=30"))
def test_overlaps_second_layer_and_exits_agree_in_law(name):
    common = {"times": [0.0, 0.7], "observables": SHOWN, "thresholds": (0.1,), "root_seed": 7}
    weights = simulate(PROBLEMS[name], "sgd", seeds=range(1200), **common)
    chain = simulate(PROBLEMS[name], "sgd_chain", seeds=range(1200, 2400), **common)
    rng = np.random.default_rng(0)
    for x, y in zip(columns(weights, rng), columns(chain, rng), strict=True):
        if np.ptp(x) > 1e-9:
            assert stats.ks_2samp(x, y).pvalue > LEVEL


@pytest.mark.slow
def test_exit_steps_agree_in_law():
    """Phase retrieval at d = 300 and γ near the optimum, as drawn by the quick start."""
    problem = Problem(gamma=0.08, p=1, k=1, d=300, Delta=0.5, activation="square", spherical=True)
    common = {"times": [0.0, 12.0], "thresholds": [0.01, 0.5], "stop": "exit", "root_seed": 3}
    weights = simulate(problem, "sgd", seeds=range(400), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(400, 3000), **common)
    assert weights.exit_steps.notnull().all()
    for threshold in (0.01, 0.5):
        x, y = (ds.exit_steps.sel(threshold=threshold).values for ds in (weights, chain))
        assert stats.ks_2samp(x, y).pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("on", ["misalignment", "test_error"])
def test_exits_on_other_observables_agree_in_law(on):
    problem = Problem(gamma=1.0, p=2, k=2, d=30, Delta=0.1, activation="erf")
    common = {"times": [3.0], "thresholds": [0.05, 0.2], "exit_on": on, "root_seed": 11}
    weights = simulate(problem, "sgd", seeds=range(1200), **common).exit_steps
    chain = simulate(problem, "sgd_chain", seeds=range(1200, 3600), **common).exit_steps
    for threshold in (0.05, 0.2):
        x, y = (steps.sel(threshold=threshold).fillna(1e9).values for steps in (weights, chain))
        assert np.ptp(x[x < 1e9]) > 10.0
        assert stats.ks_2samp(x, y).pvalue > LEVEL


RATES = {"erf": 0.5, "square": 0.1, "relu": 0.3, "he3": 0.04}
REPEATS = 5
RUNS, RUNS_OF_CHAIN = 397, 1009
"""Without a common divisor: with equally many, p-values come in jumps of 0.1, not uniform for that alone."""


def repeats(problem):
    """Return the p-values of each repeat, one for each column that varies."""
    common = {"times": [0.0, 0.4], "observables": SHOWN, "thresholds": (0.1,), "root_seed": 11}
    seeds, rng = REPEATS * RUNS, np.random.default_rng(problem.p)
    weights = columns(simulate(problem, "sgd", seeds=range(seeds), **common), rng)
    chain = columns(simulate(problem, "sgd_chain", seeds=range(seeds, seeds + REPEATS * RUNS_OF_CHAIN), **common), rng)
    varying = np.ptp(weights, axis=1) > 1e-9
    parts = (np.split(side[varying], REPEATS, axis=1) for side in (weights, chain))
    for x, y in zip(*parts, strict=True):
        yield [stats.ks_2samp(*pair, method="asymp").pvalue for pair in zip(x, y, strict=True)]


@pytest.mark.long
def test_p_values_are_uniform_over_all_kinds_of_problems():
    """48 kinds of problems, five independent repeats each: 240 p-values, one per repeat, of the statistics in turn.

    They are uniform (Kolmogorov-Smirnov at 1e-3), and no p-value of any statistic is below Bonferroni's bound at 1e-3:
    two false alarms in 1000 changes of the random numbers.
    """
    chosen, everything = [], []
    kinds = itertools.product(RATES, (False, True), (0.0, 1.0), (1, 2, 4))
    for number, (name, spherical, second_layer_rate, p) in enumerate(kinds):
        problem = Problem(
            gamma=RATES[name] * p, p=p, k=1, d=40, Delta=0.1, activation=name, spherical=spherical, a=0.7, m0=0.3,
            second_layer_rate=second_layer_rate,
        )  # fmt: skip
        for repeat, values in enumerate(repeats(problem)):
            chosen.append(values[(number + repeat) % len(values)])
            everything += values
    assert len(chosen) == 240
    assert stats.kstest(chosen, "uniform").pvalue > 1e-3
    assert min(everything) > 1e-3 / len(everything)
