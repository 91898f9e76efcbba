"""Metrics of a running sweep for Prometheus, on the scheduler's own page `/metrics`, beside those of Dask."""

import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

from sweeplib.execution.progress import Progress
from sweeplib.simulation import OUTCOMES, failed

if TYPE_CHECKING:
    from distributed import Client, Scheduler

TOPIC = "sweeplib"
SECONDS_BETWEEN_NEWS = 1.0


class SweepMetrics(SchedulerPlugin):
    """Keeps the last news of each sweep on the scheduler, for Prometheus to collect. News come as events of `TOPIC`."""

    name = "sweeplib-metrics"
    idempotent = True

    def __init__(self) -> None:
        self.news: dict[str, dict[str, Any]] = {}

    async def start(self, scheduler: "Scheduler") -> None:
        """Add the metrics to those of the scheduler's process."""
        _COLLECTED.add(self)

    async def close(self) -> None:
        """Remove the metrics."""
        _COLLECTED.remove(self)

    def log_event(self, topic: str, msg: Any) -> None:
        """Take news of a sweep."""
        if topic == TOPIC:
            self.news[msg["sweep"]] = msg


class _Collected:
    """The metrics of all schedulers of this process: Prometheus takes those of one name from one place alone."""

    def __init__(self) -> None:
        self._plugins: list[SweepMetrics] = []
        self._lock = threading.Lock()

    def add(self, plugin: SweepMetrics) -> None:
        """Add the metrics of a scheduler."""
        from prometheus_client import REGISTRY

        with self._lock:
            if not self._plugins:
                REGISTRY.register(self)
            self._plugins.append(plugin)

    def remove(self, plugin: SweepMetrics) -> None:
        """Remove the metrics of a scheduler."""
        from prometheus_client import REGISTRY

        with self._lock:
            self._plugins.remove(plugin)
            if not self._plugins:
                REGISTRY.unregister(self)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of all sweeps."""
        from prometheus_client.core import GaugeMetricFamily

        cases = GaugeMetricFamily("sweeplib_cases", "Cases of the present run of a sweep", labels=["sweep", "outcome"])
        rate = GaugeMetricFamily("sweeplib_cases_per_second", "Mean rate of the present run", labels=["sweep"])
        left = GaugeMetricFamily("sweeplib_seconds_left", "Estimated time left", labels=["sweep"])
        latest = {sweep: news for plugin in list(self._plugins) for sweep, news in list(plugin.news.items())}
        for sweep, news in latest.items():
            for outcome in ("ok", "failed", *(status.name for status in OUTCOMES), "left"):
                cases.add_metric([sweep, outcome], news[outcome])
            rate.add_metric([sweep], news["rate"])
            left.add_metric([sweep], news["seconds_left"])
        yield from (cases, rate, left)


_COLLECTED = _Collected()


def metrics_told(client: "Client", sweep: str, say: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return a function that tells the scheduler the progress of a sweep, at most once a second and at the end.

    It does nothing without the package prometheus-client. `say` gets a line if the scheduler cannot take the metrics.
    """
    if find_spec("prometheus_client") is None:
        return _nothing
    try:
        client.register_plugin(SweepMetrics())
    except Exception as error:  # that of a process without sweeplib or prometheus-client can be of any type
        say(f"no metrics of the sweep at the scheduler: {type(error).__name__}: {' '.join(str(error).split())}")
        return _nothing
    return _Told(client, sweep)


def _nothing(progress: Progress) -> None:
    """Tell nothing."""


class _Told:
    def __init__(self, client: "Client", sweep: str) -> None:
        self._client, self._sweep, self._last = client, sweep, float("-inf")

    def __call__(self, progress: Progress) -> None:
        """Tell the scheduler the progress."""
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_NEWS and progress.done < progress.total:
            return
        self._last = now
        counts = {status.name: progress.cases[status.name] for status in OUTCOMES}
        counts["failed"] = failed(progress.cases)
        news = {"sweep": self._sweep, "ok": progress.done - sum(counts.values())} | counts
        pace = {"left": progress.total - progress.done, "rate": progress.rate(), "seconds_left": progress.left()}
        self._client.log_event(TOPIC, news | pace)
