"""What every start, target and data law keeps.

Monte Carlo of a target: 2·10⁵ samples at a fixed seed, |z| < 5 for each of some 20 entries: a wrong alarm with 10⁻⁵.
"""

import math
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from sweeplib.contracts.check import BrokenError, Check, require, require_equal
from sweeplib.errors import InputError
from sweeplib.kernels.labels import labels
from sweeplib.maths.activations import activation
from sweeplib.maths.expectations.system import System
from sweeplib.numerics.compiled import function_values
from sweeplib.problem import DATA, PARAMETERS, STARTS, TASKS, Part, Problem, problem_expectations, target
from sweeplib.problem.targets.target import TARGET_FIELDS
from sweeplib.problem.weights import drawn_weights
from sweeplib.simulation import Case, Recording, Status, run_cases
from sweeplib.simulation.driver import replicas_of

Array = NDArray[np.float64]

PROBLEMS = (
    Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf"),
    Problem(gamma=0.1, p=2, k=1, d=60, Delta=0.1, activation="square", spherical=True),
)
"""What dynamics are tried on."""
OTHERS: dict[str, Any] = {name: known.example for name, known in PARAMETERS.items()} | {
    "p": 3,
    "k": 2,
    "d": 50,
    "Delta": 0.2,
    "teacher_activation": "linear",
    "a": 0.5,
    "a_star": 0.5,
    "second_layer_rate": 0.2,
    "offset_scale": 0.4,
    "offset_rate": 0.5,
    "contrast": 0.6,
    "m0": 0.3,
    "batch_size": 3,
    "repeats": 2,
    "samples": 1000,
    "second_layer_samples": 30,
    "ridge": 0.5,
    "switch_time": 0.1,
    "keep_probability": 0.9,
    "task_order": (2, 1),
}
"""Another value of each field of a problem than in the following ones: its example, or one that suits them."""
COMMON: dict[str, Any] = {
    "gamma": 0.2,
    "p": 2,
    "d": 40,
    "Delta": 0.1,
    "activation": "square",
    "second_layer_rate": 0.1,
}
CHANGED = Problem(k=1, **COMMON)
"""The problem of which a field is changed; and, for some fields, another one."""
CHANGED_OF: dict[str, Problem] = {
    "target": replace(CHANGED, k=2),
    "sampling": replace(CHANGED, samples=20),
    "contrast": Problem(**COMMON, k=0, data="two_gaussians", contrast=0.3),
    "huber_delta": replace(CHANGED, loss="huber", p=1),
    "clip_norm": replace(CHANGED, update="clipped", p=1),
    "adagrad_start": replace(CHANGED, update="adagrad_norm"),
    "momentum": replace(CHANGED, update="heavy_ball"),
    "update": replace(CHANGED, p=1),
    "eigenvalues": Problem(**COMMON, k=1, data="spectrum", eigenvalues=(3.0, 1.0), fractions=(1.0, 2.0)),
    "fractions": Problem(**COMMON, k=1, data="spectrum", eigenvalues=(3.0, 1.0), fractions=(1.0, 1.0)),
    "level_ratio": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "level_fraction": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "teacher_block": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "exponent": Problem(**COMMON, k=1, data="power_law", exponent=0.5, bins=4),
    "bins": Problem(**COMMON, k=1, data="power_law", exponent=0.5, bins=4),
    "tasks": replace(CHANGED, k=2),
    **{name: Problem(**COMMON, k=2, tasks="in_turn", switch_time=0.2) for name in TASKS["in_turn"].own},
}

SAMPLES, MOST = 200_000, 5.0
STUDENTS = ("erf", "square")
"""Activations, one odd and one even, of the students that learn a target."""
A, DELTA = np.array([1.0, -0.7]), 0.3
D = 30


def two_values(name: str) -> tuple[Any, Any]:
    """Return two values of a parameter: its default, if it has one, its example, or others; BrokenError without two."""
    known, found = PARAMETERS[name], list[Any]()
    example, more = known.example, list[Any]()
    if isinstance(example, int | float):
        more = [0.5 * example, example + 1]
    elif isinstance(example, list) and isinstance(example[0], float):
        more = [[0.5 * example[0], *example[1:]]]
    for value in (known.default, example, OTHERS.get(name), *more):
        with suppress(pydantic.ValidationError):
            if value is not None and known.adapter.validate_python(value) not in found:
                found.append(known.adapter.validate_python(value))
    require(len(found) > 1, f"its parameter {name} has one value alone; its example is not its default")
    return found[0], found[1]


