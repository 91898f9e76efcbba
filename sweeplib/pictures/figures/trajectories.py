"""An observable along single runs, and its median over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from sweeplib.analysis.averages import counts_steps, numbered, steps_coordinate
from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import is_stochastic, over_time
from sweeplib.engine.base.arrays import DECADE, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures.figure import FIGURES, Drawn, Hue, LogAxes, Panel, SingleRuns, Where
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, chart_figure
from sweeplib.pictures.figures.kit.facets import Facets, arranged, measured_dynamics
from sweeplib.pictures.figures.kit.labels import wrapped_label
from sweeplib.pictures.figures.kit.legend import Entry, hue_entries, legend_below
from sweeplib.pictures.figures.kit.panels import mark_empty, panels_of
from sweeplib.pictures.figures.kit.quantities import recorded_quantity
from sweeplib.pictures.figures.kit.scales import above_error, is_log, logarithmic_time
from sweeplib.pictures.figures.kit.style import COLOURS, DASHES, INK, line_look, plain_ticks, set_log
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import sample_of, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "An observable along single runs (thin) and its median over all seeds (thick), against the time or the steps; the "
    "same seeds are shown for each dynamics. A dot is the last record of a run that stopped before the last time. The "
    "median ends where more than 2 % of the runs have no value. A logarithmic axis has no place for the time 0, and "
    "for values that are not above their error."
)
MOST_RUNS = 600
"""The number of single runs of the interactive plot above which it has only the points of the figure."""

TimeAxis = Annotated[Literal["time", "steps"], Field(description="the horizontal axis.")]


def trajectories(
    ds: Data,
    analyses: ByName,
    *,
    y: Drawn = None,
    x: TimeAxis = "time",
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    log_axes: LogAxes = None,
    runs: SingleRuns = 8,
) -> Chart:
    """Declare `runs` single runs; axes that are not selected or drawn are fixed at their middle value."""
    outline = outline_of(ds)
    name = recorded_quantity(outline, y, over_time_only=True)
    split = arranged(outline.only(name), {"dynamics", "seed", "time"}, where, panel, hue)
    axes = ("time", "steps") if counts_steps(outline) else ("time",)
    if x not in axes:
        raise InputError("times of this sweep are no steps", key="x", value=x, choices=axes)
    return Chart(
        x=x,
        y=f"{name}_seeds",
        data=lambda whole, _: _seeds(whole, name, split, max(1, runs), log_axes),
        theory=f"{name}_of_all",
        kind="curves",
        xs=axes,
        title="" if isinstance(ds, Outline) else f"{_sentence(ds[name])} along single runs",
        split=split,
        paint=lambda whole, _: _painted(whole, name, x, split, runs, log_axes),
        log_axes=log_axes,
    )


def _painted(ds: xr.Dataset, name: str, x: str, split: Facets, runs: int, log_axes: Sequence[str] | None) -> Drawing:
    values = numbered(above_error(values_of(ds, name), ds, DECADE, log_axes))
    median = sample_of(values, ds, of_means=False).median("seed")
    dataset = ds[["status"]].assign(values=values, median=median).assign_coords(steps_coordinate(ds))
    data = split.selected(dataset)
    panels = panels_of(data, split, width=2.4, alone=4.0)
    names = measured_dynamics(data, "values")
    axes = panels.stacks[0][0]
    if is_log("y", log_axes, wide(data["values"].values, DECADE)):
        set_log(axes, "y")
    if is_log("x", log_axes, logarithmic_time(data[x])):
        set_log(axes, "x")
    for place, index, series in split.series(data):
        first = np.flatnonzero(_among_first(series["values"], runs).values)
        for dash, kind in enumerate(names):
            _runs(panels.stacks[place][0], series.sel(dynamics=kind), x, (index, dash, kind), first)
    mark_empty(panels)
    panels.xlabel(wrapped_label(data[x], 24))
    panels.heights(ds[name])
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)
    _legend(panels.drawing, data, split, names)
    return panels.drawing


def _among_first(values: xr.DataArray, most: int) -> xr.DataArray:
    """Return a mask at each point: the first seeds with a value for any dynamics, at most `most`."""
    has_value = values.notnull().any([dim for dim in values.dims if dim in ("dynamics", "time")])
    return has_value & (has_value.cumsum("seed") <= most)


def _runs(axes: Axes, series: xr.Dataset, x: str, place: tuple[int, int, str], seeds: np.ndarray) -> None:
    index, dash, kind = place
    look = line_look(index, kind) | {"linestyle": DASHES[dash % len(DASHES)]}
    horizontal, values = series[x].values, series["values"].transpose("seed", "time").values[seeds]
    for run in values[np.isfinite(values).any(axis=1)]:
        axes.plot(horizontal, run, **look | {"linewidth": 0.5, "alpha": 0.75, "zorder": 2, "gid": "run"})
        last = np.flatnonzero(np.isfinite(run))[-1]
        if last < len(run) - 1:
            axes.plot(horizontal[last], run[last], marker="o", markersize=2.6, color=look["color"], gid="stopped")
    if bool(series["median"].notnull().any()):
        wide = 1.8 if is_stochastic(kind) else 1.2
        axes.plot(horizontal, series["median"], **look | {"linewidth": wide, "zorder": 3 + dash})


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, names: list[str]) -> None:
    hues = hue_entries(data, split, marker="none", linewidth=2.0)
    kinds: list[Entry] = [
        ({"color": INK, "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.8, "gid": name},
         f"{dynamics_label(name)}, median")
        for place, name in enumerate(names)
    ]  # fmt: skip
    marks: list[Entry] = [
        ({"color": COLOURS[0] if not split.hue else INK, "linewidth": 0.5, "gid": "run"}, "single runs"),
        (
            {"color": INK, "marker": "o", "markersize": 2.6, "linestyle": "none", "gid": "stopped"},
            "last record of a run\nthat stopped",
        ),
    ]
    legend_below(drawing, [hues, kinds, marks])


def _seeds(ds: xr.Dataset, name: str, split: Facets, runs: int, log_axes: Sequence[str] | None) -> xr.Dataset:
    """Return the first seeds with a value; at the points of the picture, if there are too many for a page."""
    dataset = ds if ds["status"].size // ds.sizes["seed"] * runs <= MOST_RUNS else split.selected(ds)
    seeds = {}
    for observable in (observable for observable in over_time(ds) if set(ds[observable].dims) == set(ds[name].dims)):
        values = numbered(above_error(values_of(dataset, observable), dataset, log_axes=log_axes))
        median = sample_of(values, dataset, of_means=False).median("seed")
        long_name, symbol = dataset[observable].attrs["long_name"], dataset[observable].attrs.get("symbol", "")
        first = values.where(_among_first(values, runs)).dropna("seed", how="all")
        seeds[f"{observable}_seeds"] = labelled(first, long_name, symbol)
        seeds[f"{observable}_seeds"].attrs["theory"] = f"{observable}_of_all"
        seeds[f"{observable}_of_all"] = labelled(median, f"median over all {dataset.sizes['seed']} seeds")
    return xr.Dataset(seeds).assign_coords(steps_coordinate(dataset))


def _sentence(array: xr.DataArray) -> str:
    name = str(array.attrs.get("long_name", array.name))
    return name[:1].upper() + name[1:]


FIGURES.add(chart_figure("trajectories", trajectories, CAPTION))
