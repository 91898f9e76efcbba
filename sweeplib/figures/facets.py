"""Which axes of a dataset become panels and colours, for figures that draw the others along their own axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.errors import InputError
from sweeplib.figures.labels import dynamics_order

if TYPE_CHECKING:
    import xarray as xr

PANELS_FIRST = ("Delta", "p", "k", "threshold", "activation")
MOST_PANELS, MOST_HUES = 6, 6


@dataclass(frozen=True)
class Facets:
    """The axes drawn as panels and as colours; None where there is none."""

    panel: str | None
    hue: str | None

    def panels(self, ds: xr.Dataset) -> list[dict[str, int]]:
        """The selection (for isel) of each panel."""
        return _selections(ds, self.panel)

    def hues(self, ds: xr.Dataset) -> list[dict[str, int]]:
        """The selection (for isel) of each colour."""
        return _selections(ds, self.hue)


def selected(ds: xr.Dataset, where: Mapping[str, Any] | None) -> xr.Dataset:
    """The dataset at the values of `where`, axis by axis; a list of values leaves an axis of them.

    InputError for another axis or value.
    """
    for axis, value in (where or {}).items():
        if axis not in ds.dims:
            raise InputError("no such axis", key=f"where.{axis}", value=axis, choices=[str(dim) for dim in ds.dims])
        several = isinstance(value, list | tuple)
        places = [_place(ds, axis, one) for one in (value if several else [value])]
        ds = ds.isel({axis: places if several else places[0]})
    return ds


def _place(ds: xr.Dataset, axis: str, value: Any) -> int:
    known = ds[axis].values
    match = np.isclose(known, value, rtol=1e-9) if known.dtype.kind in "fiu" else known == value
    if not match.any():
        raise InputError("not on this axis", key=f"where.{axis}", value=value, expected=f"one of {known.tolist()}")
    return int(np.argmax(match))


def facets(ds: xr.Dataset, drawn: set[str], panel: str | None = None, hue: str | None = None) -> Facets:
    """The panel and hue axes among the dims of `ds` longer than one that are not `drawn` along an axis of the figure.

    Noise, widths, thresholds become panels first, dimensions and rates colours. InputError, with what to do, when more
    than two axes are left, or more values than can be told apart.
    """
    free = [str(dim) for dim in ds.dims if dim not in drawn and ds.sizes[dim] > 1]
    for key, asked in (("panel", panel), ("hue", hue)):
        if asked is not None and asked not in free:
            raise InputError("no such axis to draw", key=key, value=asked, choices=free)
    rest = [dim for dim in free if dim not in (panel, hue)]
    if panel is None and hue is None and len(rest) == 1:
        hue = rest.pop()
    if panel is None and rest:
        panel = next((dim for dim in PANELS_FIRST if dim in rest), rest[0])
        rest.remove(panel)
    if hue is None and rest:
        hue = rest.pop(0)
    if rest:
        raise InputError("too many axes for one figure", key="where", value=rest, expected="a value for each")
    _check_number(ds, "panel", panel, MOST_PANELS)
    _check_number(ds, "hue", hue, MOST_HUES)
    return Facets(panel, hue)


def at_middle(ds: xr.Dataset, drawn: set[str], panel: str | None = None, hue: str | None = None) -> xr.Dataset:
    """The dataset with at most a panel and a hue axis left beside those `drawn`; the others stand at their middle.

    The shortest axes are kept, of those not asked for.
    """
    free = sorted((str(dim) for dim in ds.dims if dim not in drawn | {panel, hue}), key=lambda dim: ds.sizes[dim])
    room = [panel, hue].count(None)
    kept = [dim for dim in free if 1 < ds.sizes[dim] <= MOST_PANELS][:room]
    return ds.isel({dim: ds.sizes[dim] // 2 for dim in free if dim not in kept})


def used_dynamics(data: xr.Dataset) -> list[str]:
    """The dynamics of which some run is used (`seeds_used`) in this part, stochastic ones first."""
    used = data["seeds_used"].sum([dim for dim in data["seeds_used"].dims if dim != "dynamics"]) > 0
    return dynamics_order(data["dynamics"].values[used.values])


def each(ds: xr.Dataset, selections: list[dict[str, int]]) -> Iterator[tuple[int, xr.Dataset]]:
    """Number and part of the dataset for each selection."""
    for index, selection in enumerate(selections):
        yield index, ds.isel(selection)


def _selections(ds: xr.Dataset, dim: str | None) -> list[dict[str, int]]:
    return [{}] if dim is None else [{dim: index} for index in range(ds.sizes[dim])]


def _check_number(ds: xr.Dataset, key: str, dim: str | None, most: int) -> None:
    if dim is not None and ds.sizes[dim] > most:
        expected = f"at most {most} values; give `where` one of {dim}, or draw another axis as {key}"
        raise InputError(f"too many values of {dim}", key=key, value=ds.sizes[dim], expected=expected)
