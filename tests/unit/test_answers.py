"""Questions to a precision: configs, rows, rounds that are interrupted, what cannot be answered."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from scipy import stats

import sweeplib
from sweeplib import analysis
from sweeplib.analysis.answers import PROPOSERS, State, rounds
from sweeplib.analysis.answers.answer import Answer, cells
from sweeplib.analysis.answers.proposers.along_axis import ScanColumn
from sweeplib.analysis.answers.proposers.optimum import ScanLook
from sweeplib.analysis.answers.proposers.seeds import MoreSeeds, Seen, growth_needed
from sweeplib.commands.cli import app
from sweeplib.commands.upkeep.retry import retry
from sweeplib.config import from_mapping
from sweeplib.contracts import proposers
from sweeplib.engine.design.questions import Question, Row, RowCounts, with_rows, without_rows
from sweeplib.engine.execution import work
from sweeplib.engine.execution.plan import plan_when_done
from sweeplib.engine.files.strict_yaml import written as yaml_text
from sweeplib.engine.language import Expression
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.rounds import Rounds, rounds_of
from sweeplib.engine.storage.records.stage_records import StageRecord
from sweeplib.errors import InputError
from tests.datasets import sweep_dataset
from tests.in_process import Here, computed
from tests.plugged import nothing_left
from tests.scans import SyntheticSweep, exponential
from tests.tiers import slow_but

EXITS = {"of": "exit_times", "variable": "exit_steps_mean", "to": "20 %"}
OPTIMUM = {"of": "optimal_learning_rate", "to": "20 %", "refine": {"gamma": [0.01, 0.3]}}


def config(**answers: Any) -> dict[str, Any]:
    return {
        "name": "asked",
        "problem": {"p": 1, "k": 1, "d": 30, "activation": "square", "spherical": True, "Delta": 0},
        "grid": {"gamma": [0.05, 0.08]},
        "seeds": 8,
        "dynamics": ["sgd_chain"],
        "times": [0, 40],
        "thresholds": [0.3],
        "stop": "exit",
        "figures": [],
        "answers": answers,
    }


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"of": "exit_tims"}, "answers.q.of", "did you mean 'exit_times'"),
        ({"variable": "mean"}, "answers.q.variable", "exit_steps_median"),
        ({"variable": None}, "answers.q.variable", "several"),
        ({"to": "0 %"}, "answers.q.to", "more than 0"),
        ({"to": "decided"}, "answers.q.of", "does not label points"),
        ({"to": "exact"}, "answers.q.to", "2 %"),
        ({"refine": "d"}, "answers.q.refine", "seeds"),
        ({"refine": {"gamma": [0.01, 0.3]}}, "answers.q.refine", "nothing proposes"),
        ({"at": {"p": [1]}}, "answers.q.at", "gamma"),
        ({"at": {"gamma": 0.06}}, "answers.q.at.gamma", "0.05"),
        ({"budget": "2 days"}, "answers.q.budget", "30 min"),
        ({"budget": 1.5}, "answers.q.budget", "whole number"),
        ({"budget": -1}, "answers.q.budget", "at least 0"),
        ({"precision": 1}, "answers.q.precision", "unknown key"),
    ],
)
def test_what_is_not_built_or_does_not_fit_is_refused_at_its_key(change: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        from_mapping(config(q=EXITS | change))
    assert error.value.key == key
    assert words in str(error.value)


def test_another_confidence_is_refused_where_it_stands() -> None:
    """That of the sweep's analysis was refused at a key that the config does not have."""
    section = EXITS | {"options": {"confidence": 0.9}}
    swept = config(q=EXITS) | {"analyses": {"exit_times": {"confidence": 0.9}}}
    for given, key in ((config(q=section), "answers.q.options"), (swept, "analyses.exit_times")):
        with pytest.raises(
            InputError, match=r"not the confidence of answers; got 0\.9; expected confidence: 0\.95"
        ) as error:
            from_mapping(given)
        assert error.value.key == f"{key}.confidence"
    from_mapping(swept | {"answers": {"q": EXITS | {"options": {"confidence": 0.95}}}})


def test_an_analysis_of_vectors_over_units_is_refused_before_the_run() -> None:
    asked = config(q={"of": "directions_learned", "variable": "learned_fraction", "to": "20 %"})
    asked = {key: value for key, value in asked.items() if key not in ("thresholds", "stop")}
    with pytest.raises(InputError) as error:
        from_mapping(asked | {"observables": ["subspace_cosine"], "times": [0, 1, 2]})
    assert error.value.key == "answers.q.of"
    assert "do not read vectors" in str(error.value)


def test_a_precision_without_its_percent_sign_is_refused() -> None:
    with pytest.raises(InputError, match=r"a half width beyond the bounds.*got 5.*`5 %`") as error:
        from_mapping(config(q=OPTIMUM | {"to": 5}))
    assert error.value.key == "answers.q.to"


