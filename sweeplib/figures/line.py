"""A quantity against an axis of the sweep, as curves with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from sweeplib.figures.curves import (
    Curves,
    chosen_curves,
    curve_panels,
    draw_curves,
    finish_curves,
    guide_entry,
    interactive_curves,
)
from sweeplib.figures.figure import FIGURES, Dash, Drawn, Figure, Horizontal, Hue, Panel, Published, Where
from sweeplib.figures.quantities import quantity, with_requests
from sweeplib.figures.references import check_references, references

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.figures.interactive import Interactive
    from sweeplib.storage.outline import Outline

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
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    y: Drawn = None,
    x: Horizontal = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    dash: Dash = None,
    guide: Guide = None,
    reference: Published = (),
) -> Drawing:
    """Return the figure of `y` against `x`; `guide` is the slope of a line on logarithmic axes.

    Axes that are not selected or drawn are fixed at their middle value, the time at the last one.
    """
    curves = _arranged(
        ds, analyses, y=y, x=x, where=where, panel=panel, hue=hue, dash=dash, guide=guide, reference=reference
    )
    found = with_requests(analyses[curves.analysis], curves.variable, ds)
    data = curves.split.selected(found)
    panels = curve_panels(data, curves)
    published = references(reference, curves.x, curves.variable)
    draw_curves(panels, data, curves, guide=guide, published=published)
    slope = [] if guide is None else [guide_entry(guide)]
    finish_curves(panels, data, curves, slope, published.entries())
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    guide: float | None,
    reference: Sequence[str],
    **choice: Any,
) -> Curves:
    curves = chosen_curves(ds, analyses, **choice)
    check_references(reference, curves.x, curves.variable, analyses[curves.analysis], curves.split)
    return curves


def _interactive(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], **options: Any) -> Interactive:
    curves = _arranged(ds, analyses, **options)
    return interactive_curves(curves, analyses, curves.variable)


def _needs(*, y: str | None, **_: Any) -> tuple[str, ...]:
    return (quantity(y).analysis,)


FIGURES.register("line", Figure("line", line, CAPTION, needs=_needs, arrange=_arranged, interactive=_interactive))
