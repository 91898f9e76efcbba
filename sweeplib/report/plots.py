"""Interactive plots: conversion of a declaration and labelled data to the data of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from sweeplib.figures.facets import PANELS_FIRST
from sweeplib.figures.interactive import Interactive
from sweeplib.figures.labels import axis_label
from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.report.looks import Look, dynamics_looks, hue_looks, sequence
from sweeplib.report.mathematics import plain_label
from sweeplib.report.runs import run_counts
from sweeplib.report.tables import MOST_CELLS, Column, Table, columns, heading, name_of

MOST_CHIPS = 40
LOG_SPAN = 8.0
FEW_TICKS = 5


@dataclass(frozen=True)
class Control:
    """A filter of a column: chips, which also serve as legend, or a menu, with the `labels` of its levels."""

    column: str
    label: str
    labels: list[str]
    looks: list[Look] | None = None
    chosen: int = 0
    html: str | None = None


@dataclass(frozen=True)
class Plot:
    """An interactive plot: its data as a table, its controls, and the specification for the page's script."""

    name: str
    title: str
    table: Table
    controls: list[Control] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        return {"table": self.table.json(), "spec": self.spec}


def interactive_plot(
    name: str,
    declared: Interactive,
    dataset: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    options: Mapping[str, Any],
) -> Plot:
    """Return the plot of a declaration; `options` of its figure choose the colours and the initial filters."""
    data = declared.labelled(dataset, analyses)
    data = data.expand_dims([name for name in (declared.x, declared.y) if name in data.coords and not data[name].dims])
    value = declared.z or declared.y
    drawn = _drawn(data, declared)
    dims = [str(dim) for dim in data[value].dims if dim not in drawn] + drawn
    data = data.drop_dims([str(dim) for dim in data.dims if dim not in dims])
    data = data.assign(runs=run_counts(dataset, data))
    data, notes = _thinned(data, dims, drawn[-1])
    names = _names(data, declared, dims)
    kept, left = _kept(data[[value, "runs"]].broadcast_like(data[value]).transpose(*dims), value)
    title = plain_label(declared.title or f"{name_of(data[value])} against {_lower(name_of(data[declared.x]))}")
    if kept.sum() * (len(dims) + len(names)) > MOST_CELLS:
        return Plot(name, title, Table(name, title, int(kept.sum())))
    table = Table(name, title, int(kept.sum()), columns(data, dims, names, kept))
    hue = _hue(data, declared, [dim for dim in dims if dim not in drawn], options)
    kind = "map" if declared.z else declared.kind
    controls = _controls(table.columns, dims, drawn, hue, kind, options.get("where") or {}, declared.colors)
    notes += [f"{left:,} {'point has' if left == 1 else 'points have'} runs but no value, and are not drawn."] * (
        left > 0
    )
    notes += _key(data, declared, names, kind)
    spec = _spec(table, declared, data, dims, drawn, controls, kind)
    return Plot(name, title, table, controls, notes, spec)


def _lower(label: str) -> str:
    return label if "$" in label else label.lower()


def _drawn(data: xr.Dataset, declared: Interactive) -> list[str]:
    """Return the axes along which the points of one series lie, that of x last."""
    along = [_axis(data, declared.x)]
    return along if declared.z is None else [_axis(data, declared.y), *along]


def _axis(data: xr.Dataset, name: str) -> str:
    """Return the axis of a coordinate: itself; for a derived one the time, or else no field of the problem."""
    if name in data.dims:
        return name
    dims = sorted(map(str, data[name].dims), key=lambda dim: (dim != "time", dim in PROBLEM_FIELDS, -data.sizes[dim]))
    return dims[0]


