"""The Bokeh document of an interactive plot, without data: the page's script fills its sources with what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sweeplib.figures.style import FAINT, INK

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

    from sweeplib.figures.interactive import Line

POINTS = ("x", "y", "low", "high", "color", "fill", "marker", "text")
LINES = ("xs", "ys", "color", "dash")
FONT = "13px"


def drawing(title: str, labels: Sequence[str], spec: dict[str, Any], lines: Sequence[Line]) -> Any:
    """The JSON of a plot with the sources 'points', 'lines', 'theory' and 'bands'; `labels` of its two axes."""
    from bokeh.embed import json_item

    plot = _frame(labels, spec)
    hovered = _map(plot, spec) if spec["kind"] == "map" else _series(plot, spec)
    _hover(plot, hovered)
    for slope, intercept, _ in lines:
        _slope(plot, slope, intercept)
    return json_item(plot)


def _frame(labels: Sequence[str], spec: dict[str, Any]) -> figure:
    from bokeh.plotting import figure

    plot = figure(
        height=430,
        sizing_mode="stretch_width",
        x_axis_type="log" if spec["log"]["x"] else "linear",
        y_axis_type="log" if spec["log"]["y"] else "linear",
        x_axis_label=labels[0],
        y_axis_label=labels[1],
        tools="pan,box_zoom,wheel_zoom,save,reset",
        active_drag=None,
        active_scroll=None,
        background_fill_color="#ffffff",
        border_fill_color="#ffffff",
        outline_line_color=None,
        output_backend="canvas",
    )
    plot.toolbar.logo = None
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_label_text_font_size = axis.major_label_text_font_size = FONT
    plot.grid.grid_line_color = "#e6e9ed"
    return plot


def _source(name: str, columns: Sequence[str]) -> ColumnDataSource:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource({column: [] for column in columns}, name=name)


def _series(plot: figure, spec: dict[str, Any]) -> Any:
    """Bands, lines, theory, error bars and points of series; the points' renderer."""
    curves = spec["kind"] == "curves"
    points, lines, theory = _source("points", POINTS), _source("lines", LINES), _source("theory", LINES)
    bands = _source("bands", LINES)
    plot.patches("xs", "ys", fill_color="color", fill_alpha=0.16, line_color=None, source=bands)
    plot.multi_line(
        "xs", "ys", line_color="color", line_dash="dash", line_width=2 if curves else 1,
        line_alpha=1.0 if curves else 0.35, source=lines,
    )  # fmt: skip
    plot.multi_line("xs", "ys", line_color="color", line_dash="dash", line_width=1.4, line_alpha=0.8, source=theory)
    if not curves:
        plot.segment("x", "low", "x", "high", line_color="color", line_width=1.2, source=points)
    return plot.scatter(
        "x", "y", marker="marker", size=5 if curves else 9, line_color="color", line_width=1.5, fill_color="fill",
        source=points,
    )  # fmt: skip


def _map(plot: figure, spec: dict[str, Any]) -> Any:
    """The cells of a map, coloured by class, or by number with a colour bar."""
    width, height = (spec["cells"][axis][0] for axis in "xy")
    points = _source("points", (*POINTS, "value"))
    colour: Any = "color"
    if spec["value"] not in spec["looks"]:
        from bokeh.transform import linear_cmap

        colour = linear_cmap("value", "Viridis256", *spec["range"])
    cells = plot.rect("x", "y", width, height, fill_color=colour, line_color="#ffffff", line_width=1, source=points)
    if colour != "color":
        plot.add_layout(cells.construct_color_bar(width=10), "right")
    plot.grid.grid_line_color = None
    return cells


def _slope(plot: figure, slope: float, intercept: float) -> None:
    from bokeh.models import Slope

    plot.add_layout(Slope(gradient=slope, y_intercept=intercept, line_color=INK, line_width=1.5, line_dash="dashed"))


def _hover(plot: figure, renderer: Any) -> None:
    """Show the text that the page's script writes for each point, which it escapes."""
    from bokeh.models import HoverTool

    tooltip = f'<div style="font:13px/1.45 system-ui,sans-serif;color:{INK};max-width:19rem">@text{{safe}}</div>'
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=tooltip, point_policy="snap_to_data", visible=False))
    plot.axis.axis_line_color = plot.axis.major_tick_line_color = FAINT
    plot.axis.minor_tick_line_color = None
