"""Failed analyses, figures and parts of the report are described and reported, block nothing, and are tried again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES, Analysis, write_analysis
from sweeplib.config import load
from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.dataset.folder import write_dataset
from sweeplib.engine.storage.records.artefacts import cases_made_from, stale_outputs
from sweeplib.engine.storage.records.attempts import attempt_of, failed_attempts
from sweeplib.engine.storage.records.files import write_json, write_text
from sweeplib.engine.storage.records.stage_records import stage_record, stage_records
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES, Chart, Figure, write_figure
from sweeplib.pictures.report import summary, write_report
from tests.datasets import sweep_dataset
from tests.plugged import nothing_left

CONFIG = """\
name: tried
problem: {p: 1, k: 1, d: 50, gamma: 0.1, Delta: 0, activation: square}
dynamics: [ode, sgd]
seeds: 5
times: [0, 1]
thresholds: [0.01]
analyses: [exit_times, breaking, odd]
figures: [risk_curves, breaking, of_breaking, broken_plot]
"""
BROKEN = [True]


def breaking(ds):
    if BROKEN[0]:
        raise ZeroDivisionError("no <one> can\ndivide by $0$")
    return ds[["status"]].mean("seed", keep_attrs=True)


def odd(ds):
    """An analysis that computes, but whose result no table can show: flags without meanings."""
    counts = ds[["status"]].max("seed")
    counts["status"].attrs = {"long_name": "status", "units": "1", "flag_meanings": "one two", "flag_values": [1]}
    return counts


def broken_figure(ds, analyses):
    from matplotlib.figure import Figure as Drawing

    breaking(ds)
    return Drawing()


def broken_plot(ds, analyses):
    raise InputError("cannot be plotted", key="gamma", value=0)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    BROKEN[0] = True
    with nothing_left():
        for name, function in (("breaking", breaking), ("odd", odd)):
            ANALYSES.register(name, Analysis(name, function, f"What is {name}"))
        FIGURES.register("breaking", Figure("breaking", broken_figure, "Broken."))
        FIGURES.register("of_breaking", Figure("of_breaking", broken_figure, "Broken.", needs=("breaking",)))
        plot = Chart(x="gamma", y="risk", data=broken_plot)
        plotted = Figure("broken_plot", FIGURES["risk_curves"].function, "Drawn.", interactive=lambda *_, **__: plot)
        FIGURES.register("broken_plot", plotted)
        yield


OUTCOMES = """identity,status,gamma,seed,time,quantity,value,bound,exception
00,diverged,0.1,0,,,,,
01,diverged,0.1,1,,,,,
"""


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=2)


@pytest.fixture
def directory(ds: xr.Dataset, tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    made_from = cases_made_from(load(tmp_path / "config.yaml"))
    record = {"name": "simulate.ode", "counts": {"ok": 3, "diverged": 2}, "made_from": made_from, "ended": 1.0}
    write_json(tmp_path / "stages/simulate.ode.json", record)
    write_text(tmp_path / "outcomes/ode.csv", OUTCOMES)
    # of as many cases of another config, none stored
    write_json(tmp_path / "stages/simulate.sgd.json", {"name": "simulate.sgd", "counts": {"ok": 5}, "ended": 1.0})
    write_dataset(ds, tmp_path / "dataset.zarr")
    return tmp_path


@pytest.fixture
def sweep(directory: Path) -> Design:
    return load(directory / "config.yaml")


@pytest.mark.rest
def test_a_failing_analysis_is_described_and_leaves_nothing_old(sweep: Design, directory: Path) -> None:
    BROKEN[0] = False
    assert write_analysis(sweep, "breaking", directory).problem is None
    BROKEN[0] = True
    attempt = write_analysis(sweep, "breaking", directory)
    assert attempt.problem == "ZeroDivisionError: no <one> can divide by $0$"
    done = directory / "stages/analyse.breaking.done"
    assert done in stale_outputs(directory, sweep, remember=False), "the next run tries again"
    assert not (directory / "analysis/breaking.zarr").exists()
    assert stage_record(directory, "analyse.breaking").problem == attempt.problem
    [card] = failed_attempts(directory, "analysis", sweep.analyses)
    assert "test_attempts.py" in card["traceback"]
    BROKEN[0] = False
    assert write_analysis(sweep, "breaking", directory).problem is None
    assert failed_attempts(directory, "analysis", sweep.analyses) == []
    assert done not in stale_outputs(directory, sweep, remember=False)


@pytest.mark.rest
@pytest.mark.parametrize(("kind", "write"), [("analysis", write_analysis), ("figure", write_figure)])
def test_the_code_of_a_card_raises_again_what_was_raised(
    kind: str, write, sweep: Design, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sweep, "breaking", directory)
    [card] = failed_attempts(directory, kind)
    monkeypatch.chdir(directory)
    with pytest.raises(ZeroDivisionError, match="no <one> can"):
        exec(card["reproduce"])


@pytest.mark.rest
def test_a_failing_figure_leaves_pictures_that_say_so(sweep: Design, directory: Path) -> None:
    """A $ or a < in the message is not interpreted as markup, and the figure of a failed analysis names it."""
    write_analysis(sweep, "breaking", directory)
    attempts = {name: write_figure(sweep, name, directory) for name in sweep.figures}
    assert attempts["risk_curves"].problem is None
    assert attempts["of_breaking"].problem.startswith("it needs the analysis breaking, which failed: ZeroDivisionError")
    for attempt in attempts.values():
        assert [path.suffix for path in attempt.paths] == [".pdf", ".png"]
        assert all(path.stat().st_size > 1000 for path in attempt.paths)


@pytest.mark.rest
def test_what_was_not_tried_yet_is_no_failure_but_refused(sweep: Design, directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs the analysis"):
        write_figure(sweep, "of_breaking", directory)
    for write, name in ((write_analysis, "exit_times"), (write_figure, "risk_curves")):
        with pytest.raises(InputError, match="no dataset here"):
            write(sweep, name, tmp_path / "nowhere")
    assert not any(record.failures for record in stage_records(directory).values())


@pytest.mark.slow
def test_the_report_shows_all_that_was_made_and_a_card_for_all_that_was_not(sweep: Design, directory: Path) -> None:
    for name in sweep.analyses:
        write_analysis(sweep, name, directory)
    for name in sweep.figures:
        write_figure(sweep, name, directory)
    html = write_report(sweep, directory).read_text()
    assert html.count("<figure>") == 2
    assert "Data of exit_times" in html
    for kind, name in (
        ("analysis", "breaking"),
        ("figure", "breaking"),
        ("figure", "of_breaking"),
        ("plot", "broken_plot"),
        ("table", "odd"),
    ):
        assert f'id="failed-{kind}-{name}"' in html
        assert f'href="#failed-{kind}-{name}"' in html
    assert "gamma: cannot be plotted; got 0" in html
    told = summary(sweep, directory)
    assert told.failed
    lines = [line for line in told.text.splitlines() if " exit by the horizon " not in line]
    assert lines[:4] == [
        f"tried: 10 cases: 3 ok, 2 diverged, 5 missing; {directory / 'outcomes'} lists them",
        f"dataset: {directory / 'dataset.zarr'}",
        f"report: {directory / 'report/index.html'}",
        "failed, each with a card in the report; the same command tries again:",
    ]
    assert "  plot broken_plot: gamma: cannot be plotted; got 0" in told.text.splitlines()


def test_a_part_of_the_report_that_works_again_has_no_card(sweep: Design, directory: Path) -> None:
    with attempt_of(directory, "plot", "broken_plot", "") as attempt:
        raise ValueError("once")
    assert attempt.problem == "ValueError: once"
    with attempt_of(directory, "plot", "broken_plot", ""):
        pass
    assert failed_attempts(directory, "plot") == []


def test_what_stops_the_process_is_no_failure(directory: Path) -> None:
    with pytest.raises(KeyboardInterrupt), attempt_of(directory, "figure", "any", ""):
        raise KeyboardInterrupt
    assert not any(record.failures for record in stage_records(directory).values())
