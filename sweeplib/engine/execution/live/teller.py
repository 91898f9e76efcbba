"""The driver's side of the page: it tells the scheduler of its run, at most once a second.

A map counts the cases of a dynamics in the cells of the grid (`case_map`); a block is some cases, the task of a worker.
"""

import pickle
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from sweeplib.engine.execution.live.case_map import CaseMap, cell_labels, cell_widths
from sweeplib.engine.execution.live.headline import HeadlineCurves
from sweeplib.engine.execution.live.news import OPERATION, MapAxis, News, Pace, RunBeginning, SweepNews, changed
from sweeplib.engine.execution.progress import Forecast, Listener, RunProgress
from sweeplib.engine.status import OUTCOMES, failed
from sweeplib.engine.storage.records.files import appended_lines
from sweeplib.engine.storage.records.rounds import rounds_of
from sweeplib.engine.storage.store.outcomes import reason_in_words, reasons_path

if TYPE_CHECKING:
    from distributed import Client

    from sweeplib.engine.execution.blocks import Block, BlockReport
    from sweeplib.engine.execution.work import Workload

SECONDS_BETWEEN_NEWS = 1.0
REST = 50
"""The driver rests so many times as long as the last news took: they take 2 % of its time at most."""
MOST_READ = 4_000_000
"""Bytes of reasons that are read for one news: a block of the most cases, all with one reason, has 1.2 million."""
LONGEST_MESSAGE = 1000
"""The letters of a failure's message that are told."""
MOST_FAILURES = 50
"""Kinds of failures that are told; the table of outcomes has all."""


class Silent(Listener):
    """Passes on to the progress of a run what happens, and tells a scheduler that cannot show the run nothing.

    has_page : whether there is a page that shows it.
    """

    has_page = False

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress

    def run_begins(self, place: str, dashboard: str | None = None, page: str | None = None) -> None:
        """Pass on that blocks are computed from now on."""
        self._progress.run_begins(place, dashboard, page)

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Pass on a block that is done."""
        self._progress.task_ended(block, report)

    def say(self, news: str) -> None:
        """Pass on a line of news."""
        self._progress.say(news)


def teller_of(client: "Client", work: "Workload", progress: RunProgress) -> Silent:
    """Return the listener that tells the progress and a client's scheduler of a run; a line says if that cannot be."""
    try:
        client.register_plugin(SweepNews())
        return Teller(client, work, progress)
    except Exception as error:  # that of a scheduler without sweeplib can be of any type
        progress.say(f"the scheduler cannot show the sweep: {_in_a_line(error)}")
        return Silent(progress)


