"""A legend below all panels that lists what they show, in one column per property.

The handle of an entry is the line or patch beside its label; `handle` is its length in font sizes. A gid is the name by
which an entry refers to lines in panels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np

from sweeplib.pictures.figures.kit.fit import SMALLEST, broken, renderer_of
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.style import STYLE, keep_within_doubles

Entry = tuple[dict[str, Any], str]
"""An entry of a legend: the properties of its line or patch, as matplotlib names them and its `gid`, and its label."""
FEWEST_ROWS = 3
"""The number of rows of the first arrangement that is tried; more rows make the legend narrower."""
MARGIN = 0.06
"""The least margin left and right of a legend, in inches."""
SPACING = {"columnspacing": 1.2, "handletextpad": 0.6, "borderpad": 0.2, "borderaxespad": 0.3}
HANDLE = 2.0
"""The length of the line beside a label; like `SPACING`, in font sizes."""


def legend_below(figure: mpl.figure.Figure, groups: list[list[Entry]], handle: float = HANDLE) -> None:
    """Draw a legend of groups of (line properties, label) below the panels; the figure grows by its height.

    An entry whose properties have a `gid` is listed only if a line with that gid is visible in a panel; the gid of a
    line may be several names with spaces between. Each group is one column, a long group several. If the legend is too
    wide, columns get more rows; then groups are stacked; last, labels are broken into lines and the text gets smaller.
    Long dashes need a `handle`, the length of the lines in font sizes, that shows them twice.
    """
    gids = _visible_gids(figure)
    entries = [[entry for entry in group if "gid" not in entry[0] or entry[0]["gid"] in gids] for group in groups]
    entries = [group for group in entries if group]
    if not entries:
        return
    legend = _legend_that_fits(figure, entries, handle)
    height = legend.get_window_extent(renderer_of(figure)).height / figure.dpi
    layout = figure.get_layout_engine()
    padding = 2.0 * layout.get()["h_pad"] if layout is not None else 0.0  # the layout pads the legend above and below
    figure.set_figheight(figure.get_figheight() + height + padding)


def _visible_gids(figure: mpl.figure.Figure) -> set[str]:
    """Return the gids of the visible lines, and remove all gids: in SVG files they would have to be unique."""
    visible: set[str] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            keep_within_doubles(axis)
        axes.autoscale_view()  # here, because the transforms of lines depend on the limits
        for line in axes.lines:
            gids = (line.get_gid() or "").split()
            visible.update(gids if _is_seen(line, axes.bbox) else ())
            line.set_gid(None)
    return visible


def _is_seen(line: mpl.lines.Line2D, box: mpl.transforms.BboxBase) -> bool:
    """Return whether a marker or a stretch of the line lies within the box of its axes, in pixels."""
    points = line.get_transform().transform(np.ma.filled(np.ma.asarray(line.get_xydata(), float), np.nan))
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return False
    low, high = points.min(axis=0), points.max(axis=0)
    marked = line.get_marker() not in ("None", "none", "", " ", None) and line.get_markevery() is None
    if not marked and (high - low).max() < 1.0:  # a line shorter than a pixel
        return False
    within = box.padded(2.0)
    return bool((low <= within.max).all() and (high >= within.min).all())


def _legend_that_fits(figure: mpl.figure.Figure, groups: list[list[Entry]], handle: float) -> mpl.legend.Legend:
    """Return the widest arrangement of a legend within the figure; failing that in broken lines, then in small ones."""
    room = figure.bbox.width - 2.0 * MARGIN * figure.dpi
    renderer = renderer_of(figure)
    for columns in _arrangements(groups):
        legend = _legend(figure, columns, handle)
        if legend.get_window_extent(renderer).width <= room:
            return legend
        legend.remove()
    for size in (STYLE["legend.fontsize"], SMALLEST):
        in_lines = [_in_lines(figure, column, room - handle * size / 72.0 * figure.dpi, size) for column in columns]
        legend = _legend(figure, in_lines, handle, size)
        if size == SMALLEST or legend.get_window_extent(renderer).width <= room:
            break
        legend.remove()
    return legend


def _arrangements(groups: list[list[Entry]]) -> Iterator[list[list[Entry]]]:
    """Yield columns of the entries, from arrangements with few rows to one column."""
    longest = max(map(len, groups))
    for rows in range(min(FEWEST_ROWS, longest), longest + 1):
        yield [column for group in groups for column in _split(group, rows)]
    for count in range(len(groups) - 1, 0, -1):
        yield _joined(groups, count)


def _split(group: list[Entry], rows: int) -> list[list[Entry]]:
    """Return a group as columns of equal length, with at most `rows` rows."""
    even = -(-len(group) // -(-len(group) // rows))
    return [group[start : start + even] for start in range(0, len(group), even)]


def _joined(groups: list[list[Entry]], count: int) -> list[list[Entry]]:
    """Return `count` columns of whole groups, such that the longest is as short as possible."""
    cuts = ([0, *inner, len(groups)] for inner in combinations(range(1, len(groups)), count - 1))
    columns = [[list(chain(*groups[start:end])) for start, end in pairwise(cut)] for cut in cuts]
    return min(columns, key=lambda arrangement: max(map(len, arrangement)))


def _legend(
    figure: mpl.figure.Figure, columns: list[list[Entry]], handle: float, size: float | None = None
) -> mpl.legend.Legend:
    """Draw a legend of columns below the panels and return it; `size` is that of the font, by default the style's.

    matplotlib fills columns one after the other: shorter ones are filled up with blank entries.
    """
    rows = max(map(len, columns))
    blank: Entry = ({"linestyle": "none"}, "")
    entries = [entry for column in columns for entry in column + [blank] * (rows - len(column))]
    handles = [_handle(properties) for properties, _ in entries]
    labels = [label for _, label in entries]
    place = {"loc": "outside lower center", "ncols": len(columns), "fontsize": size}
    return figure.legend(handles, labels, handlelength=handle, **place, **SPACING)


def _handle(properties: dict[str, Any]) -> mpl.lines.Line2D | mpl.patches.Patch:
    """Return the picture of an entry: a patch if it has a hatch, else a line."""
    look = {key: value for key, value in properties.items() if key != "gid"}
    return mpl.patches.Patch(**look) if "hatch" in look else mpl.lines.Line2D([], [], **look)


def _in_lines(figure: mpl.figure.Figure, column: list[Entry], room: float, size: float) -> list[Entry]:
    """Return the entries with their labels in lines that fit into the room beside the handles."""
    beside = SPACING["handletextpad"] + 2.0 * SPACING["borderpad"]
    width = room - beside * size / 72.0 * figure.dpi
    renderer, text = renderer_of(figure), figure.text(0.0, 0.0, "", fontsize=size)

    def length(content: str) -> float:
        """Return the width of a content, in pixels."""
        text.set_text(content)
        return float(text.get_window_extent(renderer).width)

    lines = [(properties, broken(label, width, length)) for properties, label in column]
    text.remove()
    return lines
