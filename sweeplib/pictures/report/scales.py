"""The axes of interactive plots: their ranges, their ticks, whether they are logarithmic, the edges of cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import DECADE, WIDE, logarithmic, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.chart import Chart
from sweeplib.pictures.figures.kit.labels import number
from sweeplib.pictures.figures.kit.scales import LOGARITHM_OF, edges_of, few, logarithmic_time
from sweeplib.pictures.report.mathematics import plain_label
from sweeplib.pictures.report.tables import capital, heading

FEW_TICKS = 5


def cells(data: xr.Dataset, declared: Chart) -> dict[str, list[float]]:
    """Return the edges of a map's cells along each axis, as those of the static map."""
    places = {axis: data[name].values.astype(float) for axis, name in (("x", declared.x), ("y", declared.y))}
    return {axis: edges_of(np.unique(along[np.isfinite(along)])).tolist() for axis, along in places.items()}


def ticks_of_cells(places: xr.DataArray) -> dict[str, Any] | None:
    """Return the places and texts of the ticks of cells, and the axis label, if there are few values; else None.

    Where the places are logarithms, the texts and the label are those of the quantity itself.
    """
    centres = np.unique(places.values[np.isfinite(places.values)].astype(float))
    of = places.attrs.get(LOGARITHM_OF)
    values = few(centres if of is None else np.array([float(f"{10.0**place:.9g}") for place in centres]))
    if values is None:
        return None
    label = heading(places) if of is None else capital(of)
    texts = [plain_label(number(value)) for value in values]
    return {"places": centres.tolist(), "texts": texts, "label": plain_label(label)}


def few_ticks(values: xr.DataArray) -> list[float] | None:
    """Return the values as ticks if there are few of them; otherwise None."""
    distinct = np.unique(values.values[np.isfinite(values.values)])
    return distinct.tolist() if len(distinct) <= FEW_TICKS else None


def range_of(numbers: xr.DataArray) -> list[float] | None:
    """Return the least and the largest number; None if there are none."""
    if numbers.dtype.kind not in "fiu" or not (finite := numbers.values[np.isfinite(numbers.values)]).size:
        return None
    return [float(finite.min()), float(finite.max())]


def positive(values: xr.DataArray) -> bool:
    """Return whether an axis may be logarithmic: numbers, of which some are positive and none is negative."""
    return values.dtype.kind in "fiu" and bool((values > 0).any()) and not bool((values < 0).any())


def is_logarithmic(data: xr.Dataset, name: str, kind: str, declared: Chart) -> bool:
    """Return whether the axis of a variable is logarithmic: as that of the picture is, if there is no zero."""
    values = data[name]
    if kind in ("map", "cloud") or not positive(values):
        return False
    if declared.log_axes is not None and name in (declared.x, declared.y):
        return ("x" if name == declared.x else "y") in declared.log_axes
    if (values == 0).any():
        return False
    if name not in data.coords:
        return wide(values.values, WIDE if kind == "points" else DECADE)
    return logarithmic_places(values)


def logarithmic_places(values: xr.DataArray) -> bool:
    """Return whether the axis of a coordinate is logarithmic; none with a zero is."""
    if not (values > 0).all():
        return False
    return logarithmic_time(values) if "time" in values.dims else logarithmic(values.values)