def swept_over_noise(asked: dict[str, Any]) -> dict[str, Any]:
    problem = {name: value for name, value in asked["problem"].items() if name != "Delta"}
    return asked | {"problem": problem, "grid": asked["grid"] | {"Delta": [0.0, 1.0]}}


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"gamma": [0.3, 0.01]}, "a lower, a higher"),
        ({"gamma": [-1, 1]}, "both above 0"),
        ({"d": [1, 2]}, "not an axis of the grid"),
        ({"Delta": [0.5, 2]}, "not the axis of the optimum"),
    ],
)
def test_bounds_that_no_rate_can_have_are_refused(bounds: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        from_mapping(swept_over_noise(config(q=OPTIMUM | {"refine": bounds})))
    assert str(error.value.key).startswith("answers.q.refine")


def test_listed_seeds_cannot_grow() -> None:
    with pytest.raises(InputError, match="seeds that cannot grow"):
        from_mapping(config(q=EXITS) | {"seeds": [3, 5]})


def test_a_grown_sweep_has_the_seeds_of_its_rows_and_no_other_new_points() -> None:
    sweep = from_mapping(swept_over_noise(config(q=EXITS)))
    rows = [[Row({"gamma": 0.05, "Delta": 0.0}, 20, "a")], [Row({"gamma": 0.06, "Delta": 1.0}, 5, "b")]]
    whole = with_rows(sweep, rows)
    counts: dict[Any, int] = {}
    for _, case in whole.cases("sgd_chain"):
        place = case.problem.gamma, case.problem.Delta
        counts[place] = counts.get(place, 0) + 1
    assert counts == {(0.05, 0): 20, (0.05, 1): 8, (0.08, 0): 8, (0.08, 1): 8, (0.06, 1): 5}
    assert whole.size == 49
    assert without_rows(whole) == sweep
    assert with_rows(whole, []) == sweep


def test_a_point_without_seeds_of_the_config_is_of_the_round_that_gave_it_some() -> None:
    [axis] = from_mapping(config(q=EXITS)).grid.axes
    counts = RowCounts((axis,), 4, Expression("4*(gamma > 0.07)"), ((Row({"gamma": 0.05}, 8, "wide"),),))
    gammas = {"gamma": [0.05, 0.06, 0.08]}
    assert counts.first_rounds(gammas, 3) == [(1, "wide"), (-1, ""), (0, "of the config")]
    assert counts.evaluated(gammas, 3) == [8, 0, 4]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process compute the blocks."""
    monkeypatch.setattr(work, "dispatched", computed)


def swept(
    folder: Path, *, grid: dict[str, Any] | None = None, plugins: Sequence[str] = (), **answers: Any
) -> sweeplib.Sweep:
    changed = {"plugins": list(plugins)} | ({"grid": grid} if grid else {})
    sweep = sweeplib.Sweep(results=folder, **config(**answers) | changed)
    sweep.design = replace(sweep.design, cluster=Here(block_size=64))
    return sweep


def test_a_dataset_with_the_rows_of_rounds_that_are_lost_is_made_again(tmp_path: Path) -> None:
    sweep = from_mapping(config(q=EXITS))
    whole = with_rows(sweep, [(Row({"gamma": 0.05}, 16, "more"),)])
    record = StageRecord("simulate", made_from=cases_made_from(whole))
    assert [record.is_of(cases_made_from(now)) for now in (whole, sweep)] == [True, False]
    # a record and rounds of version 0.3 have no entry for what a sweep lacks
    before = {name: value for name, value in cases_made_from(sweep).items() if value}
    assert StageRecord("simulate", made_from=before).is_of(cases_made_from(sweep)) and "rows" not in before
    assert Rounds(before, ended=True).write(tmp_path) == rounds_of(sweep, tmp_path)


def test_a_sweep_adds_seeds_until_its_means_are_as_precise_as_asked(tmp_path: Path) -> None:
    sweep = swept(tmp_path, exits=EXITS)
    ds = sweep.run(progress=False)
    assert [answer.state for answer in sweep.answers] == [State.given] * 2
    found = sweep.analyse("exit_times").squeeze()
    for answer in sweep.answers:
        here = found.sel(gamma=answer.at["gamma"])
        assert answer.value == here.exit_steps_mean
        assert answer.half_width <= 0.2 * answer.value
    asked = (ds.status > 0).sum("seed").squeeze("dynamics")
    assert (asked >= 64).all()
    assert (ds["round"] == 0).all()
    again = swept(tmp_path, exits=EXITS)
    assert again.design.size == int(asked.sum())
    xr.testing.assert_identical(again.run(progress=False), ds)


FAILING = """
from pathlib import Path
from sweeplib import simulator

@simulator(y="1")
def failing(rng, x: float = 0.0):
    if Path(__file__).with_name("FAIL").exists():
        raise RuntimeError("no licence")
    return {"y": x + rng.standard_normal()}
"""


def test_cases_that_are_computed_again_and_other_options_are_judged_again(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "FAIL").touch()
    asked = {"simulator": str(tmp_path / "failing.py"), "grid": {"x": [5.0, 6.0]}, "seeds": 8}
    asked |= {"answers": {"m": {"of": "averages", "variable": "y", "to": "50 %"}}, "name": "asked"}

    def answered(**changed: Any) -> list[Answer]:
        sweep = sweeplib.Sweep(results=tmp_path, **asked | changed)
        sweep.design = replace(sweep.design, cluster=Here(block_size=64))
        sweep.run(progress=False)
        return list(sweep.answers)

    assert [answer.state for answer in answered()] == [State.none] * 2
    (tmp_path / "FAIL").unlink()
    retry(sweeplib.Sweep(results=tmp_path, **asked).design, tmp_path / "asked", ["failed"])
    again = answered()
    assert [answer.state for answer in again] == [State.given] * 2
    assert answered() == again
    medians = answered(analyses={"averages": {"statistic": "median"}})
    assert all(answer.value != last.value for answer, last in zip(medians, again, strict=True))


@pytest.mark.rest
def test_an_answer_with_a_standard_error_alone_has_an_interval(tmp_path: Path) -> None:
    asked = config(q={"of": "risk_floor", "variable": "risk_floor", "to": "20 %"})
    asked = {key: value for key, value in asked.items() if key not in ("thresholds", "stop")} | {"times": [0, 1, 2]}
    sweep = sweeplib.Sweep(results=tmp_path, **asked)
    sweep.design = replace(sweep.design, cluster=Here(block_size=64))
    last = sweep.run(progress=False).risk.isel(time=[1, 2]).mean("time").sel(gamma=0.05).squeeze().dropna("seed")
    answer = sweep.answers[0]
    ends = stats.t.interval(0.965, 63, float(last.mean()), stats.sem(last))
    assert (answer.value, answer.low, answer.high) == pytest.approx((float(last.mean()), *ends))


@pytest.mark.slow
def test_a_plan_counts_the_cases_of_rounds(tmp_path: Path) -> None:
    sweep = swept(tmp_path, exits=EXITS)
    before = sweep.plan().dynamics["sgd_chain"].cases
    sweep.run(progress=False)
    assert plan_when_done(sweep.directory) is None  # its plan is that of the config
    plan, recorded = sweep.plan(), rounds_of(sweep.design, sweep.directory)
    part = plan.dynamics["sgd_chain"]
    assert before < part.cases == part.done == sweep.design.size
    line = f"{part.cases - before:,} of the cases are those of rows that {len(recorded.rows)} rounds added"
    assert line in repr(plan)


@pytest.mark.slow
def test_new_rates_have_their_round_and_reason_in_the_dataset(tmp_path: Path) -> None:
    sweep = swept(tmp_path, grid={"gamma": [0.02, 0.03, 0.04, 0.05, 0.06]}, opt=OPTIMUM | {"budget": 3000})
    ds = sweep.run(progress=False)
    new = ds.gamma.where(ds["round"] > 0, drop=True)
    assert len(new) > 0 and (new <= 0.3).all()
    assert all(str(reason).startswith("opt: ") for reason in ds.reason.sel(gamma=new).values)
    assert (ds["round"].sel(gamma=[0.02, 0.06]) == 0).all()
    sweep.figure("learning_rate_scan")
    sweep.figure("risk_curves")


class StoppedError(Exception):
    """Stands for the end of the process."""


@pytest.mark.rest
@pytest.mark.parametrize("round_", slow_but([1, 2], 2))
@pytest.mark.parametrize(
    "when", slow_but(["before the decision", "after the decision", "after the rows"], "after the rows")
)
def test_rounds_that_are_interrupted_anywhere_end_with_the_same_bits(tmp_path: Path, when: str, round_: int) -> None:
    whole = swept(tmp_path / "whole", exits=EXITS | {"to": "10 %"})
    whole.run(progress=False)
    calls = {"write": 0, "run": 0}
    write, run = Rounds.write, rounds.run_sweep

    def writing(record: Rounds, directory: Path) -> Rounds:
        calls["write"] += 1
        if when == "before the decision" and calls["write"] == round_:
            raise StoppedError
        write(record, directory)
        if when == "after the decision" and calls["write"] == round_:
            raise StoppedError
        return record

    def running(*arguments: Any, **options: Any) -> Any:
        calls["run"] += 1
        found = run(*arguments, **options)
        if when == "after the rows" and calls["run"] == round_ + 1:
            raise StoppedError
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "write", writing)
        patch.setattr(rounds, "run_sweep", running)
        with pytest.raises(StoppedError):
            swept(tmp_path / "stopped", exits=EXITS | {"to": "10 %"}).run(progress=False)
    stopped = swept(tmp_path / "stopped", exits=EXITS | {"to": "10 %"})
    xr.testing.assert_identical(stopped.run(progress=False), whole.dataset)
    records = [(tmp_path / name / "asked" / "answers.json").read_bytes() for name in ("whole", "stopped")]
    assert records[0] == records[1]


@pytest.mark.rest
@pytest.mark.parametrize(("minutes", "answered"), [(1e-6, 0), (1e3, 2)])
def test_a_budget_of_time_is_spent_at_prices_that_are_measured_once(
    tmp_path: Path, minutes: float, answered: int
) -> None:
    """Prices of another run of the same sweep, ten thousand times higher, change no decision."""
    asked = EXITS | {"budget": f"{minutes:.7f} min"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "run_sweep", stopping_after(1))
        with pytest.raises(StoppedError):
            swept(tmp_path, exits=asked).run(progress=False)
    [price] = rounds_of(swept(tmp_path, exits=asked).design, tmp_path / "asked").prices.values() or [None]
    assert price is None or 1e-12 < price < 1e-4
    sweep = swept(tmp_path, exits=asked)
    sweep.run(progress=False)
    answers = sweep.answers
    assert sum(answer.state is State.given for answer in answers) == answered
    assert all("its budget of 0 s of a processor" in answer.why for answer in answers if answered == 0)
    record = rounds_of(sweep.design, sweep.directory)
    assert set(record.prices) == {"sgd_chain"}
    assert 0.0 <= record.seconds["exits"] <= 60.0 * minutes


@pytest.mark.slow
def test_another_config_begins_its_rounds_anew_and_has_the_rows_of_a_first_run(tmp_path: Path) -> None:
    swept(tmp_path / "grew", exits=EXITS).run(progress=False)
    grew = swept(tmp_path / "grew", exits=EXITS | {"to": "12 %"})
    assert not rounds_of(grew.design, grew.directory).rows
    first = swept(tmp_path / "first", exits=EXITS | {"to": "12 %"})
    xr.testing.assert_identical(grew.run(progress=False), first.run(progress=False))


def stopping_after(count: int) -> Any:
    """Return a `run_sweep` that stops after as many calls."""
    run, calls = rounds.run_sweep, []

    def running(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > count:
            raise StoppedError
        return run(*args, **options)

    return running


def written(folder: Path, **answers: Any) -> str:
    path = folder / "asked.yaml"
    path.write_text(yaml_text(config(**answers)))
    return str(path)


@pytest.mark.slow
def test_the_command_shows_answers_and_says_what_is_missing(tmp_path: Path) -> None:
    results = ["--results", str(tmp_path / "results")]
    path = written(tmp_path, exits=EXITS | {"to": "1 %", "budget": 0})
    shown = CliRunner().invoke(app, ["answer", path, *results])
    assert shown.exit_code == 1
    assert "its budget of 0 cases does not suffice" in " ".join(shown.output.split())
    shown = CliRunner().invoke(app, ["answer", path, "answers.exits.budget=1000", "answers.exits.to=30 %", *results])
    assert shown.exit_code == 0
    assert "given" in shown.output
    told = CliRunner().invoke(
        app, ["answer", path, "answers.exits.budget=1000", "answers.exits.to=30 %", "--json", *results]
    )
    answers = json.loads(told.stdout, parse_constant=pytest.fail)
    assert told.exit_code == 0 and [answer["at"]["gamma"] for answer in answers] == [0.05, 0.08]
    for answer in answers:
        assert (answer["question"], answer["state"]) == ("exits", "given")
        assert answer["low"] < answer["value"] < answer["high"]
        assert max(answer["value"] - answer["low"], answer["high"] - answer["value"]) <= 0.3 * answer["value"]
        assert f"{answer['value']:.3g}" in shown.output


def test_the_command_refuses_a_config_without_questions(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["answer", written(tmp_path), "--results", str(tmp_path / "results")])
    assert isinstance(shown.exception, SystemExit | InputError) and shown.exit_code != 0
    assert "the config asks nothing" in shown.output + str(shown.exception)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise KeyError('risk')", "fails: KeyError: 'risk'"),
        ("return [Answer(self.name, {}, requests=(Row({'gamma': 0.5}, 9, 'x'),))]", "a value of gamma in the grid"),
        ("return [Answer(self.name, {}, requests=(Row({}, 9, 'x'),))]", "a value of each of gamma"),
        ("return [Answer(self.name, {}, requests=(Row({'gamma': 0.05}, 0, 'x'),))]", "a whole number of seeds"),
        ("return None", "fails: TypeError: 'NoneType' object is not iterable"),
        ("return ['a text']", "fails: AttributeError: 'str' object has no attribute 'requests'"),
        ("return []", ""),
        ("return [Answer(self.name, {}, why='nothing helps')]", ""),
    ],
)
def test_a_proposer_of_ones_own_that_is_wrong_ends_in_a_line(tmp_path: Path, line: str, words: str) -> None:
    name = f"own{abs(hash(line))}"
    path = tmp_path / f"{name}.py"
    path.write_text(OWN_PROPOSER.format(name=name, line=line))
    sweep = swept(tmp_path, plugins=[str(path)], exits=EXITS | {"to": "0.1 %"})
    try:
        if not words:
            sweep.run(progress=False)
            assert not any(answer.state is State.given for answer in sweep.answers)
            return
        with pytest.raises(InputError, match="its proposer") as error:
            sweep.run(progress=False)
        assert words in str(error.value) and error.value.key == "answers.exits"
    finally:
        PROPOSERS._things.pop(name)


@pytest.mark.parametrize(
    ("before", "instead", "words"),
    [
        ("    @classmethod\n", "", "TypeError: Own.takes() missing 1 required positional argument: 'question'"),
        ("question.to == 0.001", "question.too", "AttributeError: 'Question' object has no attribute 'too' ("),
        ("        self.name = name", "        1 / 0", "ZeroDivisionError: division by zero ("),
        ("        pass", "        outline.attrs['m9']", "KeyError: 'm9' ("),
    ],
)
def test_a_proposer_that_fails_when_the_config_is_read_is_named(
    tmp_path: Path, before: str, instead: str, words: str
) -> None:
    path = tmp_path / "failing_proposer.py"
    text = OWN_PROPOSER.format(name="failing", line="return []")
    assert text.count(before) == 1
    path.write_text(text.replace(before, instead))
    with nothing_left(), pytest.raises(InputError) as error:
        swept(tmp_path, plugins=[str(path)], exits=EXITS | {"to": "0.1 %"})
    assert f"answers.exits: its proposer, Own, fails: {words}" in str(error.value)
    assert ("(failing_proposer.py, line " in str(error.value)) == words.endswith("(")


OWN_PROPOSER = """
from sweeplib.plugins import PROPOSERS, Answer, Row

class Own:
    example = {{}}

    def __init__(self, name, question):
        self.name = name

    @classmethod
    def takes(cls, question):
        return question.to == 0.001

    def check(self, outline, options):
        pass

    def tell(self, ds, options):
        {line}

PROPOSERS.register("{name}", Own)
"""


def question(of: str = "exit_times", variable: str = "exit_steps_mean", to: float = 0.1, **others: Any) -> Question:
    return Question(of, variable, to, **others)


def test_the_checks_of_a_proposer_run_the_rows_that_the_engine_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two requests for a row the larger one; a row that cannot grow ends the rounds."""

    def asked(*seeds: int) -> list[Answer]:
        return [Answer("own", {}, requests=tuple(Row({"gamma": 0.3}, count, "more") for count in seeds))]

    rounds = iter([asked(90, 40), asked(10**6), asked(10**6), asked(1)])
    monkeypatch.setattr(proposers, "_answers", lambda *_: next(rounds))
    monkeypatch.setattr(proposers, "scanned", lambda rows: rows)
    counts = [rows[0.3] for rows, _ in proposers.history.__wrapped__("own")]
    assert counts == [proposers.FIRST_SEEDS, 90, proposers.MOST_SEEDS]


def test_a_budget_of_nothing_says_what_the_answer_would_cost() -> None:
    sweep = SyntheticSweep(lambda g: 1 / g, {0.1: 64, 0.2: 64}, question(to=0.02, budget=0))
    [answer, _] = sweep.answered()
    assert answer.state is State.open
    assert "its budget of 0 cases does not suffice (0 left, the next round takes 192)" in answer.why, "as many times 4"
    spread = sweep.runs[0.1][:64].std(ddof=1) / answer.value
    error = spread / np.sqrt(seeds := np.arange(64, 20000))
    half = stats.t.ppf(0.9825, seeds - 1) * error * (1.0 + 2.0 * error)  # about that of the interval of a mean
    assert answer.cases + 64 == pytest.approx(seeds[np.argmax(half <= 0.02)], rel=0.1)


def test_a_budget_that_does_not_suffice_says_what_is_left_and_what_the_next_round_takes() -> None:
    sweep = SyntheticSweep(lambda g: 1 / g, {0.1: 64, 0.2: 64}, question(to=0.01, budget=1000))
    answers = sweep.answered()
    assert all(
        "its budget of 1,000 cases does not suffice (1,000 left, the next round takes " in a.why for a in answers
    )


def test_what_an_answer_costs_is_not_told_without_an_interval() -> None:
    """One seed has none: 63 more are wanted to look at its width, and nobody knows whether they are enough."""
    [answer] = SyntheticSweep(lambda g: 1 / g, {0.1: 1}, question(budget=1)).answered()
    assert (answer.state, answer.interval) == (State.open, "")
    assert np.isnan(answer.cases) and "more runs" not in answer.line() and "does not suffice" in answer.why


def test_what_an_answer_costs_is_told_with_the_digits_that_are_known() -> None:
    assert "; about 1,900,000 more runs would give it" in Answer("exits", {}, cases=1863995.0, why="wide").line()


def test_large_answers_are_written_without_an_exponent() -> None:
    answer = Answer("exits", {}, 11071.2, 10263.4, 12020.0, 1100.0, State.given)
    assert answer.line() == "exits: 11070 (10260 to 12020): ± 950, 1100 was asked"
    assert cells([answer])["rows"] == [["exits", "", "11070", "10260 to 12020", "950", "1100", "given"]]


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.74603, 0.74397, 0.7481, "0.7460 (0.7440 to 0.7481): ± 0.0021"),
        (0.50371, 0.48999, 0.51566, "0.504 (0.490 to 0.516): ± 0.014"),
        (5.0, 4.90042, 5.0996, "5.00 (4.90 to 5.10): ± 0.10"),
        (-0.00004, -0.0013, 0.0012, "0.0000 (-0.0013 to 0.0012): ± 0.0013"),
        (2.5e-11, 2.4e-11, 2.6e-11, "2.5e-11 (2.4e-11 to 2.6e-11): ± 1e-12"),
        (7.0, 7.0, 7.0, "7 (7 to 7): ± 0"),
    ],
)
def test_a_value_and_its_interval_have_the_digits_that_its_error_leaves(
    value: float, low: float, high: float, words: str
) -> None:
    assert Answer("m", {}, value, low, high, 0.1, State.given).line() == f"m: {words}, 0.1 was asked"