class Teller(Silent):
    """Tells a scheduler of a run, until it no longer takes news.

    has_page : whether the scheduler took the first news, so that its page shows the run.
    """

    def __init__(self, client: "Client", work: "Workload", progress: RunProgress) -> None:
        """Send the first news of a run."""
        super().__init__(progress)
        self._client, self._run = client, uuid4().hex
        self._maps, self._reasons = work.maps(), _Reasons(work)
        self._headline = HeadlineCurves(work, self._maps)
        rounds = rounds_of(work.sweep, work.directory) if work.sweep.questions else None
        self._answers = list(rounds.answers) if rounds else []  # those after the last round
        self._submitted: dict[str, Block] = {}  # since the last news, by the key of the task
        self._ended: list[tuple[Block, BlockReport]] = []  # since the last news
        self._next, self._lost = float("-inf"), False  # when news are sent again; whether none are any more
        grid = work.sweep.grid
        widths = cell_widths(grid.shape)
        axes = [
            MapAxis(axis.name, cell_labels(axis.values, width)) for axis, width in zip(grid.axes, widths, strict=True)
        ]
        maps = {name: case_map.before for name, case_map in self._maps.items()}
        self.has_page = self._send(
            RunBeginning(self._run, client.id, work.sweep.name, str(work.directory.resolve()), axes, maps)
        )

    def handed_out(self, blocks: "Mapping[str, Block]") -> None:
        """Take note of new blocks."""
        self._submitted |= blocks

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Tell the scheduler what is new, unless the last news are new."""
        super().task_ended(block, report)
        self._ended.append((block, report))
        self._tell()

    def run_ended(self) -> None:
        """Tell the scheduler the last news."""
        self._tell(ended=True)

    def _tell(self, *, ended: bool = False) -> None:
        """Send what is new, unless news were sent just now; of a run that has `ended` in any case."""
        started = time.monotonic()
        if self._lost or (started < self._next and not ended):
            return
        try:
            self._send(self._news(ended=ended))
        except Exception as error:  # the run itself says if the scheduler is lost
            self._lost = True
            self.say(f"the scheduler no longer shows the sweep: {_in_a_line(error)}")
            return
        now = time.monotonic()
        self._next = now + max(SECONDS_BETWEEN_NEWS, REST * (now - started))

    def _send(self, news: RunBeginning | News) -> bool:
        """Send news to the scheduler; return whether there is a page that shows it."""
        return bool(self._client.sync(getattr(self._client.scheduler, OPERATION), pickled=pickle.dumps(news)))

    def _news(self, *, ended: bool) -> News:
        """Return what is new since the last news, and begin to collect the next ones."""
        blocks, self._submitted = self._submitted, {}
        done, self._ended = self._ended, []
        for block, report in done:
            self._headline.add(block, report)
        return News(
            self._run,
            {name: self._changes(name, done) for name in self._maps},
            {key: self._cells(block) for key, block in blocks.items()},
            _totals(self._progress),
            {name: _pace(self._progress.forecasts[name]) for name in self._maps},
            self._reasons.rows(self._maps),
            self._headline.curves(ended=ended),
            answers=self._answers,
            ended=ended,
        )

    def _changes(self, name: str, done: "Sequence[tuple[Block, BlockReport]]") -> tuple[np.ndarray, np.ndarray]:
        """Return by how much the blocks that are done change the map of a dynamics: places and counts (`changed`)."""
        changes = [self._maps[name].changes(block, report) for block, report in done if block.dynamics == name]
        empty = np.empty(0, np.int64), np.empty(0, np.uint8)
        cells, status = (np.concatenate(parts) for parts in zip(empty, *changes, strict=True))
        return changed(cells, status)

    def _cells(self, block: "Block") -> dict[str, np.ndarray]:
        """Return the cells of a block's cases in the map of its dynamics."""
        return {block.dynamics: np.unique(self._maps[block.dynamics].cells(block))}


class _Reasons:
    """Why cases of a run failed or became inaccurate, read from the files of reasons as far as they have grown.

    A kind of failures is a dynamics, a status and a message.
    """

    def __init__(self, work: "Workload") -> None:
        self._paths = {name: reasons_path(work.directory, name) for name in work.demands}
        # the byte up to which each file was read: reasons of earlier runs are not told
        self._ends = {name: path.stat().st_size if path.exists() else 0 for name, path in self._paths.items()}
        self._counts = Counter[tuple[str, str, str]]()  # of cases by kind
        self._first: dict[tuple[str, str, str], str] = {}  # the first case of each kind, in words

    def rows(self, maps: Mapping[str, CaseMap]) -> list[dict[str, Any]]:
        """Return the kinds of failures, the most frequent ones first, each with its first case."""
        for name, path in self._paths.items():
            lines, self._ends[name] = appended_lines(path, self._ends[name], MOST_READ)
            for line in lines:
                kind = name, str(line["status"]), reason_in_words(line)[:LONGEST_MESSAGE]
                self._counts[kind] += len(line["cases"])
                if kind not in self._first and len(self._first) < MOST_FAILURES:
                    self._first[kind] = maps[name].coordinates(line["cases"][0])
        names = ("dynamics", "status", "message")
        kinds = [(kind, count) for kind, count in self._counts.most_common() if kind in self._first]
        return [
            dict(zip(names, kind, strict=True)) | {"cases": count, "first": self._first[kind]} for kind, count in kinds
        ]


def _pace(forecast: Forecast) -> Pace:
    """Return the pace of a dynamics; the time left is not known (NaN) before a block is done if costs are guessed."""
    is_known = forecast.measured or forecast.done
    return Pace(forecast.done, forecast.total, forecast.rate(), forecast.seconds_left() if is_known else float("nan"))


def _totals(progress: RunProgress) -> dict[str, Any]:
    """Return the `totals` of News: cases of the run by outcome, its rate, the seconds left (NaN if not known)."""
    counts = {status.name: progress.cases[status.name] for status in OUTCOMES} | {"failed": failed(progress.cases)}
    cases = {"ok": progress.done - sum(counts.values())} | counts | {"left": progress.total - progress.done}
    seconds = progress.seconds_left()
    return {"cases": cases, "rate": progress.rate(), "seconds_left": float("nan") if seconds is None else seconds}


def _in_a_line(error: Exception) -> str:
    """Return the kind and the message of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
