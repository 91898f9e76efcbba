"""The units of students over overlap and norm at several times, of each dynamics that was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.pictures.figures.figure import FIGURES, Where
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, chart_figure
from sweeplib.pictures.figures.kit.facets import Facets, arranged, few_times, free_axes, measured_dynamics
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import mark_empty, panels_of
from sweeplib.pictures.figures.kit.style import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Units of the students at several times: their overlaps with the teacher and their norms. Dots: units of all seeds "
    "under SGD, at most 1000 by default; open markers: some of the same units under deterministic dynamics."
)
MEASURE = "unit_measure"
MARKED = 30
"""The number of units of which deterministic dynamics have a marker."""
MANY = 300
"""The number of units above which the dots of stochastic dynamics are smaller."""
DOTS, MARKS = ("#6f93bd", "#c98f4e", "#9a9a9a"), ("o", "x", "s", "+")
MARK_COLOURS = (INK, COLOURS[1], COLOURS[3], COLOURS[4])


def unit_clouds(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare one panel per time; by default four times, from the first to the last.

    Of several teacher directions it draws the first, or that of `where: {teacher: ...}`. Other axes that are not
    selected by `where` are fixed at their middle value. The interactive plot shows that point, a time as a frame.
    """
    measured = analyses[MEASURE]
    outline = outline_of(measured).only("unit_norm", "unit_overlap")
    where = few_times(outline, {"teacher": 1, **(where or {})})
    panel = "time" if "time" in free_axes(outline, where) else None
    split = arranged(outline, {"dynamics", "unit"}, where, panel, most=1 if panel else 0)
    point = {dim: place for dim, place in split.at.items() if isinstance(place, int) and dim != "time"}
    at_point = replace(split, titled=tuple(dim for dim in split.titled if dim in point))
    at = "" if isinstance(measured, Outline) else at_point.title(measured)
    return Chart(
        x="unit_overlap",
        y="unit_norm",
        data=lambda whole, analyses: _units(whole, analyses[MEASURE], point),
        needs=(MEASURE,),
        kind="cloud",
        frames="time",
        xs=(),
        ys=(),
        title=f"Norm and overlap of the units along the runs {at}".strip(),
        split=split,
        paint=lambda _, analyses: _painted(analyses[MEASURE], split),
    )


def _units(ds: xr.Dataset, result: xr.Dataset, point: Mapping[str, int]) -> xr.Dataset:
    """Return the units at a point, of the dynamics that have any."""
    at = {dim: [place] if dim in ds["status"].dims else place for dim, place in point.items()}  # kept: runs are counted
    units = result[["unit_overlap", "unit_norm"]].isel(at, missing_dims="ignore")
    return units.dropna("dynamics", how="all", subset=["unit_norm"])


def _painted(result: xr.Dataset, split: Facets) -> Drawing:
    data = split.selected(result[["unit_overlap", "unit_norm"]])
    panels = panels_of(data, split, width=1.7, alone=3.6, height=2.5)
    names = measured_dynamics(data, "unit_norm")
    for place, subset in split.parts(data):
        for name in names:
            _cloud(panels.stacks[place][0], subset.sel(dynamics=name), _look(name, names))
    mark_empty(panels)
    panels.xlabel("overlap $m$")
    panels.ylabel(r"norm $\|w\|/\sqrt{d}$")
    legend_below(panels.drawing, [[_entry(name, names) for name in names]])
    return panels.drawing


def _cloud(axes: Axes, subset: xr.Dataset, look: dict[str, Any]) -> None:
    overlap, norm = subset["unit_overlap"].values, subset["unit_norm"].values
    places = np.flatnonzero(np.isfinite(overlap + norm))
    if look["markerfacecolor"] == "none":
        places = places[:MARKED]
    elif len(places) <= MANY:
        look = look | {"markersize": 3.4}
    axes.plot(overlap[places], norm[places], linestyle="none", **look)


def _look(name: str, names: list[str]) -> dict[str, Any]:
    """Return small filled dots for stochastic dynamics, open dark markers for the others."""
    place = [other for other in names if is_stochastic(other) == is_stochastic(name)].index(name)
    if is_stochastic(name):
        colour = DOTS[place % len(DOTS)]
        return {"color": colour, "marker": "o", "markersize": 2.2, "markeredgewidth": 0.0, "markerfacecolor": colour,
                "alpha": 0.6, "gid": name, "zorder": 1}  # fmt: skip
    colour = MARK_COLOURS[place % len(MARK_COLOURS)]
    return {"color": colour, "marker": MARKS[place % len(MARKS)], "markersize": 4.4, "markeredgewidth": 0.8,
            "markerfacecolor": "none", "gid": name, "zorder": 2 + place}  # fmt: skip


def _entry(name: str, names: list[str]) -> Entry:
    size = 5.0 if is_stochastic(name) else 4.2
    return _look(name, names) | {"linestyle": "none", "markersize": size}, dynamics_label(name)


FIGURES.add(chart_figure("unit_clouds", unit_clouds, CAPTION, (MEASURE,)))