@pytest.mark.rest
@pytest.mark.parametrize("ends", [(1011.0, np.nan), (np.nan, 1043.0)])
def test_an_interval_with_an_unknown_end_is_not_narrow(ends: tuple[float, float]) -> None:
    answer = Answer("q", {}, 1027.0, *ends, wanted=103.0)
    assert np.isnan(answer.half_width)
    assert answer.interval == ""
    assert growth_needed(answer) == 1.0


def test_a_median_whose_upper_end_few_seeds_do_not_tell_gets_more() -> None:
    """36 of 64 runs exit near 1000 steps, the others never: the band stays above a half."""
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=[0.0], seeds=64, dynamics=["sgd_chain"])
    exits = np.full(64, np.nan)
    exits[:36] = 1000.0 + np.arange(36)
    ds["exit_steps"] = ds["exit_steps"].copy(data=exits.reshape(ds["exit_steps"].shape))
    ds["end_steps"] = ds["end_steps"].copy(data=np.full(ds["end_steps"].shape, 1e4))
    [answer] = MoreSeeds("q", Question("exit_times", "exit_steps_median", 0.1, relative=True)).tell(ds, {})
    assert (answer.state, answer.high) == (State.open, np.inf)
    assert answer.requests[0].seeds > 64


def test_a_mean_of_zero_has_no_relative_precision() -> None:
    """With few seeds it may be chance: more are asked for, and what the answer costs is not told."""
    answer = MoreSeeds("asked", question())._answer([({"gamma": 0.1}, 8)], {}, [0.0, 0.0, 0.0], "", Seen(True, 0.0))
    assert answer is not None and answer.state is State.open
    assert np.isnan(answer.cases) and [row.seeds for row in answer.requests] == [64]
    [answer] = SyntheticSweep(lambda g: 0.0, {0.1: 8}, question()).answered()
    assert answer.state is State.none and answer.value == 0.0


