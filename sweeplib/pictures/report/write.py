"""The report stage of a sweep: what the page has, of the dataset and the analyses, and the page.

`directory` is always the folder of the results of one sweep. A card describes a failed analysis, figure, plot or table.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.write import analysis_failure
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.regular_files import file_bytes, file_text
from sweeplib.engine.storage.records.artefacts import PAGE, made_from
from sweeplib.engine.storage.records.attempts import attempt_of
from sweeplib.engine.storage.records.files import write_text
from sweeplib.engine.storage.records.locks import writer_lock
from sweeplib.engine.storage.records.manifest import entries_of
from sweeplib.engine.storage.records.stage_records import counts_when_done, recorded_stage
from sweeplib.networks.simulation.labels import exit_words
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.figures.kit.labels import value_label
from sweeplib.pictures.figures.kit.style import COLOURS, FAINT, INK
from sweeplib.pictures.figures.write import REPRODUCE
from sweeplib.pictures.report.mathematics import html_label
from sweeplib.pictures.report.overview import axes, cards, computations, outcomes, overview, provenance
from sweeplib.pictures.report.plots import Plot, interactive_plot
from sweeplib.pictures.report.summary import answers, distance_lines, exit_lines, headlines, undecided_lines
from sweeplib.pictures.report.tables import OptimaTable, PageTable, analysis_tables, capital, optima_table

if TYPE_CHECKING:
    import jinja2


T = TypeVar("T")

OPTIMA = "optimal_learning_rate"
"""The analysis that has a table of its own."""
PART_AGAIN = """\
# in the folder of the sweep
from sweeplib.config import load
from sweeplib.pictures.report.write import Contents

Contents(load("config.yaml"), ".").{kind}({name!r})
"""
"""The script that is stored beside a failed part of the report, which repeats it."""


class Contents:
    """The dataset in a sweep's directory, and its analyses without those that failed."""

    def __init__(self, sweep: Design, directory: str | Path) -> None:
        from sweeplib.engine.storage.dataset.folder import open_dataset

        self.sweep, self.directory = sweep, Path(directory)
        self.dataset = open_dataset(self.directory / "dataset.zarr")
        self.analyses = {
            name: open_dataset(self.directory / "analysis" / f"{name}.zarr").load()
            for name in sweep.analyses
            if analysis_failure(directory, name) is None
        }

    def content(self) -> dict[str, Any]:
        """Return all plots, tables and the table of optima; failed ones are left out and recorded."""
        with recorded_stage(self.directory, "report") as record:
            record.tell_failures([])
            plots = [self._attempt("plot", name, self.plot) for name in self._with_plots()]
            tables = [self._attempt("table", name, self.table) for name in self.analyses]
            optima = self._attempt("optima", OPTIMA, self.optima) if OPTIMA in self.analyses else None
        return {
            "plots": different([plot for of_figure in plots for plot in of_figure or ()]),
            "tables": [table for parts in tables for table in parts or ()],
            "optima": optima,
        }

    def plot(self, name: str) -> list[Plot]:
        """Return the interactive plots of an entry of `figures`: its own, and others below that."""
        figure, options = requested(name, self.sweep.figures[name])
        declared = figure.declared(self.dataset, self.analyses, **options)
        charts = {name: declared, **declared.also}.items()
        plots = [interactive_plot(key, chart, self.dataset, self.analyses, options) for key, chart in charts]
        # a plot that is no JSON is a failure of this plot, not of the page
        json.dumps([plot.json for plot in plots], allow_nan=False)
        return [replace(plot, figure=name) for plot in plots]

    def table(self, name: str) -> list[PageTable]:
        """Return the tables of one analysis."""
        tables = analysis_tables(name, self.analyses[name], self.dataset)
        # a table that is no JSON is a failure of this table, not of the page
        json.dumps([table.json() for table in tables], allow_nan=False)
        return tables

    def optima(self, name: str) -> OptimaTable:
        """Return the table of optimal learning rates, from the analysis `name`."""
        return optima_table(self.analyses[name])

    def _with_plots(self) -> list[str]:
        """Return the entries of `figures` whose figure has an interactive plot, and whose analyses are there."""
        figures = {name: requested(name, options) for name, options in self.sweep.figures.items()}
        return [
            name
            for name, (figure, options) in figures.items()
            if figure.interactive is not None and set(figure.needed(options)) <= set(self.analyses)
        ]

    def _attempt(self, kind: str, name: str, make: Callable[[str], T]) -> T | None:
        """Return what `make` makes of a name; None if it raises, which is recorded with a script that repeats it."""
        with attempt_of(self.directory, kind, name, PART_AGAIN.format(kind=kind, name=name)):
            return make(name)
        return None  # type: ignore[unreachable]


