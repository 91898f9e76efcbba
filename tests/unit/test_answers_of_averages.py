"""Questions about means, medians, quantiles and fractions of recorded observables."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis.answers import State
from sweeplib.analysis.answers.answer import Answer
from sweeplib.analysis.answers.proposers.seeds import FIRST, SEEDS_FOR_NOTHING, MoreSeeds, Seen
from sweeplib.analysis.answers.rounds import decided
from sweeplib.config import from_mapping
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.records.rounds import Rounds
from sweeplib.errors import InputError
from tests.scans import answers_of, exponential, lognormal

Noise = Callable[[np.random.Generator, int], np.ndarray]


def config(**changes: Any) -> dict[str, Any]:
    return {
        "name": "means",
        "problem": {"p": 1, "k": 1, "d": 30, "activation": "square", "spherical": True, "Delta": 0},
        "grid": {"gamma": [0.05, 0.08]},
        "seeds": 8,
        "dynamics": ["sgd_chain"],
        "times": [0, 1, 2],
        "figures": [],
    } | changes


def asked(**question: Any) -> Question:
    return from_mapping(config(answers={"q": {"of": "averages", "to": "5 %"} | question})).questions["q"]


def test_the_one_recorded_observable_is_asked_about_unless_there_are_several() -> None:
    assert asked().variable == "risk"
    assert asked(to=0.01, at={"time": [1, 2], "gamma": 0.08}).at == {"time": (1, 2), "gamma": (0.08,)}
    with pytest.raises(InputError, match="several") as error:
        from_mapping(config(observables=["risk", "student_norm"], answers={"q": {"of": "averages", "to": "5 %"}}))
    assert error.value.key == "answers.q.variable"


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"variable": "rsk"}, "variable", "did you mean 'risk'"),
        ({"at": {"time": 1.5}}, "at.time", "1"),
        ({"at": {"threshold": 1}}, "at", "time"),
        ({"options": {"statistic": "meen"}}, "options.statistic", "median"),
        ({"options": {"statistic": {"quantile": 5}}}, "of.statistic.quantile", "0.95"),
        ({"options": {"statistic": {"above": 1, "below": 2}}}, "of.statistic", "not one"),
        ({"options": {"confidense": 0.9}}, "options.confidense", "confidence"),
        ({"options": {"confidence": 0.9}}, "options.confidence", "95 % intervals"),
        ({"of": "deviation_scaling"}, "of", "no quantity with an interval"),
    ],
)
def test_a_question_that_no_average_answers_is_refused(change: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        asked(**change)
    assert str(error.value.key) == f"answers.q.{key}"
    assert words in str(error.value)


def test_only_analyses_that_can_answer_are_offered() -> None:
    with pytest.raises(InputError) as error:
        asked(of="deviation_scaling")
    offered = str(error.value)
    assert "averages" in offered and "risk_floor" in offered
    assert "exit_times" not in offered and "regimes" not in offered, "no thresholds, nothing to label"


def test_runs_that_stop_at_their_exits_have_no_last_value_to_ask_about() -> None:
    stopped = config(thresholds=[0.3], stop="exit", answers={"q": {"of": "averages", "to": "5 %"}})
    with pytest.raises(InputError, match="runs stop at their exits") as error:
        from_mapping(stopped)
    assert error.value.key == "answers.q.at.time"
    stopped["answers"]["q"]["at"] = {"time": 1}
    assert from_mapping(stopped).questions["q"].at == {"time": (1,)}


class Values:
    """A sweep of one point whose runs record a risk of a law at two times, of which the last counts."""

    def __init__(self, noise: Noise, seeds: int = 8, dynamics: str = "sgd_chain", **question: Any) -> None:
        self.question = Question("averages", "risk", **{"to": 0.05} | question)
        self.noise, self.seeds, self.dynamics, self.rounds = noise, seeds, dynamics, Rounds({})

    def dataset(self) -> xr.Dataset:
        """Return the dataset of all seeds: the first ones of one stream."""
        last = self.noise(np.random.default_rng(7), self.seeds)
        dims = ("dynamics", "gamma", "seed", "time")
        risk = xr.DataArray(np.stack([np.ones(self.seeds), last], -1)[None, None], dims=dims)
        status = np.ones((1, 1, self.seeds), np.uint8)
        ds = xr.Dataset({"risk": risk.assign_attrs(long_name="risk"), "status": (dims[:3], status, STATUS_LABELS)})
        fixed = {"p": 1, "k": 1, "d": 30, "Delta": 0.0}
        return ds.assign_coords(dynamics=[self.dynamics], gamma=[0.1], time=[0.0, 1.0], seed=range(self.seeds), **fixed)

    def run(self, row: Row, number: int) -> None:
        """Run more seeds."""
        self.seeds = row.seeds

    def answer(self) -> Answer:
        """Run rounds to the end; return the one answer."""
        [answer] = answers_of(self)
        return answer


def bernoulli(p: float) -> Noise:
    return lambda rng, count: (rng.random(count) < p).astype(float)


def statistic(of: Any) -> dict[str, Any]:
    return {"options": {"statistic": of}}


@pytest.mark.rest
@pytest.mark.parametrize(
    ("noise", "options", "truth"),
    [
        (exponential, {}, 1.0),
        (lambda rng, count: 1.0 - exponential(rng, count), {"to": 0.05, "relative": False}, 0.0),
        (lognormal, statistic("median"), np.exp(-0.5)),
        (exponential, statistic({"quantile": 0.95}), np.log(20.0)),
        (exponential, statistic({"above": 3.0}) | {"to": 0.2}, np.exp(-3.0)),
        (bernoulli(0.0), statistic({"above": 0.5}) | {"to": 0.01, "relative": False}, 0.0),
        (bernoulli(1.0), statistic({"above": 0.5}), 1.0),
    ],
)
def test_each_statistic_is_given_to_its_precision(noise: Noise, options: dict[str, Any], truth: float) -> None:
    answer = Values(noise, **options).answer()
    assert answer.state is State.given
    assert abs(answer.value - truth) <= 2.0 * answer.half_width + 1e-12 and answer.low <= answer.value <= answer.high
    assert answer.half_width <= answer.wanted
    assert answer.at == {"time": 1.0}


@pytest.mark.rest
def test_runs_without_a_value_are_told_with_the_answer() -> None:
    """Those with the largest values: the mean of the others is .96 of the truth, whatever their interval."""

    def noise(rng: np.random.Generator, count: int) -> np.ndarray:
        values = exponential(rng, count)
        return np.where(values < 4.7, values, np.nan)

    answer = Values(noise).answer()
    assert answer.state is State.given
    assert re.fullmatch(r"asked at time = 1: 0.9\d+ .* was asked; \d+ of [\d,]+ runs have no value", answer.line())
    assert answer.outcome.startswith("given; ") and Answer.of(answer.record()).note == answer.note
    assert Values(exponential).answer().note == ""


@pytest.mark.rest
def test_three_seeds_are_a_beginning_and_others_of_a_finished_sweep_count() -> None:
    sweep = Values(exponential, seeds=3, to=0.1)
    first = sweep.answer()
    assert first.state is State.given and sweep.seeds > FIRST
    wide = Values(exponential, seeds=sweep.seeds, to=0.2)
    assert wide.answer().state is State.given and wide.seeds == sweep.seeds, "nothing is missing for half of it"
    narrow = Values(exponential, seeds=sweep.seeds, to=0.05)
    assert narrow.answer().state is State.given and narrow.seeds > 2 * sweep.seeds


def test_equal_values_of_a_stochastic_dynamics_are_no_precise_mean() -> None:
    answer = Values(lambda rng, count: np.full(count, 0.3)).answer()
    assert (answer.state, answer.interval) == (State.none, "")
    assert answer.line() == (
        "q at time = 1: 0.3: no answer, no variation in 64 seeds: other values have a probability below 4.6 %"
    ).replace("q at", "asked at")


def test_zeros_are_a_proportion_where_other_points_have_ones() -> None:
    """At the ends of a transition all runs are alike, with the interval that a proportion of 0 has."""
    question = Question("averages", "q", 0.06, relative=False)
    rows = [({"dynamics": "sgd"}, 64)]
    for numbers, state in (([0.0, 0.0, 0.056], State.given), ([1.0, 0.944, 1.0], State.given)):
        answer = MoreSeeds("asked", question)._answer(rows, {}, numbers, "", Seen(True, 0.0))
        assert answer is not None and answer.state is state
    for value, hint in ((0.0, "; a proportion has an interval with `statistic: {above: 0.5}`"), (0.5, "")):
        answer = MoreSeeds("asked", question)._answer(rows, {}, [value] * 3, "", Seen(True, 0.0))
        assert answer is not None and answer.state is State.none and answer.why.endswith(f"below 4.6 %{hint}")
    # another analysis has no statistic to ask for
    passages = MoreSeeds("asked", replace(question, of="first_passages"))
    answer = passages._answer(rows, {}, [1.0] * 3, "", Seen(True, 0.0))
    assert answer is not None and answer.why.endswith("below 4.6 %")


@pytest.mark.rest
def test_equal_values_of_a_deterministic_dynamics_need_no_more_seeds() -> None:
    sweep = Values(lambda rng, count: np.full(count, 0.3), seeds=1, dynamics="ode")
    answer = sweep.answer()
    assert answer.state is State.given and sweep.seeds == 3
    assert answer.line() == "asked at time = 1: 0.3, equal in all runs of a deterministic dynamics"
    varied = Values(exponential, seeds=3, dynamics="ode", to=0.1)
    assert varied.answer().state is State.given and varied.seeds > FIRST, "its starts differ"


@pytest.mark.rest
def test_a_fraction_that_no_run_has_shown_has_no_relative_precision() -> None:
    sweep = Values(bernoulli(0.0), **statistic({"above": 0.5}))
    answer = sweep.answer()
    assert answer.state is State.none and "relative precision of the value 0" in answer.why
    assert SEEDS_FOR_NOTHING <= sweep.seeds < 2 * SEEDS_FOR_NOTHING and answer.high < 1e-3
    rare = Values(bernoulli(0.004), to=0.5, **statistic({"above": 0.5})).answer()
    assert rare.state is State.given and rare.low <= 0.004 <= rare.high


@pytest.mark.rest
def test_a_mean_near_0_has_no_relative_precision() -> None:
    sweep = Values(lambda rng, count: rng.standard_normal(count))
    answer = sweep.answer()
    assert answer.state is State.none and "its interval contains 0" in answer.why
    assert sweep.seeds < 4 * SEEDS_FOR_NOTHING
    in_units = Values(lambda rng, count: rng.standard_normal(count), to=0.005, relative=False).answer()
    assert in_units.state is State.given and in_units.low <= 0.0 <= in_units.high
    small = Values(lambda rng, count: 0.2 + rng.standard_normal(count), to=0.2).answer()
    assert small.state is State.given and small.low <= 0.2 <= small.high


def test_a_budget_that_ends_in_the_middle_is_said_with_the_interval_so_far() -> None:
    sweep = Values(exponential, to=0.02, budget=1000)
    answer = sweep.answer()
    assert answer.state is State.open and "its budget of 1,000 cases does not suffice" in answer.why
    assert answer.half_width > answer.wanted and answer.cases > 1000


def test_rows_with_more_seeds_get_no_more_than_they_need() -> None:
    """Rows with 8 and 4000 seeds, both to 10 %: the second has them."""
    few, many = Values(exponential, to=0.1).dataset(), Values(exponential, seeds=4000, to=0.1).dataset()
    ds = xr.concat(
        [few.assign_coords(gamma=[0.05]), many], "gamma", join="outer", fill_value={"status": 0, "risk": np.nan}
    )
    ds["status"] = ds.status.astype(np.uint8).assign_attrs(STATUS_LABELS)
    ds["risk"].attrs |= {"long_name": "risk"}
    asked_of = {"asked": Question("averages", "risk", 0.1)}
    sweep: Any = SimpleNamespace(questions=asked_of, analyses={}, laws={"sgd_chain": 0}, size=0)
    found = decided(sweep, Rounds({}), ds)
    assert [(row.at["gamma"], row.seeds) for row in found.rows[-1]] == [(0.05, FIRST)]
    assert [Answer.of(record).state for record in found.answers] == [State.open, State.given]


@pytest.mark.slow
def test_a_sweep_answers_about_averages_by_the_command(tmp_path: Path) -> None:
    """The linear unit, whose mean risk follows a recursion that is exact at every d."""
    import sweeplib

    d, gamma, noise, steps = 20, 0.5, 0.2, 40
    problem = {"p": 1, "k": 1, "d": d, "activation": "linear", "Delta": noise, "spherical": False, "gamma": gamma}
    sweep = sweeplib.Sweep(
        results=tmp_path, name="linear", problem=problem | {"start": "sphere", "m0": 0.1}, seeds=8,
        grid={}, dynamics=["sgd_chain", "ode"], times=[0, steps * gamma / d], figures=[],
        answers={"r": {"of": "averages", "to": "5 %"}, "f": {"of": "averages", "to": 0.05} | statistic({"below": 0.3})},
    )  # fmt: skip
    sweep.run(progress=False)
    assert all(answer.state is State.given for answer in sweep.answers)
    [mean] = [each for each in sweep.answers if each.question == "r" and each.at["dynamics"] == "sgd_chain"]
    m, q, g = 0.1, 1.0, gamma / d
    for _ in range(steps):
        q += 2 * g * (m - q) + g * gamma * ((1 + 2 / d) * (1 - 2 * m + q) + noise)
        m += g * (1 - m)
    assert mean.low <= (1 - 2 * m + q) / 2 <= mean.high
