"""A quantity against an axis of the sweep, as curves with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from sweeplib.errors import InputError
from sweeplib.pictures.figures.figure import (
    FIGURES,
    Dash,
    Drawn,
    Horizontal,
    Hue,
    LogAxes,
    Panel,
    Published,
    Where,
    chart_figure,
)
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import MINUS
from sweeplib.pictures.figures.kit.points import DASHES
from sweeplib.pictures.figures.kit.quantities import at_last_time, horizontal_axis, quantity
from sweeplib.pictures.figures.kit.style import DIM

CAPTION = (
    "A quantity against an axis of the sweep or the steps; bars: the interval of the analysis, or the standard error "
    "of a mean over the seeds; an arrow at the edge: the interval has no end on that side. Arrows at points: bounds, "
    "where not all runs exited or the value may lie beyond the scan. ∅ on the axis: points without a value, as more "
    "than 2 % (by default) of their runs have none or, on a logarithmic axis, as it is not above zero, or its error."
)

GUIDE: dict[str, Any] = {"color": DIM, "linestyle": (0, (6, 2, 1, 2)), "linewidth": 0.9, "gid": "guide"}
"""The look of a line of a slope to compare with."""

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
) -> Chart:
    """Declare `y` against `x`; `guide` is the slope of a line on logarithmic axes.

    Axes that are not selected or drawn are fixed at their middle value, the time at the last one.
    """
    choice = {"where": where, "panel": panel, "hue": hue, "dash": dash}
    slopes = () if guide is None else (guide,)
    return quantity_chart(ds, analyses, y, x, choice, log_axes, guide=slopes, published=reference)


def quantity_chart(
    ds: Data,
    analyses: ByName,
    y: str | None,
    x: str | None,
    choice: Mapping[str, Any],
    log_axes: Sequence[str] | None = None,
    guide: tuple[float, ...] = (),
    **settings: Any,
) -> Chart:
    """Return the declaration of the quantity `y` against `x`; of outlines it lacks what only results say of it.

    `choice` are the options where, panel, hue and dash; `guide` the slopes of lines; `settings` other arguments of the
    chart. Other axes that are not selected or drawn are fixed at their middle value, the time at the last one.
    InputError for an unknown quantity, and for axes that cannot be drawn.
    """
    # axes: x, those of panels, colours and dashes, and those that are fixed
    wanted = quantity(y)
    outline, variable = wanted.outline(ds, analyses)
    if "dynamics" not in outline.sizes:
        raise InputError("not a quantity of single dynamics", key="y", value=y, expected="another one, or a map")
    coordinate, along = horizontal_axis(outline, x, choice)
    panel, hue, dash = map(choice.get, ("panel", "hue", "dash"))
    where = at_last_time(outline, choice["where"], along, panel, hue, dash)
    axes = {"dynamics", along}
    free = [dim for dim, size in outline.sizes.items() if size > 1 and dim not in axes]
    if dash is not None and dash not in free:
        raise InputError("no such axis to draw", key="dash", value=dash, choices=free)
    split = arranged(outline, axes | ({dash} if dash else set()), where, panel, hue)
    places = split.at.get(dash, range(outline.sizes[dash])) if dash else ()
    if not isinstance(places, int) and len(places) > len(DASHES):
        expected = f"at most {len(DASHES)} values; give `where` some of {dash}"
        raise InputError(f"too many values of {dash}", key="dash", value=len(places), expected=expected)
    slopes = [Layer("guide", slope, f"slope {slope:g}".replace("-", MINUS), look=GUIDE) for slope in guide]
    return Chart(
        x=coordinate,
        y=variable,
        kind="curves" if along == "time" else "points",
        split=split,
        dash=dash,
        log_axes=log_axes,
        **wanted.chart_arguments(analyses, variable, log_axes),
        **{"levels": (Level((Layer("joined", variable), *slopes)),), **settings},
    )


def needed(*, y: str | None, **_: Any) -> tuple[str, ...]:
    """Return the analysis of the quantity `y`."""
    return (quantity(y).analysis,)


FIGURES.add(chart_figure("line", line, CAPTION, needed))
