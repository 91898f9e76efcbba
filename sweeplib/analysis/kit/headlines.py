"""The headlines of an analysis: its main numbers with their intervals, in words, for the end of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic

if TYPE_CHECKING:
    import xarray as xr

MOST = 3
"""The number of points that are put into words at the end of a command."""


def headlines(
    result: xr.Dataset, name: str, most: int = MOST, said: Callable[[xr.DataArray, xr.DataArray], str] | None = None
) -> list[str]:
    """Return lines about the variable `name` of an analysis, which has `<name>_low` and `<name>_high` beside it.

    Points whose interval ends at the edge of a scan (`at_edge`) are counted, not shown, as are those without an
    interval, for example of too few seeds. Stochastic dynamics come first. A point that the rest are compared with,
    with an interval of no width, is left out. A line says so if the variable is known nowhere. The attribute `needs`
    of the variable says what an interval needs. `said` puts a coordinate of a point,
    one of given values, into words, by default as a config does.
    """
    points = _points(result, name)
    decided = [point for point in points if point[f"{name}_low"] < point[f"{name}_high"] or point.get("at_edge")]
    inside = [point for point in decided if not point.get("at_edge")]
    inside.sort(key=lambda point: not _is_noisy(point))
    title = str(result[name].attrs["long_name"])
    needs = result[name].attrs.get("needs")
    needed = f"; it needs {needs}" if needs else ""
    if all(np.isnan(point[name].item()) for point in points):
        return [f"{title}: known at none of {len(points)} points{needed}"]
    lines = [f"{title} {_value(point, name)}{_place(result, point, said or _as_in_config)}" for point in inside[:most]]
    if len(inside) > most:
        lines.append(f"{title}: {len(inside) - most} more points in the report")
    if len(inside) < len(decided):
        count, edge = len(decided) - len(inside), "the interval ends at the edge of the scan"
        lines.append(f"{title}: at {count} of {len(decided)} points {edge}")
    if bare := sum(bool(np.isfinite(point[name]) & np.isnan(point[f"{name}_low"])) for point in points):
        lines.append(f"{title}: no interval at {bare} of {len(points)} points{needed}")
    return lines


def undecided_ends(ds: xr.Dataset) -> list[str]:
    """Return a line about each recorded number that some runs end with at or below the error recorded with it."""
    lines = []
    for error in ds.data_vars.values():
        name = error.attrs.get("error_of")
        if name in ds and set(error.dims) == {*ds["status"].dims, "time"}:
            last, bound = ds[name].isel(time=-1), error.isel(time=-1)
            if count := int((abs(last) <= bound).sum()):
                known = int((last.notnull() & bound.notnull()).sum())
                what = f"{count:,} of {known:,} runs end at or below its error, {error.name}"
                lines.append(f"{ds[name].attrs['long_name']}: {what}")
    return lines


def _value(point: xr.Dataset, name: str) -> str:
    """Return a number with its interval, if that is wider than the digits shown."""
    best, low, high = _rounded_variable(point, name)
    return f"{best} [{low}, {high}]" if low != high else best


def number_with_interval(point: xr.Dataset, name: str) -> str:
    """Return a number with its interval, `0.0948 [0.0904, 0.0992]`, or without one, `0.095 (no interval)`."""
    best, low, high = _rounded_variable(point, name)
    return f"{best} {interval_text(low, high)}"


def interval_text(low: str, high: str) -> str:
    """Return the text of an interval between the texts of two numbers, which are "nan" if there is none."""
    return "(no interval)" if "nan" in (low, high) else f"[{low}, {high}]"


def _rounded_variable(point: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the variable `name` of one point, and the ends of its interval, rounded."""
    return rounded_interval(*(point[f"{name}{end}"].item() for end in ("", "_low", "_high")))


def rounded_interval(best: float, low: float, high: float) -> Iterator[str]:
    """Yield the three numbers, rounded to two digits of the interval's width and at most five digits of their own.

    Without an interval, whose ends are NaN, to two digits of the number.
    """
    width = high - low if np.isfinite(high - low) else abs(best)
    digits = np.floor(np.log10([max(value, np.finfo(float).tiny) for value in (width, abs(best))])).astype(int)
    decimals = max(0, min(1 - digits[0], 4 - digits[1]))
    return (f"{value:.{decimals}f}" for value in (best, low, high))


def _points(result: xr.Dataset, name: str) -> list[xr.Dataset]:
    """Return a dataset for each point, with the variable `name`, its interval and `at_edge`."""
    dims = result[name].dims
    parts = result[[part for part in (name, f"{name}_low", f"{name}_high", "at_edge") if part in result]]
    places = product(*(range(result.sizes[dim]) for dim in dims))
    return [parts.isel(dict(zip(dims, place, strict=True))) for place in places]


def _is_noisy(one: xr.Dataset) -> bool:
    return "dynamics" in one.coords and is_stochastic(str(one["dynamics"].item()))


def _as_in_config(coordinate: xr.DataArray, _: xr.DataArray) -> str:
    value = coordinate.item()
    return str(value) if coordinate.name == "dynamics" else f"{coordinate.name} = {_text(value)}"


def _place(result: xr.Dataset, point: xr.Dataset, worded: Callable[[xr.DataArray, xr.DataArray], str]) -> str:
    """Return where a point is: its values along the dimensions with several, then its dynamics."""
    dims = [str(dim) for dim in result.dims if dim in point.coords and result.sizes[dim] > 1]
    values = ", ".join(worded(point[dim], result[dim]) for dim in dims if dim != "dynamics")
    dynamics = f" ({worded(point['dynamics'], result['dynamics'])})" if "dynamics" in point.coords else ""
    return (f" at {values}" if values else "") + dynamics


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
