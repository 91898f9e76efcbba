"""What a driver tells the scheduler of its run: numbers of cases, the map, failures, the results so far; metrics."""

import pickle
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.live import news
from sweeplib.engine.execution.live.case_map import CaseMap, cell_labels, cell_widths
from sweeplib.engine.execution.live.headline import _mean, _median, _unless_lost
from sweeplib.engine.execution.live.news import RunBeginning, SweepNews, changed
from sweeplib.engine.execution.live.picture import COLOURS, _colours, _over, kinds
from sweeplib.engine.execution.live.teller import MOST_READ, Teller, teller_of
from sweeplib.engine.execution.live.text import answers, failures, heading, legend, paces, plain
from sweeplib.engine.execution.progress import RunProgress
from sweeplib.engine.execution.queue import MOST_CASES
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import dataset_in_memory
from sweeplib.engine.storage.records.files import append_line, appended_lines
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_records
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.run_store import RunStore
from tests.faults.sweeps import troubled_sweep
from tests.in_process import InProcess

RAISES, DIVERGES = 101.0, 104.0
GAMMAS = (0.1, RAISES, DIVERGES)


def calm(**options: Any) -> Design:
    return replace(troubled_sweep(**options), runs={"calm": Run("calm")})


def told(client: Client) -> list[news.KnownRun]:
    """Return the runs that a scheduler in this process knows."""
    return list(client.cluster.scheduler.plugins["sweeplib-news"].runs.values())


def page(client: Client, name: str) -> str:
    with urllib.request.urlopen(client.dashboard_link.removesuffix("/status") + f"/{name}") as answer:
        return answer.read().decode()


def metrics(client: Client) -> list[str]:
    return [line for line in page(client, "metrics").splitlines() if line.startswith("sweeplib_")]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[Client, Client]]:
    with InProcess().client() as one, InProcess().client() as other:
        yield one, other