@pytest.mark.rest
def test_the_cost_of_an_answer_counts_all_dynamics() -> None:
    sweep = SyntheticSweep(lambda g: 1 / g, {0.1: 64}, question(to=0.02, budget=0))
    whole = SimpleNamespace(questions={"asked": sweep.question}, analyses={}, laws={"a": 0, "b": 0}, size=0)
    [one] = sweep.answered()
    [both] = rounds.decided(whole, Rounds({}), sweep.dataset()).answers
    assert both["cases"] == 2 * one.cases > 500


@pytest.mark.rest
def test_a_budget_gives_the_answers_that_need_least() -> None:
    noisy = lambda g: 1000.0  # noqa: E731
    sweep = SyntheticSweep(noisy, {0.1: 64, 0.2: 1500}, question(to=0.05, budget=700), noise=exponential)
    first, second = sweep.answered()
    assert (first.state, second.state) == (State.open, State.given)


@pytest.mark.rest
def test_an_optimum_is_looked_for_within_the_bounds_if_no_rate_of_the_config_has_a_mean() -> None:
    """At those of the config many runs do not exit by the horizon; steps are least at 1."""
    law = lambda g: 1000.0 / (g * (2.0 - g))  # noqa: E731
    asked = question(
        "optimum", "optimum", bounds={"gamma": (0.01, 1.9)}, options={"of": "exit_steps", "along": "gamma"}
    )
    sweep = SyntheticSweep(law, dict.fromkeys((0.02, 0.03, 0.05), 16), asked, horizon=8000.0)
    [answer] = sweep.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= 1.0 <= answer.high
    below = replace(asked, bounds={"gamma": (0.01, 0.1)})
    [none] = SyntheticSweep(law, dict.fromkeys((0.02, 0.03, 0.05), 16), below, horizon=8000.0).answered()
    assert none.state is State.none
    assert "too many runs do not exit, or are lost, at all of its" in none.why


