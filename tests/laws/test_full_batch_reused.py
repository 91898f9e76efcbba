"""The full batch reused, against dynamical mean-field theory as n = 2d → ∞: a few giant steps."""

import math

import numpy as np
import pytest

from sweeplib import Problem, simulate
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation
from tests.plugged import nothing_left

STEPS = [1, 2, 3, 6]
THEORY = {
    "overlap_M": [0.6054, 0.6352, 0.6348, 0.6324],
    "overlap_Q": [1.0719, 0.8941, 0.7829, 0.6670],
    "training_risk": [0.2145, 0.1654, 0.1459, 0.1286],
}
"""After these steps, by the effective process with 4·10⁵ samples, whose errors are below .0006."""


def value(field):
    return math.erf(field / math.sqrt(2.0)) + 0.5 * (field**3 - 3.0 * field) / math.sqrt(6.0)


def derivative(field):
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * field**2) + 1.5 * (field**2 - 1.0) / math.sqrt(6.0)


@pytest.fixture
def teacher():
    with nothing_left():
        ACTIVATIONS.register("erf_and_he3", Activation("erf_and_he3", "x", value, derivative, 1))
        yield "erf_and_he3"


@pytest.mark.long
def test_a_few_steps_of_the_full_batch_follow_the_theory(teacher):
    """Means of 40 runs at d = 2000, within 4 standard errors and the error of the theory; the least of 12."""
    d = 2000
    problem = Problem(
        gamma=1.5 * d,
        p=1,
        k=1,
        d=d,
        Delta=0.1,
        activation="erf",
        teacher_activation=teacher,
        m0=0.2,
        samples=2 * d,
        batch_size=2 * d,
    )
    times = [0.0, *(steps * problem.step_time() for steps in STEPS)]
    ds = simulate(problem, "sgd", times=times, seeds=range(40), observables=list(THEORY))
    assert np.allclose(ds.overlap_M[:, 0], 0.2) and np.allclose(ds.overlap_Q[:, 0], 1.0)
    for name, expected in THEORY.items():
        found = ds[name].values.reshape(40, len(times))[:, 1:]
        error = np.hypot(found.std(axis=0, ddof=1) / np.sqrt(40), 6e-4)
        np.testing.assert_array_less(np.abs(found.mean(axis=0) - expected) / error, 4.0)
