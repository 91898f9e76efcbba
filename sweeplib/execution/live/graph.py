"""The curves of the results so far, drawn as points with their intervals."""

import math
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweeplib.execution.live.headline import Curve, Curves
    from sweeplib.execution.live.news import Run

COLOURS = ("#2f6fb0", "#d1720c", "#2a8a5f", "#8a4fa3", "#8c5a3c", "#b03a6b", "#5d6670", "#7d8420")
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
HEIGHT = 340
TICKS = [float(f"{digit}e{power}") for power in range(-12, 15) for digit in (1, 2, 5)]
LOGARITHMIC = 20.0
"""An axis is logarithmic if its largest value is so many times the smallest, which is positive."""


class Graph:
    """A figure of Bokeh with the curves; another takes its place where an axis becomes logarithmic."""

    def __init__(self, style: str) -> None:
        from bokeh.layouts import column
        from bokeh.models import Div

        self._title = Div(stylesheets=[style], sizing_mode="stretch_width")
        self.root = column(self._title, visible=False, sizing_mode="stretch_width")
        self._kind: object = None
        self._sources: dict[str, Any] = {}

    def draw(self, run: "Run") -> None:
        """Draw the curves of a run."""
        from bokeh.models import ColumnDataSource

        curves = run.news.headline if run.news else None
        self.root.visible = curves is not None
        if curves is None:
            return
        logarithmic = tuple(_is_logarithmic(values) for values in _values(curves))
        kind = run.begun.run, curves.y, curves.at, tuple(curves.of), logarithmic
        if kind != self._kind:
            self._kind = kind
            said = f"<h2>Results so far: {escape(curves.y)}{f', at {escape(curves.at)}' * bool(curves.at)}</h2>"
            self._title.text = (
                f"{said}<p>Bars: 95 % intervals. The analyses of the report take account of lost runs too.</p>"
            )
            self._sources = {name: ColumnDataSource(_columns(curve)) for name, curve in curves.of.items()}
            self.root.children = [self._title, self._figure(curves, *logarithmic)]
        for name, curve in curves.of.items():
            self._sources[name].data = _columns(curve)

    def _figure(self, curves: "Curves", log_x: bool, log_y: bool) -> Any:
        from bokeh.models import FixedTicker, HoverTool, NoOverlap, Whisker
        from bokeh.plotting import figure

        plot = figure(
            height=HEIGHT,
            sizing_mode="stretch_width",
            x_axis_type="log" if log_x else "linear",
            y_axis_type="log" if log_y else "linear",
            x_axis_label=curves.x,
            y_axis_label=curves.y,
            tools=[],
            toolbar_location=None,
        )
        tips = [(curves.x, "@x"), ("value", "@y"), ("95 % interval", "@low to @high"), ("runs", "@runs")]
        for axis, logarithmic in ((plot.xaxis, log_x), (plot.yaxis, log_y)):
            if logarithmic:
                axis.ticker, axis.major_label_policy = FixedTicker(ticks=TICKS), NoOverlap()
        for number, (name, source) in enumerate(self._sources.items()):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            plot.line("x", "y", source=source, color=colour, alpha=0.5)
            bars = Whisker(base="x", lower="low", upper="high", source=source, line_color=colour)
            bars.upper_head.line_color = bars.lower_head.line_color = colour
            bars.upper_head.size = bars.lower_head.size = 6
            plot.add_layout(bars)
            points = plot.scatter("x", "y", source=source, color=colour, size=7, marker=marker, legend_label=name)
            plot.add_tools(HoverTool(renderers=[points], tooltips=[("dynamics", name), *tips]))
        plot.legend.background_fill_alpha = 0.6
        return plot


def _columns(curve: "Curve") -> dict[str, list[Any]]:
    return {name: list(getattr(curve, name)) for name in ("x", "y", "low", "high", "runs")}


def _values(curves: "Curves") -> tuple[list[float], list[float]]:
    """Return all values along both axes."""
    found = curves.of.values()
    return [x for curve in found for x in curve.x], [y for curve in found for y in curve.y]


def _is_logarithmic(values: list[float]) -> bool:
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) > LOGARITHMIC * min(finite)
