"""Whether an axis of a figure is logarithmic, by the rules of `arrays`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sweeplib.engine.base.arrays import FAR_APART, WIDE, geometric, logarithmic, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.style import ENDS

MOST_TICKS = 8
"""The most values of an axis of cells that have a tick each."""


def is_log(axis: Literal["x", "y"], log_axes: Sequence[str] | None, by_values: bool) -> bool:
    """Return whether an axis is logarithmic: if it is one of `log_axes` or, without these (None), `by_values`."""
    return by_values if log_axes is None else axis in log_axes


def above_error(
    values: xr.DataArray, ds: xr.Dataset, ratio: float = WIDE, log_axes: Sequence[str] | None = None
) -> xr.DataArray:
    """Return a recorded quantity, or its means over seeds, for an axis y that is logarithmic above a range `ratio`.

    It is NaN where it is not above the error that a dataset has of it, in the mean: there is no logarithm to read off.
    With `log_axes` the axis is logarithmic if these contain "y".
    """
    if log_axes is not None and "y" not in log_axes:
        return values
    above = values
    for error in ds.data_vars.values():
        if error.attrs.get("error_of") == values.name:
            mean = error.mean([dim for dim in error.dims if dim not in values.dims])
            above = above.where(~(abs(values) <= mean))
    return above if log_axes is not None or wide(above.values, ratio) else values


def logarithmic_cells(places: np.ndarray) -> bool:
    """Return whether an axis of cells around the values `places` is logarithmic.

    It is also where the cell of the least positive value would otherwise reach down to zero.
    """
    values = np.unique(places[np.isfinite(places)].astype(float))
    reaches = len(values) > 1 and bool(0.0 < values[0] <= 0.5 * (values[1] - values[0]))
    return reaches or logarithmic(values)


def edges_of(values: np.ndarray, logarithmic: bool = False) -> np.ndarray:
    """Return the (n + 1,) edges of cells around `n` ascending values: their middles, also on a logarithmic axis.

    Edges beyond the doubles are the last ones.
    """
    places = np.log(values) if logarithmic else values
    if len(places) == 1:
        edges = np.array([places[0] - 0.5, places[0] + 0.5])
    else:
        middles = 0.5 * places[1:] + 0.5 * places[:-1]
        edges = np.concatenate([[2.0 * places[0] - middles[0]], middles, [2.0 * places[-1] - middles[-1]]])
    return np.exp(np.clip(edges, *(np.log(10.0) * np.array(ENDS)))) if logarithmic else edges


def logarithmic_along(places: xr.DataArray, dim: str) -> bool:
    """Return whether the axis of curves along `dim` is logarithmic: for each of them, or for their range together.

    places : the values of the axis, of all curves.
    """
    curves = places.transpose(..., dim).values.reshape(-1, places.sizes[dim])
    return wide(places.values) or all(map(logarithmic, curves))


def logarithmic_above_zero(places: np.ndarray) -> bool:
    """Return whether the values `places` of an axis are zero and others, evenly spaced on a logarithmic scale."""
    values = np.unique(places[np.isfinite(places)].astype(float))
    return bool(values.size and values[0] == 0.0) and geometric(values)


def logarithmic_time(times: xr.DataArray) -> bool:
    """Return whether an axis of times, or of steps until them, is logarithmic.

    It is, if the times are evenly spaced on that scale, or if some curves end much earlier than others.
    """
    ends = times.max("time")
    return geometric(np.unique(times.values)) or wide(np.atleast_1d(ends.values), FAR_APART)


def thinned(places: np.ndarray) -> list[float] | None:
    """Return those of the values `places` of an axis of cells that have a tick, every second, third, ..., of them.

    None if their numbers are long.
    """
    values = np.unique(places[np.isfinite(places)].astype(float))
    return few_short_values(values[:: max(1, -(-len(values) // MOST_TICKS))])


def few_short_values(places: np.ndarray, most: int = MOST_TICKS) -> list[float] | None:
    """Return the different values in `places`, of an axis, if each may have a tick; else None.

    They may if they are at most `most` and have three digits at most.
    """
    values = np.unique(places[np.isfinite(places)].astype(float)).tolist()
    return values if len(values) <= most and all(float(f"{value:.3g}") == value for value in values) else None
