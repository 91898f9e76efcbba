"""SGD follows its ODE up to fluctuations of order √(γ/(pd)) (arXiv 2302.05882, theorem 3.1).

Starts are paired: SGD and the ODE of one seed have the same initial overlaps.
"""

import dataclasses

import numpy as np
import pytest

from sweeplib import Problem, simulate
from tests.tiers import slow_but

TIMES = tuple(np.linspace(0.0, 2.0, 21))
OVERLAPS = ("overlap_Q", "overlap_M")
COMMITTEE = Problem(gamma=0.1, p=2, k=2, d=400, Delta=0.1, activation="erf")


def sup_deviations(problem, seeds):
    """Return ‖Ω^ν − Ω(νδt)‖∞ over the times, for each seed."""
    sgd, ode = (
        simulate(problem, dynamics, times=TIMES, seeds=seeds, observables=OVERLAPS) for dynamics in ("sgd", "ode")
    )
    differences = (
        np.abs(sgd[name] - ode[name]).max([dim for dim in sgd[name].dims if dim != "seed"]) for name in OVERLAPS
    )
    return np.maximum(*(difference.values for difference in differences))


def exponent(problems, scales):
    """Return the slope of log E sup-deviation against log scale, and its standard error, from 24 seeds per problem."""
    samples = [sup_deviations(problem, range(24)) for problem in problems]
    means = np.array([sample.mean() for sample in samples])
    errors = np.array([sample.std(ddof=1) / np.sqrt(24) for sample in samples]) / means
    (slope, _), covariance = np.polyfit(np.log(scales), np.log(means), 1, w=1 / errors, cov="unscaled")
    return slope, np.sqrt(covariance[0, 0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("axis", "values"), [("d", (100, 400, 1600)), ("gamma", (0.025, 0.1, 0.4))], ids=["in d", "in gamma"]
)
def test_deviations_scale_as_the_root_of_the_step(axis, values):
    """The exponent of γ/(pd) is within .5 ± .08; its standard error is about .03."""
    problems = [dataclasses.replace(COMMITTEE, **{axis: value}) for value in values]
    slope, error = exponent(problems, [problem.step_time() for problem in problems])
    assert abs(slope - 0.5) < 0.08
    assert error < 0.04


SETTINGS = {
    "erf": COMMITTEE,
    "erf p=10 k=2": Problem(gamma=0.5, p=10, k=2, d=500, Delta=0.001, activation="erf", teacher_start="gaussian"),
    "erf, both layers": dataclasses.replace(COMMITTEE, gamma=0.4, d=1000, a=0.5, second_layer_rate=1.0),
    "square, both layers": Problem(
        gamma=0.1,
        p=4,
        k=1,
        d=1000,
        Delta=0.1,
        activation="square",
        spherical=True,
        m0=0.3,
        a=0.5,
        second_layer_rate=1.0,
    ),
    "batches": Problem(gamma=4.0, p=2, k=2, d=1000, Delta=0.5, activation="erf", batch_size=7),
    "weight noise": dataclasses.replace(COMMITTEE, gamma=0.5, d=1000, temperature=0.3, weight_decay=0.5),
    "relu": Problem(gamma=0.2, p=2, k=2, d=1000, Delta=0.1, activation="relu"),
    "he3": Problem(gamma=0.02, p=2, k=1, d=1000, Delta=0.1, activation="he3", spherical=True, m0=0.4),
    "tanh learns erf": Problem(gamma=0.3, p=2, k=1, d=1000, Delta=0.1, activation="tanh", teacher_activation="erf"),
}


@pytest.mark.rest
@pytest.mark.parametrize("name", slow_but(SETTINGS, "erf, both layers"))
def test_the_mean_of_sgd_is_the_ode(name):
    """|z| < 4.5 of the mean difference over 400 paired seeds at each of three times, beyond a bias of 3/d of the risk.

    By the overlap chain. The ODE is the limit d → ∞: its bias is O(1/d). Without the O(γ²) term z would be over 8.
    """
    problem, times = SETTINGS[name], (0.5, 1.0, 2.0)
    sgd, ode = (simulate(problem, dynamics, times=times, seeds=range(400)).risk for dynamics in ("sgd_chain", "ode"))
    difference = (sgd - ode).values
    error = difference.std(axis=0, ddof=1) / np.sqrt(400)
    allowed = 3 / problem.d * float(ode.max())
    assert (np.abs(difference.mean(axis=0)) < 4.5 * error + allowed).all()
