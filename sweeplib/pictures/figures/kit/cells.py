"""The marks of maps: cells in colours, and the bar of their scale.

A mark is a function of a piece: the part of one layer in a panel (`kit.points.Part`), with the axes to draw on. Classes
are codes of labels, each with a look and a text: `look["classes"]` of a layer has them by code. Codes of 0 and below
are undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.chart import Layer
from sweeplib.pictures.figures.kit.labels import axis_label
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.legend import Entry
from sweeplib.pictures.figures.kit.panels import Panels
from sweeplib.pictures.figures.kit.points import Part
from sweeplib.pictures.figures.kit.quantities import ADDED_SIZE, bound_side, bounds
from sweeplib.pictures.figures.kit.scales import edges_of, logarithmic_cells, thinned
from sweeplib.pictures.figures.kit.style import (
    FAINT,
    INK,
    UNDECIDED,
    UNKNOWN,
    bound_mark,
    keep_within_doubles,
    plain_ticks,
    ticks_at,
)

COLOURS = "viridis"
"""A map whose lightness increases, so that it is legible in grey."""
LIGHT = 0.6
"""The place on the colour scale from which marks are dark."""
MOST_VECTORS = 10_000
"""The number of cells above which they are pixels in PDF files."""
NOT_RUN = "////"
"""The hatch of cells that were not run."""
NO_VALUE: dict[str, Any] = UNKNOWN | {"color": INK, "gid": "unknown"}
LEFT_OUT: dict[str, Any] = {"color": FAINT, "linestyle": "none", "marker": ".", "markersize": 2.0, "gid": "not-run"}
"""The looks of the marks of points without a value, and of points that were not run."""
SIZE, TINT = 0.72, 0.35
"""The size of markers in cells relative to that in the legend, and the opacity of cells."""
NOWHERE = -9
"""The code of a point that was not run."""
CHARACTER = 0.0165
"""The width of a character, as a fraction of the width of a plane."""
SMALL: dict[str, Any] = {"markersize": 9.0, "markeredgewidth": 0.8}
"""The size of arrows in cells."""


def cells(piece: Part) -> None:
    """Draw the cells of a panel: hatched where nothing was run, white with a mark where it has no value.

    A value of which one side alone is known, a bound, has an arrow to that side.
    """
    # of cells `y` is the variable in colour, and `up` that of the vertical axis
    axes, x, y, variable = piece.axes, piece.x, piece.layer.up, str(piece.layer.y)
    subset = piece.panel.sortby([x, y])
    across, up = (subset[name].values.astype(float) for name in (x, y))
    for values, scale in ((across, axes.set_xscale), (up, axes.set_yscale)):
        if logarithmic_cells(values):
            scale("log")
    values, run = (subset[name].transpose(y, x).values for name in (variable, "requested"))
    bound = bounds(subset.transpose(..., y, x), variable)
    edges = edges_of(across, axes.get_xscale() == "log"), edges_of(up, axes.get_yscale() == "log")
    axes.set(xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
    # values over hatches, and white where a run has no value
    norm, many = _norm(piece), values.size > MOST_VECTORS
    axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap=COLOURS, norm=norm, rasterized=many)
    axes.patch.set(hatch=NOT_RUN, edgecolor=FAINT)
    unknown = np.ma.masked_where(~run | np.isfinite(values), np.zeros_like(values))
    axes.pcolormesh(*edges, unknown, cmap=mpl.colors.ListedColormap(["white"]), rasterized=many)
    # marks: of no value, and of bounds, in a colour that is seen on that of the cell
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


def _norm(piece: Part) -> Any:
    """Return the scale of the colours of all panels: logarithmic if positive values range widely (`wide`)."""
    # later panels take the scale of the first
    figure = piece.axes.get_figure()
    if figure is not None and (before := figure.axes[0].collections):
        return before[0].norm
    values = piece.data[piece.layer.y].values
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return mpl.colors.LogNorm(low, high) if wide(finite) else mpl.colors.Normalize(low, high)


def classes(piece: Part) -> None:
    """Draw a cell and a marker in the look of its class around each point that was run, in rows of the vertical axis.

    Cells reach half way to the next points of the config, `wanted`; points that rounds `added` have smaller markers.
    """
    axes, looks = piece.axes, piece.layer.look["classes"]
    names = (piece.layer.y, piece.x, piece.layer.up, "run", "wanted", "added")
    arrays = [array.values for array in xr.broadcast(*(piece.panel[name] for name in names))]
    codes, x, y, run, wanted, added = arrays
    ends = np.array([float(y.min()), float(y.max())]) * [0.7, 1.4]
    axes.set(xscale="log", yscale="log", ylim=ends, xlim=np.array([x.min(), x.max()]) * [0.6, 1.6])
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis, (1.0, 3.0))
    left_out = ~run & wanted
    axes.plot(x[left_out], y[left_out], **LEFT_OUT)
    rows = np.unique(y)
    heights = edges_of(rows.astype(float), logarithmic=True)
    for place, row in enumerate(rows):
        here = (wanted | run) & (y == row)
        order = np.argsort(x[here])
        sides, kinds = edges_of(x[here][order], logarithmic=True), np.where(run, codes, NOWHERE)[here][order]
        for code in set(kinds.tolist()) & looks.keys():
            left, right = sides[:-1][kinds == code], sides[1:][kinds == code]
            colour = UNDECIDED if code <= 0 else looks[code][0]["color"]
            box = {"bottom": heights[place], "height": heights[place + 1] - heights[place]}
            axes.bar(left, width=right - left, align="edge", color=colour, alpha=TINT, linewidth=0, zorder=0.5, **box)
    for size, kind in ((SIZE, ~added), (SIZE * ADDED_SIZE, added)):
        for code, (look, _) in looks.items():
            here = (codes == code) & run & kind
            axes.plot(x[here], y[here], zorder=3, **look | {"markersize": size * look["markersize"]})


def power(piece: Part) -> None:
    """Draw the line along which x is the power `number` of the vertical axis."""
    ends = np.array(piece.axes.get_ylim())
    piece.axes.plot(ends**piece.number, ends, color=INK, linewidth=0.9, zorder=1, **piece.layer.look)


def kinds(piece: Part) -> None:
    """Draw a marker in the look of its class, `code`, at each point that was run, with its interval if it has one."""
    axes, looks, y = piece.axes, piece.layer.look["classes"], piece.layer.up or str(piece.layer.y)
    ends = [f"{y}{end}" for end in ("_low", "_high") if f"{y}{end}" in piece.panel]
    names = ("code", "added", piece.x, y, *ends)
    arrays = xr.broadcast(*(piece.panel[name].where(piece.panel["run"]) for name in names))
    for code, added, x, height, *interval in zip(*(array.values.ravel() for array in arrays), strict=True):
        if np.isnan(code):
            continue
        look = looks[int(code)][0] | {"linestyle": "none"}
        if interval:
            # an end may be on the other side of the value by rounding, which matplotlib refuses
            bars = np.clip([[height - interval[0]], [interval[1] - height]], 0.0, None)
            small = {"markersize": 3.4, "markeredgewidth": 0.7}
            axes.errorbar(x, height, bars, elinewidth=0.6, capsize=0, zorder=3, **look | small)
        else:
            size = look["markersize"] * (ADDED_SIZE if added else 1.0)
            axes.plot(x, height, zorder=4, **look | {"markersize": size})
    if piece.layer.up:
        axes.set(xlim=_half_a_step_beyond(piece.panel[piece.x]), ylim=_half_a_step_beyond(piece.panel[y]))


def _half_a_step_beyond(axis: xr.DataArray) -> tuple[float, float]:
    """Return limits half a step beyond the values of an axis."""
    values = axis.values.astype(float)
    margin = 0.5 * (values.max() - values.min()) / max(len(values) - 1, 1) or 0.5
    return float(values.min()) - margin, float(values.max()) + margin


def line_of_sum(piece: Part) -> None:
    """Draw the line along which the sum of both axes is `number`."""
    ends = np.array(piece.axes.get_ylim())
    piece.axes.plot(piece.number - ends, ends, color=INK, linewidth=1.3, zorder=2, **piece.layer.look)


def region(piece: Part) -> None:
    """Draw a tint where the sum of both axes is between `number` and `look["until"]`, and the label of the region.

    The label stands between two rows of the vertical axis, where there is most room; nowhere if there is none.
    """
    look, low, high = piece.layer.look, *piece.axes.get_xlim()
    ends = np.array(piece.axes.get_ylim())
    left, right = (np.clip(edge - ends, low, high) for edge in (piece.number, look["until"]))
    piece.axes.fill_betweenx(ends, left, right, color=look["tint"], linewidth=0, zorder=0)
    rows = np.unique(piece.panel[piece.layer.up].values.astype(float))
    # (width, middle, height) of the region between rows, from the middle of the panel outwards
    gaps = []
    for at in sorted(0.5 * (rows[1:] + rows[:-1]), key=lambda row: abs(row - rows.mean())):
        first, last = max(piece.number - at, low), min(look["until"] - at, high)
        gaps.append((last - first, 0.5 * (last + first), at))
    widest = max((width for width, *_ in gaps), default=0.0)
    if widest > 0.0:
        # of equally wide gaps, up to rounding, the first
        _, middle, at = max(gaps, key=lambda gap: round(gap[0], 9))
        text = piece.layer.label
        narrow = widest < CHARACTER * len(text) * (high - low)
        text = text.replace(" ", "\n") if narrow else text
        piece.axes.text(middle, at, text, color=look["color"], style="italic", zorder=3, ha="center", va="center")


def colour_bar(panels: Panels, quantity: xr.DataArray) -> None:
    """Draw the scale of the colours beside all panels."""
    mesh = panels.stacks[0][0].collections[0]
    bar = panels.drawing.colorbar(mesh, ax=[stack[0] for stack in panels.stacks], aspect=18, pad=0.02)
    keep_within_doubles(bar.ax.yaxis)
    bar.set_label(axis_label(quantity))
    bar.outline.set_linewidth(0.5)


def entries_of_cells(data: xr.Dataset, layer: Layer) -> list[list[Entry]]:
    """Return the entries of a legend of cells, a column each.

    They are those of classes and of points not run, or of cells without a value, of bounds, and of cells not run.
    """
    if "classes" in layer.look:
        ordered = sorted(layer.look["classes"].items(), key=lambda item: (item[0] <= 0, abs(item[0])))
        return [*([entry] for _, entry in ordered if entry[1]), [(LEFT_OUT, "not run")]]
    variable = str(layer.y)
    entries: list[Entry] = [(NO_VALUE, "no value")]
    if name := data[variable].attrs.get("bound"):
        arrow = bound_mark(bound_side(data[variable])) | SMALL
        entries.append((arrow | {"color": INK}, data[name].attrs["reason"]))
    if not bool(data["requested"].all()):
        entries.append(({"hatch": NOT_RUN, "edgecolor": FAINT, "facecolor": "none"}, "not run"))
    return [[entry] for entry in entries]
