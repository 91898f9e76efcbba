"""What every registered target keeps: its labels are those of its expectations, by Monte Carlo of both.

Of 4·10⁵ samples at fixed seeds, |z| < 5 for each of some 20 entries: beyond by chance with 10⁻⁵ for a fresh seed.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib import Problem
from sweeplib.code.plugins import load_plugins
from sweeplib.contracts.problems import TARGET_CHECKS
from sweeplib.kernels.labels import labels
from sweeplib.maths.activations import ACTIVATIONS
from sweeplib.maths.expectations.system import System
from sweeplib.numerics.compiled import called, over_arrays
from sweeplib.problem import TARGETS, problem_expectations, target
from tests.plugged import nothing_left

MEAN = Path(__file__).parents[1] / "workflow" / "own" / "mean_target.py"
FORMULAS = {
    "lam1*lam2": "square",
    "lam1 + lam1*lam2 + he3(lam3)": "erf",
    "0.5*erf(lam1) - 3*tanh(lam1 + lam2) + 1": "relu",
    "relu(2*lam2 + 0.5)": "erf",
}
"""Formulas and an activation of a student: closed forms, and quadrature of ridge functions."""
OTHERS = [
    "lam1 + lam1*lam2 + lam1*lam2*lam3",
    "lam3**2 + 1",
    "relu(lam1) - relu(-lam2)",
    "he4(lam1)",
]
LONG = [(name, student) for name in (*FORMULAS, *OTHERS) for student in ("erf", "square", "he3", "relu", "tanh")]
SMOOTH = ["erf(lam1)*lam2", "tanh(lam1*lam2)", "he5(lam1)*lam2**4/50"]
"""Formulas that are no sums of ridge functions: quadrature given the teacher's fields."""
LONG += [(name, student) for name in SMOOTH for student in ("erf", "square", "he3", "tanh")]
CASES = [(name, "square") for name in (*TARGETS, "mean")] + list(FORMULAS.items())
CASES += [pytest.param(*case, marks=pytest.mark.long) for case in LONG if case not in CASES]
SAMPLES = 400_000
A, DELTA = np.array([1.0, -0.7]), 0.3


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(MEAN)])
        yield


def made(name, activation):
    """A problem of two students that has the target."""
    return Problem(gamma=0.1, p=2, k=target(name).k or 2, d=20, Delta=DELTA, activation=activation, target=name)


def overlaps(k):
    """Ω, Q, M and P of fields none of which is independent of another, nor of variance one."""
    scales = np.array([1.0, 0.9, 1.2, 0.8, 1.1])[: 2 + k, None]
    factor = np.random.default_rng(3).normal(size=(2 + k, 6)) * scales / math.sqrt(6)
    omega = factor @ factor.T
    return omega, *(np.ascontiguousarray(part) for part in (omega[:2, :2], omega[:2, 2:], omega[2:, 2:]))


def values(function, fields):
    out = np.empty(fields.size)
    called(over_arrays(function), np.ascontiguousarray(fields).ravel(), out)
    return out.reshape(fields.shape)


def samples(problem):
    """The risk, Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of each sample, flat (entries, samples), label noise averaged."""
    omega, *_ = overlaps(problem.k)
    fields = np.linalg.cholesky(omega) @ np.random.default_rng(8).normal(size=(2 + problem.k, SAMPLES))
    lam, lam_star = fields[:2], fields[2:]
    activation = ACTIVATIONS[problem.activation]
    value, slope = values(activation.value, lam), values(activation.derivative, lam)
    error = labels(problem.target, problem.teacher, lam_star, np.ones(problem.k)) - A @ value / 2
    pull = A[:, None] * slope * error
    flow = pull[:, None] * lam
    square = (A[:, None] * slope)[:, None] * (A[:, None] * slope) * (error**2 + DELTA)
    parts = 0.5 * error**2, pull[:, None] * lam_star, flow + flow.swapaxes(0, 1), square, value * error
    return np.concatenate([part.reshape(-1, SAMPLES) for part in parts])


def expected(problem):
    """The same by the expectations."""
    _, Q, M, P = overlaps(problem.k)
    found, ones = problem_expectations(problem), np.ones(problem.k)
    risk = found.risks(*(part[None] for part in (Q, M, P, A, ones)))
    drifts = found.drifts_of(System(Q, M, P, A, ones, DELTA, 1.0))
    return np.concatenate([risk, *(part.ravel() for part in drifts)]), drifts


@pytest.mark.parametrize(("name", "activation"), CASES)
def test_expectations_are_the_means_of_its_labels(name, activation):
    problem = made(name, activation)
    taken, (found, _) = samples(problem), expected(problem)
    z = (taken.mean(axis=1) - found) / (taken.std(axis=1) / math.sqrt(SAMPLES))
    assert np.abs(z).max() < 5.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "activation"), CASES)
def test_drifts_of_many_systems_are_those_of_one(name, activation):
    problem = made(name, activation)
    _, Q, M, P = overlaps(problem.k)
    _, drifts = expected(problem)
    lanes = [np.repeat(part[..., None], 2, axis=-1) for part in (Q, M, P, A, np.ones(problem.k), np.full((), DELTA))]
    rules = problem_expectations(problem)
    for rule in rules, replace(rules, in_lanes=None):
        out = rule.drifts_of_many(System(*lanes, np.ones(2)))
        for one, many in zip(drifts, out, strict=True):
            np.testing.assert_allclose(many, one[..., None] * np.ones(2), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("check", TARGET_CHECKS)
@pytest.mark.parametrize("name", [*TARGETS, "mean"])
def test_target(name, check):
    check(name)


def test_it_is_labelled():
    for name in (*TARGETS, *FORMULAS):
        assert target(name).name == name
        assert target(name).label
