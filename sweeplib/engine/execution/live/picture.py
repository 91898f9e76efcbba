"""The map of the cases of a dynamics: a cell is as blue as it is done, and red or amber where cases are not ok."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.status import FAILURES, Status

if TYPE_CHECKING:
    from sweeplib.engine.execution.live.news import KnownRun

COLOURS = {"left": "#dfe3e8", "ok": "#2f6fb0", "other": "#e69f00", "failed": "#c8321e"}
"""Of cases by their kind: those that are left, ok, that have another outcome, and that failed."""
LEAST_SEEN = {"other": 0.7, "failed": 0.8}
"""The least part of its colour that a single case gives a cell."""
MOST_ALONG = 160
"""The largest number of cells along an axis of the picture."""
MOST_TICKS = 8
"""The largest number of labels along an axis."""
ROW, LEAST_HEIGHT, MOST_HEIGHT = 28, 150, 480
"""Pixels: the height of a row of cells, and that of the figure."""
EMPTY: dict[str, list[Any]] = {"image": [], "done": [], "all": [], "failed": [], "other": [], "w": [], "h": []}
"""Bokeh's columns of the map before a run is drawn (`_columns`)."""
INSIDE = "return labels[Math.min(labels.length - 1, Math.max(0, Math.floor(value)))]"
"""JavaScript for the label of the cell under the pointer, whose coordinate is `value`."""


