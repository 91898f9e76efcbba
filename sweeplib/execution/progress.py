"""Progress of a run: a line for each step, then a bar on a terminal, or a line every few seconds elsewhere.

The same is told to other processes (`storage.jobs`).
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sweeplib.storage.jobs import tell

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_SIGNS = 4.0
"""The interval at which a terminal shows how long a step has lasted."""


class Steps:
    """Lines on standard error about the steps of a command, each written when its step begins, then its time.

    On a terminal, a long step shows every few seconds how long it has lasted. Silent without a name.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._open, self._lock = False, threading.Lock()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Report a step that lasts as long as the context."""
        started, ended = time.monotonic(), threading.Event()
        signs = threading.Thread(target=self._show_time, args=(what, started, ended), daemon=True)
        self._write(f"{self.name}: {what} ...", opens=True)
        tell(doing=what)
        if self.name is not None and sys.stderr.isatty():
            signs.start()
        try:
            yield
        finally:
            ended.set()
            if signs.is_alive():
                signs.join()
            tell(doing=None)
            self._write_time(what, f"{time.monotonic() - started:.1f} s\n", opens=False)

    def say(self, news: str) -> None:
        """Write a line of news."""
        self._write(("\n" if self._open else "") + f"{self.name}: {news}\n", opens=False)

    def _show_time(self, what: str, started: float, ended: threading.Event) -> None:
        """Write every few seconds how long a step has lasted, until it has ended."""
        while not ended.wait(SECONDS_BETWEEN_SIGNS):
            self._write_time(what, f"{time.monotonic() - started:.0f} s ...", opens=True)

    def _write_time(self, what: str, time_so_far: str, *, opens: bool) -> None:
        """Write a time into the line of the step, or into a new line if there was news."""
        self._write((" " if self._open else f"{self.name}: {what}: ") + time_so_far, opens=opens)

    def _write(self, text: str, *, opens: bool) -> None:
        """Write text; `opens` says whether its line goes on."""
        with self._lock:
            self._open = opens
            if self.name is not None:
                sys.stderr.write(text)
                sys.stderr.flush()


class Progress:
    """Counts of cases that are done, failed or diverged; this base class shows nothing.

    Cases differ in cost: the remaining time is estimated from the part of the expected `seconds` that is done.
    """

    def __init__(self, total: int = 0, seconds: float = 0.0) -> None:
        self.total, self.seconds = total, seconds
        self.done = self.failed = self.diverged = 0
        self.seconds_done = 0.0
        self.started = time.monotonic()
        tell(total=total)

    def advance(self, done: int, seconds: float = 0.0, *, failed: int = 0, diverged: int = 0) -> None:
        """Count `done` more cases, which were expected to take `seconds`.

        `diverged` of them ended because their numbers grew without bound, which is a result; `failed` have no result.
        """
        self.done, self.seconds_done = self.done + done, self.seconds_done + seconds
        self.failed, self.diverged = self.failed + failed, self.diverged + diverged
        counts = {"done": self.done, "failed": self.failed, "diverged": self.diverged}
        tell(force=self.done >= self.total, **counts, rate=self.rate(), left=self.left())

    def say(self, news: str) -> None:
        """Write a line of news."""

    def troubles(self) -> str:
        """Return the number of failed cases, and of diverged cases if there are any."""
        return f"{self.failed} failed" + (f", {self.diverged} diverged" if self.diverged else "")

    def rate(self) -> float:
        """Return the mean number of cases per second."""
        return self.done / max(time.monotonic() - self.started, 1e-9)

    def left(self) -> float:
        """Return the estimated remaining seconds."""
        if self.done >= self.total:
            return 0.0
        share = self.seconds_done / self.seconds if self.seconds else self.done / self.total
        return (time.monotonic() - self.started) * (1 / max(share, 1e-9) - 1)


class Lines(Progress):
    """Progress as plain lines on standard error, one every few seconds."""

    def __init__(self, name: str, total: int, seconds: float) -> None:
        super().__init__(total, seconds)
        self.name, self.shown = name, self.started

    def advance(self, done: int, seconds: float = 0.0, *, failed: int = 0, diverged: int = 0) -> None:
        """Count, and write a line if the last one is old or this is the end."""
        super().advance(done, seconds, failed=failed, diverged=diverged)
        now = time.monotonic()
        if done and (self.done >= self.total or now - self.shown >= SECONDS_BETWEEN_LINES):
            self.shown = now
            counts = f"{self.done}/{self.total} cases, {self.troubles()}"
            self.say(f"{counts}, {self.rate():.1f} cases/s, {self.left():.0f} s left")

    def say(self, news: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{self.name}: {news}\n")
        sys.stderr.flush()


@contextmanager
def shown_progress(name: str, total: int, seconds: float, *, show: bool = True) -> Iterator[Progress]:
    """Yield progress over `total` cases of `seconds` in all, silent unless `show`.

    It is a bar on a terminal or in a notebook, lines elsewhere.
    """
    if not show:
        yield Progress(total, seconds)
    elif sys.stderr.isatty() or _in_notebook():
        with _bar(name, total, seconds) as bar:
            yield bar
    else:
        yield Lines(name, total, seconds)


def _in_notebook() -> bool:
    """Whether the cells of a notebook can show a bar, for which rich needs ipywidgets."""
    if "IPython" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def _bar(name: str, total: int, seconds: float) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[troubles]}"),
        TextColumn("{task.fields[rate]:.1f} cases/s"),
        TextColumn("{task.fields[left]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as rich:
        yield _Bar(rich, rich.add_task(name, total=total, troubles="0 failed", rate=0.0, left=""), total, seconds)
        rich.refresh()  # in a notebook, rich does not draw the last state by itself


class _Bar(Progress):
    def __init__(self, rich: "RichProgress", task: "TaskID", total: int, seconds: float) -> None:
        super().__init__(total, seconds)
        self.rich, self.task = rich, task

    def advance(self, done: int, seconds: float = 0.0, *, failed: int = 0, diverged: int = 0) -> None:
        super().advance(done, seconds, failed=failed, diverged=diverged)
        left = f"{timedelta(seconds=round(self.left()))} left"
        self.rich.update(self.task, completed=self.done, troubles=self.troubles(), rate=self.rate(), left=left)

    def say(self, news: str) -> None:
        self.rich.console.print(news)
