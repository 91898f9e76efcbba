"""Contents of the report from a sweep's dataset and analyses: interactive plots and tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sweeplib.analysis.write import analysis_failure
from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.records.attempts import attempt_of
from sweeplib.engine.storage.records.stage_records import recorded_stage
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.report.plots import Plot, interactive_plot
from sweeplib.pictures.report.tables import OptimaTable, PageTable, analysis_tables, optima_table

T = TypeVar("T")

OPTIMA = "optimal_learning_rate"
REPRODUCE = """\
# in the folder of the sweep
from sweeplib.config import load
from sweeplib.pictures.report.contents import Contents

Contents(load("config.yaml"), ".").{kind}({name!r})
"""


class Contents:
    """The dataset in a sweep's directory, and its analyses without those that failed."""

    def __init__(self, sweep: Design, directory: str | Path) -> None:
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
            plots = [self._attempt("plot", name, self.plot) for name in self._drawn()]
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
        json.dumps([plot.json for plot in plots], allow_nan=False)
        return [replace(plot, figure=name) for plot in plots]

    def table(self, name: str) -> list[PageTable]:
        """Return the tables of one analysis."""
        tables = analysis_tables(name, self.analyses[name], self.dataset)
        json.dumps([table.json() for table in tables], allow_nan=False)
        return tables

    def optima(self, name: str) -> OptimaTable:
        """Return the table of optimal learning rates, from the analysis `name`."""
        return optima_table(self.analyses[name])

    def _drawn(self) -> list[str]:
        """Return the entries of `figures` whose figure has an interactive plot, and whose analyses are there."""
        figures = {name: requested(name, options) for name, options in self.sweep.figures.items()}
        return [
            name
            for name, (figure, options) in figures.items()
            if figure.interactive is not None and set(figure.needed(options)) <= set(self.analyses)
        ]

    def _attempt(self, kind: str, name: str, make: Callable[[str], T]) -> T | None:
        with attempt_of(self.directory, kind, name, REPRODUCE.format(kind=kind, name=name)):
            return make(name)
        return None  # type: ignore[unreachable]


def different(plots: list[Plot]) -> list[Plot]:
    """Return the plots without those that draw the same as an earlier one, such as optima against the only axis."""
    different_plots: dict[Any, Plot] = {}
    for plot in plots:
        different_plots.setdefault(plot.picture or plot.name, plot)
    return list(different_plots.values())
