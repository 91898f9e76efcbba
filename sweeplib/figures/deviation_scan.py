"""The largest deviation from a reference dynamics against an axis of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib.figures.curves import Curves, chosen_curves, drawn_curves
from sweeplib.figures.deviation import MEASURED, check_measured, measured_observables
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.observable_scan import scanned_axis
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean over the seeds of the largest deviation from the reference dynamics along runs with the same start, with its "
    "standard error, against an axis of the sweep."
)


def deviation_scan(
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

    `observable` is the risk by default; `overlaps` are all overlap matrices.
    """
    along, curves = _arranged(
        ds, analyses, x=x, where=where, panel=panel, hue=hue, line=line, observable=observable, guide=guide
    )
    return drawn_curves(analyses["deviation"], curves, along, guide=guide)


def _arranged(
    _: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    x: str | None,
    observable: str | None,
    guide: float | None,
    **choice: Any,
) -> tuple[str, Curves]:
    outline = outline_of(analyses["deviation"])
    known = measured_observables(outline)
    chosen = observable or ("risk" if "risk" in known else known[0])
    check_measured(outline, chosen)
    along = scanned_axis(outline.only(chosen + MEASURED), x)
    measured = outline.with_variables({}, averaged=" ".join(name + MEASURED for name in known))
    return along, chosen_curves(measured, {along}, observable=chosen + MEASURED, **choice)


FIGURES.register(
    "deviation_scan", Figure("deviation_scan", deviation_scan, CAPTION, needs=("deviation",), arrange=_arranged)
)
