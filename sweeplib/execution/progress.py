"""Progress of a run: a line for each step, then a bar on a terminal, or a line every few seconds elsewhere.

The same is told to other processes (`storage.jobs`).
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sweeplib.simulation import outcomes
from sweeplib.storage.records.jobs import tell

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_SIGNS = 4.0
"""The interval at which a terminal shows how long a step has lasted."""
PLANNED_SHARE = 0.1
"""The pace of the plan counts as much as the measured one when this part of the work is done."""


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
    """Counts of the cases that are done, and of the work: this base class shows nothing.

    Cases differ in cost: the work of cases is the `seconds` of a processor that they are expected to take. The pace of
    the work is at first that of the plan, `workers` seconds of work a second, then more and more what it was so far.
    """

    def __init__(self, total: int = 0, seconds: float = 0.0, workers: int = 0) -> None:
        self.total, self.seconds = total, seconds
        self.planned = seconds / workers if workers else 0.0
        self.done, self.cases = 0, Counter[str]()
        self.seconds_done = 0.0
        self.started = time.monotonic()
        tell(total=total)

    def advance(self, found: int, seconds: float, computed: Mapping[str, int]) -> None:
        """Count cases that were found done and those that were computed, by status; they were to take `seconds`."""
        self.cases.update(computed)
        self.done, self.seconds_done = self.done + found + sum(computed.values()), self.seconds_done + seconds
        told = {"done": self.done, "cases": dict(self.cases), "share": self.share()}
        tell(force=self.done >= self.total, **told, rate=self.rate(), left=self.left())

    def say(self, news: str) -> None:
        """Write a line of news."""

    def share(self) -> float:
        """Return the part of the work that is done."""
        return min(1.0, self.seconds_done / self.seconds) if self.seconds else self.done / max(1, self.total)

    def rate(self) -> float:
        """Return the mean number of cases per second."""
        return self.done / max(time.monotonic() - self.started, 1e-9)

    def left(self) -> float:
        """Return the estimated remaining seconds."""
        if self.done >= self.total:
            return 0.0
        before = PLANNED_SHARE if self.planned else 0.0
        taken = time.monotonic() - self.started + before * self.planned
        return taken * (1 - self.share()) / max(self.share() + before, 1e-9)


class Lines(Progress):
    """Progress as plain lines on standard error, one every few seconds."""

    def __init__(self, name: str, total: int, seconds: float, workers: int) -> None:
        super().__init__(total, seconds, workers)
        self.name, self.shown = name, self.started

    def advance(self, found: int, seconds: float, computed: Mapping[str, int]) -> None:
        """Count, and write a line if the last one is old or this is the end."""
        before = self.done
        super().advance(found, seconds, computed)
        now = time.monotonic()
        if self.done > before and (self.done >= self.total or now - self.shown >= SECONDS_BETWEEN_LINES):
            self.shown = now
            counts = f"{self.done}/{self.total} cases, {outcomes(self.cases)}"
            pace = f"{self.share():.0%} of the work, {self.rate():.1f} cases/s, {self.left():.0f} s left"
            self.say(f"{counts}, {pace}")

    def say(self, news: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{self.name}: {news}\n")
        sys.stderr.flush()


@contextmanager
def shown_progress(name: str, total: int, seconds: float, workers: int = 0, *, show: bool = True) -> Iterator[Progress]:
    """Yield progress over `total` cases of `seconds` in all on some workers (0: not known), silent unless `show`.

    It is a bar on a terminal or in a notebook, lines elsewhere.
    """
    if not show:
        yield Progress(total, seconds, workers)
    elif sys.stderr.isatty() or _in_notebook():
        with _bar(name, total, seconds, workers) as bar:
            yield bar
    else:
        yield Lines(name, total, seconds, workers)


def _in_notebook() -> bool:
    """Whether the cells of a notebook can show a bar, for which rich needs ipywidgets."""
    if "IPython" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def _bar(name: str, total: int, seconds: float, workers: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[counts]}"),
        TextColumn("{task.fields[rate]:.1f} cases/s"),
        TextColumn("{task.fields[left]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as rich:
        task = rich.add_task(name, total=1.0, counts=f"0/{total} cases", rate=0.0, left="")
        yield _Bar(rich, task, total, seconds, workers)
        rich.refresh()  # in a notebook, rich does not draw the last state by itself


class _Bar(Progress):
    def __init__(self, rich: "RichProgress", task: "TaskID", *of: Any) -> None:
        super().__init__(*of)
        self.rich, self.task = rich, task

    def advance(self, found: int, seconds: float, computed: Mapping[str, int]) -> None:
        super().advance(found, seconds, computed)
        counts = f"{self.done}/{self.total} cases, {outcomes(self.cases)}"
        left, share = f"{timedelta(seconds=round(self.left()))} left", 1.0 if self.done >= self.total else self.share()
        self.rich.update(self.task, completed=share, counts=counts, rate=self.rate(), left=left)

    def say(self, news: str) -> None:
        self.rich.console.print(news)
