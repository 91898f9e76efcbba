"""A quantity against an axis of the sweep, as curves with error bars."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from sweeplib.figures.figure import FIGURES, Dash, Drawn, Horizontal, Hue, LogAxes, Panel, Published, Where
from sweeplib.figures.kit.chart import chart_figure
from sweeplib.figures.kit.chosen import needed, quantity_points
from sweeplib.figures.kit.points import Points

if TYPE_CHECKING:
    from sweeplib.figures.kit.chart import ByName, Data

CAPTION = (
    "A quantity against an axis of the sweep or the steps; bars: the standard error of a mean over the seeds, or the "
    "confidence interval of the analysis. Open triangles: bounds, where not all runs exited or the value lies beyond "
    "the scan. ∅ on the axis: points without a value, as more than 2 % of their runs have none or, on a logarithmic "
    "axis, as it is not above its error."
)

Guide = Annotated[
    Annotated[float, Field(allow_inf_nan=False)] | None,
    Field(description="the slope of a line to compare with, on logarithmic axes."),
]


def line(
    ds: Data,
    analyses: ByName,
    *,
    y: Drawn = None,
    x: Horizontal = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    dash: Dash = None,
    log_axes: LogAxes = None,
    guide: Guide = None,
    reference: Published = (),
) -> Points:
    """Declare `y` against `x`; `guide` is the slope of a line on logarithmic axes.

    Axes that are not selected or drawn are fixed at their middle value, the time at the last one.
    """
    points = quantity_points(ds, analyses, y=y, x=x, where=where, panel=panel, hue=hue, dash=dash, log_axes=log_axes)
    return replace(points, guide=guide, published=reference)


FIGURES.add(chart_figure("line", line, CAPTION, needed))
