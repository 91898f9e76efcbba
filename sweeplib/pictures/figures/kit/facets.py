"""The part of a dataset that a figure shows, and the axes that become panels and colours.

All choices depend only on the outline of a dataset, which is known before anything is computed. `where`, `panel` and
`hue` are options of figures: values at which axes are fixed, and the axes of panels and colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT, places_in
from sweeplib.engine.storage.dataset.outline import Outline, fixed_axes, outline_of
from sweeplib.errors import InputError, errors_under
from sweeplib.pictures.figures.kit.labels import dynamics_order, value_label

if TYPE_CHECKING:
    Array = TypeVar("Array", xr.Dataset, xr.DataArray)

PANELS_FIRST = ("Delta", "p", "k", "threshold", "activation", SWEEP)
"""The axes that are panels rather than colours, the first first."""
MOST_PANELS, MOST_HUES = 6, 6
PLACES_A_ROW, PLACES_OF_ALL = 10, 1000
"""Columns of a table may be axes if these have no more places than so many for each row, or so many in all."""
TIMES = 4
"""The number of times that are drawn as panels by default."""
SELECTED = frozenset({"dynamics", "seed"})
"""Axes that a figure draws but for which `where` may select one value."""


@dataclass(frozen=True)
class Facets:
    """How a figure uses the axes of its data.

    at : the index or indices selected along some axes.
    panel, hue : the axes drawn as panels and as colours, or None.
    titled : the axes with several values of which the figure's title gives the selected value.
    beside : an axis of which each panel has one for each value, or None.
    """

    at: Mapping[str, int | list[int]]
    panel: str | None = None
    hue: str | None = None
    titled: tuple[str, ...] = ()
    beside: str | None = None

    def selected(self, data: Array) -> Array:
        """Return the data at the selected indices `at`."""
        return data.isel(self.at, missing_dims="ignore")

    def parts(self, data: xr.Dataset) -> Iterator[tuple[int, xr.Dataset]]:
        """Yield the number and the data of each panel; panels of `beside` count from that of the panel on."""
        for place, panel in numbered_parts(data, self.panel):
            for other, subset in numbered_parts(panel, self.beside):
                yield place * data.sizes.get(self.beside, 1) + other, subset

    def colours(self, subset: xr.Dataset) -> Iterator[tuple[int, xr.Dataset]]:
        """Yield the number and the data of each colour in a part."""
        return numbered_parts(subset, self.hue)

    def series(self, data: xr.Dataset) -> Iterator[tuple[int, int, xr.Dataset]]:
        """Yield the number of the panel, that of the colour, and the data of each colour in each panel."""
        return ((place, index, series) for place, subset in self.parts(data) for index, series in self.colours(subset))

    def title(self, ds: xr.Dataset) -> str:
        """Return the values selected along the axes that are not drawn: 'after 3 steps at $p$ = 4, $d$ = 300'."""
        counted = [dim for dim in self.titled if "clock" in ds[dim].attrs]
        after = [value_label(self.selected(ds[dim])) for dim in counted]
        others = [dim for dim in self.titled if dim not in counted]
        values = [value_label(self.selected(ds[dim]), ds[dim]) for dim in others]
        return " ".join([*after, *([f"at {', '.join(values)}"] if values else [])])


def arranged(
    data: xr.Dataset | Outline,
    drawn_axes: set[str],
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
    *,
    spare: bool = True,
    most: int = 2,
) -> Facets:
    """Return the facets of data in which the `drawn_axes` lie along an axis of the figure.

    `where` selects values of axes. Of the remaining axes, `panel` and `hue` become panels and colours. Where these are
    None, the shortest suitable axes are taken, `sweep` and those with several values in `where` first, preferably
    noise, widths and thresholds as panels, dimensions and rates as colours. With `spare`, axes beyond the number `most`
    are fixed at their middle value, but for those first ones; without it they are an InputError. InputError, with a
    remedy, for an unknown axis or value and for more values than are distinguishable.
    """
    outline = outline_of(data)
    at = _places(outline, drawn_axes, where or {})
    sizes = {dim: _size(at.get(dim), size) for dim, size in outline.sizes.items()}
    free = [dim for dim, size in sizes.items() if dim not in drawn_axes and size > 1]
    for key, axis in (("panel", panel), ("hue", hue)):
        if axis is not None and axis not in free:
            none = None if free else f"no `{key}`: the sweep has no other axis of several values"
            raise InputError("no such axis to draw", key=key, value=axis, choices=free, expected=none)
    if panel is not None and panel == hue:
        raise InputError("drawn twice", key="hue", value=hue, expected="another axis than panel")
    others = [dim for dim in free if dim not in (panel, hue)]
    if outline.split and POINT in others:
        key, expected = "panel" if hue else "hue", "another column of the table here, or a value of one in `where`"
        raise InputError("several points of the table have the same values", key=key, expected=expected)
    # axes that the reader did not choose take the room that is left
    room = most - sum(axis is not None for axis in (panel, hue))
    listed = [dim for dim in others if dim == SWEEP or isinstance(at.get(dim), list)]
    axes = _shortest(others, sizes, room, listed) if spare else others
    if len(axes) > room:
        raise InputError("too many axes for one figure", key="where", value=axes, expected="a value for each")
    remaining = [dim for dim in others if dim not in axes]
    if spared := [dim for dim in listed if dim in remaining]:
        raise InputError("no room for several values", key="where", value=spared, expected="one value for each")
    panel, hue = _assigned(axes, panel, hue)
    _check_number(sizes, "panel", panel, MOST_PANELS)
    _check_number(sizes, "hue", hue, MOST_HUES)
    at |= {dim: _middle(at.get(dim), outline.sizes[dim]) for dim in remaining}
    single = {dim: 0 for dim, size in sizes.items() if size == 1 and dim not in drawn_axes}
    titled = [dim for dim in at if dim not in drawn_axes and dim not in (panel, hue) and outline.sizes[dim] > 1]
    return Facets(single | at, panel, hue, tuple(titled))


def asked_columns(data: xr.Dataset | Outline, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a table of points that options make panels, colours or dashes, or that `where` fixes."""
    if POINT not in data.sizes:
        return ()
    names = [*map(options.get, ("panel", "hue", "dash")), *(options.get("where") or {})]
    return tuple(dict.fromkeys(name for name in names if name in outline_of(data).columns))


