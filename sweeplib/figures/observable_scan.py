"""An observable after a number of steps, averaged over the seeds, against an axis of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.figures.curves import Curves, chosen_curves, drawn_curves
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean of an observable over the seeds at one time, by default the last, with its standard error, against an axis "
    "of the sweep. Points at which more than 2 % of the runs have no value are left out."
)
NO_AXIS = frozenset({"dynamics", "teacher", "threshold", "time"})
"""Axes that the horizontal axis is not by default."""


def observable_scan(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    x: str | None = None,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
    line: str | None = None,
    observable: str | None = None,
    guide: float | None = None,
) -> Drawing:
    """Return the figure against `x`, by default the longest axis of numbers; `guide` is the slope of a line.

    Times are those of `where`, otherwise the last. Other axes that are not selected or drawn are fixed at their middle
    value.
    """
    along, curves = _arranged(
        ds, analyses, x=x, where=where, panel=panel, hue=hue, line=line, observable=observable, guide=guide
    )
    return drawn_curves(analyses["averages"], curves, along, guide=guide)


def _arranged(
    _: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    x: str | None,
    where: Mapping[str, Any] | None,
    guide: float | None,
    **choice: Any,
) -> tuple[str, Curves]:
    outline = outline_of(analyses["averages"])
    along = scanned_axis(outline, x)
    timed = "time" in (along, choice.get("panel"), choice.get("hue"), choice.get("line"))
    if not timed and "time" not in (where or {}):
        where = {**(where or {}), "time": outline.axes["time"][-1]}
    return along, chosen_curves(outline, {along}, where=where, **choice)


def scanned_axis(outline: Outline, x: str | None) -> str:
    """Return the axis x, by default the longest axis of numbers; InputError if there is none."""
    numeric = [name for name, values in outline.axes.items() if not any(isinstance(value, str) for value in values)]
    fits = [name for name in numeric if outline.sizes[name] > 1]
    if x is not None and x not in fits:
        raise InputError("no such axis of numbers", key="x", value=x, choices=fits)
    candidates = [name for name in fits if name not in NO_AXIS]
    if x is None and not candidates:
        raise InputError("no axis to draw against", expected="an axis of numbers in `grid`, of two values or more")
    return x or max(candidates, key=outline.sizes.__getitem__)


FIGURES.register(
    "observable_scan",
    Figure("observable_scan", observable_scan, CAPTION, needs=("averages",), arrange=_arranged),
)
