"""The rows of published values that stand in a part of a dataset, because their columns agree with its coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr

if TYPE_CHECKING:
    from sweeplib.engine.files.published import Reference, Value

CLOSE = 1e-6
"""Relative difference below which a number of a file and a number of a dataset are equal."""


def standing_in(file: Reference, subset: xr.Dataset, x: str) -> list[dict[str, Value]]:
    """Return the rows whose coordinates other than `x` agree with those of some point of a part of a dataset."""
    names = [name for name in file.columns if name != x and name in subset.coords]
    agreements: dict[tuple[Value, ...], bool] = {}
    rows = []
    for row in file.rows():
        place = tuple(row[name] for name in names)
        if place not in agreements:
            agreements[place] = bool(agreement(subset, {name: row[name] for name in names}).any())
        if agreements[place]:
            rows.append(row)
    return rows


def agreement(subset: xr.Dataset, values: Mapping[str, Value]) -> xr.DataArray:
    """Return a mask: where the coordinates of a dataset have these values."""
    agreed = (_agreed(subset.coords[name], value) for name, value in values.items())
    return reduce(and_, agreed, xr.DataArray(True))


def _agreed(coordinate: xr.DataArray, value: Value) -> xr.DataArray:
    return coordinate.copy(data=np.vectorize(lambda entry: is_same(value, entry), otypes=[bool])(coordinate.values))


def is_same(published: Value, value: Any) -> bool:
    """Return whether a value of a file is that of a dataset, up to rounding."""
    if isinstance(published, float) and isinstance(value, int | float | np.number | np.bool_):
        return bool(np.isclose(float(published), float(value), rtol=CLOSE, atol=0.0))
    return str(published) == str(value)
