"""What a reader may choose in an interactive plot: the quantities of both axes and their scales, the colours, seeds.

Below: colours, markers and dashes, as those of the figures, and of the classes of maps.

`declared` is the chart of the plot, `data` are its data; dims are the axes of its points. Objects for the page's script
are dicts of plain values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sweeplib.analysis.averages import numbered
from sweeplib.analysis.kit.labels import at_labels
from sweeplib.analysis.kit.rows import spread
from sweeplib.analysis.kit.variables import is_stochastic, stochastic
from sweeplib.engine.base.arrays import DECADE, WIDE, logarithmic, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.pictures.figures.kit.chart import Chart, along
from sweeplib.pictures.figures.kit.labels import dynamics_order, number
from sweeplib.pictures.figures.kit.quantities import bound_side
from sweeplib.pictures.figures.kit.scales import edges_of, few_short_values, logarithmic_cells, logarithmic_time
from sweeplib.pictures.figures.kit.style import COLOURS, INK
from sweeplib.pictures.report.mathematics import plain_label
from sweeplib.pictures.report.tables import heading, rounded
from sweeplib.statistics.lost_runs import has_run, values_of

FEW_TICKS = 5
"""The most values of an axis that have a tick each."""

MARKERS = ("circle", "square", "diamond", "inverted_triangle", "plus", "hexagon")
"""The markers of the values of a hue, in their order, by Bokeh's names."""
SHADES = ("#1b1f5e", "#1d5c8f", "#248f8a", "#6fb35c", "#e3b72f")
"""The colours of a sequence of values, from dark to light."""
DASHES = ("solid", "dashed", "dotted", "dotdash", "1 5", "12 4", "6 3 2 3 2 3", "10 3 4 3")
"""The dashes of dynamics in plots of curves, in their order: names of Bokeh, or lengths of dashes and gaps."""
OUTLINES = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "square": "M-4.5,-4.5h9v9h-9z",
    "diamond": "M0,-6L4.6,0L0,6L-4.6,0z",
    "inverted_triangle": "M0,5.5L5.4,-4.2H-5.4z",
    "plus": "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "hexagon": "M0,-5.5L4.8,-2.75V2.75L0,5.5L-4.8,2.75V-2.75z",
    "x": "M-4,-4L4,4M-4,4L4,-4",
    "cross": "M-5.5,0H5.5M0,-5.5V5.5",
    "asterisk": "M-5.5,0H5.5M0,-5.5V5.5M-4,-4L4,4M-4,4L4,-4",
    "y": "M0,0V5.5M0,0L-4.8,-2.8M0,0L4.8,-2.8",
    "line": "M-9,0H9",
    "cell": "M-6,-6h12v12h-12z",
}
"""The SVG paths of markers in legends, around (0, 0)."""
FILLS = (1.0, 0.0, 0.5, 0.25, 0.75)
"""How far the markers of stochastic dynamics are filled, in their order."""
CROSSES = ("x", "cross", "asterisk", "y")
"""The markers of deterministic dynamics, in their order."""
DASH_ARRAYS = {"solid": "", "dashed": "5 3", "dotted": "2 2", "dotdash": "2 2 5 2"}
"""The SVG dashes of lines in legends, by Bokeh's names; those without one are the same lengths."""


def cells(data: xr.Dataset, declared: Chart) -> dict[str, list[float]]:
    """Return the edges of a map's cells along each axis, as those of the static map."""

    def edges(name: str) -> list[float]:
        """Return the edges along one axis."""
        places = np.unique(data[name].values[np.isfinite(data[name].values)].astype(float))
        return edges_of(places, is_logarithmic(data, name, "map", declared)).tolist()

    return {"x": edges(declared.x), "y": edges(declared.y)}


def ticks_of_cells(places: xr.DataArray) -> dict[str, Any] | None:
    """Return the places and texts of the ticks of cells around the values `places`, if these are few; else None."""
    values = few_short_values(places.values)
    return None if values is None else {"places": values, "texts": [plain_label(number(place)) for place in values]}