@pytest.mark.rest
def test_one_seed_is_a_beginning() -> None:
    [answer] = SyntheticSweep(lambda g: 1 / g, {0.1: 1}, question()).answered()
    assert answer.state is State.given


@pytest.mark.rest
@pytest.mark.parametrize("variable", ["exit_steps_mean", "exit_steps_median"])
def test_runs_that_do_not_exit_have_no_mean_and_may_have_a_median(variable: str) -> None:
    sweep = SyntheticSweep(lambda g: 1000.0, {0.1: 64}, question(variable=variable), noise=exponential, horizon=2000.0)
    [answer] = sweep.answered()
    if variable == "exit_steps_mean":
        assert answer.state is State.none
        assert "some runs did not exit" in answer.why and "median" in answer.why
        assert sweep.rows == {0.1: 64}
    else:
        assert answer.state is State.given
        assert answer.low <= 1000 * np.log(2) <= answer.high


@pytest.mark.rest
@pytest.mark.parametrize(
    ("horizon", "never", "words"),
    [
        (500.0, 0.0, "a longer horizon has more exits; a median"),
        (9000.0, 0.4, "a longer one cannot help; a median"),
        (9000.0, 0.6, "a longer one cannot help"),
        (1.0, 0.0, "64 of 64; a longer horizon may help"),
    ],
)
def test_what_a_longer_horizon_changes_is_told_by_when_runs_exit(horizon: float, never: float, words: str) -> None:
    """Exponential times have a constant rate, which few exits by half of the horizon do not contradict."""
    law = {"noise": exponential, "horizon": horizon, "never": lambda g: never}
    [answer] = SyntheticSweep(lambda g: 700.0, {0.1: 64}, question(), **law).answered()
    assert words in answer.why
    assert ("median" in answer.why) == (words.endswith("median"))


