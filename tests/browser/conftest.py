"""A report on disk, and a headless Chromium that opens it from the file, without a server."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.pictures.figures import FIGURES, Chart
from sweeplib.pictures.figures.kit.style import save
from sweeplib.pictures.report.overview import Computation, Outcomes, axes, overview, provenance
from sweeplib.pictures.report.plots import Plot, interactive_plot
from sweeplib.pictures.report.tables import analysis_tables, optima_table
from sweeplib.pictures.report.write import page
from tests.browser.opened import Opened
from tests.datasets import sweep_dataset, units_dataset

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return the Chromium of the system, otherwise Playwright's own."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_api.sync_playwright() as playwright:
        path = found or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip(f"no Chromium: none of {', '.join(NAMES)}, and Playwright has installed none")
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=8).assign_attrs(versions="python 3.11", digest="0f", git_commit="abc")


@pytest.fixture(scope="session")
def exits(ds: xr.Dataset) -> xr.Dataset:
    return ANALYSES["exit_times"](ds)


@pytest.fixture(scope="session")
def report(ds: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _report(ds, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def short_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a report on runs of which some did not exit."""
    return _report(sweep_dataset(seeds=8, horizon=1.0), tmp_path_factory.mktemp("short"))


def _report(ds: xr.Dataset, folder: Path) -> Path:
    """Return the path of a report with every kind of plot (points, curves, a map), a failure, tables, and a figure."""
    exits = ANALYSES["exit_times"](ds)
    analyses = {"exit_times": exits, "optimal_learning_rate": ANALYSES["optimal_learning_rate"](ds)}
    scan = FIGURES["learning_rate_scan"].declared(ds, analyses)
    shown = {"exit_steps": scan, **scan.also, "risk_bands": FIGURES["risk_curves"].declared(ds, analyses)}
    plots = [interactive_plot(name, declared, ds, analyses, {}) for name, declared in shown.items()]
    plots += [interactive_plot("regimes", *_regimes(), {}, {}), _cloud()]
    plots = [replace(plot, figure="scan" if place < 2 else "undrawn") for place, plot in enumerate(plots)]
    computed = [Computation(90.0, frozenset({"a:1"}))]
    counts = [("ODE", {"ok": 1200, "failed": 1})]
    html = page(
        name="tiny",
        links=[],
        first=("Answers", {}),
        opening=("The stored data open without sweeplib:", "import xarray as xr"),
        config="name: tiny\n" + "a long line " * 40,
        headlines=["The optimal learning rate of SGD is 0.095 [0.089, 0.101] at $d$ = 3000 (brackets: 95 % interval)."],
        overview=overview(ds, counts, computed),
        provenance=provenance(ds, computed, {"Seeds": "0 to 7"}, folder),
        counts=counts,
        axes=axes(ds),
        outcomes=Outcomes([_failure()], 1, {"diverged": 3}, ["outcomes/ode.csv"]),
        cards=[_card("figure", "undrawn"), _card("analysis", "unmade")],
        figures=[_figure(ds, analyses, folder), _undrawn()],
        plots=plots,
        optima=optima_table(analyses["optimal_learning_rate"]),
        tables=[table for name, analysis in analyses.items() for table in analysis_tables(name, analysis, ds)],
    )
    (folder / "index.html").write_text(html, encoding="utf-8")
    return folder / "index.html"


def _cloud() -> Plot:
    """Return a plot of units with five frames."""
    ds = units_dataset(times=5)
    analyses, figure = {"unit_measure": ANALYSES["unit_measure"](ds)}, FIGURES["unit_clouds"]
    return interactive_plot("unit_clouds", figure.declared(ds, analyses), ds, analyses, {})


def _failure() -> dict[str, str]:
    why = "ValueError: " + "w" * 60
    return {"status": "failed", "case": "ode: gamma = 0.5, seed = 3", "identity": "0" * 32, "why": why}


def _figure(ds: xr.Dataset, analyses: dict[str, xr.Dataset], folder: Path) -> dict[str, Any]:
    import base64

    [pdf, png] = save(FIGURES["learning_rate_scan"](ds, analyses, where={"Delta": 0.0}), folder / "scan")
    source = f"data:image/png;base64,{base64.b64encode(png.read_bytes()).decode()}"
    caption = FIGURES["learning_rate_scan"].caption
    document = f"data:application/pdf;base64,{base64.b64encode(pdf.read_bytes()).decode()}"
    shown = {"source": source, "pdf": document, "script": "drawn()", "size": [1200, 900], "problem": None}
    return {"name": "scan", "title": "Scan", "caption": caption} | shown


def _undrawn() -> dict[str, Any]:
    return {
        "name": "undrawn",
        "title": "Undrawn",
        "caption": "",
        "problem": _card("figure", "")["exception"],
    }


def _card(kind: str, name: str) -> dict[str, str]:
    raised = "ValueError: " + "a long word " * 8 + "w" * 60
    code = "from sweeplib.config import load\n\nmade(load('config.yaml'))"
    traceback = (
        'Traceback (most recent call last):\n  File "/a/rather/long/path/of/a/users/own/plugin.py", line 3\n' + raised
    )
    return {"kind": kind, "name": name, "exception": raised, "traceback": traceback, "reproduce": code}


def _regimes() -> tuple[Chart, xr.Dataset]:
    """Return a map of classes over two exponents."""
    coords = {"delta": np.linspace(-1.0, 1.0, 5), "kappa": np.linspace(0.0, 0.5, 3)}
    names = np.resize(["plateau", "no_ode"], (5, 3))
    data = xr.Dataset({"regime": (tuple(coords), names, {"long_name": "regime"})}, coords)
    for name, symbol in (("delta", r"\delta"), ("kappa", r"\kappa")):
        data[name].attrs = {"long_name": f"exponent {name}", "units": "1", "symbol": symbol}
    flags = {"flag_values": [0, 1], "flag_meanings": "missing ok"}
    data["status"] = xr.ones_like(data["delta"] * data["kappa"], np.uint8).expand_dims(seed=2).assign_attrs(flags)
    lines = ((-1.0, 0.0, "κ + δ = 0"),)
    declared = Chart(x="delta", y="kappa", z="regime", data=lambda ds, _: ds[["regime"]], lines=lines)
    return replace(declared, title="Regimes"), data


@pytest.fixture(scope="session")
def _desktop(browser: Any, report: Path) -> Opened:
    return Opened(browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce"), report)


@pytest.fixture
def opened(_desktop: Opened) -> Opened:
    """Return the report in a desktop window, with every plot drawn, as if just opened."""
    _desktop.reset()
    return _desktop


@pytest.fixture(scope="session")
def phone(browser: Any, report: Path) -> Opened:
    """Return the report on a phone 390 pixels wide."""
    screen = {"width": 390, "height": 844}
    context = browser.new_context(viewport=screen, has_touch=True, is_mobile=True, reduced_motion="reduce")
    return Opened(context.new_page(), report)
