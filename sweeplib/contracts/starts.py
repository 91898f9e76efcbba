"""What every start keeps.

Public functions of `name`, the registered name of a start, are checks: each raises BrokenError with what is wrong, and
its own name is the sentence that it checks. W (p, d) and W_star (k, d) are weights of student and teacher.
"""

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from sweeplib.contracts.check import require, require_equal, require_refusal
from sweeplib.contracts.problems import OTHERS, needed, two_values
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS, STARTS, Problem
from sweeplib.networks.problem.weights import drawn_weights
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of

D = 30
"""The input dimension."""


def _started(name: str, **fields: Any) -> Problem:
    """Return a problem with a start; it has an overlap m0 if the start needs one."""
    values: dict[str, Any] = {"gamma": 0.1, "p": 3, "k": 2, "d": D, "Delta": 0.0, "activation": "erf", "start": name}
    values |= needed(STARTS[name])
    try:
        return Problem(**(values | fields))
    except InputError as refusal:
        if refusal.key != "m0":
            raise
        return Problem(**(values | {"m0": 0.4} | fields))


def its_weights_are_the_same_whenever_they_are_drawn(name: str) -> None:
    """Check that weights drawn again are the same, and that those of another seed are finite too, (p, d)."""
    problem = _started(name)
    W, W_star = drawn_weights(problem, root_seed=3, seed=1)
    require(W.shape == (3, D), f"its weights have the shape {W.shape}; expected (p, d) = (3, {D})")
    require(bool(np.isfinite(W).all()), "its weights are not finite")
    again, teacher = drawn_weights(problem, root_seed=3, seed=1)
    require(np.array_equal(again, W), "its weights differ when they are drawn again; `normals` has random numbers")
    require(np.array_equal(teacher, W_star), "it changes the weights of the teacher")


def seeds_start_differently(name: str) -> None:
    """Check that two seeds have other weights."""
    problem = _started(name)
    first, other = (drawn_weights(problem, root_seed=3, seed=seed)[0] for seed in (1, 2))
    require(not np.array_equal(first, other), "all seeds have the same weights")


def rows_on_the_sphere_have_the_norm_root_d(name: str) -> None:
    """Check the norms of its rows if it says `on_sphere`; otherwise, that spherical students refuse it."""
    if not STARTS[name].on_sphere:
        spherical = partial(_started, name, spherical=True)
        require_refusal(spherical, "spherical students take it, although it is not `on_sphere`")
        return
    W, _ = drawn_weights(_started(name, spherical=True), root_seed=0, seed=0)
    require_equal((W**2).sum(axis=1), np.full(3, float(D)), "a squared norm of a row", rtol=1e-9)


def it_depends_on_the_fields_that_it_reads_and_on_no_other(name: str) -> None:
    """Check that weights change with p, k, d, `teacher_start` and the fields of `reads` alone.

    A field that a problem with this start cannot set is left out.
    """
    reads = STARTS[name].acts_on
    unknown = sorted(reads - set(PARAMETERS))
    require(not unknown, f"a problem has no field {', '.join(unknown)}")
    W, _ = drawn_weights(_started(name), root_seed=0, seed=0)
    others = {field: value for field, value in OTHERS.items() if field not in ("p", "k", "d", "start", "teacher_start")}
    others |= {field: two_values(field)[1] for field in STARTS[name].parameter_names}
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
    """Check overlaps and particles against the weights, for two laws of the teacher and another number of particles."""
    problems = [_started(name)]
    with suppress(InputError):  # of a start for rows of the norm √d alone
        problems.append(_started(name, teacher_start="gaussian"))
    for problem in problems:
        _require_overlaps_of_weights(problem)


def _require_overlaps_of_weights(problem: Problem) -> None:
    """Raise BrokenError unless overlaps and particles of the first two seeds are those of their weights."""
    replicas = replicas_of([Case(problem, "sgd", seed, Recording((0.0,))) for seed in (0, 1)])
    for i in (0, 1):
        (W, W_star), (m, q) = replicas.weights(i), replicas.particles(i, None)
        pairs = {"m": (m, W @ W_star.T), "M": (replicas.M[i], W @ W_star.T), "Q": (replicas.Q[i], W @ W.T)}
        pairs |= {"q": (q, np.diag(W @ W.T))}
        for words, (result, expected) in pairs.items():
            require_equal(result, expected / D, words, rtol=1e-9, atol=1e-12)
        require(replicas.particles(i, 7)[0].shape == (7, 2), "seven particles do not have overlaps (7, k)")