@pytest.mark.rest
@pytest.mark.parametrize(
    ("threshold", "times", "words"),
    [
        (0.999, [0, 4, 8], "has not fallen since t = 4"),
        (0.95, [0, 0.4, 0.8], "their risk has fallen since t = 0.4"),
        (0.999, [0, 8], "more `times` would tell whether their risk still falls"),
    ],
)
def test_the_risk_of_runs_without_an_exit_says_whether_it_falls(
    threshold: float, times: list[float], words: str, tmp_path: Path
) -> None:
    asked = config(q=EXITS) | {"times": times, "thresholds": [threshold], "grid": {"gamma": [0.05]}, "seeds": 64}
    asked["problem"] |= {"Delta": 1.0}
    sweep = sweeplib.Sweep(results=tmp_path, **asked)
    sweep.design = replace(sweep.design, cluster=Here(block_size=64))
    sweep.run(progress=False)
    assert words in sweep.answers[0].why


def test_a_median_that_most_runs_do_not_reach_is_no_answer() -> None:
    sweep = SyntheticSweep(lambda g: 1000.0, {0.1: 64}, question(variable="exit_steps_median"), horizon=500.0)
    [answer] = sweep.answered()
    assert answer.state is State.none


@pytest.mark.rest
@pytest.mark.parametrize(("to", "state"), [(0.01, State.none), (3.0, State.given)])
def test_pairs_of_a_dynamics_with_few_seeds_of_its_own_get_no_seeds(to: float, state: State) -> None:
    """The ODE has 8 of the 64 seeds; seeds were added up to a million, and the interval had the t of 64 pairs."""
    ds = sweep_dataset(seeds=64, d=(100,), ratios=(1.0,), Delta=(0.0,), dynamics=("sgd_chain", "ode"))
    ds["status"] = (
        ds.status.where((ds.dynamics != "ode") | (ds.seed < 8), 0).astype(np.uint8).assign_attrs(STATUS_LABELS)
    )
    [answer] = MoreSeeds("q", question("deviation", "risk_sup_deviation", to)).tell(ds, {})
    error = analysis.deviation(ds).risk_sup_deviation_error.item()
    assert answer.state is state and not answer.requests
    assert answer.half_width == pytest.approx(stats.t.ppf(0.9825, 7) * error, rel=1e-3)


