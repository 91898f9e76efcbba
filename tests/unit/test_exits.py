"""Exits of the chain, whose risk is computed only when it may have reached its target, are those of every step."""

import numpy as np
import pytest

from sweeplib import Problem, simulate
from tests.tiers import slow_among

SETTINGS = {
    "erf": {"activation": "erf", "p": 3, "k": 2},
    "erf on the sphere": {"activation": "erf", "p": 2, "k": 1, "spherical": True},
    "a formula": {"activation": "erf", "p": 2, "k": 2, "target": "lam1 + lam1*lam2"},
    "large steps": {"activation": "erf", "p": 2, "k": 1, "spherical": True, "gamma": 4.0, "d": 12},
    "relu, one unit": {"activation": "relu", "p": 1, "k": 1},
    "both layers": {"activation": "erf", "p": 2, "k": 2, "second_layer_rate": 0.5, "a": (0.5, -1.0)},
    "no bound": {"activation": "square", "p": 2, "k": 1, "gamma": 0.1},
}
THRESHOLDS = (0.02, 0.1, 0.3, 0.5)
STEPS = 500


OTHERS = ("sgd", "sde", "ode", "gradient_flow", "overlap_map")
TRIED = [*(("sgd_chain", name) for name in SETTINGS), ("sde", "erf")]


@pytest.mark.rest
@pytest.mark.parametrize(("dynamics", "name"), slow_among(TRIED, ("sgd_chain", "a formula")))
def test_an_exit_is_the_first_step_at_which_the_risk_is_low_enough(name, dynamics):
    problem = Problem(**{"gamma": 0.5, "d": 30, "Delta": 0.05} | SETTINGS[name])
    times = np.arange(STEPS + 1) * problem.step_time()
    risk = simulate(problem, dynamics, times=times, seeds=range(20)).risk.values
    exits = simulate(problem, dynamics, times=times[-1:], seeds=range(20), thresholds=THRESHOLDS).exit_steps.values
    for place, threshold in enumerate(THRESHOLDS):
        low = risk <= (1.0 - threshold) * risk[:, :1]
        first = np.where(low.any(axis=1), low.argmax(axis=1), np.nan)
        np.testing.assert_array_equal(exits[:, place], first)
    assert np.isfinite(exits).any()


@pytest.mark.parametrize("dynamics", ["sgd_chain", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_risk_of_zero_has_fallen_at_the_start(dynamics):
    """0 ≤ (1 − T) · 0: the chain with noise never exited, SGD after a step, the ODE at 0."""
    problem = Problem(gamma=0.5, p=2, k=1, d=12, Delta=0.5, activation="erf", a=0.0, a_star=0.0)
    options = {"finite_d": True} if dynamics == "ode" else None
    asked = {"times": [0.0, 1.0], "thresholds": [0.1, 0.5], "options": options, "seeds": 2}
    for stop, end in (("end", 48.0), ("exit", 0.0)):
        run = simulate(problem, dynamics, stop=stop, **asked)
        np.testing.assert_array_equal(run.exit_steps, 0.0)
        np.testing.assert_array_equal(run.end_steps, end)