def few_ticks(values: xr.DataArray) -> list[float] | None:
    """Return the different values of an axis as places of its ticks, if there are few; else None."""
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
    """Return whether the axis of the variable `name` is logarithmic: as that of the picture is, if there is no zero.

    kind : that of the plot: points, curves, cloud or map.
    """
    values = data[name]
    if kind == "cloud" or not (kind == "map" or positive(values)):
        return False
    if declared.log_axes is not None and name in (declared.x, declared.y):
        return ("x" if name == declared.x else "y") in declared.log_axes
    if kind == "map":
        return logarithmic_cells(values.values)
    if name not in data.coords:
        return not (values == 0).any() and wide(values.values, WIDE if kind == "points" else DECADE)
    return logarithmic_places(values)


def logarithmic_places(values: xr.DataArray) -> bool:
    """Return whether the axis of a coordinate is logarithmic: not with a value at or below zero, else by their spacing.

    `logarithmic` decides, along the time `logarithmic_time`; NaN does not count.
    """
    if (values <= 0).any():
        return False
    return logarithmic_time(values) if "time" in values.dims else logarithmic(values.values)


MOST_RUNS = 150_000
"""The largest number of values of single runs in one plot of the page."""
DESCRIBING = ("_error", "_low", "_high")
"""The ends of names of variables that describe another one."""
STATISTICS = ("_mean", "_median")
"""The ends of names of statistics of recorded variables."""
RUN_DIGITS = 5
"""The digits of values of single runs in the page."""


def horizontal(data: xr.Dataset, declared: Chart, dims: Sequence[str]) -> list[str]:
    """Return the coordinates for the horizontal axis, the declared one first: numbers that vary along the axes."""
    if declared.z or declared.xs is not None:
        return list(dict.fromkeys([declared.x, *(declared.xs or ())]))
    names = [str(name) for name in (*dims, *data.coords) if name not in ("seed", "dynamics")]
    fits = [
        name for name in names if _are_numbers(data[name]) and set(data[name].dims) <= set(dims) and data[name].ndim
    ]
    several = [name for name in fits if len(np.unique(data[name].values)) > 1]
    return list(dict.fromkeys([declared.x, *several]))


def vertical(data: xr.Dataset, declared: Chart, dims: Sequence[str]) -> list[str]:
    """Return the quantities for the vertical axis, the declared one first: numbers along the same axes."""
    if declared.z or declared.ys is not None:
        return list(dict.fromkeys([declared.y, *(declared.ys or ())]))
    described = {str(data[name].attrs.get(key)) for name in data.data_vars for key in ("bound", "theory", "fit")}
    fits = [
        str(name)
        for name, array in data.data_vars.items()
        if _are_numbers(array)
        and set(array.dims) == set(data[declared.y].dims)
        and name not in described
        and not str(name).endswith(DESCRIBING)
        and not str(name).startswith("seeds_")
    ]
    return list(dict.fromkeys([declared.y, *fits]))


def _are_numbers(array: xr.DataArray) -> bool:
    return array.dtype.kind in "fiu" and "flag_meanings" not in array.attrs


def columns_of(data: xr.Dataset, name: str) -> list[str]:
    """Return a quantity and the variables that describe it: its uncertainty, its theory, whether it is a bound."""
    attrs = data[name].attrs
    more = [str(attrs[key]) for key in ("bound", "theory", "fit") if key in attrs]
    wanted = [name, *(f"{name}{end}" for end in DESCRIBING), *more]
    return [column for column in wanted if column in data.variables]


def horizontal_choice(data: xr.Dataset, name: str, declared: Chart) -> dict[str, Any]:
    """Return the object for the page's script of a coordinate `name` for the horizontal axis."""
    axis = along(data, name)
    is_declared = axis == along(data, declared.x)
    kind = declared.kind if is_declared else "curves" if axis == "time" else "points"
    return _choice(data, name, kind, declared) | {
        "along": axis,
        "kind": kind,
        "joined": axis != POINT,  # neighbours along x may be rows of other problems
        "ticks": few_ticks(data[name]) if positive(data[name]) else None,
    }


def _choice(data: xr.Dataset, name: str, kind: str, declared: Chart) -> dict[str, Any]:
    """Return the name and the label of a variable for an axis, whether that is logarithmic, and whether it may be."""
    log, label = is_logarithmic(data, name, kind, declared), plain_label(heading(data[name]))
    return {"name": name, "label": label, "log": log, "positive": positive(data[name])}