def optimum(to: float = 0.1, low: float = 0.05, high: float = 1.9, **others: Any) -> Question:
    return question("optimal_learning_rate", "gamma_opt", to, bounds={"gamma": (low, high)}, **others)


def pole(gamma: float) -> float:
    """Return mean steps as of phase retrieval, with the optimum 1."""
    return 1000.0 / (gamma * (2.0 - gamma))


SCAN = dict.fromkeys((0.3, 0.45, 0.65, 0.9, 1.2, 1.5), 16)


def powers(gamma: float) -> float:
    """Return mean steps with another form, and the optimum 1."""
    return 1000.0 * (1.0 / gamma + gamma**2 / 2.0)


@pytest.mark.rest
def test_an_optimum_in_the_scan() -> None:
    [answer] = SyntheticSweep(pole, SCAN, optimum()).answered()
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high
    assert answer.half_width <= 0.1 * answer.value


@pytest.mark.rest
def test_an_optimum_beyond_the_scan_is_found() -> None:
    sweep = SyntheticSweep(pole, dict.fromkeys((0.1, 0.15, 0.2, 0.3, 0.4), 16), optimum())
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high
    assert max(sweep.rows) <= 1.9


@pytest.mark.rest
@pytest.mark.parametrize("to", [0.05, 50.0], ids=["relative", "in steps"])
def test_the_steps_at_an_optimum_beyond_the_scan_are_found(to: float) -> None:
    asked = question("optimal_learning_rate", "exit_steps_min", to, bounds={"gamma": (0.05, 1.9)}, relative=to < 1.0)
    sweep = SyntheticSweep(pole, dict.fromkeys((0.1, 0.15, 0.2, 0.3, 0.4), 16), asked)
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 1000.0 <= answer.high
    assert answer.half_width <= 0.051 * 1000.0
    assert max(sweep.rows) > 0.8


def test_what_has_too_few_values_says_what_it_needs() -> None:
    [answer] = SyntheticSweep(
        pole, dict.fromkeys((0.5, 1.0, 1.5), 64), question("optimal_learning_rate", "exit_steps_min")
    ).answered()
    assert answer.state is State.none
    assert "it needs 5 learning rates at which three runs or more exited" in answer.why


def test_an_optimum_of_means_that_are_not_positive_is_left_to_seeds() -> None:
    """One negative mean among 30 ended in an error; where many were, two optima were not told apart."""
    x, rng = np.geomspace(0.2, 5.0, 30), np.random.default_rng(0)
    values = 4.0 * np.log(x) ** 2 - 0.3 + 0.3 * rng.standard_normal((64, 30))
    counts, none = np.full(30, 64), np.zeros(30, bool)
    finding = ScanLook(ScanColumn(x, x, values, counts, none, values), optimum(), (0.1, 10.0)).finding()
    assert finding.state is State.none
    assert "is not above 0: `refine: seeds` takes means of any sign" in finding.why


def test_the_greatest_fraction_may_have_rows_without_a_success() -> None:
    """A mean of 0 has no logarithm, and ended the question; rates at which no run exits are usual."""
    x, rng = np.geomspace(0.3, 3.0, 25), np.random.default_rng(0)
    values = (rng.random((256, 25)) < 0.9 - np.log(x) ** 2).astype(float)
    counts, none = np.full(25, 256), np.zeros(25, bool)
    column = ScanColumn(x, x, values, counts, none, values)
    finding = ScanLook(column, optimum(), (0.05, 20.0), greatest=True).finding()
    assert finding.state is State.given
    assert finding.low < 1.0 < finding.high
    finding = ScanLook(replace(column, steps=0.0 * values), optimum(), (0.05, 20.0), greatest=True).finding()
    assert finding.state is State.none
    assert "is not above 0" in finding.why


def test_an_optimum_beyond_the_bounds_is_no_answer() -> None:
    [answer] = SyntheticSweep(pole, dict.fromkeys((0.1, 0.15, 0.2, 0.3, 0.4), 16), optimum(high=0.5)).answered()
    assert answer.state is State.none
    assert "the best mean is at the bound, 0.5" in answer.why


@pytest.mark.rest
def test_runs_that_all_are_equal_have_an_optimum_that_more_rates_tell() -> None:
    """As those of a deterministic dynamics at a given start: the curve is exact, and seeds do not help."""
    sweep = SyntheticSweep(pole, SCAN, optimum(), noise=lambda _, count: np.ones(count))
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high
    exact = SyntheticSweep(powers, SCAN, optimum(to=2e-4), noise=lambda _, count: np.ones(count))
    [closer] = exact.answered()
    assert closer.state is State.given
    assert closer.low <= 1.0 <= closer.high
    assert len(exact.rows) > len(SCAN) + 2
    assert max(sweep.rows.values()) == max(exact.rows.values()) == 64
    [none] = SyntheticSweep(powers, SCAN, optimum(to=1e-12), noise=lambda _, count: np.ones(count)).answered()
    assert none.state is State.none
    assert "do not tell the form of the curve as precisely" in none.why