def _thinned(data: xr.Dataset, dims: list[str], x: str) -> tuple[xr.Dataset, list[str]]:
    """Return the data thinned along `x` to fit the page, with at least 40 values, and a note if any are left out."""
    size = data.sizes[x]
    stride = int(np.ceil(np.prod([data.sizes[dim] for dim in dims]) * 12 / MOST_CELLS))
    stride = min(stride, max(1, size // 40))
    if stride < 2:
        return data, []
    axis = axis_label(data[x])
    note = f"Thinned for this page: every {stride}th of the {size} values of {axis}; the stored data have all."
    return data.isel({x: slice(None, None, stride)}), [note]


def _names(data: xr.Dataset, declared: Interactive, dims: list[str]) -> list[str]:
    """Return the variables of a plot that the data have without further axes."""
    wanted = [declared.x] + ([declared.y] if declared.z else [])
    value = declared.z or declared.y
    more = [name for name in (data[value].attrs.get("bound"), declared.theory) if name]
    for name in (value, *declared.hover, *more):
        wanted += [name, f"{name}_error", f"{name}_low", f"{name}_high"]
    wanted += sorted(str(name) for name in data.data_vars if str(name).startswith("seeds_"))
    held = [name for name in wanted if name in data.variables and set(data[name].dims) <= set(dims)]
    return [*dict.fromkeys(name for name in held if name not in dims), "runs"]


def _kept(data: xr.Dataset, value: str) -> tuple[np.ndarray, int]:
    """Return which points have a value, and the number of points that have runs but no value."""
    known = data[value] != "" if data[value].dtype.kind == "U" else data[value].notnull()
    return known.values.ravel(), int((~known & (data["runs"] != "none")).sum())


def _key(data: xr.Dataset, declared: Interactive, names: list[str], kind: str) -> list[str]:
    """Return the meaning of bars, bands and dashed curves."""
    ends, notes = [f"{declared.y}_low", f"{declared.y}_high"], []
    drawn = "Band" if kind == "curves" else "Bars"
    if kind != "map" and set(ends) <= set(names):
        notes.append(f"{drawn}: {_interval(data)}.")
    elif kind != "map" and f"{declared.y}_error" in names:
        notes.append(f"{drawn}: one standard error to each side.")
    if declared.theory in names:
        notes.append(f"Dashed: {axis_label(data[declared.theory])}.")
    bound = data[declared.y].attrs.get("bound") if kind != "map" else None
    if bound in names and bool((data[bound] & data[declared.y].notnull()).any()):
        notes.append(f"Open triangles: {data[bound].attrs['reason']}.")
    lines = ", ".join(name for _, _, name in declared.lines)
    return notes + [f"Dashed lines: {lines}."] * bool(lines)


def _interval(data: xr.Dataset) -> str:
    """Return the meaning of the interval of the data: the attribute `interval`, or the `confidence`."""
    confidence = data.attrs.get("confidence")
    return str(data.attrs.get("interval", "interval" if confidence is None else f"{100 * confidence:g} % interval"))


def _hue(data: xr.Dataset, declared: Interactive, free: list[str], options: Mapping[str, Any]) -> str | None:
    """Return the column of the colours: the quantity of a map, the requested axis, or the figures' first axis."""
    if declared.z:
        return declared.z
    free = [dim for dim in free if dim != "dynamics" and 1 < data.sizes[dim] <= MOST_CHIPS]
    wanted = options.get("hue") or declared.hue
    if wanted in free:
        return wanted
    chosen = next((dim for dim in free if dim not in PANELS_FIRST), next(iter(free), None))
    return chosen or ("dynamics" if data.sizes.get("dynamics", 1) > 1 else None)


def _controls(
    held: list[Column],
    dims: list[str],
    drawn: list[str],
    hue: str | None,
    kind: str,
    where: Mapping[str, Any],
    colors: Mapping[str, str],
) -> list[Control]:
    found = []
    for column in held:
        levels = column.levels or []
        if column.name == hue and levels:
            names = [str(level) for level in levels]
            coloured = hue_looks(names, kind, colors)
            if hue == "dynamics":
                coloured = [look.over(hue) for look, hue in zip(dynamics_looks(names, kind), coloured, strict=True)]
            found.append(Control(column.name, column.label, column.labels or [], coloured, html=column.html))
        elif column.name in dims and column.name not in drawn and len(levels) > 1:
            dynamics = column.name == "dynamics" and kind != "map"
            looks = dynamics_looks([str(level) for level in levels], kind) if dynamics else None
            chosen = _chosen(levels, where.get(column.name))
            found.append(Control(column.name, column.label, column.labels or [], looks, chosen, column.html))
    return sorted(found, key=lambda control: control.looks is None)


def _chosen(levels: list[Any], wanted: Any) -> int:
    if isinstance(wanted, int | float) and all(isinstance(level, int | float) for level in levels):
        return int(np.argmin(np.abs(np.array(levels, float) - wanted)))
    return levels.index(wanted) if wanted in levels else 0


def _spec(
    table: Table,
    declared: Interactive,
    data: xr.Dataset,
    dims: list[str],
    drawn: list[str],
    controls: list[Control],
    kind: str,
) -> dict[str, Any]:
    value = declared.z or declared.y
    held = {column.name for column in table.columns}
    ends = [value + end for end in ("_low", "_high") if value + end in held]
    looks = {control.column: [look.json() for look in control.looks or []] for control in _layered(controls)}
    shown = [*dims, *(name for name in (declared.x, declared.y, *declared.hover) if name not in (*dims, value))]
    return {
        "kind": kind,
        "x": declared.x,
        "y": declared.y,
        "value": value,
        "error": f"{value}_error" if f"{value}_error" in held else None,
        "interval": ends if len(ends) == 2 else None,
        "interval_label": _interval(data),
        "theory": declared.theory if declared.theory in held else None,
        "bound": bound if (bound := data[value].attrs.get("bound")) in held and kind != "map" else None,
        "series": [dim for dim in dims if dim not in drawn],
        "shown": [
            name for name in dict.fromkeys(shown) if name in held and not name.endswith(("_error", "_low", "_high"))
        ],
        "seeds": sorted(name for name in held if name.startswith("seeds_")),
        "looks": looks,
        "cells": _cells(data, declared) if declared.z else None,
        "range": _range(data[value]) if declared.z and declared.z not in looks else None,
        "palette": sequence(64) if declared.z else None,
        "labels": {axis: plain_label(heading(data[getattr(declared, axis)])) for axis in "xy"},
        "log": {axis: _logarithmic(data, getattr(declared, axis), kind) for axis in "xy"},
        "positive": {axis: kind != "map" and _positive(data[getattr(declared, axis)]) for axis in "xy"},
        "ticks": {"x": _ticks(data[declared.x]) if _positive(data[declared.x]) else None},
        "lines": [list(line) for line in declared.lines],
    }


def _layered(controls: list[Control]) -> list[Control]:
    """Return the controls with looks, the dynamics last: their markers replace those of the colours."""
    return sorted((control for control in controls if control.looks), key=lambda control: control.column == "dynamics")


def _cells(data: xr.Dataset, declared: Interactive) -> dict[str, float]:
    """Return the width and height of a map's cells."""
    sizes = {}
    for axis, name in (("x", declared.x), ("y", declared.y)):
        values = np.unique(data[name].values.astype(float))
        sizes[axis] = float(np.diff(values).min()) if len(values) > 1 else 1.0
    return sizes


def _ticks(values: xr.DataArray) -> list[float] | None:
    """Return the values as ticks if there are few of them; otherwise None."""
    found = np.unique(values.values)
    return found.tolist() if len(found) <= FEW_TICKS else None


def _range(numbers: xr.DataArray) -> list[float] | None:
    if numbers.dtype.kind not in "fiu" or not (known := numbers.values[np.isfinite(numbers.values)]).size:
        return None
    return [float(known.min()), float(known.max())]


def _positive(values: xr.DataArray) -> bool:
    """Return whether an axis may be logarithmic: numbers, of which some are positive and none is negative."""
    return values.dtype.kind in "fiu" and bool((values > 0).any()) and not bool((values < 0).any())


def _logarithmic(data: xr.Dataset, name: str, kind: str) -> bool:
    """Return whether an axis is logarithmic: positive numbers over most of a decade that are not evenly spaced."""
    values = data[name].values
    if kind == "map" or values.dtype.kind not in "fiu" or not np.isfinite(values).any():
        return False
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return 0.0 < LOG_SPAN * low < high and not (name in data.coords and _even(values))


def _even(values: np.ndarray) -> bool:
    """Return whether three or more values are more evenly spaced than their logarithms."""
    found = np.unique(values[np.isfinite(values)].astype(float))
    steps, ratios = np.diff(found), np.diff(np.log(found))
    return len(steps) > 1 and float(np.std(steps) / np.mean(steps)) < float(np.std(ratios) / np.mean(ratios))