def needed(part: Part) -> dict[str, Any]:
    """Return values of the parameters that a part needs."""
    return {name: two_values(name)[0] for name in part.needed}


def _started(name: str, **fields: Any) -> Problem:
    """Return a problem with a start; it has an overlap m0 if the start needs one."""
    given: dict[str, Any] = {"gamma": 0.1, "p": 3, "k": 2, "d": D, "Delta": 0.0, "activation": "erf", "start": name}
    given |= needed(STARTS[name])
    try:
        return Problem(**(given | fields))
    except InputError as refusal:
        if refusal.key != "m0":
            raise
        return Problem(**(given | {"m0": 0.4} | fields))


def its_weights_are_the_same_whenever_they_are_drawn(name: str) -> None:
    """And those of another seed are finite too, (p, d)."""
    problem = _started(name)
    W, W_star = drawn_weights(problem, root_seed=3, seed=1)
    require(W.shape == (3, D), f"its weights have the shape {W.shape}; expected (p, d) = (3, {D})")
    require(bool(np.isfinite(W).all()), "its weights are not finite")
    again, teacher = drawn_weights(problem, root_seed=3, seed=1)
    require(np.array_equal(again, W), "its weights differ when they are drawn again; `normals` has random numbers")
    require(np.array_equal(teacher, W_star), "it changes the weights of the teacher")


def seeds_start_differently(name: str) -> None:
    """The random numbers are those of the replica, or the teacher is."""
    problem = _started(name)
    one, other = (drawn_weights(problem, root_seed=3, seed=seed)[0] for seed in (1, 2))
    require(not np.array_equal(one, other), "all seeds have the same weights")


def rows_on_the_sphere_have_the_norm_root_d(name: str) -> None:
    """If it says `on_sphere`; otherwise spherical students refuse it."""
    if not STARTS[name].on_sphere:
        try:
            _started(name, spherical=True)
        except InputError:
            return
        raise BrokenError("spherical students take it, although it is not `on_sphere`")
    W, _ = drawn_weights(_started(name, spherical=True), root_seed=0, seed=0)
    require_equal((W**2).sum(axis=1), np.full(3, float(D)), "a squared norm of a row", rtol=1e-9)


def it_depends_on_the_fields_that_it_reads_and_on_no_other(name: str) -> None:
    """In addition to p, k, d and `teacher_start`. A field that a problem with it cannot set is left out."""
    reads = STARTS[name].acts_on
    unknown = sorted(reads - set(PARAMETERS))
    require(not unknown, f"a problem has no field {', '.join(unknown)}")
    W, _ = drawn_weights(_started(name), root_seed=0, seed=0)
    others = {field: value for field, value in OTHERS.items() if field not in ("p", "k", "d", "start", "teacher_start")}
    others |= {field: two_values(field)[1] for field in STARTS[name].own}
    for field, value in (others | {"gamma": 0.3, "activation": "square"}).items():
        try:
            problem = _started(name, **{field: value})
        except InputError:
            continue
        same = np.array_equal(W, drawn_weights(problem, root_seed=0, seed=0)[0])
        require(same or field in reads, f"it changes with {field}, which its `reads` does not name")
        require(
            not same or field not in reads, f"its `reads` names {field}, but its weights are the same with {value!r}"
        )


def overlaps_and_particles_are_those_of_the_weights(name: str) -> None:
    """For one width and for another number of particles."""
    replicas = replicas_of([Case(_started(name), "sgd", seed, Recording((0.0,))) for seed in (0, 1)])
    for i in (0, 1):
        (W, W_star), (m, q) = replicas.weights(i), replicas.particles(i, None)
        pairs = {"m": (m, W @ W_star.T), "M": (replicas.M[i], W @ W_star.T), "Q": (replicas.Q[i], W @ W.T)}
        pairs |= {"q": (q, np.diag(W @ W.T))}
        for words, (found, expected) in pairs.items():
            require_equal(found, expected / D, words, rtol=1e-9, atol=1e-12)
        require(replicas.particles(i, 7)[0].shape == (7, 2), "seven particles do not have overlaps (7, k)")


START_CHECKS: tuple[Check, ...] = (
    its_weights_are_the_same_whenever_they_are_drawn,
    seeds_start_differently,
    rows_on_the_sphere_have_the_norm_root_d,
    it_depends_on_the_fields_that_it_reads_and_on_no_other,
    overlaps_and_particles_are_those_of_the_weights,
)


