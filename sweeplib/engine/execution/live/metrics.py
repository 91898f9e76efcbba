"""Metrics of running sweeps for Prometheus, on the scheduler's own page `/metrics`, beside those of Dask."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from sweeplib.engine.execution.live.news import SweepNews


class _Collected:
    """The news of all schedulers of this process: Prometheus takes the metrics of one name from one place alone.

    plugins : what each scheduler knows of sweeps; schedulers add and remove it.
    """

    def __init__(self) -> None:
        self.plugins: list[SweepNews] = []

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of all sweeps: Prometheus calls this at each request of the page."""
        cases = GaugeMetricFamily("sweeplib_cases", "Cases of the present run of a sweep", labels=["sweep", "outcome"])
        rate = GaugeMetricFamily("sweeplib_cases_per_second", "Mean rate of the present run", labels=["sweep"])
        remaining = GaugeMetricFamily("sweeplib_seconds_left", "Estimated time left", labels=["sweep"])
        runs = [run for plugin in list(self.plugins) for run in list(plugin.runs.values())]
        for sweep, totals in {run.begun.sweep: run.news.totals for run in runs if run.news}.items():
            for outcome, count in totals["cases"].items():
                cases.add_metric([sweep, outcome], count)
            rate.add_metric([sweep], totals["rate"])
            remaining.add_metric([sweep], totals["seconds_left"])
        yield from (cases, rate, remaining)


COLLECTED = _Collected()
"""The metrics of this process."""
REGISTRY.register(COLLECTED)