def by_columns(data: Any, names: tuple[str, ...]) -> Any:
    """Return a dataset, or its outline, with an axis for each of the columns `names` of a table of points.

    The axis of points numbers the rows that have the same values. Where there is no such row, nothing was run.
    InputError for columns of so many values that nearly all places would be empty.
    """
    if not names or POINT not in data.sizes:
        return data
    columns = outline_of(data).columns
    levels = [sorted(set(columns[name]), key=_rank) for name in names]
    if math.prod(map(len, levels)) > max(PLACES_A_ROW * len(columns[names[0]]), PLACES_OF_ALL):
        counts = " and ".join(f"{len(level):,} values of {name}" for name, level in zip(names, levels, strict=True))
        expected = "columns of fewer values, or one of them"
        raise InputError(f"too many for panels and colours: {counts}", expected=expected)
    rows: dict[tuple[int, ...], list[int]] = {}
    for row, values in enumerate(zip(*(columns[name] for name in names), strict=True)):
        place = tuple(level.index(value) for level, value in zip(levels, values, strict=True))
        rows.setdefault(place, []).append(row)
    most = max(map(len, rows.values()))
    if isinstance(data, Outline):
        axes = {**data.axes, **dict(zip(names, levels, strict=True)), POINT: range(most)}
        variables = {
            name: (name,) if name in names else (*dims, *names) if POINT in dims else dims
            for name, dims in data.variables.items()
        }
        return replace(data, axes=axes, variables=variables, columns={}, split=True)
    index = np.full((*map(len, levels), most), -1)  # −1: no row
    for place, numbers in rows.items():
        index[place][: len(numbers)] = numbers
    row_at = xr.DataArray(index, dims=(*names, POINT))
    dataset = data.drop_vars([*names, POINT], errors="ignore").isel({POINT: row_at.clip(0)})
    has_row = row_at >= 0
    filled = {name: value.where(has_row, _blank(value.dtype)) for name, value in dataset.items() if POINT in value.dims}
    dataset = dataset.assign(
        {name: value.transpose(..., *names, POINT).astype(dataset[name].dtype) for name, value in filled.items()}
    )
    axes = {name: (name, level, data[name].attrs) for name, level in zip(names, levels, strict=True)}
    return dataset.assign_coords({**axes, POINT: (POINT, np.arange(most), data[POINT].attrs)})


def _rank(value: Any) -> tuple[bool, Any]:
    """Return the key that sorts numbers before texts."""
    return isinstance(value, str), value


def _blank(dtype: np.dtype[Any]) -> Any:
    """Return the value, of a type of numbers or texts, that stands for what was not run."""
    return {"f": np.nan, "b": False, "i": 0, "u": 0}.get(dtype.kind, "")


def free_axes(outline: Outline, where: Mapping[str, Any] | None) -> set[str]:
    """Return the axes with more than one value that `where` does not fix at a single value."""
    return {dim for dim, size in outline.sizes.items() if size > 1} - fixed_axes(where)


