"""What a run shows while it goes: a bar on a terminal, a line now and then anywhere else."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """What is told of cases that are done, some of them not well, and of news for the reader; shows nothing."""

    def advance(self, done: int, bad: int = 0) -> None:
        """Tell that `done` more cases are done, `bad` of them not well."""

    def say(self, news: str) -> None:
        """Tell a line of news."""


class Lines(Progress):
    """Progress as plain lines, one every few seconds."""

    def __init__(self, name: str, total: int, stream: TextIO) -> None:
        self.name, self.total, self.stream = name, total, stream
        self.done = self.bad = 0
        self.started = self.shown = time.monotonic()

    def advance(self, done: int, bad: int = 0) -> None:
        """Count, and write a line if the last one is old or this is the end."""
        self.done, self.bad = self.done + done, self.bad + bad
        now = time.monotonic()
        if done and (self.done >= self.total or now - self.shown >= SECONDS_BETWEEN_LINES):
            self.shown = now
            self.say(self.line(now - self.started))

    def line(self, seconds: float) -> str:
        """Where the run stands after these seconds."""
        rate = self.done / max(seconds, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        return f"{self.done}/{self.total} cases, {self.bad} failed, {rate:.1f} cases/s, {left:.0f} s left"

    def say(self, news: str) -> None:
        """Write a line."""
        self.stream.write(f"{self.name}: {news}\n")
        self.stream.flush()


@contextmanager
def shown_progress(name: str, total: int, *, show: bool = True) -> Iterator[Progress]:
    """Progress over `total` cases: silent unless `show`, a bar on a terminal, lines elsewhere."""
    if not show:
        yield Progress()
    elif sys.stderr.isatty():
        with _bar(name, total) as bar:
            yield bar
    else:
        yield Lines(name, total, sys.stderr)


@contextmanager
def _bar(name: str, total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[bad]} failed"),
        TextColumn("{task.fields[rate]:.1f} cases/s"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as rich:
        yield _Bar(rich, rich.add_task(name, total=total, bad=0, rate=0.0))


class _Bar(Progress):
    def __init__(self, rich: "RichProgress", task: "TaskID") -> None:
        self.rich, self.task = rich, task
        self.done = self.bad = 0
        self.started = time.monotonic()

    def advance(self, done: int, bad: int = 0) -> None:
        self.done, self.bad = self.done + done, self.bad + bad
        rate = self.done / max(time.monotonic() - self.started, 1e-9)
        self.rich.update(self.task, completed=self.done, bad=self.bad, rate=rate)

    def say(self, news: str) -> None:
        self.rich.console.print(news)
