"""A legend below all panels, of what is drawn in them, in columns that each say one thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.figures.facets import Facets, numbered_parts
from sweeplib.figures.fit import broken, renderer_of
from sweeplib.figures.labels import dynamics_label, value_label
from sweeplib.figures.style import INK, STYLE, THEORY_DASHES, dynamics_look, look

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Bbox

Entry = tuple[dict[str, Any], str]
FEWEST_ROWS = 3
"""Rows that a legend may have before it is looked whether more would make it narrow enough."""
MARGIN = 0.06
"""Left and right of a legend, at least, in inches."""
SMALLEST = 6.5
"""The smallest text of a legend, in points."""
SPACING = {"columnspacing": 1.2, "handletextpad": 0.6, "handlelength": 2.0, "borderpad": 0.2, "borderaxespad": 0.3}


def legend_below(figure: Figure, groups: list[list[Entry]]) -> None:
    """Draw a legend of groups of (line properties, label) below the panels; the figure grows by its height.

    An entry whose properties have a `gid` is listed only if a line of that gid is seen in a panel; a line may have
    several, with spaces between. Groups are columns, long ones several; where they are too wide together they get more
    rows, then stand below each other, and at last labels are broken into lines and the text becomes smaller.
    """
    seen = _seen(figure)
    shown = [[entry for entry in group if "gid" not in entry[0] or entry[0]["gid"] in seen] for group in groups]
    shown = [group for group in shown if group]
    if not shown:
        return
    legend = _legend_that_fits(figure, shown)
    height = legend.get_window_extent(renderer_of(figure)).height / figure.dpi
    layout = figure.get_layout_engine()
    padding = 2.0 * layout.get()["h_pad"] if layout is not None else 0.0  # what the layout adds to it
    figure.set_figheight(figure.get_figheight() + height + padding)


def _seen(figure: Figure) -> set[str]:
    """The gids of the lines of which something is seen; they are taken off them, as files want one thing of a gid."""
    found: set[str] = set()
    for axes in figure.axes:
        axes.autoscale_view()  # now, as lines are transformed by the limits
        for line in axes.lines:
            gids = (line.get_gid() or "").split()
            found.update(gids if _is_seen(line, axes.bbox) else ())
            line.set_gid(None)
    return found


def _is_seen(line: Line2D, box: Bbox) -> bool:
    """Whether a point of a line with markers, or a stretch of another one, is within the box of its axes."""
    points = line.get_transform().transform(np.ma.filled(np.ma.asarray(line.get_xydata(), float), np.nan))
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return False
    low, high = points.min(axis=0), points.max(axis=0)
    marked = line.get_marker() not in ("None", "none", "", " ", None) and line.get_markevery() is None
    if not marked and (high - low).max() < 1.0:
        return False
    within = box.padded(2.0)
    return bool((low <= within.max).all() and (high >= within.min).all())


def _legend_that_fits(figure: Figure, groups: list[list[Entry]]) -> Legend:
    room = figure.bbox.width - 2.0 * MARGIN * figure.dpi
    renderer = renderer_of(figure)
    for columns in _arrangements(groups):
        legend = _legend(figure, columns)
        if legend.get_window_extent(renderer).width <= room:
            return legend
        legend.remove()
    for size in (STYLE["legend.fontsize"], SMALLEST):
        legend = _legend(figure, [_in_lines(figure, column, room, size) for column in columns], size)
        if size == SMALLEST or legend.get_window_extent(renderer).width <= room:
            break
        legend.remove()
    return legend


def _arrangements(groups: list[list[Entry]]) -> Iterator[list[list[Entry]]]:
    """Columns of the entries, from few rows to one column."""
    longest = max(map(len, groups))
    for rows in range(min(FEWEST_ROWS, longest), longest + 1):
        yield [part for group in groups for part in _split(group, rows)]
    for count in range(len(groups) - 1, 0, -1):
        yield _joined(groups, count)


def _split(group: list[Entry], rows: int) -> list[list[Entry]]:
    """A group as columns of even length, none longer than so many rows."""
    even = -(-len(group) // -(-len(group) // rows))
    return [group[start : start + even] for start in range(0, len(group), even)]


def _joined(groups: list[list[Entry]], count: int) -> list[list[Entry]]:
    """So many columns of whole groups, the longest of them as short as can be."""
    cuts = ([0, *inner, len(groups)] for inner in combinations(range(1, len(groups)), count - 1))
    columns = [[list(chain(*groups[start:end])) for start, end in pairwise(cut)] for cut in cuts]
    return min(columns, key=lambda made: max(map(len, made)))


def _legend(figure: Figure, columns: list[list[Entry]], size: float | None = None) -> Legend:
    from matplotlib.lines import Line2D

    rows = max(map(len, columns))
    blank: Entry = ({"linestyle": "none"}, "")
    entries = [entry for column in columns for entry in column + [blank] * (rows - len(column))]
    handles = [Line2D([], [], **{key: value for key, value in of.items() if key != "gid"}) for of, _ in entries]
    labels = [label for _, label in entries]
    place = {"loc": "outside lower center", "ncols": len(columns), "fontsize": size}
    return figure.legend(handles, labels, **place, **SPACING)


def _in_lines(figure: Figure, column: list[Entry], room: float, size: float) -> list[Entry]:
    """The entries with their labels in lines that fit beside the handles."""
    beside = SPACING["handlelength"] + SPACING["handletextpad"] + 2.0 * SPACING["borderpad"]
    left = room - beside * size / 72.0 * figure.dpi
    renderer, text = renderer_of(figure), figure.text(0.0, 0.0, "", fontsize=size)

    def length(words: str) -> float:
        text.set_text(words)
        return float(text.get_window_extent(renderer).width)

    lines = [(properties, broken(label, left, length)) for properties, label in column]
    text.remove()
    return lines


def hue_entries(data: xr.Dataset, split: Facets, **line: Any) -> list[Entry]:
    """What each colour stands for: its marker, without a line unless `line` says otherwise."""
    if split.hue is None:
        return []
    line = line or {"linestyle": "none"}
    return [(look(index) | line, value_label(one[split.hue])) for index, one in numbered_parts(data, split.hues(data))]


def dynamics_entries(shown: list[str]) -> list[Entry]:
    """What each marker stands for, of the dynamics `shown`."""
    blank = {"color": INK, "marker": "o"}
    return [(dynamics_look(name, shown, blank) | {"linestyle": "none"}, dynamics_label(name)) for name in shown]


def theory_entries(kinds: Iterable[str]) -> list[Entry]:
    """What each dash stands for, of these kinds of theory of exit times."""
    return [
        ({"color": INK, "linestyle": THEORY_DASHES[kind], "linewidth": 0.9, "gid": kind}, f"{kind} theory")
        for kind in kinds
    ]