@pytest.mark.rest
def test_a_run_is_seen_by_prometheus_on_the_page_and_its_performance_kept(tmp_path: Path) -> None:
    """Of the cases, those of one γ raise in half of the seeds, or diverge."""
    for kept in (False, True):  # in the same process, one scheduler after the other
        settings, directory = InProcess(block_size=4, performance_report=kept), tmp_path / str(kept) / "troubled"
        sweep = replace(calm(gammas=GAMMAS, seeds=6), cluster=settings)
        with settings.client() as client:
            run_sweep(sweep, directory, progress=False, client=client)
            lines, [run], html = metrics(client), told(client), page(client, "sweep")
            assert '<a href="sweep">' in page(client, "workers")
        for outcome, count in {"ok": 16, "failed": 1, "diverged": 1, "left": 0}.items():
            assert f'sweeplib_cases{{outcome="{outcome}",sweep="troubled"}} {count}.0' in lines
        assert any(line.startswith('sweeplib_cases_per_second{sweep="troubled"} ') for line in lines)
        assert 'sweeplib_seconds_left{sweep="troubled"} 0.0' in lines
        assert (directory / "report" / "performance.html").exists() == kept
    text = (directory / "report" / "performance.html").read_text()
    assert "calm" in text and "Dask Performance Report" in text and '<script src="http' not in text
    assert "18 of 18 cases, 1 failed, 1 diverged" in html and "All cases have ended." in html

    assert "failed</span>" in legend(run.maps["calm"], running=False) and ">diverged</span>" in legend(
        run.maps["calm"], running=False
    )
    assert [axis.labels for axis in run.begun.axes] == [["0.1", "101", "104"]]
    stored = inventory(sweep, "calm", RunStore(directory, "calm"))
    expected = [np.bincount(stored.status[stored.flat // 6 == place], minlength=len(Status)) for place in range(3)]
    assert run.maps["calm"].tolist() == np.array(expected).tolist()
    assert run.news is not None
    [failure] = run.news.failures
    assert (
        failure["cases"] == 1 and failure["status"] == "failed" and failure["first"].startswith("gamma = 101, seed = ")
    )
    assert failure["message"] in (directory / "outcomes" / "calm.csv").read_text()
    assert run.news.paces["calm"].done == run.news.paces["calm"].total == 18


@pytest.mark.rest
def test_the_results_so_far_are_those_of_the_store(clients: tuple[Client, Client], tmp_path: Path) -> None:
    sweep = replace(calm(gammas=(0.1, 0.2), seeds=9), cluster=InProcess(block_size=4))
    run_sweep(sweep, tmp_path / "troubled", progress=False, client=clients[0])
    run = told(clients[0])[-1]
    assert run.news is not None and run.news.headline is not None
    curves = run.news.headline
    assert (curves.x, curves.y, curves.at) == ("gamma", "Median exit time in steps, threshold 0.1", "")
    stored = dataset_in_memory(sweep, tmp_path / "troubled").exit_steps.sel(dynamics="calm", threshold=0.1)
    exits = stored.transpose("gamma", "seed").values
    assert curves.of["calm"].y == np.median(exits, axis=1).tolist()
    assert curves.of["calm"].runs == [9, 9]
    assert curves.of["calm"].low == np.sort(exits, axis=1)[:, 1].tolist()  # 2 P(B <= 1) = .039 for n = 9
    assert curves.of["calm"].high == np.sort(exits, axis=1)[:, 7].tolist()


@pytest.mark.rest
@pytest.mark.parametrize("statistic", [_median, _mean])
def test_intervals_of_the_results_so_far_cover(statistic: Any) -> None:
    """Of 2000 samples 95 % have the truth inside: at least 94 %, which is 2 standard errors below (false alarm 2 %)."""
    rng = np.random.default_rng(3)
    for n in (6, 20):
        ends = np.array([statistic(rng.normal(size=n))[1:3] for _ in range(2000)])
        assert ((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean() > 0.94


def test_a_median_counts_runs_that_did_not_exit_and_a_few_runs_have_no_interval() -> None:
    assert _median(np.array([3.0, np.inf, 1.0]))[0] == 3.0
    assert _median(np.array([np.inf, 1.0, np.inf]))[0] == np.inf
    assert np.isnan(_median(np.arange(5.0))[1:3]).all()
    assert np.isnan(_mean(np.array([1.0, 2.0]))[1]) and _mean(np.array([1.0, np.inf, 2.0]))[0] == np.inf
    assert _unless_lost(_mean, [np.ones(98), np.array([np.nan, 1.0])])[0] == 1.0
    assert np.isnan(_unless_lost(_mean, [np.ones(8), np.array([np.nan, 1.0])])[0])


def test_two_runs_of_a_scheduler_are_apart_and_a_second_run_of_a_folder_takes_the_place_of_the_first() -> None:
    plugin = SweepNews()
    for run, client, results in (("a", "1", "/x"), ("b", "2", "/y"), ("c", "3", "/x")):
        plugin.take(pickle.dumps(RunBeginning(run, client, "same name", results, [], {"ode": np.zeros((1, 7), int)})))
    assert list(plugin.runs) == ["b", "c"]
    plugin.remove_client(SimpleNamespace(), "2")
    assert [run.lost for run in plugin.runs.values()] == [True, False]
    for number in range(3 * news.MOST_RUNS):
        plugin.take(pickle.dumps(RunBeginning(str(number), "4", "many", f"/{number}", [], {})))
    assert len(plugin.runs) == news.MOST_RUNS
    # the oldest again: it takes its own place, and all others stay
    oldest = next(iter(plugin.runs))
    plugin.take(pickle.dumps(RunBeginning("again", "4", "many", f"/{oldest}", [], {})))
    assert len(plugin.runs) == news.MOST_RUNS and oldest not in plugin.runs


@pytest.mark.rest
def test_sweeps_of_two_schedulers_in_one_process_are_both_seen(clients: tuple[Client, Client], tmp_path: Path) -> None:
    """As when two threads of a notebook run a sweep each; the metrics of each scheduler are those of the process."""
    for client, name in zip(clients, ("first", "second"), strict=True):
        sweep = replace(calm(gammas=(0.1,), seeds=2), name=name, cluster=InProcess(block_size=2))
        run_sweep(sweep, tmp_path / name, progress=False, client=client)
    seen = metrics(clients[0])
    for name in ("first", "second"):
        assert any(line.startswith(f'sweeplib_cases{{outcome="left",sweep="{name}"}}') for line in seen)
    assert "first" in page(clients[0], "sweep") and "second" in page(clients[1], "sweep")


def test_a_scheduler_that_cannot_show_a_sweep_is_named_and_the_run_goes_on(
    clients: tuple[Client, Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def register_plugin(self, plugin: object) -> None:
            raise ModuleNotFoundError("No module named 'sweeplib'")

    lines: list[str] = []
    monkeypatch.setattr(RunProgress, "say", lambda _, line: lines.append(line))
    teller_of(Refusing(), None, RunProgress()).run_ended()
    assert lines == ["the scheduler cannot show the sweep: ModuleNotFoundError: No module named 'sweeplib'"]

    def lost(self: Teller, told: object) -> bool:
        if not isinstance(told, RunBeginning):
            raise OSError("gone")
        return False

    monkeypatch.setattr(Teller, "_send", lost)
    said: list[str] = []
    monkeypatch.setattr(RunProgress, "say", lambda _, line: said.append(line))
    sweep = replace(calm(gammas=(0.1,), seeds=6), cluster=InProcess(block_size=2))
    [summary] = run_sweep(sweep, tmp_path / "troubled", progress=False, client=clients[0]).values()
    assert summary.computed == 6
    assert said.count("the scheduler no longer shows the sweep: OSError: gone") == len(said) == 1


def test_a_map_has_a_bounded_number_of_cells_and_says_what_is_in_them() -> None:
    assert cell_widths((5, 20)) == (1, 1)
    assert cell_widths((1000, 1000)) == (8, 8)
    assert cell_widths((1_000_000, 3)) == (256, 1)
    assert cell_widths(()) == ()
    assert cell_labels([0.125, 0.25, 0.5], 2) == ["0.125 to 0.25", "0.5"]
    assert cell_labels(["erf", "relu"], 1) == ["erf", "relu"]


def test_the_map_of_a_sweep_has_each_case_in_the_cell_of_its_point(tmp_path: Path) -> None:
    """Where cells hold several points, along two axes."""
    axes = Axis("gamma", tuple(0.01 * n for n in range(1, 301))), Axis("Delta", tuple(0.01 * n for n in range(101)))
    fixed = {"p": 2, "k": 1, "d": 50, "activation": "square"}
    sweep = replace(calm(seeds=1), grid=Grid(axes, fixed), runs={"calm": Run("calm", where={"gamma": (0.01, 3.0)})})
    wanted = inventory(sweep, "calm", RunStore(tmp_path, "calm"))
    cases = CaseMap(wanted)
    assert cases.before.shape == (150 * 101, len(Status)) and cases.before.sum() == 202
    block = SimpleNamespace(places=np.array([104, 105]))
    assert cases.cells(block).tolist() == [149 * 101 + 3, 149 * 101 + 4]
    places, positions = cases.along(block, "gamma", {"Delta": 4})
    assert places.tolist() == [299] and positions.tolist() == [1]
    assert cases.coordinates(wanted.ids[0].hex()) == "gamma = 0.01, Delta = 0, seed = 0"


def test_a_single_failure_is_seen_in_a_cell_of_many_cases_and_a_cell_without_cases_is_empty() -> None:
    counts = np.zeros((1, 3, len(Status)), int)
    counts[0, 0, Status.ok], counts[0, 0, Status.failed], counts[0, 1, Status.ok] = 999, 1, 1000
    colours = _colours(kinds(counts), counts.sum(-1)).view(np.uint8).reshape(3, 4)
    assert colours[1].tolist() == [*bytes.fromhex(COLOURS["ok"][1:]), 255]
    assert colours[0][0] > 1.5 * colours[0][2] and colours[2][3] == 0


def test_maps_are_summed_over_the_axes_that_are_not_shown() -> None:
    counts = np.arange(2 * 3 * 4 * len(Status)).reshape(2, 3, 4, len(Status))
    found, steps = _over(counts, [2, 0])
    assert (found == counts.sum(1)).all() and steps == [1, 1]
    assert (_over(counts, [0, 2])[0] == counts.sum(1).swapaxes(0, 1)).all()
    assert (_over(counts, [1, 1])[0][0] == counts.sum((0, 2))).all()
    merged, steps = _over(np.ones((1000, len(Status)), int), [0, None])
    assert merged.shape == (1, 143, len(Status)) and steps == [7, 1] and merged.sum() == 1000 * len(Status)
    assert _over(np.ones((1, len(Status)), int)[0][None].reshape(len(Status)), [None, None])[0].shape == (1, 1, 7)


def test_a_scheduler_without_a_dashboard_has_no_page_of_a_sweep(tmp_path: Path) -> None:
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options, scheduler_kwargs={"dashboard": False}) as cluster, Client(cluster) as client:
        sweep = replace(calm(gammas=(0.1,), seeds=2), cluster=InProcess(block_size=2))
        with recorded_stage(tmp_path / "troubled", "simulate"):
            run_sweep(sweep, tmp_path / "troubled", progress=False, client=client)
        assert stage_records(tmp_path / "troubled")["simulate"].page is None
        assert told(client)[0].news.ended
        with pytest.raises(urllib.error.HTTPError):
            page(client, "sweep")


def test_lines_that_were_appended_are_read_once_and_those_that_are_not_whole_later(tmp_path: Path) -> None:
    path = tmp_path / "reasons.jsonl"
    assert appended_lines(path, 0, 1000) == ([], 0)
    append_line(path, {"number": 1})
    first, after = appended_lines(path, 0, 1000)
    assert first == [{"number": 1}] and after == path.stat().st_size
    append_line(path, {"number": 2, "long": "x" * 900})
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert appended_lines(path, after, 1000) == ([], after)
    path.write_bytes(whole)
    assert [line["number"] for line in appended_lines(path, after, 1000)[0]] == [2]
    skipped = appended_lines(path, after, 500)  # longer than what is read at once
    assert skipped == ([], after + 500) and appended_lines(path, skipped[1], 1000) == ([], len(whole))


def test_one_reason_of_all_cases_of_the_largest_block_is_told(tmp_path: Path) -> None:
    path, cases = tmp_path / "reasons.jsonl", [f"{case:032x}" for case in range(MOST_CASES)]
    append_line(path, {"cases": cases, "status": "failed", "exception": "ValueError", "traceback": "x" * 10_000})
    [line], _ = appended_lines(path, 0, MOST_READ)
    assert len(line["cases"]) == MOST_CASES


def begun_run(**said: Any) -> news.KnownRun:
    """Return a run of 10 cases as a scheduler knows it, with the last news if any are `said`."""
    counts = np.zeros((2, len(Status)), np.int64)
    counts[:, Status.missing] = 5
    run = news.KnownRun(
        RunBeginning("a", "1", "<i>mine</i>", "/x", [news.MapAxis("gamma", ["1", "2"])], {"ode": counts})
    )
    if said:
        totals = {"cases": {}, "rate": 2.0, "seconds_left": 60.0}
        given: dict[str, Any] = {"changes": {}, "tasks": {}, "totals": totals, "paces": {}, "failures": []}
        run.take(news.News("a", **(given | said)))
    return run


def test_the_page_says_the_state_of_a_run_and_escapes_what_comes_from_it() -> None:
    run = begun_run()
    assert "&lt;i&gt;mine" in heading(run) and "0 of 10 cases, 0 failed" in heading(run)
    assert "The first cases are being computed." in heading(run) and paces(run) == failures(run) == answers(run) == ""
    pace = {"ode": news.Pace(4, 10, 2.0, 3.0), "sgd": news.Pace(0, 5, 0.0, 1.0), "late": news.Pace(0, 1, 0.0, np.nan)}
    run = begun_run(changes={"ode": changed(np.array([0, 1, 1]), np.array([1, 1, 3]))}, paces={"ode": pace["ode"]})
    assert "3 of 10 cases, 1 failed" in heading(run) and "2.0 cases a second, 0:01:00 left" in heading(run)
    assert ">0:01:00<" in paces(run) and ">2 ok, 1 failed<" in paces(run)
    run.news.paces.update(pace)
    run.maps |= {"sgd": run.maps["ode"], "late": run.maps["ode"]}
    assert "nan" not in paces(run)
    run.news.totals["seconds_left"] = np.nan
    assert "2.0 cases a second<" in heading(run) and ">0:" not in paces(run)
    run.heard -= 100.0
    assert "No block was done in the last 0:01:40." in heading(run)
    run.lost = True
    assert "the same command continues it" in heading(run)
    failure = {"dynamics": "ode", "status": "failed", "message": "<script>", "cases": 1234, "first": "gamma = 1"}
    record = {"question": "<b>", "at": {"d": 300}, "value": 1.5, "low": 1.25, "high": None, "wanted": 0.1}
    run = begun_run(
        failures=[failure], answers=[record | {"high": 2.0, "state": "open", "why": "few runs"}], ended=True
    )
    assert "&lt;script&gt;" in failures(run) and "1,234" in failures(run) and "<script>" not in failures(run)
    for text in ("&lt;b&gt;", "d = 300", "1.25 to 2", "± 0.1", "open: few runs"):
        assert text in answers(run)
    assert "All cases have ended." in heading(run) and "All cases have ended." in plain(run)
