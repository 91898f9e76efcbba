"""The progress messages of a run."""

import json
import re
import time

import nbclient
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from sweeplib.execution import progress
from sweeplib.execution.progress import Progress, Steps, shown_progress


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_what_is_left_is_told_from_expected_seconds_not_from_the_number_of_cases(clock: Clock) -> None:
    """Half of the work is in a tenth of the cases."""
    shown = Progress(total=100, seconds=40.0)
    clock.now += 30
    shown.advance(0, 20.0, {"ok": 10})
    assert shown.left() == pytest.approx(30.0)
    assert shown.rate() == pytest.approx(1 / 3)
    assert shown.share() == 0.5


def test_what_is_left_is_at_first_what_the_plan_says(clock: Clock) -> None:
    """Two workers started for 4 s, and one ended the first of 80 blocks: by the measured pace 79 times 7 s are left."""
    shown = Progress(total=800, seconds=400.0, workers=2)
    assert shown.left() == pytest.approx(200.0)
    clock.now += 7
    shown.advance(0, 5.0, {"ok": 10})
    assert 200 < shown.left() < 250


def test_a_plan_that_was_wrong_is_forgotten(clock: Clock) -> None:
    """All takes twice as long as planned."""
    shown = Progress(total=800, seconds=400.0, workers=2)
    clock.now += 200
    shown.advance(0, 200.0, {"ok": 400})
    assert shown.left() == pytest.approx(200.0, rel=0.1)


def test_cases_of_unknown_cost_count_alike(clock: Clock) -> None:
    shown = Progress(total=100)
    clock.now += 30
    shown.advance(0, 0.0, {"ok": 25})
    assert shown.left() == pytest.approx(90.0)


def test_nothing_is_left_when_all_is_done_whatever_was_expected(clock: Clock) -> None:
    shown = Progress(total=4, seconds=10.0)
    clock.now += 3
    shown.advance(4, 9.9, {})
    assert shown.left() == 0.0


def test_lines_come_every_few_seconds_and_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("tiny", 10, 10.0) as shown:
        clock.now += 1
        shown.advance(3, 4.0, {"killed": 1})
        assert capsys.readouterr().err == ""
        clock.now += 4
        shown.advance(1, 1.0, {})
        said = "tiny: 5/10 cases, 1 failed, 50% of the work, 1.0 cases/s, 5 s left\n"
        assert capsys.readouterr().err == said
        shown.advance(1, 5.0, {"diverged": 2, "inaccurate": 1, "ok": 1})
    said = "tiny: 10/10 cases, 1 failed, 2 diverged, 1 inaccurate, 100% of the work, 2.0 cases/s, 0 s left\n"
    assert capsys.readouterr().err == said


def test_a_terminal_gets_a_bar_with_the_time_left(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    with shown_progress("tiny", 10, 100.0) as shown:
        clock.now += 7261
        shown.advance(0, 50.0, {"failed": 3, "diverged": 4})
        shown.say("news")
    written = capsys.readouterr().err
    assert "news" in written
    assert "7/10" in written and "50%" in written
    assert "3 failed, 4 diverged" in written
    assert "2:01:01 left" in written


def test_a_step_is_a_line_with_its_time_and_news_within_it_have_theirs(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = Steps("tiny")
    with steps.step("planning 4 cases"):
        assert capsys.readouterr().err == "tiny: planning 4 cases ..."
        clock.now += 2.5
    assert capsys.readouterr().err == " 2.5 s\n"
    with steps.step("measuring"):
        steps.say("a pilot hangs")
        clock.now += 1
    steps.say("done")
    said = "tiny: measuring ...\ntiny: a pilot hangs\ntiny: measuring: 1.0 s\ntiny: done\n"
    assert capsys.readouterr().err == said


def test_a_long_step_on_a_terminal_shows_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sweeplib.execution.progress.SECONDS_BETWEEN_SIGNS", 0.05)
    steps = Steps("tiny")
    with steps.step("measuring"):
        time.sleep(0.12)
        steps.say("a pilot hangs")
        time.sleep(0.12)
    first, news, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"tiny: measuring \.\.\.( 0 s \.\.\.)+", first)
    assert news == "tiny: a pilot hangs"
    assert re.fullmatch(r"tiny: measuring:( 0 s \.\.\.)+ 0\.\d s", last)


def test_steps_without_a_name_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps().step("planning"):
        Steps().say("news")
    assert capsys.readouterr().err == ""


BAR = """\
import sys
{before}
from sweeplib.execution.progress import shown_progress
with shown_progress("tiny", 3, 3.0) as shown:
    shown.advance(1, 1.0, dict())
    shown.advance(2, 2.0, dict())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("before", "has_bar"), [("", True), ("sys.modules['ipywidgets'] = None", False)])
def test_a_notebook_gets_a_bar_if_it_can_show_one(before: str, has_bar: bool) -> None:
    notebook = new_notebook(cells=[new_code_cell(BAR.format(before=before))])
    executed = nbclient.NotebookClient(notebook, timeout=60).execute()
    [cell] = executed.cells
    assert ("3/3" in json.dumps(executed.metadata.get("widgets", {}))) == has_bar
    assert any("3/3 cases" in output.get("text", "") for output in cell.outputs) == (not has_bar)