def over_times(outline: Outline, drawn_axes: set[str], where: Mapping[str, Any]) -> Facets:
    """Return facets with a panel for each time of `where`, or for a few times from the first to the last.

    InputError for more times than panels, and for what `arranged` refuses.
    """
    times, chosen = outline.axes["time"], where.get("time")
    if isinstance(chosen, list | tuple) and len(chosen) > MOST_PANELS:
        expected = f"at most {MOST_PANELS}, a panel each"
        raise InputError("too many times", key="where.time", value=len(chosen), expected=expected)
    places = np.unique(np.linspace(0, len(times) - 1, TIMES).round().astype(int))
    where = {"time": [times[place] for place in places], **where}
    panel = "time" if "time" in free_axes(outline, where) else None
    return arranged(outline, drawn_axes, where, panel, most=1 if panel else 0)


def _places(outline: Outline, drawn_axes: set[str], where: Mapping[str, Any]) -> dict[str, int | list[int]]:
    """Return the indices of the values of `where` along each axis, a list where the axis stays, else a number.

    It stays if it has several of its values, or is among `drawn_axes`. InputError for a single value, not in a list, of
    a drawn axis other than dynamics and seed.
    """
    indices: dict[str, int | list[int]] = {}
    for axis, value in where.items():
        if axis not in outline.axes:
            raise InputError("no such axis", key=f"where.{axis}", value=axis, choices=outline.axes)
        several = isinstance(value, list | tuple)
        if axis in drawn_axes and axis not in SELECTED and not several:
            raise InputError("the figure draws this axis", key=f"where.{axis}", value=value, expected="a list, or none")
        places = _places_along(outline, axis, value if several else [value])
        indices[axis] = places if len(places) > 1 or axis in drawn_axes else places[0]
    return indices


def _places_along(outline: Outline, axis: str, values: Sequence[Any]) -> list[int]:
    """Return the indices of values along an axis, each once; InputError at their key for a value that it lacks."""
    if not values:
        raise InputError("no values of the axis", key=f"where.{axis}", value=values, expected="one at least")
    with errors_under("where"):
        return list(dict.fromkeys(places[0] for places in places_in(outline.axes[axis], axis, values)))


def _size(places: int | list[int] | None, size: int) -> int:
    """Return how many of the `size` values of an axis are selected by `places`; None selects all."""
    if places is None:
        return size
    return 1 if isinstance(places, int) else len(places)


def _middle(places: int | list[int] | None, size: int) -> int:
    """Return the middle one of the selected places on an axis of a size, or of all."""
    return places[len(places) // 2] if isinstance(places, list) else size // 2


def _shortest(axes: list[str], sizes: Mapping[str, int], room: int, first: list[str]) -> list[str]:
    """Return those of the `axes` that are drawn, at most `room`: the `first` ones, then the shortest.

    An axis of more values than are distinguishable is not drawn.
    """
    order = sorted(axes, key=lambda dim: (dim not in first, sizes[dim]))
    distinguishable = [dim for dim in order if sizes[dim] <= MOST_PANELS]
    return [dim for dim in axes if dim in distinguishable[:room]]


def _assigned(axes: list[str], panel: str | None, hue: str | None) -> tuple[str | None, str | None]:
    """Return the panel and hue axes; those that are None are chosen from `axes`, in which the others are not.

    The first of PANELS_FIRST is the panel. One axis alone is the hue, if neither panel nor hue is given.
    """
    free = list(axes)
    if panel is None and hue is None and len(free) == 1:
        return None, free[0]
    if panel is None and free:
        panel = next((dim for dim in PANELS_FIRST if dim in free), free[0])
        free.remove(panel)
    return panel, hue or next(iter(free), None)


def _check_number(sizes: Mapping[str, int], key: str, dim: str | None, most: int) -> None:
    """Raise InputError, at the key `panel` or `hue`, if its axis has more than `most` values."""
    if dim is not None and sizes[dim] > most:
        expected = f"at most {most} values; give `where` one of {dim}, or draw another axis as {key}"
        raise InputError(f"too many values of {dim}", key=key, value=sizes[dim], expected=expected)


def dynamics_where(mask: xr.DataArray) -> list[str]:
    """Return the dynamics for which a mask is true somewhere, stochastic ones first."""
    somewhere = mask.any([dim for dim in mask.dims if dim != "dynamics"])
    return dynamics_order(somewhere["dynamics"].values[somewhere.values])


def numbered_parts(ds: xr.Dataset, dim: str | None) -> Iterator[tuple[int, xr.Dataset]]:
    """Yield the number of each value of an axis and the part of the dataset there; without an axis all of it."""
    if dim is None:
        yield 0, ds
    else:
        yield from ((place, ds.isel({dim: place})) for place in range(ds.sizes[dim]))
