"""The analysis `extrapolation` and its question: values of an axis and seeds until a limit is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.analysis import ANALYSES
from sweeplib.analysis.answers import State
from sweeplib.analysis.answers.proposers.extrapolation import LimitAlongAxis
from sweeplib.config import from_mapping
from sweeplib.contracts.datasets import sweep_dataset
from sweeplib.engine.design.questions import Question
from sweeplib.engine.status import STATUS_LABELS, Status
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.extrapolation import extrapolated
from tests.scans import Law, SyntheticSweep
from tests.tiers import slow_among

ALONG: Mapping[str, Any] = {"extrapolation": {"axis": "gamma"}}


def asked(to: float = 0.05, high: float = 1000.0) -> Question:
    return Question("extrapolation", "limit", to, bounds={"gamma": (1.0, high)})


def swept(law: Law, question: Question, **options: Any) -> SyntheticSweep:
    return SyntheticSweep(law, {1.0: 16, 4.0: 16}, question, analyses=options.pop("analyses", ALONG), **options)


@pytest.mark.parametrize("correction", slow_among([0.0, 1.0], 0.0))
def test_values_and_seeds_are_added_until_the_limit_is_known(correction: float) -> None:
    sweep = swept(lambda gamma: 10.0 * (1.0 + correction / gamma), asked())
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 10.0 <= answer.high
    assert answer.half_width <= 0.05 * answer.value
    assert len(sweep.rows) > 2


def test_a_limit_that_its_bounds_do_not_let_be_known_says_so() -> None:
    [answer] = swept(lambda gamma: 10.0, asked(high=5.0)).answered()
    assert answer.state is State.none
    assert "too few values" in answer.why and "no more values between its bounds" in answer.why


def test_points_of_another_form_are_no_answer() -> None:
    [answer] = swept(lambda gamma: 10.0 + 5.0 * gamma**2, asked()).answered()
    assert answer.state is State.none
    assert "deviate from the law" in answer.why


def test_runs_that_do_not_exit_leave_their_point_out() -> None:
    sweep = swept(lambda gamma: 10.0, asked(0.2, 64.0), never=lambda gamma: 0.5 * (gamma > 10), horizon=1e3)
    [answer] = sweep.answered()
    assert answer.low <= 10.0 <= answer.high
    assert max(sweep.rows) < 64.0


@pytest.mark.parametrize(
    ("options", "key", "words"),
    [
        ({"of": "exit_step"}, "of", "did you mean 'exit_steps'"),
        ({"of": "limit"}, "of", "not a quantity"),
        ({"axis": "Delta"}, "axis", "above 0"),
        ({"axis": "p"}, "axis", "d"),
        ({"axis": "p", "of": "gain"}, "axis", "goes to"),
        ({"axis": "threshold"}, "axis", "d"),
        ({"law": "exponential"}, "law", "constant"),
        ({"correction": 0}, "correction", "greater"),
        ({"of": "risk", "time": 0.123}, "time", "recorded time"),
        ({"time": 1.0}, "time", "recorded time"),
    ],
)
def test_what_has_no_limit_is_refused_at_its_option(options: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        analysis.extrapolation(sweep_dataset(seeds=4, d=(100, 300, 1000)), **options)
    assert error.value.key == key
    assert words in str(error.value)


def test_results_of_functions_may_be_named_as_the_limit_and_as_quantities_of_analyses() -> None:
    ds = sweep_dataset(seeds=4, d=(100, 300, 1000))
    outline = outline_of(ds.assign(limit=ds.risk, gain=ds.risk))
    assert "limit" in ANALYSES["extrapolation"].outlined(outline, {"of": "limit"}).variables
    with pytest.raises(InputError) as error:
        ANALYSES["extrapolation"].outlined(outline, {"of": "limits"})
    assert len(set(error.value.choices)) == len(error.value.choices)


def test_a_power_is_the_exponent_and_a_quantity_over_a_power_has_less() -> None:
    ds = sweep_dataset(seeds=200, d=(100, 300, 1000, 3000, 10000, 100000), ratios=(1.0,), dynamics=("sgd_chain",))
    whole = analysis.extrapolation(ds, law="power", correction=1)
    over = analysis.extrapolation(ds, law="power", per=1, correction=1)
    np.testing.assert_allclose(whole.limit, over.limit + 1.0, atol=1e-6)
    assert "exponent of d of the mean exit steps" in whole.limit.attrs["long_name"]
    assert (whole.limit_low < whole.limit).all()


@pytest.mark.parametrize("lost", [0, 4])
@pytest.mark.parametrize("of", ["exit_steps", "risk"])
def test_starts_that_points_share_do_not_average_out(of: str, lost: int) -> None:
    """Twelve equal points are as uncertain as one; with independent errors the interval was a quarter of this.

    They were taken for independent exits where more runs are lost than `max_lost` of other analyses lets pass.
    """
    ds = SyntheticSweep(lambda gamma: 10.0, dict.fromkeys(np.geomspace(1.0, 1000.0, 12), 32), asked()).dataset()
    ds["status"].loc[{"seed": range(lost)}] = Status.failed
    for name in ("exit_steps", "end_steps", "exit_time", "end_time"):
        ds[name].values[:] = ds[name].values[:, :1]
        ds[name].loc[{"seed": range(lost)}] = np.nan
    ds = ds.assign(risk=ds.exit_steps.rename(threshold="time").assign_coords(time=[1.0]))
    found = analysis.extrapolation(ds, axis="gamma", of=of, max_lost=0.2).squeeze()
    error = ds.exit_steps.isel(gamma=0).std("seed", ddof=1).item() / np.sqrt(32 - lost)
    assert 0.5 * float(found.limit_high - found.limit_low) > 1.9 * error


def test_errors_of_points_without_parts_of_seeds_are_independent() -> None:
    x, values, errors = np.geomspace(1.0, 100.0, 8), np.ones(8), np.array([0.1] * 7 + [0.3])
    alone, without = (
        extrapolated(x, values, errors, 3.0, "constant", 0.5, 0.95, parts) for parts in (np.eye(8), np.zeros((8, 8)))
    )
    assert without[:3] == pytest.approx(alone[:3])


def test_a_limit_of_few_skewed_values_is_not_too_often_above_its_interval() -> None:
    """600 limits of 8 means of 8 lognormal(1) values: 24 at the factor 1 + 2s, 60 without it."""
    values, x = np.random.default_rng(0).lognormal(-0.5, 1.0, (600, 8, 8)), np.geomspace(30.0, 1e5, 8)
    means, errors = values.mean(axis=2), values.std(axis=2, ddof=1) / np.sqrt(8.0)
    limits = [extrapolated(x, *given, 7.0, "constant", 0.5, 0.95) for given in zip(means, errors, strict=True)]
    assert sum(limit.high < 1.0 for limit in limits) <= 33
    mirrored = extrapolated(x, -means[0], errors[0], 7.0, "constant", 0.5, 0.95)
    assert (-mirrored.value, -mirrored.high, -mirrored.low) == pytest.approx(limits[0][:3])


def config(**question: Any) -> dict[str, Any]:
    return {
        "name": "limits",
        "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "gamma": 0.08},
        "grid": {"d": [30, 100], "Delta": [0.5, 1.0]},
        "seeds": 8,
        "dynamics": ["sgd_chain"],
        "times": [0, 40],
        "thresholds": [0.3],
        "figures": [],
        "answers": {"q": {"of": "extrapolation", "to": "20 %", "refine": {"d": [30, 1000]}} | question},
    }


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"refine": {"Delta": [0.1, 1.0]}}, "not the axis of the limit"),
        ({"refine": {"d": [-5, 1000]}}, "at least 1"),
        ({"variable": "untrusted"}, "limit"),
    ],
)
def test_a_question_that_does_not_fit_is_refused(question: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_mapping(config(**question))


def test_a_question_of_a_limit_adds_its_analysis() -> None:
    sweep = from_mapping(config())
    assert sweep.analyses["extrapolation"] == {}
    assert from_mapping(config(refine="seeds")).questions["q"].bounds == {}


def of_a_function(seeds: int = 64) -> xr.Dataset:
    """Return runs of a function of n, a distance in metres, which has no steps."""
    n, dims = np.array([10, 20, 40, 80, 160]), ("dynamics", "n", "seed")
    values = 2.0 + 1.0 / n[:, None] + 0.3 * np.random.default_rng(0).standard_normal((1, 5, seeds))
    return xr.Dataset(
        {
            "distance": (dims, values, {"long_name": "distance", "units": "m"}),
            "status": (dims, np.ones(values.shape, np.uint8), STATUS_LABELS),
        },
        coords={"dynamics": ["walk"], "n": n, "seed": np.arange(seeds)},
        attrs={"function": "walk"},
    )


def test_a_limit_of_a_function_may_be_asked_for_along_an_axis() -> None:
    options = {"of": "distance", "axis": "n"}
    asked = Question("extrapolation", "limit", 0.001, bounds={"n": (10.0, 1000.0)}, options=options)
    [answer] = LimitAlongAxis("q", asked).tell(of_a_function(), options)
    assert answer.state is State.open and answer.requests


@pytest.mark.parametrize(
    ("law", "per", "units"), [("constant", 0, "m"), ("constant", 0.5, "m/n^0.5"), ("power", 0, "1")]
)
def test_a_limit_has_the_units_of_its_quantity(law: str, per: float, units: str) -> None:
    found = analysis.extrapolation(of_a_function(), of="distance", axis="n", law=law, per=per)
    assert found.limit.attrs.get("units", "1") == units


@pytest.mark.parametrize("axis", [True, False])
def test_a_parameter_with_the_name_of_the_limit_hides_it_nowhere(axis: bool) -> None:
    ds = of_a_function()
    options = {"of": "distance", "axis": "n"}
    if not axis:
        named = analysis.extrapolation(ds.assign_coords(limit=3.0), **options)
        assert named.limit.item() == analysis.extrapolation(ds, **options).limit.item()
        return
    with pytest.raises(InputError, match="an axis has the name of a variable of extrapolation; got 'limit'"):
        analysis.extrapolation(ds.expand_dims(limit=[2.0]), **options)


def test_a_result_with_the_name_of_a_quantity_of_an_analysis_has_a_limit() -> None:
    ds = of_a_function().rename(distance="gain")
    found = analysis.extrapolation(ds, of="gain", axis="n")
    assert found.limit.attrs["long_name"].startswith("limit of the distance")
