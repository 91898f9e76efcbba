"""The curves of the results so far, drawn as points with their intervals."""

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import WIDE, wide

COLOURS = ("#2f6fb0", "#d1720c", "#2a8a5f", "#8a4fa3", "#8c5a3c", "#b03a6b", "#5d6670", "#7d8420")
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
"""Of the first, second, … curve; after the last colour they begin again, each with the next marker."""
HEIGHT, ROW = 400, 24
"""Pixels: of a figure, and what each further row of its legend adds."""
LINE, SWATCH, MOST_COLUMNS = 40, 4, 4
"""The letters in a row of a legend that fits a telephone, those that a marker takes, and the most names in a row."""
MOST_DECADES = 4
"""An axis over more decades has ticks at powers of ten alone."""
MOST_BARS = 100
"""Curves with more points have their intervals as a band."""


@dataclass(frozen=True)
class ResultCurve:
    """A curve over an axis: at each `x` the value `y` of a number of `runs`, and the ends of its 95 % interval.

    All lists have one length; `low` and `high` are NaN without an interval.
    """

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]
    runs: list[int]


@dataclass(frozen=True)
class ResultCurves:
    """Curves by name, and what their axes are.

    x, y : the names of the axes of the figure. at : the values of the other axes of the grid, in words.
    of, meaning : the curves, and what their names are, the heading of the legend.
    log_x : whether the axis x is logarithmic; the axis y is, if its values range over more than a factor `decade`.
    """

    x: str
    y: str
    at: str
    meaning: str = "dynamics"
    of: dict[str, ResultCurve] = field(default_factory=dict)
    log_x: bool = False
    decade: float = WIDE


