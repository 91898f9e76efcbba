"""With `finite_d` the ODE gives the means of SGD to first order in 1/d, where the Saad-Solla ODE gives them to order zero.

All against the exact chain of overlaps from one fixed start, whose seeds differ in their samples only.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.config import load
from sweeplib.dynamics.step_moments import StepMoments
from sweeplib.simulation import Case, Status
from sweeplib.simulation.cases import Recording
from sweeplib.simulation.driver import replicas_of

FINITE = {"finite_d": True}
MEANS = ("risk", "overlap_M", "overlap_Q", "second_layer")

ONE = Overlaps([[1.0]], [[0.5]], [[1.0]])
TWO = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.5], [0.4]], [[1.0]])
TWO_OF_TWO = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.5, 0.1], [0.1, 0.4]], np.eye(2))
SQUARE = Problem(gamma=0.05, p=1, k=1, d=50, Delta=0.1, activation="square", spherical=True)
SETTINGS = {
    "square, sphere": (SQUARE, ONE, 1.5),
    "square": (Problem(gamma=0.03, p=1, k=1, d=50, Delta=0.1, activation="square"), ONE, 1.5),
    "two squares, sphere": (
        Problem(gamma=0.1, p=2, k=1, d=50, Delta=0.1, activation="square", spherical=True),
        TWO,
        1.5,
    ),
    "two squares": (Problem(gamma=0.1, p=2, k=1, d=50, Delta=0.1, activation="square"), TWO, 1.5),
    "two erf of two": (Problem(gamma=1.0, p=2, k=2, d=50, Delta=0.5, activation="erf"), TWO_OF_TWO, 6.0),
    "two erf, both layers": (
        Problem(gamma=0.6, p=2, k=1, d=50, Delta=0.3, activation="erf", a=0.5, second_layer_rate=1.0),
        TWO,
        6.0,
    ),
}
"""Problem, start, and the last of 15 times."""
BIASED = ("square, sphere", "square", "two squares")
"""Where the ODE itself is off by more than ten standard errors of 4000 seeds; elsewhere by 5 to 10."""


def z_scores(problem, start, times, count, seed=0, options=FINITE):
    """Of the ODE against the mean of `count` seeds of the chain: the largest over entries, by observable (times,)."""
    shown = {"times": times, "observables": MEANS, "initial": start, "root_seed": seed}
    chain = simulate(problem, "sgd_chain", seeds=range(count), **shown)
    ode = simulate(problem, "ode", seeds=[0], options=options, **shown).isel(seed=0)
    assert ode.status == Status.ok
    scores = {}
    for name in MEANS:
        samples = chain[name].values.reshape(count, len(times), -1)
        error = samples.std(axis=0, ddof=1) / np.sqrt(count)
        difference = ode[name].values.reshape(len(times), -1) - samples.mean(axis=0)
        scores[name] = np.abs(np.divide(difference, error, out=np.zeros_like(error), where=error > 1e-12)).max(axis=1)
    return scores


@pytest.mark.parametrize("name", SETTINGS)
def test_it_gives_the_means_of_sgd(name):
    """4000 seeds at d = 50: |z| < 4.5 at all of 15 times, for all means.

    False alarms: 7·10⁻⁶ a score, fewer than 600 scores, most of them correlated: below 4·10⁻³ in all.
    """
    problem, start, last = SETTINGS[name]
    times = np.linspace(last / 15, last, 15)
    for scores in z_scores(problem, start, times, 4000).values():
        assert scores.max() < 4.5
    if name in BIASED:
        assert z_scores(problem, start, times, 4000, options={})["risk"].max() > 10


def test_drift_and_covariance_are_those_of_a_step():
    """10⁶ exact steps of one square unit on the sphere at d = 10⁴, with a normal ‖x‖²: |z| < 4.5 (10⁻⁵ in all).

    The drift beyond that of the ODE is told by the difference of each step to its own first order, whose mean is known.
    """
    m, d, count = 0.4, 10_000, 1_000_000
    problem = Problem(gamma=0.05, p=1, k=1, d=d, Delta=0.1, activation="square", spherical=True)
    replicas = replicas_of([Case(problem, "ode", 0, Recording((1.0,)))], Overlaps([[1.0]], [[m]], [[1.0]]))
    drift, covariance = StepMoments(replicas, 0, trained=False).at(np.eye(1), np.array([[m]]), np.ones(1))
    rng = np.random.default_rng(1)
    u, w, z = rng.standard_normal((3, count))
    lam, norm, step = m * u + np.sqrt(1 - m**2) * w, u**2 + w**2 - 2, problem.step_time()
    c = 2 * lam * (u**2 - lam**2 + np.sqrt(0.1) * z)
    X_M, X_Q = c * u, 2 * c * lam + 0.05 * c**2
    first = X_M - 0.5 * m * X_Q
    beyond = ((m + step * X_M) / np.sqrt(1 + step * (X_Q + 0.05 * c**2 * norm / d)) - m) / step - first
    assert abs(beyond.mean() / step - drift[0]) < 4.5 * beyond.std() / step / np.sqrt(count)
    squares = (first - first.mean()) ** 2
    assert abs(squares.mean() - covariance[0, 0]) < 4.5 * squares.std() / np.sqrt(count)
