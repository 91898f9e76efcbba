"""The progress of a run while it goes on: on the screen, and in the record of the stage.

That is a line for each step, then a bar on a terminal, or a line every few seconds elsewhere. A block is some cases,
the task of a worker; its report says how they ended.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sweeplib.engine.process.terminal import echo, harmless
from sweeplib.engine.status import outcomes
from sweeplib.engine.storage.records.stage_records import tell

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from sweeplib.engine.execution.blocks import Block, BlockReport

SECONDS_BETWEEN_LINES = 5.0
"""The interval of the lines of a run that is not on a terminal."""
SECONDS_BETWEEN_SIGNS = 4.0
"""The interval at which a terminal shows how long a step has lasted."""
PLANNED_PACE, PLANNED_COST = 0.1, 0.05
"""The parts of the work after which its measured pace, and the measured costs of cases, count as much as the plan's."""


class Listener:
    """Somebody who is told what happens in a run: four events, and lines of news. This one does nothing about it."""

    def run_begins(self, place: str, dashboard: str | None = None, page: str | None = None) -> None:
        """Take note that blocks are computed from now on.

        place : where, as a line to show. dashboard, page : links to Dask's dashboard, and to the sweep's page in it.
        """

    def handed_out(self, blocks: "Mapping[str, Block]") -> None:
        """Take note of blocks that were handed out, by the keys of their tasks."""

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Take note of a block that is done."""

    def run_ended(self) -> None:
        """Take note that all blocks are done."""

    def say(self, news: str) -> None:
        """Take note of a line of news, such as that workers were lost."""


class Steps:
    """Lines on standard error about the steps of a command, each written when its step begins, then its time.

    On a terminal, a long step shows every few seconds how long it has lasted.

    name : of the sweep, with which each line begins; None: nothing is written.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        # whether the last line goes on, as its step does; the thread that shows the time writes too
        self._open, self._lock = False, threading.Lock()

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """A context that is a step, on the screen and in the stage's record: `doing` is its name, "compiling …"."""
        started, ended = time.monotonic(), threading.Event()
        ticker = threading.Thread(target=self._show_time, args=(doing, started, ended), daemon=True)
        self._write(f"{self.name}: {doing} ...", opens=True)
        tell(doing=doing)
        if self.name is not None and sys.stderr.isatty():
            ticker.start()
        try:
            yield
        finally:
            ended.set()
            if ticker.is_alive():
                ticker.join()
            tell(doing=None)
            self._write_time(doing, f"{time.monotonic() - started:.1f} s\n", opens=False)

    def say(self, news: str) -> None:
        """Write a line of news."""
        self._write(("\n" if self._open else "") + f"{self.name}: {news}\n", opens=False)

    def _show_time(self, doing: str, started: float, ended: threading.Event) -> None:
        """Write every few seconds how long a step has lasted, until it has ended."""
        while not ended.wait(SECONDS_BETWEEN_SIGNS):
            self._write_time(doing, f"{time.monotonic() - started:.0f} s ...", opens=True)

    def _write_time(self, doing: str, time_so_far: str, *, opens: bool) -> None:
        """Write a time into the line of the step, or into a new line if there was news."""
        self._write((" " if self._open else f"{self.name}: {doing}: ") + time_so_far, opens=opens)

    def _write(self, text: str, *, opens: bool) -> None:
        """Write text; `opens` says whether its line goes on."""
        with self._lock:
            self._open = opens
            if self.name is not None:
                sys.stderr.write(text)
                sys.stderr.flush()


