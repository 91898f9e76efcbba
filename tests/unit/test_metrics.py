"""What Dask tells of a run: metrics of the sweep on the scheduler's page for Prometheus, and its performance report."""

import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client

from sweeplib.design.sweep import Run
from sweeplib.execution.metrics import metrics_told
from sweeplib.execution.progress import Progress
from sweeplib.execution.run import run_sweep
from tests.faults.sweeps import troubled_sweep
from tests.in_process import InProcess

RAISES, DIVERGES = 101.0, 104.0


def metrics(client: Client) -> list[str]:
    """Return the lines about sweeps on the scheduler's page."""
    page = client.dashboard_link.removesuffix("/status") + "/metrics"
    with urllib.request.urlopen(page) as answer:
        return [line for line in answer.read().decode().splitlines() if line.startswith("sweeplib_")]


def test_a_run_is_seen_by_prometheus_and_its_performance_kept(tmp_path: Path) -> None:
    sweep = replace(troubled_sweep(gammas=(0.1, RAISES, DIVERGES), seeds=6), runs={"calm": Run("calm")})
    for kept in (False, True):  # in the same process, one scheduler after the other
        settings, directory = InProcess(block_size=4, performance_report=kept), tmp_path / str(kept)
        with settings.client() as client:
            run_sweep(replace(sweep, cluster=settings), directory, progress=False, client=client)
            lines = metrics(client)
        for outcome, count in {"ok": 16, "failed": 1, "diverged": 1, "left": 0}.items():
            assert f'sweeplib_cases{{outcome="{outcome}",sweep="troubled"}} {count}.0' in lines
        assert any(line.startswith('sweeplib_cases_per_second{sweep="troubled"} ') for line in lines)
        assert 'sweeplib_seconds_left{sweep="troubled"} 0.0' in lines
        page = directory / "report" / "performance.html"
        assert page.exists() == kept
    text = page.read_text()
    assert "calm" in text and "Dask Performance Report" in text and '<script src="http' not in text


def test_sweeps_of_two_schedulers_in_one_process_are_both_seen() -> None:
    """As when two threads of a notebook run a sweep each; each scheduler's page has those of the process."""
    with InProcess().client() as one, InProcess().client() as other:
        lines: list[str] = []
        for client, sweep in ((one, "first"), (other, "second")):
            metrics_told(client, sweep, lines.append)(Progress(3))
        seen = metrics(one)
        assert lines == []
        for sweep in ("first", "second"):
            assert any(line.startswith(f'sweeplib_cases{{outcome="left",sweep="{sweep}"}}') for line in seen)


def test_a_scheduler_that_cannot_take_the_metrics_is_named_and_a_package_that_lacks_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing:
        def register_plugin(self, plugin: object) -> None:
            raise ModuleNotFoundError("No module named 'sweeplib'")

    lines: list[str] = []
    metrics_told(Refusing(), "tiny", lines.append)(Progress(3))
    assert lines == ["no metrics of the sweep at the scheduler: ModuleNotFoundError: No module named 'sweeplib'"]
    monkeypatch.setattr("sweeplib.execution.metrics.find_spec", lambda _: None)
    metrics_told(Refusing(), "tiny", pytest.fail)(Progress(3))
