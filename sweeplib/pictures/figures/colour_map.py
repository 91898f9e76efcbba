"""A quantity as colours over two axes of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError, errors_at
from sweeplib.pictures.figures.figure import FIGURES, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import Facets, arranged, free_axes
from sweeplib.pictures.figures.kit.quantities import at_last_time, horizontal_axis, quantity

CAPTION = (
    "A quantity over two axes of the sweep. Arrows: bounds, where not all runs exited or the value may lie beyond "
    "the scan. ∅: points without a value, as more than 2 % (by default) of their runs have none, or "
    "that are not above their error, where the scale is logarithmic. Hatched: not run."
)
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
    their middle value; the time at the last one.
    """
    wanted = quantity(z, "z")
    outline, variable = wanted.outline(ds, analyses)
    over, split = _arranged(outline, x, y, where, panel)
    return Chart(
        x=over[0],
        y=over[1],
        z=variable,
        split=split,
        levels=(Level((Layer("cells", variable, x=over[0], up=over[1]),), log=False),),
        log_x=lambda _: False,
        size=(2.3, 3.4, 2.6),
        **{**wanted.chart_arguments(analyses, variable), "theory": None},
    )


def _arranged(
    outline: Outline, x: str | None, y: str | None, where: Mapping[str, Any] | None, panel: str | None
) -> tuple[tuple[str, str], Facets]:
    """Return the horizontal and the vertical axis, and the facets, with panels and without colours.

    The arguments are options of `colour_map`.
    """
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
    if "dynamics" in free_axes(outline, where) and panel != "dynamics":
        if panel is None:
            panel = "dynamics"
        else:
            where = {**(where or {}), "dynamics": outline.axes["dynamics"][0]}
    split = arranged(outline, {across, up}, where, panel, most=1)
    return (across, up), Facets(split.at, split.panel or split.hue, None, split.titled)


def needed(*, z: str | None, **_: Any) -> tuple[str, ...]:
    """Return the analysis of the quantity `z`."""
    return (quantity(z, "z").analysis,)


FIGURES.add(chart_figure("map", colour_map, CAPTION, needed))
