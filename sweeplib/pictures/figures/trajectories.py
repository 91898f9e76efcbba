"""An observable along single runs, and its median over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from sweeplib.analysis.averages import counts_steps, numbered, steps_coordinate
from sweeplib.analysis.kit.variables import is_stochastic, over_time
from sweeplib.engine.base.arrays import DECADE
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures.figure import FIGURES, Drawn, Hue, LogAxes, Panel, SingleRuns, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import Facets, arranged
from sweeplib.pictures.figures.kit.quantities import recorded_quantity
from sweeplib.pictures.figures.kit.scales import above_error
from sweeplib.pictures.figures.kit.style import DASHES, Looks
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import sample_of, values_of

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
        xs=axes,
        title="" if isinstance(ds, Outline) else f"{_sentence(ds[name])} along single runs",
        split=split,
        levels=(Level((Layer("runs", name, "single runs"), Layer("line", "median")), wide=DECADE, range="every"),),
        pictures=lambda whole, _: _picture(whole, name, runs, log_axes),
        size=(2.4, 4.0, 2.7),
        looks=LOOKS,
        log_axes=log_axes,
    )


def _picture(ds: xr.Dataset, name: str, runs: int, log_axes: Sequence[str] | None) -> xr.Dataset:
    """Return the data of the picture: the observable in the first `runs` runs, in `every` run, and its `median`.

    stopped : the observable at the last record of each of these runs that has none at the last time.
    """
    recorded = numbered(values_of(ds, name))
    values = above_error(recorded, ds, DECADE, log_axes).assign_attrs(ds[name].attrs)
    median = above_error(_median(recorded, ds), ds, DECADE, log_axes)
    first = values.where(_among_first(values, runs)).assign_attrs(ds[name].attrs)
    is_there = recorded.notnull()
    later = is_there.isel(time=slice(None, None, -1)).cumsum("time").isel(time=slice(None, None, -1))
    stopped = first.where(is_there & (later == 1) & ~is_there.isel(time=-1, drop=True))
    variables = {name: first, "every": values, "median": median, "stopped": stopped}
    return xr.Dataset(variables).assign_coords(steps_coordinate(ds))


def _median(values: xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Return the median over the seeds, under the name of the values; runs below their error are below it too."""
    return sample_of(values, ds, of_means=False).median("seed").rename(values.name)


def _among_first(values: xr.DataArray, most: int) -> xr.DataArray:
    """Return a mask at each point: the first seeds with a value for any dynamics, at most `most`."""
    has_value = values.notnull().any([dim for dim in values.dims if dim in ("dynamics", "time")])
    return has_value & (has_value.cumsum("seed") <= most)


def _look(name: str, names: list[str], look: dict[str, Any]) -> dict[str, Any]:
    """Return the look of the median of a dynamics, for `Looks`; single runs have its colour and dashes.

    names : all dynamics that are drawn. look : that of the colour.
    """
    place, gid = names.index(name), f"{look.get('gid', '')} dynamics-{name}".strip()
    line = {"linestyle": DASHES[place % len(DASHES)], "linewidth": 1.8 if is_stochastic(name) else 1.2}
    return line | {"color": look["color"], "zorder": 3 + place, "gid": gid}


LOOKS = Looks(_look, lambda _: {"linewidth": 1.8}, {"marker": "none", "linewidth": 2.0}, words=", median")


def _seeds(ds: xr.Dataset, name: str, split: Facets, runs: int, log_axes: Sequence[str] | None) -> xr.Dataset:
    """Return the data of the interactive plot: of each observable like `name` some single runs and the median of all.

    They are of the first `runs` seeds with a value, and of the points of the picture alone if runs are too many.
    NAME_seeds are the runs, NAME_of_all is the median.
    """
    dataset = ds if ds["status"].size // ds.sizes["seed"] * runs <= MOST_RUNS else split.selected(ds)
    seeds = {}
    alike = [observable for observable in over_time(ds) if set(ds[observable].dims) == set(ds[name].dims)]
    for observable in alike:
        recorded = numbered(values_of(dataset, observable))
        values = above_error(recorded, dataset, log_axes=log_axes)
        median = above_error(_median(recorded, dataset), dataset, log_axes=log_axes)
        attrs = dataset[observable].attrs
        long_name, symbol, units = attrs["long_name"], attrs.get("symbol", ""), attrs.get("units", "1")
        first = values.where(_among_first(values, runs)).dropna("seed", how="all")
        seeds[f"{observable}_seeds"] = labelled(first, long_name, symbol, units)
        seeds[f"{observable}_seeds"].attrs["theory"] = f"{observable}_of_all"
        seeds[f"{observable}_of_all"] = labelled(median, "median over all seeds", units=units)
    return xr.Dataset(seeds).assign_coords(steps_coordinate(dataset))


def _sentence(array: xr.DataArray) -> str:
    """Return the long name of a variable with a capital letter."""
    name = str(array.attrs.get("long_name", array.name))
    return name[:1].upper() + name[1:]


FIGURES.add(chart_figure("trajectories", trajectories, CAPTION))