def different(plots: list[Plot]) -> list[Plot]:
    """Return the plots without those that draw the same as an earlier one, such as optima against the only axis."""
    different_plots: dict[Any, Plot] = {}
    for plot in plots:
        different_plots.setdefault(plot.picture or plot.name, plot)
    return list(different_plots.values())


def write_report(sweep: Design, directory: str | Path) -> Path:
    """Write report/index.html in a sweep's directory from the files of the other stages; return its path.

    Failed analyses, figures, plots and tables have a card each that describes the failure.
    """
    load_plugins(sweep.plugins)
    directory = Path(directory)
    with writer_lock(directory, "report"), recorded_stage(directory, "report") as record:
        now = made_from(sweep, directory, "report")
        html = page(**contents_of(sweep, directory))
        path = write_text(directory / PAGE, html)
        record.write_result(now, files=entries_of({path: html.encode()}, directory))
    return path


def contents_of(sweep: Design, directory: Path) -> dict[str, Any]:
    """Return the contents of the page of a sweep, the arguments of `page`, from all that is in its directory."""
    contents = Contents(sweep, directory)
    content, dataset = contents.content(), contents.dataset
    counts, computed = case_counts(sweep, directory), computations(directory, sweep.runs)
    failed, main = cards(sweep, directory), headlines(sweep, directory, words=value_label)
    opened = [f'{analysis} = xr.open_zarr("analysis/{analysis}.zarr")' for analysis in contents.analyses]
    opening = "\n".join(["import xarray as xr", "", 'ds = xr.open_zarr("dataset.zarr")', *opened, ""])
    return content | {
        "name": sweep.name,
        "config": sweep.source,
        "headlines": [
            *answers(sweep, directory)[:1],
            *(_unbroken(main_line.text) for main_line in main),
            *exit_lines(directory),
            *undecided_lines(directory),
        ],
        "first": ("Answers", _answers(sweep, directory)),
        "links": [],
        "overview": overview(dataset, counts, computed, sweep.simulator.about),
        "provenance": provenance(dataset, computed, settings(sweep), directory),
        "counts": counts,
        "axes": axes(dataset),
        "outcomes": outcomes(directory, counts_when_done(directory, sweep.runs)),
        "cards": failed,
        "figures": [_figure(sweep, name, directory, failed) for name in sweep.figures],
        "opening": ("The stored data open without sweeplib, from the folder of this sweep:", opening),
    }


def _unbroken(text: str) -> str:
    """Return a text in which no line ends between a symbol and its value, or a number and its percent sign."""
    return re.sub(r"\$ = (-?\d+(?:\.\d+)?)", r" = \1$", text).replace(" %", "\N{NO-BREAK SPACE}%")