@pytest.mark.slow
def test_two_equal_optima_are_no_answer() -> None:
    sweep = SyntheticSweep(lambda g: 1000 * np.exp(4 * (np.log(g) ** 2 - 0.36) ** 2), SCAN, optimum())
    [answer] = sweep.answered()
    assert answer.state is State.none
    assert "two optima" in answer.why


def test_an_axis_of_whole_numbers_gets_whole_numbers() -> None:
    rates = dict.fromkeys((4, 6, 9, 14, 22, 34), 16)
    sweep = SyntheticSweep(lambda x: 1000.0 * (x / 15 + 15 / x) ** 2, rates, optimum(low=1, high=80))
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 15.0 <= answer.high
    assert all(isinstance(x, int) for x in sweep.rows)


def test_an_axis_with_two_whole_numbers_left_ends() -> None:
    sweep = SyntheticSweep(lambda x: 1000.0 * (x / 2 + 2 / x) ** 2, {1: 64, 3: 64}, optimum(low=1, high=4))
    [answer] = sweep.answered()
    assert answer.state is State.none and "too few values" in answer.why
    assert set(sweep.rows) <= {1, 2, 3, 4}


@pytest.mark.rest
def test_a_precision_below_one_per_cent_is_answered_at_its_price() -> None:
    sweep = SyntheticSweep(pole, SCAN, optimum(to=0.008))
    [answer] = sweep.answered()
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high
    assert answer.half_width <= 0.008 * answer.value


@pytest.mark.rest
def test_a_horizon_that_cuts_runs_off_near_the_optimum_is_no_answer() -> None:
    [answer] = SyntheticSweep(pole, dict.fromkeys(SCAN, 512), optimum(), horizon=2500.0).answered()
    assert answer.state is State.none
    assert "a longer horizon" in answer.why


def test_a_horizon_that_cuts_runs_off_far_from_the_optimum_does_not_matter() -> None:
    rates = dict.fromkeys((0.05, *SCAN), 64)
    sweep = SyntheticSweep(pole, rates, optimum(low=0.05), horizon=12000.0)
    [answer] = sweep.answered()
    assert sweep.rows[0.05] == 64
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high


def test_a_horizon_says_whether_a_longer_one_would_help() -> None:
    """A tenth of the runs at rates above .85 never exits, whatever the horizon."""
    never = lambda g: 0.1 if g > 0.85 else 0.0  # noqa: E731
    [answer] = SyntheticSweep(pole, dict.fromkeys(SCAN, 512), optimum(), never=never, horizon=1e4).answered()
    [late] = SyntheticSweep(pole, dict.fromkeys(SCAN, 512), optimum(), horizon=3700.0).answered()
    assert answer.state is late.state is State.none
    assert "a longer horizon helps" in late.why
    assert "a longer horizon cannot help" in answer.why


def test_rates_that_never_exit_and_are_surely_not_the_optimum_do_not_matter() -> None:
    never = lambda g: 0.5 if g > 1.5 else 0.0  # noqa: E731
    scan = dict.fromkeys((0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.45, 1.55), 256)
    [answer] = SyntheticSweep(lambda g: 1000.0 * (1 + 0.5 * np.log(g) ** 2), scan, optimum(), never=never,
                              horizon=2e4).answered()  # fmt: skip
    assert answer.state is State.given, answer.why
    assert answer.low <= 1.0 <= answer.high


@pytest.mark.rest
def test_rates_at_which_no_run_exits_are_no_answer() -> None:
    [answer] = SyntheticSweep(pole, SCAN, optimum(), horizon=10.0).answered()
    assert answer.state is State.none
    assert "do not exit" in answer.why


@pytest.mark.rest
def test_seeds_alone_close_an_interval_that_is_open_but_not_one_of_an_optimum_at_the_end() -> None:
    inside = SyntheticSweep(pole, SCAN, question("optimal_learning_rate", "gamma_opt", 0.1), noise=exponential)
    [answer], seeds = inside.answered(), inside.rows
    assert answer.state is State.given
    assert answer.low <= 1.0 <= answer.high
    assert max(seeds.values()) > 500
    beyond = SyntheticSweep(pole, dict.fromkeys((0.2, 0.3, 0.4, 0.5, 0.6), 16), inside.question)
    [answer] = beyond.answered()
    assert answer.state is State.none
    assert "the optimum may lie beyond the scan" in answer.why
    assert max(beyond.rows.values()) <= 64


@pytest.mark.slow
def test_the_report_has_the_answers_and_says_why_each_row_was_added(tmp_path: Path) -> None:
    path = written(tmp_path, exits=EXITS | {"to": "3 %", "budget": 2000})
    ended = CliRunner().invoke(app, ["sweep", path, "--results", str(tmp_path / "results")])
    assert ended.exit_code == 0, ended.output
    page = (tmp_path / "results" / "asked" / "report" / "index.html").read_text()
    answers = page.partition('id="answers"')[2].partition("<h2")[0]
    assert "its budget of 2,000 cases does not suffice (" in answers
    assert "); about" in answers
    assert "<td>exits: 3 %</td><td>2</td>" in answers