def vertical_choice(data: xr.Dataset, name: str, names: set[str], declared: Chart) -> dict[str, Any]:
    """Return the object for the page's script of a quantity `name` for the vertical axis; `names` are all columns."""
    theory = theory_of(data, name, declared)
    described = description(data, name, names) | {"theory": theory if theory in names else None, "ticks": None}
    return _choice(data, name, declared.kind, declared) | described


def mask_of(data: xr.Dataset, value: str) -> tuple[np.ndarray, int]:
    """Return which points (flat) have a value of the variable `value`, and the number of those with runs but without.

    A flag, such as 'undecided', is no value without runs.
    """
    run = data["runs"] != "none"
    present = data[value] != "" if data[value].dtype.kind == "U" else data[value].notnull()
    present = present & run if "flag_meanings" in data[value].attrs else present
    return present.values.ravel(), int((~present & run).sum())


def theory_of(data: xr.Dataset, name: str, declared: Chart) -> str | None:
    """Return the variable of the theory, or of the fit, of a quantity `name`; None without one."""
    attrs = data[name].attrs
    return declared.theory if name == declared.y and declared.theory else attrs.get("theory", attrs.get("fit"))


def description(data: xr.Dataset, name: str, names: set[str]) -> dict[str, Any]:
    """Return which of the columns `names` are the error, the ends of the interval and the bound of a quantity, as JSON.

    None for those that are no columns. `side` is that on which the bounds are.
    """
    ends, bound = [f"{name}_low", f"{name}_high"], data[name].attrs.get("bound")
    return {
        "error": f"{name}_error" if f"{name}_error" in names else None,
        "interval": ends if set(ends) <= names else None,
        "bound": bound if bound in names else None,
        "side": bound_side(data[name]),
    }


def samples(
    dataset: xr.Dataset, data: xr.Dataset, names: Sequence[str], dims: Sequence[str], mask: np.ndarray
) -> tuple[dict[str, str], dict[str, list[list[float | None]]], list[str]]:
    """Return the values of the single runs behind the quantities `names` at the points of a mask, if there is room.

    First the recorded variable of each quantity that has one, then for each such variable a list over the seeds for
    each point, None where a run has no value, then notes about what was left out. Deterministic dynamics have none.
    dataset : the runs. data : those of the plot. mask : of the points along `dims`, flat, that the plot has.
    """
    behind = {name: recorded for name in names if (recorded := _recorded_name(dataset, name, dims)) is not None}
    values: dict[str, list[list[float | None]]] = {}
    room, excess = MOST_RUNS, 0
    noisy = spread(stochastic(data) if "dynamics" in dims else xr.DataArray(True), data, dims)[mask]
    for name in dict.fromkeys(behind.values()):
        number = int(noisy.sum()) * dataset.sizes["seed"]
        if number > room:
            excess = max(excess, number)
            continue
        room -= number
        values[name] = _runs(dataset, data, name, dims, mask, noisy)
    notes = [
        f"The seeds of single points are not in this page: {excess:,} values are more than {MOST_RUNS:,}; "
        "the stored data have all."
    ] * bool(excess)
    return {name: recorded for name, recorded in behind.items() if recorded in values}, values, notes


def _recorded_name(dataset: xr.Dataset, name: str, dims: Sequence[str]) -> str | None:
    """Return the recorded variable of single runs that a quantity summarises, None if there is none."""
    if "seed" in dims:
        return None
    for end in ("", *STATISTICS):
        stem = name.removesuffix(end)
        if name.endswith(end) and stem in dataset.data_vars and "seed" in dataset[stem].dims:
            return stem if set(map(str, dataset[stem].dims)) <= {*dims, "seed", "time"} else None
    return None