class Forecast:
    """The seconds of processors that the blocks of one dynamics take: as planned, corrected by what finished ones took.

    At first blocks to do take what the plan says, then more and more its seconds times the ratio by which finished ones
    differ from it.

    planned, seconds_spent : of all blocks by the plan, and of the finished ones as measured.
    done, total : numbers of cases. measured : whether the costs of all were, or some are guessed.
    """

    def __init__(self, blocks: "Sequence[Block]") -> None:
        """Begin with the plan of all blocks of a dynamics."""
        self.planned = sum(block.seconds for block in blocks)
        self.done, self.total = 0, sum(map(len, blocks))
        self.measured = all(block.measured for block in blocks)
        # seconds of finished blocks: as measured; planned; planned, of the cases that were computed in them
        self.seconds_spent, self._over, self._expected = 0.0, 0.0, 0.0
        # after so many planned seconds, measured costs count as much as the plan's, at once if these are guesses
        self._weight = PLANNED_COST * self.planned if self.measured else 0.0
        # when the first finished block began, and when the last one ended
        self._first, self._last = float("inf"), float("-inf")

    def add(self, block: "Block", report: "BlockReport") -> None:
        """Take account of a block that is done, of which some cases may have been stored before."""
        computed = sum(report.computed.values())
        self._over += block.seconds
        if computed:
            # of a block with cases that were stored before, the planned seconds of the others
            self._expected += block.seconds * computed / (computed + report.stored)
            self.seconds_spent += report.seconds
        self.done += len(block)
        self._last = time.monotonic()
        self._first = min(self._first, self._last - report.seconds)

    def rate(self) -> float:
        """Return the mean number of cases per second while blocks were computed."""
        return self.done / max(self._last - self._first, 1e-9) if self.done else 0.0

    def seconds_left(self) -> float:
        """Return the seconds that are left: planned · ratio^w, where w goes from 0 to 1 as blocks are done."""
        # rounding may leave less than nothing
        planned = max(0.0, self.planned - self._over)
        if not self._expected:
            return planned
        return float(
            planned * (self.seconds_spent / self._expected) ** (self._expected / (self._expected + self._weight))
        )


class RunProgress(Listener):
    """Counts of the cases that are done, and of the work, told to the record of the stage; subclasses show them.

    Cases differ in cost: the work of cases is the seconds of a processor that their `blocks` take. The pace of the work
    is at first that of so many `workers` (0: not known), then more and more what it was so far.

    done, total : numbers of cases. cases : those that this run computed, by status. forecasts : by dynamics.
    """

    def __init__(self, total: int = 0, blocks: "Sequence[Block]" = (), workers: int = 0) -> None:
        """Begin with `total` cases in blocks, which a number of workers share; 0 if that is not known."""
        self.total, self.workers = total, workers
        names = dict.fromkeys(block.dynamics for block in blocks)
        self.forecasts = {name: Forecast([block for block in blocks if block.dynamics == name]) for name in names}
        self.done, self.cases = 0, Counter[str]()  # all that are done; by status
        self.started = time.monotonic()

    def run_begins(self, place: str, dashboard: str | None = None, page: str | None = None) -> None:
        """Show where the run is, and the link to its page; that to the dashboard is in the words of the place."""
        tell(total=self.total, dashboard=dashboard, page=page, doing=None)
        self._show(place)
        if page:
            self._show(f"this sweep: {page}")

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Count the cases of a block that were found done and those that were computed, by status."""
        self.forecasts[block.dynamics].add(block, report)
        self.cases.update(report.computed)
        self.done += report.stored + sum(report.computed.values())
        totals = {"done": self.done, "cases": dict(self.cases), "share": self.share()}
        tell(force=self.done >= self.total, **totals, rate=self.rate(), seconds_left=self.seconds_left())

    def say(self, news: str) -> None:
        """Show a line of news, which is told to the record too."""
        tell(news=news)
        self._show(news)

    def _show(self, line: str) -> None:
        """Show a line where the run was started: this class shows nothing."""

    def share(self) -> float:
        """Return the part of the work that is done, 0 to 1, and at most 0.99 before the last case is."""
        if self.done >= self.total:
            return 1.0
        seconds = sum(forecast.seconds_spent for forecast in self.forecasts.values())
        return min(0.99, seconds / max(seconds + self._work_left(), 1e-9))

    def rate(self) -> float:
        """Return the mean number of cases per second."""
        return self.done / max(time.monotonic() - self.started, 1e-9)

    def seconds_left(self) -> float | None:
        """Return the estimated remaining seconds of wall time; None while no pace is known, planned or measured.

        They are the work that is left, divided by the pace so far. The pace is that of the finished blocks together
        with the part `PLANNED_PACE` of the planned work, as if that had been done before, by all workers at once.
        """
        if self.done >= self.total:
            return 0.0
        planned = sum(forecast.planned for forecast in self.forecasts.values())
        computed = sum(forecast.seconds_spent for forecast in self.forecasts.values())
        as_planned = PLANNED_PACE * planned if self.workers else 0.0
        if not computed + as_planned:
            return None
        seconds = time.monotonic() - self.started + as_planned / max(self.workers, 1)
        return self._work_left() * seconds / (computed + as_planned)

    def _work_left(self) -> float:
        """Return the seconds of processors that are left."""
        return sum(forecast.seconds_left() for forecast in self.forecasts.values())


class ProgressLines(RunProgress):
    """Progress as plain lines on standard error, one every few seconds."""

    def __init__(self, name: str, total: int, blocks: "Sequence[Block]", workers: int) -> None:
        super().__init__(total, blocks, workers)
        self.name, self._last_line = name, self.started

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Count, and write a line if the last one is old or this is the end."""
        before = self.done
        super().task_ended(block, report)
        now = time.monotonic()
        if self.done > before and (self.done >= self.total or now - self._last_line >= SECONDS_BETWEEN_LINES):
            self._last_line = now
            counts = f"{self.done}/{self.total} cases, {outcomes(self.cases)}"
            time_left = "" if (seconds := self.seconds_left()) is None else f", {seconds:.0f} s left"
            self._show(f"{counts}, {self.share():.0%} of the work, {self.rate():.1f} cases/s{time_left}")

    def _show(self, line: str) -> None:
        """Write a line."""
        echo(f"{self.name}: {line}", errors=True)


