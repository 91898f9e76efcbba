"""Densities of the students' norms at several times, of each dynamics that was run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures.figure import FIGURES, Figure, Where
from sweeplib.pictures.figures.kit.chart import ByName, Data
from sweeplib.pictures.figures.kit.facets import Facets, arranged, few_times, free_axes
from sweeplib.pictures.figures.kit.labels import dynamics_order
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import panels_of
from sweeplib.pictures.figures.kit.style import COLOURS, INK
from sweeplib.statistics.lost_runs import values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Densities of the norms of the students at several times, from the quantiles of all seeds. Filled: SGD; lines: "
    "deterministic dynamics from the same starts."
)
QUANTITY = "norm_quantiles"
BINS = 60
FILL, DASHES = "#9fb6d0", ("solid", (0, (4, 1.5)), (0, (1, 1)))


def norm_density(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, where: Where = None) -> Drawing:
    """Return a figure with one panel per time; by default four times, from the first to the last.

    Other axes that are not selected by `where` are fixed at their middle value.
    """
    split = _arranged(ds, analyses, where=where)
    data = split.selected(ds[[QUANTITY, "status"]])
    norms = values_of(data, QUANTITY)
    panels = panels_of(data, split, width=1.7, alone=3.6, height=2.5)
    names = [name for name in dynamics_order(data["dynamics"].values) if bool(norms.sel(dynamics=name).notnull().any())]
    edges = np.linspace(0.0, 1.02 * float(norms.max()), BINS + 1)
    for place, subset in split.parts(norms.to_dataset(name=QUANTITY)):
        _panel(panels.stacks[place][0], subset[QUANTITY], names, edges)
    panels.xlabel(r"norm $\|w\|/\sqrt{d}$")
    panels.ylabel("density")
    legend_below(panels.drawing, [[_entry(name, names) for name in names]])
    return panels.drawing


def _arranged(ds: Data, _: ByName, *, where: Mapping[str, Any] | None) -> Facets:
    require(ds, QUANTITY)
    outline = outline_of(ds).only(QUANTITY)
    where = few_times(outline, where or {})
    panel = "time" if "time" in free_axes(outline, where) else None
    return arranged(outline, {"dynamics", "seed", "quantile"}, where, panel, most=1 if panel else 0)


def _panel(axes: Axes, norms: xr.DataArray, names: list[str], edges: np.ndarray) -> None:
    for name in names:
        values = norms.sel(dynamics=name).values.ravel()
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        density, _ = np.histogram(values, edges, density=True)
        if is_stochastic(name):
            axes.stairs(density, edges, fill=True, color=FILL)
            axes.plot([], [], gid=name)
        else:
            style, _ = _entry(name, names)
            middle = 0.5 * (edges[1:] + edges[:-1])
            axes.plot(middle, density, drawstyle="steps-mid", **style)
    axes.set_ylim(bottom=0.0)


def _entry(name: str, names: list[str]) -> Entry:
    if is_stochastic(name):
        return {"color": FILL, "linewidth": 6.0}, dynamics_label(name)
    place = [other for other in names if not is_stochastic(other)].index(name)
    colour = (INK, COLOURS[1], COLOURS[3])[place % 3]
    return {"color": colour, "linewidth": 1.2, "linestyle": DASHES[place % 3]}, dynamics_label(name)


FIGURES.add(Figure("norm_density", norm_density, CAPTION, arrange=_arranged))
