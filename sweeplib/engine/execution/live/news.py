"""What a driver tells a scheduler of its run, and what the scheduler knows of the runs on it.

The driver is the process that runs the sweep. It counts the cases of each dynamics on a map (`case_map`), an array
(cells, statuses), and sends by how much the counts change.
"""

import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed.diagnostics.plugin import SchedulerPlugin

from sweeplib.engine.status import Status

if TYPE_CHECKING:
    from distributed import Scheduler

    from sweeplib.engine.execution.live.graph import ResultCurves

OPERATION = "sweeplib_news"
"""The name of the scheduler's handler of news."""
MOST_RUNS = 20
"""The number of runs that a scheduler knows, the last ones."""


@dataclass(frozen=True)
class MapAxis:
    """An axis of the maps of a sweep: its name, and the value or values of each cell along it."""

    name: str
    labels: list[str]


@dataclass(frozen=True)
class Pace:
    """How a dynamics goes: cases done of all, cases per second, and the seconds of a processor that are left."""

    done: int
    total: int
    rate: float
    remaining: float


@dataclass(frozen=True)
class RunBeginning:
    """The first news of a run: what is known before any case is done.

    run : a number of its own. client : the identity of Dask's client that tells it. results : the sweep's folder.
    maps : by dynamics, the number of cases (cells, statuses), the cells over the axes in C order.
    """

    run: str
    client: str
    sweep: str
    results: str
    axes: list[MapAxis]
    maps: dict[str, np.ndarray]


@dataclass(frozen=True)
class News:
    """News of a run since those before.

    changes : by dynamics, flat places in the map, each once, and by how many cases they change: less than zero where
        cases left.
    tasks : by the key of a new task, the cells that it computes by dynamics.
    totals : "cases", the numbers by outcome; "rate", cases a second; "seconds_left", NaN if not known.
    paces : by dynamics.
    failures : kinds of failures, each with its dynamics, status, message, number of cases, and a first case.
    headline : curves of the results so far, None if there are none.
    answers : those after the last round. ended : whether these are the last news.
    """

    run: str
    changes: dict[str, tuple[np.ndarray, np.ndarray]]
    tasks: dict[str, dict[str, np.ndarray]]
    totals: dict[str, Any]
    paces: dict[str, Pace]
    failures: list[dict[str, Any]]
    headline: "ResultCurves | None" = None
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    ended: bool = False


class KnownRun:
    """A run as the scheduler knows it.

    begun : its first news. news : the last after these, None before any.
    maps : as in `RunBeginning`, with all changes so far. tasks : as in `News`, those that the scheduler may still know.
    version : grows with each news, so that a page sees whether there are any. heard : when the last came, as time.time.
    lost : whether its driver has left.
    """

    def __init__(self, begun: RunBeginning) -> None:
        """Keep the first news of a run, and copies of its maps, which later news change."""
        self.begun, self.maps = begun, {name: counts.copy() for name, counts in begun.maps.items()}
        self.news: News | None = None
        self.tasks: dict[str, dict[str, np.ndarray]] = {}
        self.version, self.heard, self.lost = 0, time.time(), False

    def take(self, news: News) -> None:
        """Add the changes of news to the maps, and keep their tasks."""
        for name, (places, counts) in news.changes.items():
            # `ravel` is a view, as maps are contiguous; no place comes twice (`changed`): += would count it once
            self.maps[name].ravel()[places] += counts
        self.news, self.heard, self.version = news, time.time(), self.version + 1
        self.tasks |= news.tasks

    def running(self, scheduler: "Scheduler") -> dict[str, np.ndarray]:
        """Return by dynamics the cells of the tasks that workers have now; forget tasks that the scheduler forgot."""
        self.tasks = {key: cells for key, cells in self.tasks.items() if key in scheduler.tasks}
        keys = [task.key for worker in scheduler.workers.values() for task in worker.processing]
        cells_by_name: dict[str, list[np.ndarray]] = {}
        for key in keys:
            for name, cells in self.tasks.get(key, {}).items():
                cells_by_name.setdefault(name, []).append(cells)
        return {name: np.unique(np.concatenate(cells)) for name, cells in cells_by_name.items()}


class SweepNews(SchedulerPlugin):
    """Keeps the last runs of sweeps on a scheduler, for the page of its dashboard and for Prometheus."""

    name = "sweeplib-news"
    idempotent = True

    def __init__(self) -> None:
        self.runs: dict[str, KnownRun] = {}
        self.page = False

    async def start(self, scheduler: "Scheduler") -> None:
        """Let the scheduler take news, and show them, where the packages for that are installed. Dask calls this."""
        scheduler.handlers[OPERATION] = self.take
        if find_spec("bokeh") is not None:
            from sweeplib.engine.execution.live.page import add_page

            self.page = add_page(scheduler, self)
        if find_spec("prometheus_client") is not None:
            from sweeplib.engine.execution.live.metrics import COLLECTED

            COLLECTED.plugins.append(self)

    async def close(self) -> None:
        """Remove the metrics. Dask calls this as the scheduler ends."""
        if find_spec("prometheus_client") is not None:
            from sweeplib.engine.execution.live.metrics import COLLECTED

            COLLECTED.plugins.remove(self)

    def take(self, pickled: bytes) -> bool:
        """Take news of a run, the scheduler's handler of them; return whether there is a page that shows them.

        The first news of a run take the place of earlier runs of the same results, and of the oldest if there are many.
        """
        # safe: they are of a client, whose tasks Dask unpickles, too
        news = pickle.loads(pickled)
        if isinstance(news, RunBeginning):
            same = [key for key, run in self.runs.items() if run.begun.results == news.results]
            others = [key for key in self.runs if key not in same]
            for key in [*same, *others[: max(0, len(others) + 1 - MOST_RUNS)]]:
                del self.runs[key]
            self.runs[news.run] = KnownRun(news)
        elif news.run in self.runs:
            self.runs[news.run].take(news)
        return self.page

    def remove_client(self, scheduler: "Scheduler", client: str) -> None:
        """Note that the driver of a run has left: Dask calls this for each client."""
        for run in self.runs.values():
            if run.begun.client == client:
                run.lost, run.version = True, run.version + 1


def changed(cells: np.ndarray, status: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the flat places in a map (cells, statuses) that change as n cases end, each once, and by how many cases.

    cells, status (n,) : of each case, which was counted as missing in its cell before.
    """
    # `Status.missing` is 0: the place of the missing cases of a cell is the first of the cell
    places = cells.astype(np.int64) * len(Status)
    changes, counts = np.unique(np.concatenate([places + status, places]), return_counts=True)
    return changes, np.where(changes % len(Status) == Status.missing, -counts, counts)