class CaseMapPicture:
    """A figure of Bokeh with the map."""

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJSHover, FixedTicker, HoverTool, NoOverlap
        from bokeh.plotting import figure

        # the data of the cells, and of the marks of those that are computed now
        self._cells, self._running = ColumnDataSource(EMPTY), ColumnDataSource({"x": [], "y": []})
        # they put the cell under the pointer into words, along each axis
        self._hovers = {axis: CustomJSHover(args={"labels": [""]}, code=INSIDE) for axis in "xy"}
        self._hover = HoverTool(formatters={"$x": self._hovers["x"], "$y": self._hovers["y"]})
        self.figure = figure(
            height=LEAST_HEIGHT,
            sizing_mode="stretch_width",
            x_range=(0, 1),
            y_range=(0, 1),
            tools=[],
            toolbar_location=None,
        )
        cells = self.figure.image_rgba(image="image", x=0, y=0, dw="w", dh="h", source=self._cells)
        self._hover.renderers = [cells]
        self.figure.add_tools(self._hover)
        self.figure.scatter("x", "y", source=self._running, size=9, color="black", line_color="white", marker="diamond")
        self.figure.grid.visible = False
        for axis in (self.figure.xaxis, self.figure.yaxis):
            axis.ticker, axis.major_label_policy = FixedTicker(), NoOverlap()

    def draw(self, run: "KnownRun", dynamics: str, chosen: tuple[str, str], running: np.ndarray | None) -> None:
        """Draw the map of a dynamics over two axes, or one if both are the same; mark cells that are being computed.

        chosen : the names of the axes across and up. running (n,) : the flat cells that are being computed.
        """
        shape = [len(axis.labels) for axis in run.begun.axes]
        names = [axis.name for axis in run.begun.axes]
        places = [names.index(name) if name in names else None for name in chosen]
        counts = run.maps[dynamics].reshape(*shape, len(Status))
        merged, steps = _over(counts, places)
        marks = np.unravel_index(np.empty(0, np.int64) if running is None else running, shape or (1,))
        # in merged cells; an axis that there is not has one cell
        at = [
            marks[place] // step if place is not None else 0 * marks[0]
            for place, step in zip(places, steps, strict=True)
        ]
        pairs = np.unique(np.array(at), axis=1) + 0.5  # the middles of cells
        self._running.data = {"x": pairs[0], "y": pairs[1]}
        self._cells.data = _columns(merged)
        height, width = merged.shape[:2]
        self.figure.x_range.end, self.figure.y_range.end = width, height
        self.figure.height = min(MOST_HEIGHT, max(LEAST_HEIGHT, 70 + ROW * height))
        axes = (self.figure.xaxis[0], self.figure.yaxis[0])
        named = [
            ("", [""]) if place is None else (run.begun.axes[place].name, run.begun.axes[place].labels[::step])
            for place, step in zip(places, steps, strict=True)
        ]
        for axis, hover, (name, labels) in zip(axes, self._hovers.values(), named, strict=True):
            stride = -(-len(labels) // MOST_TICKS)
            ticks = [index + 0.5 for index in range(0, len(labels), stride)]
            axis.axis_label, axis.ticker.ticks, hover.args = name, ticks, {"labels": labels}
            axis.major_label_overrides = {tick: labels[int(tick)] for tick in ticks}
        axis_values = [(name, f"${letter}{{custom}}") for letter, (name, _) in zip("xy", named, strict=True) if name]
        numbers = [("done", "@done of @all"), ("failed", "@failed"), ("other outcomes", "@other")]
        self._hover.tooltips = [*axis_values, *numbers]


def _over(counts: np.ndarray, places: "Sequence[int | None]") -> tuple[np.ndarray, list[int]]:
    """Return counts (up, across, statuses), summed over all other axes, and how many cells were merged along the two.

    counts (*axes, statuses) : over all axes. places : the indices of the axes across and up, None if there is none.
    Both results are in the order of `places` but for the counts, since a picture has its rows first.
    """
    across, up = places if places[0] != places[1] else (places[0], None)
    along = [place for place in (up, across) if place is not None]
    others = tuple(axis for axis in range(counts.ndim - 1) if axis not in along)
    summed = counts.transpose(*others, *along, counts.ndim - 1).sum(axis=tuple(range(len(others))))
    whole = summed.reshape(*(counts.shape[place] if place is not None else 1 for place in (up, across)), -1)
    # cells are merged, so that at most `MOST_ALONG` remain along an axis
    steps = [-(-size // MOST_ALONG) for size in whole.shape[:2]]
    for axis, step in enumerate(steps):
        whole = np.add.reduceat(whole, np.arange(0, whole.shape[axis], step), axis=axis)
    return whole, steps[::-1]


def kinds(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers (...) of cases that are left, ok, failed, or end otherwise, from counts (..., statuses)."""
    numbers = {"left": counts[..., Status.missing], "ok": counts[..., Status.ok]}
    numbers["failed"] = counts[..., list(FAILURES)].sum(-1)
    numbers["other"] = counts.sum(-1) - sum(numbers.values())
    return numbers


def _columns(counts: np.ndarray) -> dict[str, Any]:
    """Return Bokeh's columns of one picture, the numbers and colours of cells, from counts (up, across, statuses)."""
    by_kind, whole = kinds(counts), counts.sum(-1)
    numbers = {"done": whole - by_kind["left"], "all": whole} | {name: by_kind[name] for name in ("failed", "other")}
    height, width = whole.shape
    columns = {name: [values.astype(np.int32)] for name, values in numbers.items()}
    return columns | {"image": [_colours(by_kind, whole)], "w": [width], "h": [height]}


def _colours(by_kind: dict[str, np.ndarray], whole: np.ndarray) -> np.ndarray:
    """Return the colours (up, across) of cells, four bytes each as Bokeh takes them; cells without cases have none.

    A colour is the mean of those of a cell's kinds of cases, weighed by their part of the cell; failures and other
    outcomes weigh at least `LEAST_SEEN`. by_kind, whole (up, across) : numbers of cases, by kind and of all kinds.
    """
    parts = {name: values / np.maximum(whole, 1) for name, values in by_kind.items()}
    for name, least in LEAST_SEEN.items():
        parts[name] = np.where(by_kind[name] > 0, np.maximum(parts[name], least), 0.0)
    parts["other"] = np.minimum(parts["other"], 1 - parts["failed"])
    # what failures and other outcomes leave is shared by cases that are left and ok, in their ratio
    factor = (1 - parts["failed"] - parts["other"]) / np.maximum(parts["left"] + parts["ok"], 1e-9)
    parts |= {name: parts[name] * factor for name in ("left", "ok")}
    rgba = np.zeros((*whole.shape, 4), np.uint8)
    # red, green and blue in "#rrggbb"
    for channel, digits in enumerate((slice(1, 3), slice(3, 5), slice(5, 7))):
        rgba[..., channel] = sum(values * int(COLOURS[name][digits], 16) for name, values in parts.items())
    rgba[..., 3] = np.where(whole > 0, 255, 0)
    return rgba.view(np.uint32)[..., 0]