@cache
def _taught(name: str, student: str = "erf") -> Problem:
    """Return a problem of two students that has the target."""
    k, own = target(name).k or 2, needed(target(name))
    return Problem(gamma=0.1, p=2, k=k, d=20, Delta=DELTA, activation=student, target=name, **own)


def _factor(k: int) -> Array:
    """Return F of Ω = F Fᵀ, fields none of which is independent of another, nor of variance one."""
    scales = np.resize([1.0, 0.9, 1.2, 0.8, 1.1], 2 + k)[:, None]
    factor: Array = np.random.default_rng(3).normal(size=(2 + k, 4 + k)) * scales / math.sqrt(4 + k)
    return factor


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
    return np.concatenate([part.reshape(-1, SAMPLES) for part in parts])


def its_labels_are_finite_and_the_same_again(name: str) -> None:
    """`labels` returns the same function for equal arguments, and that function is compiled."""
    problem = _taught(name)
    known = target(problem.learned)
    same = known.labels(problem.teacher) is known.labels(problem.teacher)
    require(same, "`labels` returns another function each time; define it outside, or use functools.cache")
    fields = np.random.default_rng(1).normal(size=(problem.k, 50))
    one, other = (labels(problem.learned, problem.teacher, fields, np.ones(problem.k)) for _ in range(2))
    require(bool(np.isfinite(one).all()), "its labels are not finite")
    require(np.array_equal(one, other), "its labels differ from call to call")


def its_expectations_are_the_means_of_its_labels(name: str) -> None:
    """Risk and drifts of two students, by Monte Carlo of the labels; students that it refuses are left out."""
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
    Q, M, P = (np.ascontiguousarray(part) for part in (omega[:2, :2], omega[:2, 2:], omega[2:, 2:]))
    return System(Q, M, P, A, np.ones(k), DELTA, 1.0)


def drifts_of_many_systems_are_those_of_one(name: str) -> None:
    """As kernels ask for them, of two equal systems at a time."""
    for student in STUDENTS:
        try:
            rules = problem_expectations(_taught(name, student))
        except InputError:
            continue
        system = _system(_taught(name, student))
        many = System(*(np.repeat(np.asarray(part)[..., None], 2, axis=-1) for part in system[:7]))
        for one, both in zip(rules.drifts_of(system), rules.drifts_of_many(many), strict=True):
            expected = np.repeat(one[..., None], 2, axis=-1)
            require_equal(both, expected, f"drifts of many systems for {student}", rtol=1e-10, atol=1e-12)


def _compare_with_labels(problem: Problem) -> None:
    """Raise BrokenError unless expectations agree with means over labels within `MOST` standard errors."""
    samples, found, system = _samples(problem), problem_expectations(problem), _system(problem)
    risk = found.risks(*(part[None] for part in system[:5]))
    expected = np.concatenate([risk, *(drift.ravel() for drift in found.drifts_of(system))])
    spread = samples.std(axis=1) / math.sqrt(SAMPLES)
    z = np.abs(samples.mean(axis=1) - expected) / np.where(spread > 0.0, spread, 1e-12)
    worst = int(z.argmax())
    parts = {"risk": 1, "drift of M": 2 * problem.k, "drift of Q": 4, "variance in the drift of Q": 4, "drift of a": 2}
    words = np.repeat(list(parts), list(parts.values()))[worst]
    mean = f"{samples[worst].mean():.4g} ± {spread[worst]:.1g}"
    said = f"the {words} of {problem.activation} is {expected[worst]:.4g}; the mean over its labels is {mean}"
    require(bool(z[worst] < MOST), said)


def it_reads_fields_of_a_target(name: str) -> None:
    """Those that only targets read, and it is labelled."""
    known = target(name)
    unknown = sorted(known.reads - TARGET_FIELDS)
    require(not unknown, f"`reads` has {', '.join(unknown)}; expected {' or '.join(sorted(TARGET_FIELDS))}")
    require(known.name == name, f"its name is {known.name!r}")
    require(bool(known.label), "its label is empty")


def its_labels_change_with_what_it_reads_and_with_nothing_else(name: str) -> None:
    """With a* and the activation of the teacher."""
    known, problem = target(name), _taught(name)
    fields, ones = np.random.default_rng(1).normal(size=(problem.k, 50)), np.ones(problem.k)
    one = labels(problem.learned, "erf", fields, ones)
    others = {"a_star": ("erf", 2.0 * ones), "teacher_activation": ("square", ones)}
    for field, (teacher, a_star) in others.items():
        same = np.array_equal(one, labels(problem.learned, teacher, fields, a_star))
        require(same or field in known.reads, f"its labels change with {field}, which its `reads` does not name")
        require(not same or field not in known.reads, f"its `reads` names {field}, but its labels are the same")
    for field in known.own:
        other = replace(problem, **{field: two_values(field)[1]})
        same = np.array_equal(one, labels(other.learned, "erf", fields, ones))
        require(not same, f"its labels are the same with another {field}")


