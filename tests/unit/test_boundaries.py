"""Boundaries between labelled points: located by bisection, or said not to be."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import Analysis
from sweeplib.analysis.answers import State
from sweeplib.analysis.answers.proposers.boundary import next_value
from sweeplib.analysis.answers.proposers.line import Line, Need, Ruler
from sweeplib.config import from_mapping
from sweeplib.engine.design.questions import Precision
from sweeplib.errors import InputError
from tests.labels import LabelledPlane, asked, intervals, labelled_sides, side
from tests.plugged import nothing_left

COARSE = np.linspace(-1.0, 1.0, 9).tolist()
TRUTH = 0.313


@pytest.fixture(autouse=True, scope="module")
def sides() -> Iterator[None]:
    with labelled_sides():
        yield


def slope(x: float, y: float) -> float:
    return 20.0 * (x - TRUTH - 0.5 * y)


@pytest.mark.rest
def test_boundaries_along_two_axes_are_located() -> None:
    plane = LabelledPlane(slope, asked(axes=("x", "y")), xs=COARSE, ys=[-0.5, 0.0, 0.5])
    answers = plane.answered()
    assert {answer.state for answer in answers} == {State.given}
    for answer in answers:
        place = answer.at.get("x", answer.value) - TRUTH - 0.5 * answer.at.get("y", answer.value)
        assert abs(place) <= answer.half_width <= 0.01
    assert len(answers) == 5
    assert len(plane.rows) < 101 * 3 / 4


def test_a_relative_resolution_bisects_logarithms() -> None:
    plane = LabelledPlane(lambda x, y: 20 * np.log(x / 30.0), asked(0.1, relative=True), xs=[1.0, 10.0, 100.0])
    [answer] = plane.answered()
    assert answer.low <= 30.0 <= answer.high <= 1.1 * answer.low


@pytest.mark.rest
@pytest.mark.parametrize("truth", [0.0, 0.25, 0.01])
def test_a_boundary_at_a_point_of_the_grid_or_beside_it_is_located(truth: float) -> None:
    plane = LabelledPlane(lambda x, y: 30.0 * (x - truth), asked(), xs=COARSE, seeds=16)
    [answer] = plane.answered()
    assert answer.state is State.given
    assert answer.low <= truth <= answer.high


def test_each_boundary_of_a_label_that_goes_to_and_fro_is_located() -> None:
    plane = LabelledPlane(lambda x, y: 5.0 * np.cos(4.0 * x), asked(), xs=COARSE)
    ends = [(answer.low, answer.high) for answer in plane.answered() if answer.state is State.given]
    assert len(ends) == 2
    for (low, high), truth in zip(sorted(ends), (-np.pi / 8, np.pi / 8), strict=True):
        assert low <= truth <= high


def test_a_whole_number_has_its_boundary_between_neighbours() -> None:
    plane = LabelledPlane(lambda x, y: x - 7.5, asked(0.5), xs=[1, 4, 16, 32])
    [answer] = plane.answered()
    assert (answer.state, answer.low, answer.high) == (State.given, 7.0, 8.0)
    assert all(isinstance(row[0], int) for row in plane.rows)


def test_runs_that_all_diverge_have_no_answer_at_once() -> None:
    plane = LabelledPlane(slope, asked(), xs=COARSE, status=2)
    answers = plane.answered()
    assert {answer.why for answer in answers} == {"its runs have ended without a result"}
    assert len(plane.rows) == len(COARSE) == len(answers)


def test_points_that_were_never_to_be_run_are_no_answers() -> None:
    plane = LabelledPlane(slope, asked(), xs=COARSE, ys=[0.0, 100.0], runs_at=lambda x, y: y == 0.0)
    [answer] = plane.answered()
    assert answer.state is State.given and answer.low <= TRUTH <= answer.high


def test_points_of_one_label_have_no_boundary_and_say_so() -> None:
    [answer] = LabelledPlane(lambda x, y: 3.0, asked(), xs=COARSE).answered()
    assert answer.state is State.given
    assert answer.line() == "asked: no boundary: all points are above"


def test_points_on_a_boundary_get_seeds_and_then_are_said_to_be_undecided() -> None:
    plane = LabelledPlane(lambda x, y: 0.0, asked(), xs=[0.0, 1.0])
    answers = plane.answered()
    assert {answer.state for answer in answers} == {State.none}
    assert {answer.why for answer in answers} == {"points there are not decided with 512 seeds"}


@pytest.mark.rest
def test_points_that_no_number_of_seeds_decides_get_no_seeds() -> None:
    def stuck(ds: xr.Dataset) -> xr.Dataset:
        labels = side(ds)
        return labels.assign(decidable=(1.0 + 0.0 * labels["label"]).where(labels["x"] > 0.0, 0.05))

    with nothing_left():
        ANALYSES.register("stuck", Analysis("stuck", stuck, "", label="label", decidable="decidable"))
        plane = LabelledPlane(lambda x, y: 0.0, replace(asked(bounds={"d": (10, 20)}), of="stuck"), xs=[0.0, 1.0])
        hopeless, hopeful = plane.answered()
    assert hopeless.state is State.none
    assert hopeless.why == "no number of seeds decides points there with these values of d"
    assert hopeful.why == "points there are not decided with 512 seeds"
    assert {row[0] for row, seeds in plane.rows.items() if seeds > 32} == {1.0}


def test_undecided_points_get_larger_values_of_an_axis_with_bounds_first() -> None:
    plane = LabelledPlane(lambda x, y: 0.0, asked(bounds={"d": (10, 5000)}), xs=[0.0], ds=[10, 100, 1000], largest=2000)
    plane.answered()
    assert sorted(row[2] for row in plane.rows) == [10, 18, 32, 100, 316, 1000, 3160, 5000]
    assert plane.first[0.0, 0.0, 3160] == 4 and plane.rows[0.0, 0.0, 1000] == 512
    assert plane.rows[0.0, 0.0, 5000] == 32  # was not run


def test_a_new_value_is_run_with_all_values_of_a_second_hidden_axis_at_once() -> None:
    """One row got it a round: each label was of half its rows in between."""

    def over_both(ds: xr.Dataset) -> xr.Dataset:
        return side(ds[["risk"]].mean("y"))

    with nothing_left():
        ANALYSES.register("both", Analysis("both", over_both, "", label="label"))
        question = replace(asked(bounds={"d": (10, 40)}), of="both")
        plane = LabelledPlane(lambda x, y: 0.0, question, xs=[0.0], ys=[0.0, 1.0, 2.0], ds=[10, 40], seeds=8)
        plane.answered()
    rounds = {d: [plane.first[0.0, y, d] for y in (0.0, 1.0, 2.0)] for d in (20, 14, 28)}
    assert rounds == {20: [1, 1, 1], 14: [2, 2, 2], 28: [3, 3, 3]}


@pytest.mark.parametrize(
    ("column", "low", "high", "expected"),
    [
        ([100], 100, 1000, 200),
        ([100, 1000], 100, 1000, 316),
        ([100, 1000], 10, 1000, 31.6),
        ([1, 2, 3, 4, 5, 6], 1, 8, 8),
        ([1, 2], 1, 2, None),
        ([1, 2], 1, 3, 3),
        ([1.0], 1, 1.5, 1.5),
    ],
)
def test_the_next_value_of_a_limit(column: list[Any], low: float, high: float, expected: float | None) -> None:
    found = next_value(column, low, high)
    assert found == (round(expected) if expected and isinstance(column[0], int) else expected)
    assert isinstance(found, int) == isinstance(column[0], int) or found is None


def line(x: list[float], codes: list[int], ended: bool = False) -> Line:
    return Line(x, np.array(codes), np.full(len(x), ended), Ruler(Precision(0.1, False)))


def test_a_boundary_beside_an_undecided_point_is_doubted() -> None:
    """One wrong decision among many points near a boundary would pass for one."""
    assert line([0.0, 0.1, 0.2, 0.3], [1, 1, 2, 2]).is_located(1, 2)
    assert line([0.0, 0.1, 0.2, 0.3], [1, 1, 2, 0]).need(1, 2) == Need((), (2, 3))
    assert not line([0.0, 0.1, 0.2, 0.3], [1, 1, 2, 0], ended=True).is_located(1, 2)
    assert line([-1.0, 0.1, 0.2, 1.0], [1, 1, 2, 2]).need(1, 2) == Need((0.0, 0.3), ())


def test_undecided_points_are_enclosed_and_get_seeds_only_where_they_are_wide() -> None:
    assert line([0.0, 0.5, 1.0], [1, 0, 2]).need(0, 2) == Need((0.25, 0.75))
    assert line([0.0, 0.4, 0.5, 1.0], [1, 0, 0, 2]).need(0, 3) == Need((), (1, 2))


def test_no_points_are_added_beside_others_for_ever() -> None:
    """Undecided points over nearly all of the resolution leave no room for decided ones beside them."""
    assert line([0.0, 0.02, 0.11, 0.13], [1, 0, 0, 2], ended=True).need(0, 3) == Need((0.01, 0.12))
    assert line([0.0, 0.0025, 0.099, 0.1015], [1, 0, 0, 2], ended=True).need(0, 3) == Need()
    assert line([0.0, 0.0025, 0.099, 0.1015], [1, 0, 0, 2]).need(0, 3) == Need((), (1, 2))


def regimes(**refine: Any) -> dict[str, Any]:
    return {
        "name": "phases",
        "problem": {"k": 1, "Delta": 0.5, "p": 1, "activation": "erf", "start": "sphere"},
        "grid": {"delta": [0.0, 0.5], "d": [20, 30]},
        "derive": {"gamma": "d**-delta"},
        "seeds": 4,
        "dynamics": ["sgd_chain", "ode", "gradient_flow"],
        "times": [0, 1],
        "observables": ["risk", "student_norm"],
        "figures": [],
        "answers": {"q": {"of": "regimes", "to": "decided", "refine": refine or "seeds"}},
    }


def changed(**question: Any) -> dict[str, Any]:
    asked = regimes()
    return asked | {"answers": {"q": asked["answers"]["q"] | question}}


@pytest.mark.parametrize(
    ("config", "key", "words"),
    [
        (regimes(delta=[0.1, 0.2]), "answers.q.refine.delta", "its resolution"),
        (regimes(d=0.1), "answers.q.refine.d", "two bounds"),
        (regimes(delta="0 %"), "answers.q.refine.delta", "more than 0"),
        (regimes(kappa=0.1), "answers.q.refine.kappa", "delta"),
        (regimes(delta="fine"), "answers.q.refine", "as `{delta: 0.02}`"),
        (changed(of="averages"), "answers.q.of", "regimes"),
        (changed(variable="regimes"), "answers.q.variable", "did you mean 'regime'"),
        (
            changed(to="2 %", of="limits", variable="agreement", refine={"delta": 0.1}),
            "answers.q.refine.delta",
            "labels",
        ),
    ],
)
def test_what_labels_cannot_be_asked_is_refused_at_its_key(config: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        from_mapping(config)
    assert error.value.key == key
    assert words in str(error.value)


def test_labels_may_be_asked_with_seeds_alone() -> None:
    assert from_mapping(regimes()).questions["q"].decided
    bounds = from_mapping(regimes(delta=0.1, d=[20, 100])).questions["q"]
    assert (bounds.resolution, bounds.bounds) == ({"delta": Precision(0.1, False)}, {"d": (20, 100)})


def test_intervals_are_those_of_answers_that_are_given() -> None:
    plane = LabelledPlane(slope, asked(budget=0), xs=COARSE)
    [answer] = plane.answered()
    assert answer.state is State.open and "its budget of 0 cases" in answer.why
    assert not intervals([answer])
