"""A quantity as colours over two axes of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError, errors_at
from sweeplib.pictures.figures.figure import FIGURES, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data
from sweeplib.pictures.figures.kit.facets import Facets, arranged
from sweeplib.pictures.figures.kit.labels import axis_label, wrapped_label
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import Panels, panels_of
from sweeplib.pictures.figures.kit.quantities import (
    at_chosen_time,
    at_last_time,
    bound_side,
    bounds,
    horizontal_axis,
    quantity,
    with_requests,
)
from sweeplib.pictures.figures.kit.scales import edges_of, logarithm, logarithmic_cells, thinned
from sweeplib.pictures.figures.kit.style import (
    FAINT,
    INK,
    UNKNOWN,
    bound_mark,
    keep_within_doubles,
    plain_ticks,
    ticks_at,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "A quantity over two axes of the sweep. Arrows: bounds, where not all runs exited or the value may lie beyond "
    "the scan. ∅: points without a value, as more than 2 % of their runs have none, or "
    "that are not above their error, where the scale is logarithmic. Hatched: not run."
)
COLOURS = "viridis"
"""A map whose lightness increases, so that it is legible in grey."""
LIGHT = 0.6
"""The place on the colour scale from which marks are dark."""
MOST_VECTORS = 10_000
"""The number of cells above which they are pixels in PDF files."""
NOT_RUN = "////"
NO_VALUE: dict[str, Any] = UNKNOWN | {"color": INK, "gid": "unknown"}
SMALL: dict[str, Any] = {"markersize": 9.0, "markeredgewidth": 0.8}
"""The size of arrows in cells."""

Coloured = Annotated[str | None, Field(description="the quantity that is drawn as colours.")]
Across = Annotated[str | None, Field(description="the horizontal axis; by default the longest axis.")]
Upwards = Annotated[str | None, Field(description="the vertical axis; by default the second longest.")]


def colour_map(
    ds: Data,
    analyses: ByName,
    *,
    z: Coloured = None,
    x: Across = None,
    y: Upwards = None,
    where: Where = None,
    panel: Panel = None,
) -> Chart:
    """Declare the quantity `z` over the axes `x` and `y`, by default the two longest axes of numbers.

    Several dynamics are panels, unless another axis is; then the first is drawn. Other axes are fixed at `where`, or at
    their middle value; the time at the last one. Axes that are logarithmic in the picture are logarithms in the plot.
    """
    variable, over, split = _arranged(ds, analyses, z=z, x=x, y=y, where=where, panel=panel)
    (analysis,) = needed(z=z)
    result = analyses[analysis]
    names, hover = [*over, variable], [*over, variable]
    if not (isinstance(result, Outline) or isinstance(ds, Outline)):
        visible = at_chosen_time(with_requests(result, variable, ds), split)[variable]
        log = [*(logarithmic_cells(result[name].values) for name in over), wide(visible.values)]
        names = [f"log_{name}" if is_log else name for name, is_log in zip(names, log, strict=True)]
        hover += [result[variable].attrs["bound"]] if "bound" in result[variable].attrs else []

    def data(_: xr.Dataset, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
        values = at_chosen_time(results[analysis], split)
        logs = {name: logarithm(values[name[4:]]) for name in names if name not in values.variables}
        coords = {name: coordinate for name, coordinate in logs.items() if name != names[2]}
        return values.assign_coords(coords).assign({names[2]: logs[names[2]]} if names[2] in logs else {})

    return Chart(
        x=names[0],
        y=names[1],
        z=names[2],
        needs=(analysis,),
        data=data,
        hover=tuple(hover),
        split=split,
        paint=lambda ds, results: _painted(with_requests(results[analysis], variable, ds), variable, over, split),
    )


def _painted(result: xr.Dataset, variable: str, over: tuple[str, str], split: Facets) -> Drawing:
    data = split.selected(result)
    panels = panels_of(data, split, alone=3.4, height=2.6)
    norm = _norm(data[variable].values)
    for place, subset in split.parts(data):
        _cells(panels.stacks[place][0], subset, over, variable, norm)
    _colour_bar(panels, data[variable])
    panels.xlabel(wrapped_label(data[over[0]], 24))
    panels.ylabel(axis_label(data[over[1]]))
    legend_below(panels.drawing, [[entry] for entry in _entries(data, variable)])
    return panels.drawing


def _arranged(
    ds: Data,
    analyses: ByName,
    *,
    z: str | None,
    x: str | None,
    y: str | None,
    where: Mapping[str, Any] | None,
    panel: str | None,
) -> tuple[str, tuple[str, str], Facets]:
    """Return the variable, its horizontal and vertical axis, and the facets."""
    outline, variable = quantity(z, "z").outline(ds, analyses)
    if x is not None and x == y:
        raise InputError("drawn twice", key="y", value=y, expected="another axis than x")
    choices = {"where": where, "panel": panel}
    across = horizontal_axis(outline, x, choices | ({"y": y} if y else {}))[1]
    with errors_at("y"):
        up = horizontal_axis(outline, y, choices | {"x": across})[1]
    for key, axis in (("x", x), ("y", y)):
        if axis is not None and axis not in outline.axes:
            raise InputError("not an axis of the sweep", key=key, value=axis, choices=outline.axes)
    where = at_last_time(outline, where, across, up, panel)
    several = outline.sizes.get("dynamics", 1) > 1 and not _fixed(where, "dynamics")
    if several and panel is None:
        panel = "dynamics"
    elif several and panel != "dynamics":
        where = {**(where or {}), "dynamics": outline.axes["dynamics"][0]}
    split = arranged(outline, {across, up}, where, panel, most=1)
    return variable, (across, up), Facets(split.at, split.panel or split.hue, None, split.titled)


def _fixed(where: Mapping[str, Any] | None, axis: str) -> bool:
    return axis in (where or {}) and not isinstance((where or {})[axis], list | tuple)


def _norm(values: np.ndarray) -> Any:
    """Return the scale of the colours: logarithmic for positive values over more than a decade."""
    from matplotlib.colors import LogNorm, Normalize

    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return LogNorm(low, high) if wide(finite) else Normalize(low, high)


def _cells(axes: Axes, subset: xr.Dataset, over: tuple[str, str], variable: str, norm: Any) -> None:
    """Draw the cells of a panel: hatched where nothing was run, white with a mark where it has no value."""
    from matplotlib.colors import ListedColormap

    x, y = over
    subset = subset.sortby([x, y])
    across, up = (subset[name].values.astype(float) for name in over)
    for values, scale in ((across, axes.set_xscale), (up, axes.set_yscale)):
        if logarithmic_cells(values):
            scale("log")
    values, run = (subset[name].transpose(y, x).values for name in (variable, "requested"))
    bound = bounds(subset.transpose(..., y, x), variable)
    edges = edges_of(across, axes.get_xscale() == "log"), edges_of(up, axes.get_yscale() == "log")
    axes.set(xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
    many = values.size > MOST_VECTORS
    axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap=COLOURS, norm=norm, rasterized=many)
    axes.patch.set(hatch=NOT_RUN, edgecolor=FAINT)
    unknown = np.ma.masked_where(~run | np.isfinite(values), np.zeros_like(values))
    axes.pcolormesh(*edges, unknown, cmap=ListedColormap(["white"]), rasterized=many)
    above, right = np.meshgrid(up, across, indexing="ij")
    light = np.ma.filled(norm(np.ma.masked_invalid(values)), 0.0) > LIGHT
    arrow = bound_mark(bound_side(subset[variable])) | SMALL
    marks: tuple[tuple[np.ndarray, dict[str, Any]], ...] = (
        (run & ~np.isfinite(values), NO_VALUE),
        (bound & np.isfinite(values) & light, arrow | {"color": INK}),
        (bound & np.isfinite(values) & ~light, arrow | {"color": "white"}),
    )
    for here, mark in marks:
        if here.any():
            axes.plot(right[here], above[here], **mark)
    for axis, values in ((axes.xaxis, across), (axes.yaxis, up)):
        plain_ticks(axis)
        if places := thinned(values):
            ticks_at(axis, places)


def _colour_bar(panels: Panels, quantity_: xr.DataArray) -> None:
    mesh = panels.stacks[0][0].collections[0]
    bar = panels.drawing.colorbar(mesh, ax=[stack[0] for stack in panels.stacks], aspect=18, pad=0.02)
    keep_within_doubles(bar.ax.yaxis)
    bar.set_label(axis_label(quantity_))
    bar.outline.set_linewidth(0.5)


def _entries(data: xr.Dataset, variable: str) -> list[Entry]:
    entries: list[Entry] = [(NO_VALUE, "no value")]
    if name := data[variable].attrs.get("bound"):
        arrow = bound_mark(bound_side(data[variable])) | SMALL
        entries.append((arrow | {"color": INK}, data[name].attrs["reason"]))
    if not bool(data["requested"].all()):
        entries.append(({"hatch": NOT_RUN, "edgecolor": FAINT, "facecolor": "none"}, "not run"))
    return entries


def needed(*, z: str | None, **_: Any) -> tuple[str, ...]:
    """Return the analysis of the quantity `z`."""
    return (quantity(z, "z").analysis,)


FIGURES.add(chart_figure("map", colour_map, CAPTION, needed))