TARGET_CHECKS: tuple[Check, ...] = (
    its_labels_are_finite_and_the_same_again,
    its_expectations_are_the_means_of_its_labels,
    drifts_of_many_systems_are_those_of_one,
    it_reads_fields_of_a_target,
    its_labels_change_with_what_it_reads_and_with_nothing_else,
)


def _with_data(name: str) -> Problem:
    law = DATA[name]
    given: dict[str, Any] = {"gamma": 0.2, "p": 2, "k": 1 if law.teacher else 0, "d": 400, "Delta": 0.0}
    return Problem(activation="erf", data=name, **given, **needed(law))


def sgd_learns_from_it(name: str) -> None:
    """A short run ends ok, with a finite risk, and is the same again."""
    case = Case(_with_data(name), "sgd", 0, Recording((0.0, 0.5)))
    one, other = run_cases([case]), run_cases([case])
    require(one.status[0] == Status.ok, f"a run of SGD ends {Status(int(one.status[0])).name}")
    require(bool(np.isfinite(one.data["risk"]).all()), "the risk is not finite")
    require_equal(other.data["risk"], one.data["risk"], "the risk of the same run again")


def its_samples_change_with_its_parameters(name: str) -> None:
    """And with no other parameter; it is labelled."""
    law = DATA[name]
    require(not law.reads, f"`reads` has {', '.join(sorted(law.reads))}; its functions have its own parameters alone")
    require(law.name == name, f"its name is {law.name!r}")
    require(bool(law.label), "its label is empty")
    for field in law.own:
        runs = (
            run_cases([Case(replace(_with_data(name), **{field: value}), "sgd", 0, Recording((0.5,)), pair_by=())])
            for value in two_values(field)
        )
        one, other = (run.data["risk"] for run in runs)
        require(not np.array_equal(one, other), f"the risk of SGD is the same with another {field}")


def its_expected_risk_is_that_of_its_samples(name: str) -> None:
    """The training risk of a data set of this law, without noise, at the start: four standard deviations."""
    problem = replace(_with_data(name), samples=4000)
    cases = [Case(problem, "sgd", seed, Recording((0.0,), (), ("risk", "training_risk"))) for seed in range(8)]
    data = run_cases(cases).data
    apart = (data["training_risk"] - data["risk"])[:, 0]
    error = max(apart.std(ddof=1) / math.sqrt(len(apart)), 1e-3 * abs(data["risk"].mean()))
    limit = 5.0 * error + 0.02 * abs(data["risk"].mean())
    problem_found = f"the risk is {data['risk'].mean():.4g}; over 4000 samples it is {data['training_risk'].mean():.4g}"
    require(bool(abs(apart.mean()) < limit), problem_found)


DATA_CHECKS: tuple[Check, ...] = (
    sgd_learns_from_it,
    its_expected_risk_is_that_of_its_samples,
    its_samples_change_with_its_parameters,
)


def its_tasks_are_learned(name: str) -> None:
    """Its course is one of the teacher's rows, and the ODE has the risk of the task that it says."""
    problem = replace(CHANGED, k=2, tasks=name, **needed(TASKS[name]))
    course = problem.course
    require(all(len(a_star) == problem.k for a_star in course.a_star), "a task has not k numbers in a_star")
    require(set(course.order) == set(range(len(course.a_star))), f"its order {course.order} is not one of its tasks")
    require(list(course.switches) == sorted(course.switches), f"its switches {course.switches} are in no order")
    require(len(course.switches) == len(course.order) - 1, "it has not one switch between two phases")
    ends = (*course.switches, 2.0 + max(course.switches, default=0.0))
    found = run_cases([Case(problem, "ode", 0, Recording(ends, (), ("risk", "risk_of_task")))]).data
    own = found["risk_of_task"][0, np.arange(len(ends)), list(course.order)]
    require_equal(found["risk"][0], own, "the risk at the ends of its phases", rtol=1e-12)


TASKS_CHECKS: tuple[Check, ...] = (its_tasks_are_learned,)


def forget() -> None:
    """Forget problems, after plugins were loaded or removed."""
    _taught.cache_clear()