def _runs(
    dataset: xr.Dataset, data: xr.Dataset, name: str, dims: Sequence[str], mask: np.ndarray, noisy: np.ndarray
) -> list[list[float | None]]:
    """Return the recorded variable `name` of single runs (points, seeds), an empty list at points without noise.

    Seeds after the last one that was requested of a point are left out.
    mask : of the points along `dims`, flat, that the plot has; noisy : which of these are of a stochastic dynamics.
    """
    values, number = numbered(values_of(dataset, name)), xr.DataArray(np.arange(dataset.sizes["seed"]) + 1, dims="seed")
    if "time" in values.dims and "time" not in dims:
        values = values.sel(time=data["time"].item()) if "time" in data.coords else values.isel(time=-1)
    requested = xr.where(has_run(dataset), number, 0).max("seed")

    def at_points(array: xr.DataArray) -> np.ndarray:
        """Return an array at the points of the mask, with its axis of seeds if it has one."""
        array = at_labels(array, {dim: data[dim].values for dim in dims if dim in array.dims and dim in data.coords})
        whole = array.expand_dims({dim: data.sizes[dim] for dim in dims if dim not in array.dims})
        whole = whole.transpose(*dims, ...)
        return whole.values.reshape(-1, *whole.shape[len(dims) :])[mask]

    rows, counts = at_points(values), np.nan_to_num(at_points(requested)).astype(int)
    return [
        rounded(row[:count], RUN_DIGITS) if is_noisy else []
        for row, count, is_noisy in zip(rows, counts, noisy, strict=True)
    ]


@dataclass(frozen=True)
class Look:
    """The look of one value of an axis, each part None if the axis does not set it; `filled` is a fraction."""

    color: str | None = None
    marker: str | None = None
    filled: float | None = None
    dash: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def over(self, hue: Look) -> Look:
        """Return this look with the colour of a hue, and with the hue's marker if this look has none."""
        return replace(self, color=hue.color, marker=self.marker or hue.marker)

    @property
    def swatch(self) -> dict[str, str]:
        """Return the attributes of the SVG path that represents the look in a legend."""
        colour = self.color or INK
        shape = "line" if self.dash or self.marker == "line" else self.marker or "circle"
        filled = 0.0 if shape in (*CROSSES, "line") else 1.0 if self.filled is None else self.filled
        dash = {"stroke-dasharray": DASH_ARRAYS.get(self.dash, self.dash)} if self.dash and self.dash != "solid" else {}
        tint = {"fill-opacity": f"{filled:g}"} if 0.0 < filled < 1.0 else {}
        return {"d": OUTLINES[shape], "stroke": colour, "fill": colour if filled else "none"} | tint | dash


def hue_looks(names: Sequence[str], kind: str, colors: Mapping[str, str]) -> list[Look]:
    """Return the looks of the values of a hue: from `colors` by name, else the figures' looks, else a sequence.

    kind : that of the plot: points, curves, cloud or map.
    """
    number = len(names)
    if set(names) <= set(colors):
        return [Look(colors[name], _marker(kind, "circle")) for name in names]
    if number > len(COLOURS):
        return [Look(color, _marker(kind, "circle")) for color in sequence(number)]
    return [Look(color, _marker(kind, marker)) for color, marker in zip(COLOURS[:number], MARKERS, strict=False)]


def sequence(number: int) -> list[str]:
    """Return `number` colours from dark to light, distinguishable in grey: SHADES, linearly interpolated."""
    places = np.linspace(0.0, len(SHADES) - 1.0, number)
    channels = [[int(shade[at : at + 2], 16) for shade in SHADES] for at in (1, 3, 5)]
    mixed = np.rint([np.interp(places, range(len(SHADES)), channel) for channel in channels]).astype(int)
    return ["#" + "".join(f"{channel:02x}" for channel in colour) for colour in mixed.T]


def _marker(kind: str, marker: str) -> str:
    """Return the marker of a hue in a legend: a cell for maps, a line for curves, else `marker`."""
    return {"map": "cell", "curves": "line"}.get(kind, marker)


def dynamics_looks(names: Sequence[str], kind: str) -> list[Look]:
    """Return the looks of dynamics, as in figures: stochastic ones filled, open, filled in part; crosses for others.

    For curves they are dashes, in the same order.
    """
    order = dynamics_order(names)
    if kind == "curves":
        return [Look(dash=DASHES[order.index(name) % len(DASHES)]) for name in names]
    crosses = [name for name in order if not is_stochastic(name)]
    return [
        Look(filled=FILLS[order.index(name) % len(FILLS)])
        if is_stochastic(name)
        else Look(marker=CROSSES[crosses.index(name) % len(CROSSES)])
        for name in names
    ]
