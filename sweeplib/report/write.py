"""The report stage of a sweep."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.report.failures import failures
from sweeplib.report.optima import Table as Optima
from sweeplib.report.optima import optima_table
from sweeplib.report.overview import axes, overview, provenance
from sweeplib.report.plots import Plot, interactive_plot
from sweeplib.report.runs import journals
from sweeplib.report.tables import analysis_tables

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.sweep.sweep import Sweep


def write_report(sweep: Sweep, directory: str | Path) -> Path:
    """The path of report/index.html in a sweep's directory, made of the files of the other stages alone."""
    from sweeplib.storage.dataset import open_dataset
    from sweeplib.storage.files import write_text

    directory = Path(directory)
    dataset = open_dataset(directory / "dataset.zarr")
    analyses = {name: open_dataset(directory / "analysis" / f"{name}.zarr").load() for name in sweep.analyses}
    counts, journal = case_counts(sweep, directory), journals(directory, sweep.runs)
    html = page(
        name=sweep.name,
        config=sweep.source,
        overview=overview(dataset, counts, journal),
        provenance=provenance(dataset, journal, _settings(sweep), directory),
        counts=counts,
        axes=axes(dataset),
        failures=failures(directory),
        figures=list(_figures(sweep.figures, directory)),
        plots=list(_plots(sweep, dataset, analyses)),
        optima=_optima(analyses),
        tables=[table for name, analysis in analyses.items() for table in analysis_tables(name, analysis)],
        analyses=list(analyses),
    )
    return write_text(directory / "report" / "index.html", html)


def page(**contents: Any) -> str:
    """The HTML page; everything in `contents` is escaped."""
    import jinja2
    from markupsafe import Markup

    from sweeplib.figures.style import COLOURS, FAINT, INK

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    beside = [plot for figure in contents["figures"] for plot in figure["plots"]]
    scripts = [Markup(script) for script in _bokeh()] if any(plot.spec for plot in contents["plots"]) else []
    template = environment.get_template("page.html.j2")
    return template.render(**contents, beside=beside, scripts=scripts, colour=COLOURS[0], ink=INK, faint=FAINT)


def _bokeh() -> list[str]:
    """BokehJS and its interface, once for all plots of the page; Bokeh itself is not imported."""
    from importlib.util import find_spec

    found = find_spec("bokeh")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("bokeh, a dependency of sweeplib, is not installed", name="bokeh")
    folder = Path(found.origin).parent / "server" / "static" / "js"
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("bokeh.min.js", "bokeh-api.min.js")]
    return [text.partition("//# sourceMappingURL")[0] for text in texts]


def case_counts(sweep: Sweep, directory: Path) -> list[tuple[str, dict[str, int]]]:
    """For each dynamics its label and the number of cases with each status that occurs in the sweep."""
    from sweeplib.figures.labels import dynamics_label
    from sweeplib.storage.files import read_json

    found = {name: (read_json(directory / f"{name}.done.json") or {}).get("cases", {}) for name in sweep.runs}
    statuses = sorted(
        {status for cases in found.values() for status in cases} | {"ok"}, key=lambda name: (name != "ok", name)
    )
    return [
        (dynamics_label(name), {status: cases.get(status, 0) for status in statuses}) for name, cases in found.items()
    ]


def _settings(sweep: Sweep) -> dict[str, Any]:
    seeds = sweep.seeds
    consecutive = list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    said = f"{seeds[0]} to {seeds[-1]}" if consecutive and len(seeds) > 1 else ", ".join(map(str, seeds))
    return {"Seeds": f"{said}; root seed {sweep.root_seed}"}


def _figures(wanted: Mapping[str, Any], directory: Path) -> Iterator[dict[str, Any]]:
    from sweeplib.figures import FIGURES, INTERACTIVE

    for name in wanted:
        png = directory / "figures" / f"{name}.png"
        picture = png.read_bytes()
        encoded = base64.b64encode(picture).decode("ascii")
        yield {
            "name": name,
            "title": name.replace("_", " ").capitalize(),
            "caption": FIGURES[name].caption,
            "source": f"data:image/png;base64,{encoded}",
            "size": [pixels // 2 for pixels in struct.unpack(">II", picture[16:24])],
            "plots": [plot for plot in INTERACTIVE if INTERACTIVE[plot].figure == name],
        }


def _plots(sweep: Sweep, dataset: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Iterator[Plot]:
    """The interactive plots of what the sweep draws or analyses."""
    from sweeplib.figures import INTERACTIVE

    for name, declared in INTERACTIVE.items():
        wanted = declared.figure in sweep.figures if declared.figure else bool(declared.needs)
        if wanted and set(declared.needs) <= set(analyses):
            options = sweep.figures.get(declared.figure, {})
            yield interactive_plot(name, declared, dataset, analyses, options)


def _optima(analyses: Mapping[str, xr.Dataset]) -> Optima | None:
    return optima_table(analyses["optimal_learning_rate"]) if "optimal_learning_rate" in analyses else None