def _answers(sweep: Design, directory: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of the answers, by caption."""
    if not sweep.questions:
        return {}
    from sweeplib.analysis.answers.answer import tables

    return tables(sweep, directory)


def prepare() -> None:
    """Read the templates, which the first page of a process does otherwise.

    `commands/sweep.py` calls it by name, in a process from which others are forked before a page is made.
    """
    for name in environment().list_templates(["j2"]):
        environment().get_template(name)


@cache
def environment() -> jinja2.Environment:
    """Return the templates of the pages, which escape everything that is put into them."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    templates = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["math"] = html_label
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return templates


def page(**contents: Any) -> str:
    """Return the HTML page; all is escaped but the scripts of Bokeh.

    contents : as `contents_of` returns them, the names of `page.html.j2`.
    """
    from markupsafe import Markup

    scripts = [Markup(script) for script in _bokeh()] if any(plot.spec for plot in contents["plots"]) else []
    missing = {
        "no_plots": [card for card in contents["cards"] if card["kind"] == "plot"],
        "no_tables": [card for card in contents["cards"] if card["kind"] in ("analysis", "table", "optima")],
    }
    looks = {"scripts": scripts, "colour": COLOURS[0], "ink": INK, "faint": FAINT}
    return environment().get_template("page.html.j2").render(**contents, **missing, **looks)


def _bokeh() -> list[str]:
    """Return BokehJS and its interface, once for all plots of the page; Bokeh itself is not imported."""
    from importlib.util import find_spec

    spec = find_spec("bokeh")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("bokeh, a dependency of sweeplib, is not installed", name="bokeh")
    folder = Path(spec.origin).parent / "server" / "static" / "js"
    texts = [file_text(folder / name) for name in ("bokeh.min.js", "bokeh-api.min.js")]
    # browsers would look for the file that this comment names, beside the page
    return [text.partition("//# sourceMappingURL")[0] for text in texts]


def case_counts(sweep: Design, directory: Path) -> list[tuple[str, dict[str, int]]]:
    """Return for each dynamics its label and the number of cases with each status that occurs in the sweep."""
    counts = counts_when_done(directory, sweep.runs)
    statuses = sorted(
        {status for cases in counts.values() for status in cases} | {"ok"}, key=lambda name: (name != "ok", name)
    )
    return [
        (dynamics_label(name), {status: cases.get(status, 0) for status in statuses}) for name, cases in counts.items()
    ]


def settings(sweep: Design) -> dict[str, Any]:
    """Return the settings of a sweep that its dataset does not record, as text by name."""
    seeds = sweep.seeds
    consecutive = list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    seed_text = f"{seeds[0]} to {seeds[-1]}" if consecutive and len(seeds) > 1 else ", ".join(map(str, seeds))
    return {"Seeds": f"{seed_text}; root seed {sweep.root_seed}"}


def _figure(sweep: Design, name: str, directory: Path, failed: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a figure for the page: its picture, or the reason why there is none; `failed` are all cards."""
    figure, _ = requested(name, sweep.figures[name])
    distances = distance_lines(sweep, name, directory)
    of_what = exit_words(sweep.recording.of_runs.get("exit_on", "risk"))
    exits = f" Exits are on another observable than the risk{of_what}." if of_what else ""
    view = {
        "name": name,
        "title": capital(name.replace("_", " ")),
        "caption": " ".join([_caption(sweep, figure.caption, exits), *_sentences(distances)]),
        "problem": next(
            (card["exception"] for card in failed if (card["kind"], card["name"]) == ("figure", name)), None
        ),
    }
    if view["problem"] is None:
        picture = file_bytes(directory / "figures" / f"{name}.png")
        view["source"] = data_url("image/png", picture)
        view["pdf"] = data_url("application/pdf", file_bytes(directory / "figures" / f"{name}.pdf"))
        view["script"] = REPRODUCE.format(name=name)
        # the first chunk of every PNG has the width and the height there
        view["size"] = [pixels // 2 for pixels in struct.unpack(">II", picture[16:24])]
    return view


def _sentences(distances: list[str]) -> list[str]:
    return [f"Distances from published values (ratio, its ends): {'; '.join(distances)}."] if distances else []


def _caption(sweep: Design, caption: str, exits: str) -> str:
    """Return a caption with what runs exit on (`exits`), and the unit of recording times, where it speaks of these.

    Of a function, whose calls have no exits, sentences about exits are left out.
    """
    if sweep.function is not None:
        caption = re.sub(r"(?<=\. )Exits [^.]*\. ", "", caption)
    # "xit": Exits, exits and exit
    return caption + (exits if "xit" in caption else "") + _unit(sweep, caption)


def _unit(sweep: Design, caption: str) -> str:
    """Return the sentence of a caption of times that says their unit; "" if it is ODE time."""
    name = str(sweep.time_attributes["long_name"])
    is_plain = sweep.clock is None or re.search(r"(?<!exit )times?\b", caption) is None
    return "" if is_plain else f" Recording times are {name.removeprefix('time ')}."


def data_url(kind: str, content: bytes) -> str:
    """Return a file as a URL that contains it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
