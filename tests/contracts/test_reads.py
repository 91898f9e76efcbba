"""The `reads` of every registered dynamics: they contain every field that changes its numbers, and no other."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from sweeplib import DYNAMICS, OBSERVABLES, InputError, Problem
from sweeplib.problem import DEFAULTS, OBSERVED_FIELDS, OFFSET_FIELDS, PROBLEM_FIELDS
from sweeplib.simulation import Case, Recording, run_cases
from sweeplib.views import OverlapView
from tests.tiers import ALONE, slow_among

PROBLEM = Problem(gamma=0.2, p=2, k=1, d=40, Delta=0.1, activation="square", second_layer_rate=0.1)
TWO = Problem(gamma=0.2, p=2, k=2, d=40, Delta=0.1, activation="square", second_layer_rate=0.1)
"""For what needs a second unit of the teacher."""
REUSED = dataclasses.replace(PROBLEM, samples=20)
"""For what needs a training set."""
CLASSES = Problem(
    gamma=0.2, p=2, k=0, d=40, Delta=0.1, activation="square", second_layer_rate=0.1, data="two_gaussians", contrast=0.3
)
"""For what only a data law reads."""
OTHERS: dict[str, object] = {
    "gamma": 0.1,
    "p": 3,
    "k": 2,
    "d": 50,
    "Delta": 0.2,
    "activation": "erf",
    "teacher_activation": "linear",
    "spherical": True,
    "a": 0.5,
    "a_star": 0.5,
    "second_layer_rate": 0.2,
    "offset_scale": 0.4,
    "offset_rate": 0.5,
    "target": "lam1*lam2",
    "data": "two_gaussians",
    "contrast": 0.6,
    "start": "sphere",
    "start_scale": 0.8,
    "m0": 0.3,
    "teacher_start": "gaussian",
    "batch_size": 3,
    "repeats": 2,
    "samples": 1000,
    "sampling": "epochs",
    "second_layer_samples": 30,
    "ridge": 0.5,
    "schedule": "1/(1 + t)",
}


def case(
    problem: Problem,
    dynamics: str,
    observables: tuple[str, ...],
    pair_by: tuple[str, ...] | None = (),
    thresholds: tuple[float, ...] = (0.01,),
) -> Case:
    """Return a case with the same samples as all others: numbers then differ by the fields read, not by the stream."""
    cheaper = {"dmft": (("paths", 2**15),), "nonlinear_dynamics": (("particles", 64),)}
    options = cheaper.get(dynamics, ())
    return Case(problem, dynamics, 0, Recording((0.0, 0.5), thresholds, observables), options=options, pair_by=pair_by)


def numbers(one: Case) -> dict[str, np.ndarray]:
    return run_cases([one]).data


def same(one: Case, other: Case) -> bool:
    """Return whether all recorded numbers of two cases agree to the bit."""
    first, second = numbers(one), numbers(other)
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in first | second)


def built_in() -> list[str]:
    return sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))


def test_every_field_is_tried() -> None:
    assert OTHERS.keys() == set(PROBLEM_FIELDS)


def needs_teacher(observable: str) -> bool:
    known = OBSERVABLES[observable]
    return known.needs_teacher or "teacher" in known.dims_of(OverlapView)


def suited(problem: Problem, dynamics: str) -> Problem:
    """Return the problem, in few dimensions, or with a data set and long steps, for the dynamics that needs these."""
    if dynamics == "weight_flow":
        return dataclasses.replace(problem, d=3)
    if dynamics != "dmft":
        return problem
    return dataclasses.replace(problem, gamma=8.0, batch_size=80, samples=80)


def pair(field: str, dynamics: str) -> tuple[Problem, Problem]:
    """Return two problems that differ in a field; in both of a full batch if they differ in one of these."""
    one = suited({"target": TWO, "sampling": REUSED, "contrast": CLASSES}.get(field, PROBLEM), dynamics)
    if field == "data":
        return one, suited(CLASSES, dynamics)
    both = ("batch_size", "samples") if dynamics == "dmft" and field in ("batch_size", "samples") else (field,)
    value = {("dmft", "gamma"): 4.0, ("weight_flow", "d"): 4}.get((dynamics, field), OTHERS[field])
    return one, dataclasses.replace(one, **dict.fromkeys(both, value))


def acts_on(dynamics: str, field: str) -> bool:
    return field in DYNAMICS[dynamics].reads


OF_OVERLAPS = [name for name in built_in() if issubclass(DYNAMICS[name].view, OverlapView)]
REFUSED = [
    (name, field) for name in built_in() for field in DEFAULTS if not acts_on(name, field) | (field in OBSERVED_FIELDS)
]
REFUSED.remove(("dmft", "sampling"))  # the choice of batches is nothing to a full batch, which has one


def tier(name: str, field: str) -> Any:
    """Return the mark of a test whose kernels no other test needs."""
    if field == "teacher_activation":
        return pytest.mark.long
    batches = name in ("sgd", "sgd_chain") and field in ("batch_size", "repeats")
    return pytest.mark.slow if batches or name in ALONE else ()


ACCEPTED = [
    pytest.param(name, field, marks=tier(name, field))
    for name in built_in()
    for field in PROBLEM_FIELDS
    if acts_on(name, field)
]


def recorded(dynamics: str, which: str) -> tuple[str, ...]:
    """Return the risk, or all observables that the dynamics has but for those that need other fields."""
    view = OverlapView if issubclass(DYNAMICS[dynamics].view, OverlapView) else DYNAMICS[dynamics].view
    return ("risk",) if which == "risk" else tuple(name for name, one in OBSERVABLES.items() if one.is_of(view))


@pytest.mark.parametrize("which", ["risk", "all"])
@pytest.mark.parametrize(("dynamics", "field"), ACCEPTED)
def test_numbers_change_with_what_is_read_and_with_nothing_else(dynamics: str, field: str, which: str) -> None:
    observables, thresholds = recorded(dynamics, which), (0.01,)
    if field in ("data", "contrast"):  # without a teacher
        thresholds, observables = (), tuple(name for name in observables if not needs_teacher(name))
    if field in OFFSET_FIELDS:  # without exits and drifts of overlaps
        thresholds, observables = (), tuple(name for name in observables if not OBSERVABLES[name].uses_drifts)
    problems = pair(field, dynamics)
    one, other = (case(problem, dynamics, observables, thresholds=thresholds) for problem in problems)
    reads = DYNAMICS[dynamics].reads.union(*(OBSERVABLES[name].reads for name in observables))
    assert same(one, other) == (field not in reads)
    assert (one.identity() == other.identity()) == (field not in reads)


@pytest.mark.parametrize(("dynamics", "field"), REFUSED)
def test_a_field_that_is_not_read_is_refused_unless_it_has_its_default(dynamics: str, field: str) -> None:
    """The message has the value, its default, and the dynamics that act on the field."""
    one, other = pair(field, dynamics)
    if field in ("sampling", "contrast"):  # that without which there is none is refused first
        field, other = {"sampling": "samples", "contrast": "data"}[field], one
    with pytest.raises(InputError) as caught:
        case(other, dynamics, ("risk",)).check()
    assert caught.value.key == field
    assert caught.value.value == getattr(other, field)
    said = str(caught.value)
    assert f"{dynamics} does not act on {field}" in said
    assert f"expected {json.dumps(DEFAULTS[field])}, its default; or a dynamics that acts on it: " in said
    acting = [name for name in built_in() if acts_on(name, field)]
    assert ", ".join(acting) in said or "none yet" in said


@pytest.mark.parametrize("dynamics", slow_among(built_in(), *ALONE))
def test_samples_are_read_where_seeds_part(dynamics: str) -> None:
    """`pair_by` does not change the results of a dynamics without samples."""
    problem = suited(PROBLEM, dynamics)
    one, other = (case(problem, dynamics, ("risk",), pair_by) for pair_by in (("d",), ("d", "gamma")))
    assert same(one, other) == (not DYNAMICS[dynamics].stochastic)
    assert (one.identity() == other.identity()) == (not DYNAMICS[dynamics].stochastic)


@pytest.mark.slow
def test_the_error_of_drifts_that_gradient_flow_does_not_use_is_not_recorded() -> None:
    """Drifts by quadrature have an error; the recorded one leaves out the variance term, which contains Δ."""
    noisy, silent = (
        case(Problem(gamma=0.2, p=1, k=1, d=40, Delta=Delta, activation="relu"), "gradient_flow", ("risk",))
        for Delta in (0.0, 1.0)
    )
    assert "drift_error" in numbers(noisy)
    assert same(noisy, silent)


@pytest.mark.parametrize("field", sorted(OBSERVED_FIELDS))
@pytest.mark.parametrize("dynamics", slow_among(OF_OVERLAPS, *set(ALONE) & set(OF_OVERLAPS)))
def test_a_field_of_observables_needs_one_that_reads_it(dynamics: str, field: str) -> None:
    """It changes the observable, and the identity, but not the run."""
    one, other = pair(field, dynamics)
    with pytest.raises(InputError, match=r"no recorded observable reads .*; or an observable that reads it: refitted"):
        case(other, dynamics, ("risk", "noise_trace")).check()
    cases = [case(problem, dynamics, ("risk", "refitted_risk"), None) for problem in (one, other)]
    first, second = (numbers(each) for each in cases)
    np.testing.assert_array_equal(first["risk"], second["risk"])
    assert (first["refitted_risk"] != second["refitted_risk"]).all()
    assert cases[0].identity() != cases[1].identity()
