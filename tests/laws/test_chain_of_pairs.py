"""The overlap chain has the law of SGD on the weights with features together: drawn at random, 2 to 4 in a problem.

Kolmogorov-Smirnov p-values of all overlaps at two times, at 10⁻³ over the number of tests of a problem. A change of the
random numbers thus makes a false alarm in at most 1.2 % of the cases among the slow problems, in 11 % among all.
"""

import functools

import numpy as np
import pytest
from scipy import stats

from sweeplib import Problem, simulate
from sweeplib.errors import InputError
from sweeplib.networks.simulation import Case, Recording
from tests.losses import with_loss

STEPS = np.array([0, 7, 30])
SEEDS = 1000
FEATURES = {
    "small batches": {"batch_size": 3},
    "large batches": {"batch_size": 40},
    "reused batches": {"batch_size": 3, "repeats": 3},
    "reused samples": {"repeats": 2},
    "two levels": {"data": "two_level", "level_ratio": 5.0, "level_fraction": 0.3},
    "power law": {"data": "power_law", "exponent": 0.5, "bins": 6},
    "few dimensions": {"d": 4},
    "normalised": {"update": "normalised", "gamma": 0.5},
    "clipped": {"update": "clipped", "clip_norm": 0.3},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3},
    "momentum": {"update": "heavy_ball", "momentum": 0.7, "gamma": 0.4},
    "spectral": {"update": "spectral", "spectral_ridge": 0.3, "gamma": 0.7},
    "muon": {"update": "muon", "momentum": 0.8, "gamma": 0.5},
    "tangent": {"update": "tangent", "spherical": True, "gamma": 2.0},
    "averages": {"averaging_rate": 2.0, "averaging_order": 1.0},
    "dropout": {"keep_probability": 0.6},
    "input noise": {"input_noise": 0.5},
    "weight noise": {"temperature": 0.2},
    "decay": {"weight_decay": 0.5},
    "sphere": {"spherical": True},
    "both layers": {"second_layer_rate": 0.5, "second_layer_decay": 0.2},
    "logistic": with_loss("logistic", "sign"),
    "huber": with_loss("huber"),
    "tails": {"noise_tail": 0.2},
    "annealed labels": {"noise_schedule": "exp(-t)"},
    "schedule": {"schedule": "1/(1 + t)"},
    "replay": {"tasks": "in_turn", "switch_time": 0.3, "replay": 0.3},
}
COUNT, IN_SLOW = 120, 12


def problem_of(names, p):
    """Return the problem with the features `names`; InputError where a dynamics refuses it or two set one parameter."""
    values = {"gamma": 1.0, "p": p, "k": 2, "d": 30, "Delta": 0.1, "activation": "erf", "a": (1.0, -0.7, 0.5)[:p]}
    for name in names:
        if {*FEATURES[name]} - {"gamma"} & {*values} - {"d"}:
            raise InputError("two features set one parameter", key=name)
        values |= FEATURES[name]
    problem = Problem(**values)
    for dynamics in ("sgd", "sgd_chain"):
        Case(problem, dynamics, 0, Recording((0.0, STEPS[-1] * problem.step_time()))).check()
    return problem


@functools.cache
def drawn():
    """Return COUNT problems with 2 to 4 features that both dynamics take, by the names of these."""
    rng, problems = np.random.default_rng(1), {}
    while len(problems) < COUNT:
        names, p = sorted(rng.choice([*FEATURES], rng.integers(2, 5), replace=False).tolist()), int(rng.integers(1, 4))
        try:
            problems[f"{', '.join(names)}, p = {p}"] = problem_of(names, p)
        except InputError:
            continue
    return problems


def marks(number):
    """Return the marks of a problem: the first are slow, all others take minutes."""
    return pytest.mark.slow if number < IN_SLOW else pytest.mark.long


@pytest.mark.parametrize("number", [pytest.param(n, marks=marks(n)) for n in range(COUNT)])
def test_overlaps_with_several_features_agree_in_law(number):
    name, problem = [*drawn().items()][number]
    shown = ["overlap_Q", "overlap_M", "second_layer"]
    if problem.has_averages:
        shown += ["average_Q", "average_M", "risk_of_average"]
    common = {"times": STEPS * problem.step_time(), "observables": tuple(shown), "root_seed": 7}
    weights = columns(simulate(problem, "sgd", seeds=range(SEEDS), **common), shown)
    chain = columns(simulate(problem, "sgd_chain", seeds=range(SEEDS, 3 * SEEDS), **common), shown)
    # second layers that are not trained are equal in all runs
    least = [stats.ks_2samp(x, y).pvalue for x, y in zip(weights, chain, strict=True) if np.ptp(x) > 1e-9]
    assert min(least) > 1e-3 / len(least), name


def columns(run, shown):
    """Return all numbers of the two last times, of all seeds, as columns."""
    return np.hstack([run[name].isel(time=[1, 2]).values.reshape(len(run.seed), -1) for name in shown]).T


@pytest.mark.parametrize("number", [pytest.param(n, marks=marks(n)) for n in range(COUNT)])
def test_exits_are_where_the_risk_after_a_step_is_first_below_the_target(number):
    """A bound of the change of f tells the chain when it need not compute the risk: no exit may be missed by it."""
    name, problem = [*drawn().items()][number]
    if problem.in_turn or problem.repeats > 1:
        pytest.skip("no exits of tasks in turn; those of reused batches are found after the last use")
    times, thresholds = np.arange(61) * problem.step_time(), [0.03, 0.1, 0.25]
    common = {"times": times, "thresholds": thresholds, "observables": ("risk",), "root_seed": 3}
    run = simulate(problem, "sgd_chain", seeds=range(40), **common)
    for j, threshold in enumerate(thresholds):
        below = run.risk.values <= (1.0 - threshold) * run.risk.values[:, :1] + 1e-14
        first = np.where(below.any(axis=1), below.argmax(axis=1), np.nan)
        np.testing.assert_array_equal(run.exit_steps.values[:, j], first, err_msg=name)


def test_pairs_of_features_are_drawn_that_few_would_think_of():
    names = " ".join(drawn())
    assert all(name in names for name in FEATURES)
