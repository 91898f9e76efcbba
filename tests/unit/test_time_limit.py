"""The clock of time limits, with several threads that compile."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from sweeplib.engine.execution import time_limit
from sweeplib.engine.execution.time_limit import _Clock

Timer = list[tuple[float, str]]
Report = Callable[[str], IO[Any]]
BEGIN, END = (SimpleNamespace(is_start=starts, is_end=not starts) for starts in (True, False))


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> Timer:
    """Return what the timer of the process is set to: the seconds, and the name of the report; [] if it is stopped."""
    state: Timer = []

    def start(seconds: float, *, file: IO[Any], **others: bool) -> None:
        assert others == {"exit": True} and not file.closed
        state[:] = [(seconds, Path(file.name).name)]

    monkeypatch.setattr(time_limit.faulthandler, "cancel_dump_traceback_later", state.clear)
    monkeypatch.setattr(time_limit.faulthandler, "dump_traceback_later", start)
    return state


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time, a list of one number, which a test sets."""
    now = [1000.0]
    monkeypatch.setattr(time_limit.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Return what opens a report of some name."""
    return lambda name: (tmp_path / name).open("w")


def elsewhere(clock: _Clock, *events: SimpleNamespace) -> None:
    """Tell a clock of events of numba, one after the other, in a thread of their own."""
    thread = threading.Thread(target=lambda: list(map(clock.notify, events)))
    thread.start()
    thread.join()


def test_a_deadline_beyond_all_times_of_a_system_is_set_as_late_as_one_can_be(
    timer: Timer, now: list[float], report: Report
) -> None:
    clock = _Clock()
    with report("late") as late:
        deadline = clock.begin(1e12, late)
        assert timer == [(1e9, "late")]
        clock.end(deadline)


def test_the_end_of_a_compilation_that_began_before_moves_no_deadline(
    timer: Timer, now: list[float], report: Report
) -> None:
    """It was under way in another thread, which has no deadline; one of this thread goes on."""
    clock = _Clock()
    deadline = clock.begin(10.0, report("one"))
    elsewhere(clock, END)
    assert timer == [(10.0, "one")]
    clock.notify(BEGIN)
    elsewhere(clock, END)
    assert not timer, "this thread compiles"
    now[0] += 3.0
    clock.notify(END)
    assert timer == [(10.0, "one")]
    clock.end(deadline)
    assert not timer


def test_a_deadline_that_is_set_during_a_compilation_waits_only_for_what_is_left_of_it(
    timer: Timer, now: list[float], report: Report
) -> None:
    clock = _Clock()
    first = clock.begin(10.0, report("first"))
    clock.notify(BEGIN)
    now[0] += 2.0
    second = clock.begin(5.0, report("second"))
    now[0] += 1.0
    clock.notify(END)
    assert timer == [(5.0, "second")]
    clock.end(second)
    assert timer == [(10.0, "first")]
    clock.end(first)


def test_each_deadline_has_its_own_report(timer: Timer, now: list[float], report: Report) -> None:
    """A report may be closed after the end of its deadline."""
    clock = _Clock()
    first, second = report("first"), report("second")
    one, other = clock.begin(10.0, first), clock.begin(20.0, second)
    assert timer == [(10.0, "first")]
    clock.end(other)
    second.close()
    clock.notify(BEGIN)
    clock.notify(END)
    assert timer == [(10.0, "first")]
    clock.end(one)
