"""The units of students over overlap and norm at several times, of each dynamics that was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweeplib.analysis.kit.variables import is_stochastic, stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.pictures.figures.figure import FIGURES, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import over_times
from sweeplib.pictures.figures.kit.style import COLOURS, INK, Looks

CAPTION = (
    "Units of the students at several times: their overlaps with the teacher and their norms. Dots: units of all seeds "
    "under SGD, at most 1000 by default; open markers: some of the same units under deterministic dynamics."
)
MEASURE = "unit_measure"
"""The analysis that is drawn."""
MARKED = 30
"""The number of units of which deterministic dynamics have a marker."""
DOTS, MARKS = ("#6f93bd", "#c98f4e", "#9a9a9a"), ("o", "x", "s", "+")
MARK_COLOURS = (INK, COLOURS[1], COLOURS[3], COLOURS[4])
"""The colours of stochastic dynamics, the markers of deterministic ones, and the colours of these, in their order."""


def unit_clouds(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare one panel per time; by default four times, from the first to the last.

    Of several teacher directions it draws the first, or that of `where: {teacher: ...}`. Other axes that are not
    selected by `where` are fixed at their middle value. The interactive plot shows that point, a time as a frame.
    """
    measured = analyses[MEASURE]
    outline = outline_of(measured).only("unit_norm", "unit_overlap")
    split = over_times(outline, {"dynamics", "unit"}, {"teacher": 1, **(where or {})})
    point = {dim: place for dim, place in split.at.items() if isinstance(place, int) and dim != "time"}
    at_point = replace(split, titled=tuple(dim for dim in split.titled if dim in point))
    at = "" if isinstance(measured, Outline) else at_point.title(measured)
    return Chart(
        x="unit_overlap",
        y="unit_norm",
        data=lambda whole, analyses: _units(whole, analyses[MEASURE], point),
        needs=(MEASURE,),
        frames="time",
        xs=(),
        ys=(),
        title=f"Norm and overlap of the units along the runs {at}".strip(),
        split=split,
        levels=(Level((Layer("dots", "unit_norm"),), label=r"norm $\|w\|/\sqrt{d}$"),),
        pictures=lambda _, analyses: _marked(analyses[MEASURE]),
        x_label="overlap $m$",
        log_x=lambda _: False,
        size=(1.7, 3.6, 2.5),
        looks=LOOKS,
    )


def _units(ds: xr.Dataset, result: xr.Dataset, point: Mapping[str, int]) -> xr.Dataset:
    """Return the units at a point, its index by axis, of the dynamics that have any."""
    # axes of the sweep stay, as the page counts the runs at points along them
    at = {dim: [place] if dim in ds["status"].dims else place for dim, place in point.items()}
    units = result[["unit_overlap", "unit_norm"]].isel(at, missing_dims="ignore")
    return units.dropna("dynamics", how="all", subset=["unit_norm"])


def _marked(data: xr.Dataset) -> xr.Dataset:
    """Return the units that are drawn: all of stochastic dynamics, the first MARKED of the others."""
    has_unit = (data["unit_norm"] + data["unit_overlap"]).notnull()
    is_drawn = has_unit & ((has_unit.cumsum("unit") <= MARKED) | stochastic(data))
    return data[["unit_overlap"]].assign(
        unit_norm=data["unit_norm"].where(is_drawn).assign_attrs(data["unit_norm"].attrs)
    )


def _look(name: str, names: list[str], _: dict[str, Any]) -> dict[str, Any]:
    """Return the look of a dynamics, for `Looks`: small filled dots if it is stochastic, open dark markers otherwise.

    names : all dynamics that are drawn. The look of the colour is not used: the figure has no hue.
    """
    place = [other for other in names if is_stochastic(other) == is_stochastic(name)].index(name)
    look = {"linestyle": "none", "gid": f"dynamics-{name}"}
    if is_stochastic(name):
        dot = {"color": DOTS[place % len(DOTS)], "marker": "o", "markersize": 2.2, "markeredgewidth": 0.0}
        return look | dot | {"markerfacecolor": dot["color"], "alpha": 0.6, "zorder": 1}
    mark = {"color": MARK_COLOURS[place % len(MARK_COLOURS)], "marker": MARKS[place % len(MARKS)], "markersize": 4.4}
    return look | mark | {"markeredgewidth": 0.8, "markerfacecolor": "none", "zorder": 2 + place}


LOOKS = Looks(_look, lambda name: {"markersize": 5.0 if is_stochastic(name) else 4.2})
FIGURES.add(chart_figure("unit_clouds", unit_clouds, CAPTION, (MEASURE,)))
