"""The units of students over overlap and norm at several times, of each dynamics that was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.labels import dynamics_label
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.figures.facets import Facets, arranged, few_times, free_axes, measured_dynamics, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Where
from sweeplib.figures.interactive import Interactive
from sweeplib.figures.labels import value_label
from sweeplib.figures.legend import Entry, legend_below
from sweeplib.figures.panels import mark_empty, panel_grid
from sweeplib.figures.style import COLOURS, INK
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

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


def unit_clouds(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, where: Where = None) -> Drawing:
    """Return a figure with one panel per time; by default four times, from the first to the last.

    Of several teacher directions it draws the first, or that of `where: {teacher: ...}`. Other axes that are not
    selected by `where` are fixed at their middle value.
    """
    split = _arranged(ds, analyses, where=where)
    data = split.selected(analyses[MEASURE][["unit_overlap", "unit_norm"]])
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=1.7, alone=3.6, height=2.5)
    shown = measured_dynamics(data, "unit_norm")
    for place, part in numbered_parts(data, parts):
        for name in shown:
            _cloud(panels.stacks[place][0], part.sel(dynamics=name), _look(name, shown))
        if split.panel:
            panels.title(place, value_label(part["time"], data["time"], digits=2))
    mark_empty(panels)
    panels.xlabel("overlap $m$")
    panels.ylabel(r"norm $\|w\|/\sqrt{d}$")
    panels.note(split.title(data))
    legend_below(panels.drawing, [[_entry(name, shown) for name in shown]])
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
) -> Facets:
    outline = outline_of(analyses[MEASURE]).only("unit_norm", "unit_overlap")
    where = few_times(outline, {"teacher": 1, **(where or {})})
    panel = "time" if "time" in free_axes(outline, where) else None
    return arranged(outline, {"dynamics", "unit"}, where, panel, most=1 if panel else 0)


def _cloud(axes: Axes, part: xr.Dataset, look: dict[str, Any]) -> None:
    overlap, norm = part["unit_overlap"].values, part["unit_norm"].values
    known = np.flatnonzero(np.isfinite(overlap + norm))
    if look["markerfacecolor"] == "none":
        known = known[:MARKED]
    elif len(known) <= MANY:
        look = look | {"markersize": 3.4}
    axes.plot(overlap[known], norm[known], linestyle="none", **look)


def _look(name: str, shown: list[str]) -> dict[str, Any]:
    """Return small filled dots for stochastic dynamics, open dark markers for the others."""
    place = [other for other in shown if is_stochastic(other) == is_stochastic(name)].index(name)
    if is_stochastic(name):
        colour = DOTS[place % len(DOTS)]
        return {"color": colour, "marker": "o", "markersize": 2.2, "markeredgewidth": 0.0, "markerfacecolor": colour,
                "alpha": 0.6, "gid": name, "zorder": 1}  # fmt: skip
    colour = MARK_COLOURS[place % len(MARK_COLOURS)]
    return {"color": colour, "marker": MARKS[place % len(MARKS)], "markersize": 4.4, "markeredgewidth": 0.8,
            "markerfacecolor": "none", "gid": name, "zorder": 2 + place}  # fmt: skip


def _entry(name: str, shown: list[str]) -> Entry:
    size = 5.0 if is_stochastic(name) else 4.2
    return _look(name, shown) | {"linestyle": "none", "markersize": size}, dynamics_label(name)


def _interactive(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, where: Mapping[str, Any] | None) -> Interactive:
    """Return the plot of the units, of which time is the axis of the frames; of the point of the figure alone."""
    split = _arranged(ds, analyses, where=where)
    point = {dim: place for dim, place in split.at.items() if isinstance(place, int) and dim != "time"}
    at = {dim: [place] if dim in ds["status"].dims else place for dim, place in point.items()}  # kept: runs are counted

    def data(_: xr.Dataset, whole: Mapping[str, xr.Dataset]) -> xr.Dataset:
        found = whole[MEASURE][["unit_overlap", "unit_norm"]].isel(at, missing_dims="ignore")
        return found.dropna("dynamics", how="all", subset=["unit_norm"])

    where_it_is = replace(split, titled=tuple(dim for dim in split.titled if dim in point)).title(analyses[MEASURE])
    return Interactive(
        x="unit_overlap",
        y="unit_norm",
        data=data,
        needs=(MEASURE,),
        kind="cloud",
        frames="time",
        xs=(),
        ys=(),
        title=f"Norm and overlap of the units along the runs {where_it_is}".strip(),
    )


FIGURES.register(
    "unit_clouds",
    Figure("unit_clouds", unit_clouds, CAPTION, needs=(MEASURE,), arrange=_arranged, interactive=_interactive),
)
