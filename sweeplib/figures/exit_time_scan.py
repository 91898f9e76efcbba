"""Mean exit time against any axis of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from sweeplib.figures.curves import Curves, chosen_curves, drawn_curves
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.observable_scan import scanned_axis
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean exit time over the seeds with its standard error, against an axis of the sweep. Where some runs did not exit "
    "before the last recording time or their time limit, the triangle is the restricted mean, a lower bound."
)

Unit = Literal["steps", "time"]


def exit_time_scan(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    x: str | None = None,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
    line: str | None = None,
    unit: Unit = "steps",
    guide: float | None = None,
) -> Drawing:
    """Return the figure against `x`, by default the longest axis of numbers; `guide` is the slope of a line.

    Exits are counted in SGD steps or, with the `unit` time, in the time of the ODE.
    """
    along, curves = _arranged(ds, analyses, x=x, where=where, panel=panel, hue=hue, line=line, unit=unit, guide=guide)
    return drawn_curves(analyses["exit_times"], curves, along, guide=guide)


def _arranged(
    _: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    x: str | None,
    unit: Unit,
    guide: float | None,
    **choice: Any,
) -> tuple[str, Curves]:
    outline, mean = outline_of(analyses["exit_times"]), f"exit_{unit}_mean"
    along = scanned_axis(outline.only(mean), x)
    measured = outline.with_variables({}, averaged=mean)
    return along, replace(chosen_curves(measured, {along}, observable=mean, **choice), bound="restricted")


FIGURES.register(
    "exit_time_scan", Figure("exit_time_scan", exit_time_scan, CAPTION, needs=("exit_times",), arrange=_arranged)
)
