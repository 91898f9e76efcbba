"""An observable, averaged over the seeds, against the number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib.figures.curves import Curves, chosen_curves, drawn_curves
from sweeplib.figures.figure import FIGURES, Figure

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean of an observable over the seeds, with its standard error, against the number of steps; by default the cosine "
    "of each teacher direction and the span of the students. Points at which more than 2 % of the runs have no value "
    "are left out."
)


def observable_curves(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
    line: str | None = None,
    observable: str | None = None,
) -> Drawing:
    """Return the figure; axes that are not selected or drawn are fixed at their middle value."""
    curves = _arranged(ds, analyses, where=where, panel=panel, hue=hue, line=line, observable=observable)
    return drawn_curves(analyses["averages"], curves, "steps")


def _arranged(_: xr.Dataset | Outline, analyses: Mapping[str, xr.Dataset | Outline], **choice: Any) -> Curves:
    return chosen_curves(analyses["averages"], {"time"}, **choice)


FIGURES.register(
    "observable_curves",
    Figure("observable_curves", observable_curves, CAPTION, needs=("averages",), arrange=_arranged),
)
