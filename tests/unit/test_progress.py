"""The progress messages of a run."""

import json
import re
import time

import nbclient
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from sweeplib.engine.execution import progress
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.progress import RunProgress, Steps, shown_progress
from tests.blocks import block_of


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


def block(seconds: float, dynamics: str = "ode") -> Block:
    """Return a block of one case that is expected to take so many seconds."""
    return block_of(1, dynamics, seconds_a_case=seconds, measured=True)


def report(seconds: float, computed: dict[str, int], found: int = 0) -> BlockReport:
    """Return the report of a block that took so many seconds."""
    return BlockReport(computed, found, seconds)


def test_what_is_left_is_told_from_expected_seconds_not_from_the_number_of_cases(clock: Clock) -> None:
    """Half of the work is in a tenth of the cases."""
    shown = RunProgress(100, [block(20.0)] * 2)
    clock.now += 30
    shown.task_ended(block(20.0), report(20.0, {"ok": 10}))
    assert shown.seconds_left() == pytest.approx(30.0)
    assert shown.rate() == pytest.approx(1 / 3)
    assert shown.share() == pytest.approx(0.5)


def test_what_is_left_is_at_first_what_the_plan_says(clock: Clock) -> None:
    """Two workers started for 4 s, and one ended the first of 80 blocks: by the measured pace 79 times 7 s are left."""
    shown = RunProgress(800, [block(5.0)] * 80, workers=2)
    assert shown.seconds_left() == pytest.approx(200.0)
    clock.now += 7
    shown.task_ended(block(5.0), report(5.0, {"ok": 10}))
    assert 200 < shown.seconds_left() < 250


def test_a_plan_that_was_wrong_is_forgotten(clock: Clock) -> None:
    """All takes twice as long as planned."""
    shown = RunProgress(800, [block(5.0)] * 80, workers=2)
    clock.now += 200
    for _ in range(40):
        shown.task_ended(block(5.0), report(10.0, {"ok": 10}))
    assert shown.seconds_left() == pytest.approx(200.0, rel=0.1)
    assert shown.share() == pytest.approx(0.5, rel=0.1)


def test_a_dynamics_that_was_planned_far_too_dear_says_nothing_about_the_others(clock: Clock) -> None:
    """Two workers took 4 s for what was to take 4000 s, first of all; 390 s of another dynamics are left."""
    dear, cheap = block(100.0, "mean_field"), block(1.0, "sgd")
    shown = RunProgress(430, [dear] * 40 + [cheap] * 390, workers=2)
    for _ in range(40):
        clock.now += 0.05
        shown.task_ended(dear, report(0.1, {"ok": 1}))
    assert shown.seconds_left() == pytest.approx(195.0, rel=0.05)
    assert shown.share() == pytest.approx(0.01, rel=0.05)
    for _ in range(195):
        clock.now += 0.5
        shown.task_ended(cheap, report(1.0, {"ok": 1}))
    assert shown.seconds_left() == pytest.approx(97.5, rel=0.05)


def test_cases_of_unknown_cost_are_not_over_after_the_first_block(clock: Clock) -> None:
    """As they are guessed at nothing, and the seconds of a block itself were planned for one block of all of them."""
    shown = RunProgress(600, [block_of(600, seconds_a_case=1e-10)])
    for _ in range(10):
        clock.now += 1
        shown.task_ended(block_of(2, seconds_a_case=1e-10), report(1.0, {"ok": 2}))
    assert shown.seconds_left() == pytest.approx(290.0)
    assert shown.share() == pytest.approx(1 / 30)


def test_cases_that_others_have_computed_do_not_count_as_fast(clock: Clock) -> None:
    shown = RunProgress(20, [block(10.0)] * 2, workers=1)
    clock.now += 5
    shown.task_ended(block(10.0), report(5.0, {"ok": 5}, found=5))
    assert shown.seconds_left() == pytest.approx(10.0)


@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_no_time_left_is_told_before_a_pace_is_known(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, on_a_terminal: bool
) -> None:
    """A lost worker had stored all cases of the first block, and costs are guessed."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: on_a_terminal, raising=False)
    guess = block_of(10_000, seconds_a_case=2.0)
    with shown_progress("tiny", 10_000, [guess]) as shown:
        clock.now += 30
        shown.task_ended(block_of(1, seconds_a_case=2.0), report(0.01, {}, found=1))
    assert shown.seconds_left() is None
    assert "1/10000 cases" in (said := capsys.readouterr().err) and "left" not in said


def test_all_is_done_with_the_last_case_and_not_before(clock: Clock) -> None:
    """Whatever was expected."""
    shown = RunProgress(4, [block(10.0), block(0.1)])
    clock.now += 3
    shown.task_ended(block(10.0), report(10.0, {"ok": 3}))
    assert shown.share() == 0.99 and shown.seconds_left() > 0.0
    shown.task_ended(block(0.1), report(0.0, {}, found=1))
    assert shown.share() == 1.0 and shown.seconds_left() == 0.0


def test_lines_come_every_few_seconds_and_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("tiny", 10, [block(4.0), block(1.0), block(5.0)]) as shown:
        clock.now += 1
        shown.task_ended(block(4.0), report(4.0, {"killed": 1, "ok": 3}))
        assert capsys.readouterr().err == ""
        clock.now += 4
        shown.task_ended(block(1.0), report(1.0, {"ok": 1}))
        said = "tiny: 5/10 cases, 1 failed, 50% of the work, 1.0 cases/s, 5 s left\n"
        assert capsys.readouterr().err == said
        shown.task_ended(block(5.0), report(5.0, {"diverged": 2, "inaccurate": 1, "ok": 1}, found=1))
    said = "tiny: 10/10 cases, 1 failed, 2 diverged, 1 inaccurate, 100% of the work, 2.0 cases/s, 0 s left\n"
    assert capsys.readouterr().err == said


def test_a_terminal_gets_a_bar_with_the_time_left(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    with shown_progress("tiny", 10, [block(50.0)] * 2) as shown:
        clock.now += 7261
        shown.task_ended(block(50.0), report(50.0, {"failed": 3, "diverged": 4}))
        shown.say("news of [old] and [/usr/lib/libm.so.6]\a")
    written = capsys.readouterr().err
    assert "news of [old] and [/usr/lib/libm.so.6]\\x07" in written, "brackets are no markup"
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
    monkeypatch.setattr("sweeplib.engine.execution.progress.SECONDS_BETWEEN_SIGNS", 0.05)
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
from sweeplib.engine.execution.blocks import BlockReport
from sweeplib.engine.execution.progress import shown_progress
from tests.blocks import block_of
block = block_of(1, seconds_a_case=1.0)
with shown_progress("tiny", 3, [block] * 2) as shown:
    shown.task_ended(block, BlockReport(dict(), 1, 1.0))
    shown.task_ended(block, BlockReport(dict(), 2, 1.0))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("before", "has_bar"), [("", True), ("sys.modules['ipywidgets'] = None", False)])
def test_a_notebook_gets_a_bar_if_it_can_show_one(before: str, has_bar: bool) -> None:
    notebook = new_notebook(cells=[new_code_cell(BAR.format(before=before))])
    executed = nbclient.NotebookClient(notebook, timeout=60).execute()
    [cell] = executed.cells
    assert ("3/3" in json.dumps(executed.metadata.get("widgets", {}))) == has_bar
    assert any("3/3 cases" in output.get("text", "") for output in cell.outputs) == (not has_bar)
