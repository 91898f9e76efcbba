"""What every target keeps.

Monte Carlo: 2·10⁵ samples at a fixed seed, |z| < 5 for each of some 20 entries: a wrong alarm with 10⁻⁵.

Public functions of `name`, the registered name of a target, are checks: each raises BrokenError with what is wrong, and
its own name is the sentence that it checks. Fields λ (2, ...) and λ* (k, ...) are those of two students and the
teacher.
"""

import math
from dataclasses import replace

import numpy as np

from sweeplib.contracts.check import remembered, require, require_equal, require_labelled
from sweeplib.contracts.problems import needed, two_values
from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.problem import Problem, problem_expectations, target
from sweeplib.networks.problem.targets.target import TARGET_FIELDS

SAMPLES, MOST = 200_000, 5.0
STUDENTS = ("erf", "square")
"""Activations, one odd and one even, of the students that learn a target."""
A, DELTA = np.array([1.0, -0.7]), 0.3
"""The second layer of the students, and the variance of the label noise."""


@remembered
def _taught(name: str, student: str = "erf") -> Problem:
    """Return a problem of two students that has the target."""
    k, parameters = target(name).k or 2, needed(target(name))
    return Problem(gamma=0.1, p=2, k=k, d=20, Delta=DELTA, activation=student, target=name, **parameters)


def _factor(k: int) -> Array:
    """Return F of Ω = F Fᵀ, fields none of which is independent of another, nor of variance one."""
    scales = np.resize([1.0, 0.9, 1.2, 0.8, 1.1], 2 + k)[:, None]
    return np.random.default_rng(3).normal(size=(2 + k, 4 + k)) * scales / math.sqrt(4 + k)


def _samples(problem: Problem) -> Array:
    """Return the risk, Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of each sample (entries, samples), the label noise averaged."""
    factor = _factor(problem.k)
    fields = factor @ np.random.default_rng(8).normal(size=(factor.shape[1], SAMPLES))
    lam, lam_star = fields[:2], np.ascontiguousarray(fields[2:])
    form = activation(problem.activation)
    value, slope = function_values(form.value, lam), function_values(form.derivative, lam)
    error = labels(problem.learned, problem.teacher, lam_star, np.ones(problem.k)) - A @ value / 2
    pull = A[:, None] * slope * error
    flow = pull[:, None] * lam
    pulls = A[:, None] * slope
    square = pulls[:, None] * pulls * (error**2 + DELTA)
    parts = 0.5 * error**2, pull[:, None] * lam_star, flow + flow.swapaxes(0, 1), square, value * error
    return np.concatenate([array.reshape(-1, SAMPLES) for array in parts])


def its_labels_are_finite_and_the_same_again(name: str) -> None:
    """Check that labels are finite, and that `labels` returns the same compiled function for equal arguments."""
    problem = _taught(name)
    definition = target(problem.learned)
    same = definition.labels(problem.teacher) is definition.labels(problem.teacher)
    require(same, "`labels` returns another function each time; define it outside, or use functools.cache")
    fields = np.random.default_rng(1).normal(size=(problem.k, 50))
    first, other = (labels(problem.learned, problem.teacher, fields, np.ones(problem.k)) for _ in range(2))
    require(bool(np.isfinite(first).all()), "its labels are not finite")
    require(np.array_equal(first, other), "its labels differ from call to call")


def its_expectations_are_the_means_of_its_labels(name: str) -> None:
    """Check risk and drifts of two students by Monte Carlo of the labels; students that it refuses are left out."""
    refusals = []
    for student in STUDENTS:
        try:
            problem_expectations(_taught(name, student))
        except InputError as refusal:
            refusals.append(str(refusal))
        else:
            _compare_with_labels(_taught(name, student))
    require(len(refusals) < len(STUDENTS), f"it has expectations for neither {' nor '.join(STUDENTS)}: {refusals[:1]}")


def _system(problem: Problem) -> System:
    """Return the overlaps and second layers of the students of the samples."""
    omega, k = _factor(problem.k) @ _factor(problem.k).T, problem.k
    Q, M, P = (np.ascontiguousarray(array) for array in (omega[:2, :2], omega[:2, 2:], omega[2:, 2:]))
    return System(Q, M, P, A, np.ones(k), DELTA, 1.0)


def drifts_of_many_systems_are_those_of_one(name: str) -> None:
    """Check the drifts of two equal systems at a time, as kernels ask for them."""
    for student in STUDENTS:
        try:
            rules = problem_expectations(_taught(name, student))
        except InputError:
            continue
        system = _system(_taught(name, student))
        many = System(*(np.repeat(np.asarray(array)[..., None], 2, axis=-1) for array in system[:7]))
        for first, both in zip(rules.drifts_of(system), rules.drifts_of_many(many), strict=True):
            expected = np.repeat(first[..., None], 2, axis=-1)
            require_equal(both, expected, f"drifts of many systems for {student}", rtol=1e-10, atol=1e-12)


def _compare_with_labels(problem: Problem) -> None:
    """Raise BrokenError unless expectations agree with means over labels within `MOST` standard errors."""
    samples, result, system = _samples(problem), problem_expectations(problem), _system(problem)
    risk = result.risks(*(array[None] for array in system[:5]))
    expected = np.concatenate([risk, *(drift.ravel() for drift in result.drifts_of(system))])
    spread = samples.std(axis=1) / math.sqrt(SAMPLES)
    z = np.abs(samples.mean(axis=1) - expected) / np.where(spread > 0.0, spread, 1e-12)
    worst = int(z.argmax())
    parts = {"risk": 1, "drift of M": 2 * problem.k, "drift of Q": 4, "variance in the drift of Q": 4, "drift of a": 2}
    words = np.repeat(list(parts), list(parts.values()))[worst]
    mean = f"{samples[worst].mean():.4g} ± {spread[worst]:.1g}"
    text = f"the {words} of {problem.activation} is {expected[worst]:.4g}; the mean over its labels is {mean}"
    require(bool(z[worst] < MOST), text)


def it_reads_fields_of_a_target(name: str) -> None:
    """Check that it reads only fields that targets read, and that it is labelled."""
    definition = target(name)
    unknown = sorted(definition.reads - TARGET_FIELDS)
    require(not unknown, f"`reads` has {', '.join(unknown)}; expected {' or '.join(sorted(TARGET_FIELDS))}")
    require_labelled(definition, name, "label")


def its_labels_change_with_what_it_reads_and_with_nothing_else(name: str) -> None:
    """Check that labels change with a* and the teacher's activation exactly if it reads them."""
    definition, problem = target(name), _taught(name)
    fields, ones = np.random.default_rng(1).normal(size=(problem.k, 50)), np.ones(problem.k)
    first = labels(problem.learned, "erf", fields, ones)
    others = {"a_star": ("erf", 2.0 * ones), "teacher_activation": ("square", ones)}
    for field, (teacher, a_star) in others.items():
        same = np.array_equal(first, labels(problem.learned, teacher, fields, a_star))
        require(same or field in definition.reads, f"its labels change with {field}, which its `reads` does not name")
        require(not same or field not in definition.reads, f"its `reads` names {field}, but its labels are the same")
    for field in definition.parameter_names:
        other = replace(problem, **{field: two_values(field)[1]})
        same = np.array_equal(first, labels(other.learned, "erf", fields, ones))
        require(not same, f"its labels are the same with another {field}")