class Graph:
    """A figure of Bokeh with the curves; another takes its place where an axis becomes logarithmic.

    root : the element of the page that holds heading and figure. style : the page's CSS.
    """

    def __init__(self, style: str) -> None:
        from bokeh.layouts import column
        from bokeh.models import Div

        # the heading above the figure
        self._title = Div(stylesheets=[style], sizing_mode="stretch_width")
        self.root = column(self._title, visible=False, sizing_mode="stretch_width")
        self._kind: object = None  # what `draw` says of the figure that is there
        self._sources: list[Any] = []  # the data of its points, lines and bands

    def draw(self, curves: ResultCurves | None, note: str = "") -> None:
        """Draw curves, below a heading and a `note` on them; hide the figure if there are none."""
        from bokeh.models import ColumnDataSource

        self.root.visible = curves is not None
        if curves is None:
            return
        logarithmic = _log_ticks(curves)
        many = [len(curve.x) > MOST_BARS for curve in curves.of.values()]
        # a figure of the same kind only gets new data
        kind = curves.x, curves.y, curves.meaning, tuple(curves.of), str(logarithmic), any(many)
        at = f", at {escape(curves.at)}" * bool(curves.at)
        self._title.text = (
            f"<h2>{escape(curves.y)}{at}</h2><p>{'Bands' if any(many) else 'Bars'}: 95 % intervals. {escape(note)}</p>"
        )
        ends = _ends(curves, bool(logarithmic[1]))
        bands = _bands(curves, ends) if any(many) else {"xs": [], "ys": [], "colour": []}
        columns = _points(curves, ends), _lines(curves), bands
        if kind == self._kind:
            for source, data in zip(self._sources, columns, strict=True):
                source.data = data
            return
        self._kind, self._sources = kind, [ColumnDataSource(data) for data in columns]
        self.root.children = [self._title, self._figure(curves, *logarithmic, many=any(many))]

    def _figure(self, curves: ResultCurves, log_x: list[float], log_y: list[float], *, many: bool) -> Any:
        """Return a figure of Bokeh with points, intervals and lines, from the sources of data.

        log_x, log_y : the ticks of an axis that is logarithmic; none if it is not. many : whether intervals are bands.
        """
        from bokeh.models import FixedTicker, HoverTool, NoOverlap, PrintfTickFormatter
        from bokeh.plotting import figure

        # the legend above has as many rows as its names need, and the figure grows by these
        names_in_row = min(MOST_COLUMNS, max(1, LINE // (max(map(len, curves.of), default=0) + SWATCH)))
        plot = figure(
            height=HEIGHT + ROW * ((len(curves.of) - 1) // names_in_row),
            sizing_mode="stretch_width",
            x_axis_type="log" if log_x else "linear",
            y_axis_type="log" if log_y else "linear",
            x_axis_label=curves.x,
            y_axis_label=curves.y,
            tools=[],
            toolbar_location=None,
        )
        tips = [
            (curves.meaning, "@name"),
            (curves.x, "@x"),
            ("value", "@y"),
            ("95 % interval", "@low to @high"),
            ("runs", "@runs"),
        ]
        for axis, ticks in ((plot.xaxis, log_x), (plot.yaxis, log_y)):
            if ticks:
                axis.ticker, axis.formatter = FixedTicker(ticks=ticks), PrintfTickFormatter(format="%g")
                axis.major_label_policy = NoOverlap()
        points, lines, bands = self._sources
        looks = {"size": 3 if many else 7, "color": "colour", "marker": "marker", "legend_group": "name"}
        plot.patches("xs", "ys", source=bands, color="colour", alpha=0.2, line_width=0)
        plot.multi_line("xs", "ys", source=lines, color="colour", alpha=0.5)
        if not many:
            plot.segment("x", "from", "x", "to", source=points, color="colour")
        markers = plot.scatter("x", "y", source=points, **looks)
        plot.add_tools(HoverTool(renderers=[markers], tooltips=tips))
        legend = plot.legend[0]
        legend.title, legend.title_standoff, legend.orientation = curves.meaning, 2, "horizontal"
        legend.ncols = names_in_row
        legend.location, legend.visible = "top_left", bool(curves.meaning)
        plot.add_layout(legend, "above")
        return plot


def _points(curves: ResultCurves, ends: tuple[float, float]) -> dict[str, Any]:
    """Return Bokeh's columns of all points of all curves; numbers are arrays, which are sent as they are in memory.

    ends : what intervals are drawn between.
    """
    columns: dict[str, Any] = {name: _joined(curves, name) for name in ("x", "y", "low", "high", "runs")}
    columns |= {"from": np.clip(columns["low"], *ends), "to": np.clip(columns["high"], *ends)}
    markers = [MARKERS[(at + at // len(COLOURS)) % len(MARKERS)] for at in range(len(curves.of))]
    for name, looks in (("name", list(curves.of)), ("colour", _colours(curves)), ("marker", markers)):
        columns[name] = [look for look, curve in zip(looks, curves.of.values(), strict=True) for _ in curve.x]
    return columns


def _joined(curves: ResultCurves, name: str) -> np.ndarray:
    """Return one field of all curves, such as "low", joined."""
    return np.array([value for curve in curves.of.values() for value in getattr(curve, name)], float)


def _ends(curves: ResultCurves, log: bool) -> tuple[float, float]:
    """Return what intervals are drawn between, also such as are infinite or reach below zero on a logarithmic axis.

    It is a tenth of the range of the finite heights beyond these.
    """
    heights = np.concatenate([_joined(curves, name) for name in ("y", "low", "high")])
    heights = heights[np.isfinite(heights) & ((heights > 0.0) | (not log))]
    if not heights.size:
        return -math.inf, math.inf
    low, high = np.log([heights.min(), heights.max()]) if log else (heights.min(), heights.max())
    margin = 0.1 * (high - low) or 1.0
    with np.errstate(over="ignore"):
        ends = np.array([low - margin, high + margin])
        low, high = (np.exp(ends) if log else ends).tolist()
    return low, high


def _lines(curves: ResultCurves) -> dict[str, list[Any]]:
    """Return Bokeh's columns of the lines through the points, one line a curve."""
    lines = [(np.array(curve.x, float), np.array(curve.y, float)) for curve in curves.of.values()]
    return {"xs": [x for x, _ in lines], "ys": [y for _, y in lines], "colour": _colours(curves)}


def _bands(curves: ResultCurves, ends: tuple[float, float]) -> dict[str, list[Any]]:
    """Return Bokeh's columns of the outlines of the bands, each over the points that have an interval.

    ends : what intervals are drawn between.
    """
    outlines = []
    for curve in curves.of.values():
        x, low, high = np.array(curve.x, float), *(np.clip(end, *ends) for end in (curve.low, curve.high))
        finite = np.isfinite(low) & np.isfinite(high)
        # along the low ends, and back along the high ones
        onward, back = np.flatnonzero(finite), np.flatnonzero(finite)[::-1]
        outlines.append((np.append(x[onward], x[back]), np.append(low[onward], high[back])))
    return {"xs": [x for x, _ in outlines], "ys": [y for _, y in outlines], "colour": _colours(curves)}


def _colours(curves: ResultCurves) -> list[str]:
    """Return the colour of each curve."""
    return [COLOURS[at % len(COLOURS)] for at in range(len(curves.of))]


def _log_ticks(curves: ResultCurves) -> tuple[list[float], list[float]]:
    """Return the ticks of both axes where they are logarithmic, otherwise none."""
    x, y = (_joined(curves, axis) for axis in "xy")
    return _ticks(x) if curves.log_x else [], _ticks(y) if wide(y, curves.decade) else []


def _ticks(values: np.ndarray) -> list[float]:
    """Return the ticks of a logarithmic axis of values: powers of ten, and 2 and 5 times those over few decades."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return []
    first, last = (math.floor(math.log10(end)) for end in (positive.min(), positive.max()))
    digits = (1, 2, 5) if last - first < MOST_DECADES else (1,)
    return [float(f"{digit}e{power}") for power in range(first - 1, last + 2) for digit in digits]