@contextmanager
def shown_progress(
    name: str, total: int, blocks: "Sequence[Block]", workers: int = 0, *, show: bool = True
) -> Iterator[RunProgress]:
    """Yield progress over `total` cases in blocks on some workers (0: not known), silent unless `show`.

    It is a bar on a terminal or in a notebook, lines elsewhere.
    """
    if not show:
        yield RunProgress(total, blocks, workers)
    elif sys.stderr.isatty() or _in_notebook():
        with _bar(name, total, blocks, workers) as bar:
            yield bar
    else:
        yield ProgressLines(name, total, blocks, workers)


def _in_notebook() -> bool:
    """Return whether this is a notebook whose cells can show a bar, for which rich needs ipywidgets."""
    if "IPython" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def _bar(name: str, total: int, blocks: "Sequence[Block]", workers: int) -> Iterator[RunProgress]:
    """Yield progress as a bar of rich on standard error; the arguments are those of `shown_progress`."""
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
    # news have names of files and messages in brackets, which are no markup
    plain = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with RichProgress(*columns, console=plain) as rich:
        task = rich.add_task(name, total=1.0, counts=f"0/{total} cases", rate=0.0, left="")
        yield _Bar(rich, task, total, blocks, workers)
        rich.refresh()  # in a notebook, rich does not draw the last state by itself


class _Bar(RunProgress):
    """The progress of a run as a bar on the terminal; `of` are the arguments of `RunProgress`."""

    def __init__(self, rich: "RichProgress", task: "TaskID", *of: Any) -> None:
        super().__init__(*of)
        self.rich, self.task = rich, task

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Take account of a block that is done, and move the bar."""
        super().task_ended(block, report)
        counts = f"{self.done}/{self.total} cases, {outcomes(self.cases)}"
        seconds = self.seconds_left()
        time_left = "" if seconds is None else f"{timedelta(seconds=round(seconds))} left"
        self.rich.update(self.task, completed=self.share(), counts=counts, rate=self.rate(), left=time_left)

    def _show(self, line: str) -> None:
        """Write a line above the bar."""
        self.rich.console.print(harmless(line))
