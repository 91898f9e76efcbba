"""Interactive plots: conversion of a declaration and labelled data to the data of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sweeplib.analysis.kit.headlines import interval_of
from sweeplib.analysis.kit.rows import RUNS, constant_values, numbers_of_runs, parameters_along
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.pictures.figures.kit.chart import Chart, along
from sweeplib.pictures.figures.kit.facets import PANELS_FIRST, by_columns, dynamics_where
from sweeplib.pictures.figures.kit.labels import axis_label
from sweeplib.pictures.figures.kit.quantities import ROUND, bound_side, with_rounds
from sweeplib.pictures.report.choices import (
    cells,
    columns_of,
    few_ticks,
    horizontal,
    horizontal_choice,
    is_logarithmic,
    positive,
    range_of,
    samples,
    ticks_of_cells,
    vertical,
    vertical_choice,
)
from sweeplib.pictures.report.looks import Look, dynamics_looks, hue_looks, sequence
from sweeplib.pictures.report.mathematics import html_label, plain_label
from sweeplib.pictures.report.overview import run_counts
from sweeplib.pictures.report.tables import MOST_CELLS, PageColumn, PageTable, columns, heading, name_of, runs_column

MOST_CHIPS = 40
EVERY = -1
"""The choice of a menu that selects all levels."""


@dataclass(frozen=True)
class Control:
    """A filter of a column with the `labels` of its levels: chips, which also serve as legend, a menu, or a slider."""

    column: str
    label: str
    labels: list[str]
    looks: list[Look] | None = None
    chosen: int = 0
    html: str | None = None
    slider: bool = False


@dataclass(frozen=True)
class Plot:
    """An interactive plot: its data as a table, its controls, and the specification for the page's script.

    `others` are the controls that other choices of axes and colours need. Plots with the same `picture` show the same.
    `figure` is the entry of `figures` below which it stands.
    """

    name: str
    title: str
    table: PageTable
    controls: list[Control] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spec: dict[str, Any] = field(default_factory=dict)
    others: list[Control] = field(default_factory=list)
    picture: tuple[Any, ...] = ()
    figure: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        return {"table": self.table.json(), "spec": self.spec}


def interactive_plot(
    name: str,
    declared: Chart,
    dataset: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    options: Mapping[str, Any],
) -> Plot:
    """Return the plot of a declaration; `options` of its figure choose the colours and the initial filters."""
    dataset = by_columns(dataset, declared.columns)
    analyses = {entry: by_columns(analysis, declared.columns) for entry, analysis in analyses.items()}
    declared, data, dataset = declared.page(dataset, analyses)
    data = data.expand_dims([name for name in (declared.x, declared.y) if name in data.coords and not data[name].dims])
    declared = _against_what_varies(data, declared)
    value = declared.z or declared.y
    varied = declared.x if len(np.unique(data[declared.x].values)) > 1 else None
    same = (declared.data, declared.needs, varied, declared.y, declared.z)
    series_axes = _series_axes(data, declared)
    dims = [str(dim) for dim in data[value].dims if dim not in series_axes] + series_axes
    data = data.drop_dims([str(dim) for dim in data.dims if dim not in dims])
    numbers = numbers_of_runs(dataset, data)
    data = with_rounds(data.assign(numbers | {RUNS: run_counts(dataset, data)}), dataset, value)
    declared = replace(declared, hover=(*declared.hover, ROUND)) if ROUND in data else declared
    data, notes = _thinned(data, dims, series_axes[-1])
    title = plain_label(declared.title or f"{name_of(data[value])} against {_lower(name_of(data[declared.x]))}")
    xs, ys = horizontal(data, declared, dims), vertical(data, declared, dims)
    names, mask, empty = _fitted(data, declared, dims, xs, ys)
    if not mask.any() or mask.sum() * (len(dims) + len(names)) > MOST_CELLS:
        return Plot(name, title, PageTable(name, title, int(mask.sum())))
    held = [*columns(data, dims, names[:-1], mask), runs_column(data, data[RUNS], numbers[RUNS], dims, mask)]
    table = PageTable(name, title, int(mask.sum()), held, _constants(dataset, names, dims))
    hue = _hue(data, declared, [dim for dim in dims if dim not in series_axes], options)
    kind = "map" if declared.z else declared.kind
    controls = _controls(table.columns, dims, series_axes, hue, kind, _first(data, declared, options), declared.colors)
    controls = [replace(control, slider=control.column == declared.frames) for control in controls]
    if empty and (series_axes[-1] in dataset.dims or declared.z):  # an axis of ranks has no points that were run
        notes.append(f"{empty:,} {'point has' if empty == 1 else 'points have'} runs but no value, and are not drawn.")
    notes += _key(data, declared, names, kind)
    spec = _spec(table, declared, data, dims, series_axes, controls, kind)
    if declared.z:
        return Plot(name, title, table, controls, notes, spec | {"choice": None, "hues": [], "sampled": {}})
    others = _others(table.columns, dims, series_axes, controls, kind)
    others = [control for control in others if control.column != declared.frames]
    spec |= _choices(table, declared, data, dims, (xs, ys, hue), (controls, others))
    spec["sampled"], spec["samples"], left_out = samples(dataset, data, ys, dims, mask)
    spec["sample_labels"] = {entry: str(html_label(heading(dataset[entry]))) for entry in spec["samples"]}
    return Plot(name, title, table, controls, notes + left_out, spec, others, same)


def _fitted(
    data: xr.Dataset, declared: Chart, dims: list[str], xs: list[str], ys: list[str]
) -> tuple[list[str], np.ndarray, int]:
    """Return the variables of a plot, its points, and how many have runs but no value.

    The last of the quantities `ys` and of the coordinates `xs` that are choices are taken off these lists until the
    page has room for the others.
    """
    value = declared.z or declared.y
    while True:
        names = _names(data, declared, dims, xs, ys)
        quantities = [value] if declared.z else ys
        masks = [_mask(data[[name, "runs"]].broadcast_like(data[value]).transpose(*dims), name) for name in quantities]
        points = np.any([mask for mask, _ in masks], axis=0)
        if points.sum() * (len(dims) + len(names)) <= MOST_CELLS or len(xs) + len(ys) == 2:
            return names, points, masks[0][1]
        (ys if len(ys) > 1 else xs).pop()


def _lower(label: str) -> str:
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _against_what_varies(data: xr.Dataset, declared: Chart) -> Chart:
    """Return the declaration of points, against the longest axis of numbers if its x has one value only."""
    if declared.z or declared.kind != "points" or len(np.unique(data[declared.x].values)) > 1:
        return declared
    dims = [str(dim) for dim in data[declared.y].dims if dim not in ("seed", declared.x)]
    swept = [dim for dim in dims if data.sizes[dim] > 1 and data[dim].dtype.kind in "fiu"]
    return replace(declared, x=max(swept, key=data.sizes.__getitem__)) if swept else declared


def _series_axes(data: xr.Dataset, declared: Chart) -> list[str]:
    """Return the axes along which the points of one series lie, that of x last."""
    last = [along(data, declared.x)]
    return last if declared.z is None else [along(data, declared.y), *last]


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


def _names(data: xr.Dataset, declared: Chart, dims: list[str], xs: list[str], ys: list[str]) -> list[str]:
    """Return the variables of a plot that the data have without further axes."""
    wanted = [*xs, declared.y, *columns_of(data, declared.z)] if declared.z else list(xs)
    wanted += [column for name in ys for column in columns_of(data, name)]
    for name in (*declared.hover, *filter(None, [declared.theory])):
        wanted += columns_of(data, name) if name in data.variables else []
    wanted += sorted(str(name) for name in data.data_vars if str(name).startswith("seeds_"))
    wanted += [*parameters_along(data, dims), *(str(name) for name in data.data_vars if str(name).startswith("runs_"))]
    held = [name for name in wanted if name in data.variables and set(data[name].dims) <= set(dims)]
    return [*dict.fromkeys(name for name in held if name not in (*dims, RUNS)), RUNS]


def _constants(dataset: xr.Dataset, names: list[str], dims: list[str]) -> dict[str, Any]:
    """Return the values that all points of a plot share, by name."""
    return {name: value for name, value in constant_values(dataset).items() if name not in (*names, *dims)}


def _mask(data: xr.Dataset, value: str) -> tuple[np.ndarray, int]:
    """Return which points have a value, and the number of points that have runs but no value.

    A flag, such as 'undecided', is no value without runs.
    """
    run = data["runs"] != "none"
    present = data[value] != "" if data[value].dtype.kind == "U" else data[value].notnull()
    present = present & run if "flag_meanings" in data[value].attrs else present
    return present.values.ravel(), int((~present & run).sum())


def _key(data: xr.Dataset, declared: Chart, names: list[str], kind: str) -> list[str]:
    """Return the meaning of bars, bands and dashed curves."""
    ends, notes = [f"{declared.y}_low", f"{declared.y}_high"], []
    marks = "Band" if kind == "curves" else "Bars"
    if kind != "map" and set(ends) <= set(names):
        notes.append(f"{marks}: {interval_of(data)}.")
    elif kind != "map" and f"{declared.y}_error" in names:
        notes.append(f"{marks}: one standard error to each side.")
    if declared.theory in names:
        theory = data[declared.theory]
        apart = f"{heading(theory)}: solid with noise, dashed without."
        notes.append(apart if _theories_differ(data, declared, kind) else f"Dashed: {axis_label(theory)}.")
    bound = data[declared.y].attrs.get("bound") if kind != "map" else None
    if bound in names and bool((data[bound] & data[declared.y].notnull()).any()):
        notes.append(f"Arrows: {data[bound].attrs['reason']}.")
    lines = ", ".join(name for _, _, name in declared.lines)
    return notes + [f"Dashed lines: {lines}."] * bool(lines)


def _theories_differ(data: xr.Dataset, declared: Chart, kind: str) -> bool:
    """Return whether points of stochastic and of deterministic dynamics have a theory each."""
    if kind != "points" or declared.theory not in data or "dynamics" not in data[declared.theory].dims:
        return False
    return len(set(map(is_stochastic, dynamics_where(data[declared.theory].notnull())))) == 2


def _hue(data: xr.Dataset, declared: Chart, free: list[str], options: Mapping[str, Any]) -> str | None:
    """Return the column of the colours: the quantity of a map, the requested axis, or the figures' first axis."""
    if declared.z:
        return declared.z
    free = [dim for dim in free if dim not in ("dynamics", declared.frames) and 1 < data.sizes[dim] <= MOST_CHIPS]
    wanted = options.get("hue") or declared.hue
    if wanted in free:
        return wanted
    chosen = next((dim for dim in free if dim not in PANELS_FIRST), next(iter(free), None))
    return chosen or ("dynamics" if data.sizes.get("dynamics", 1) > 1 else None)


def _controls(
    held: list[PageColumn],
    dims: list[str],
    series_axes: list[str],
    hue: str | None,
    kind: str,
    first: Mapping[str, int],
    colors: Mapping[str, str],
) -> list[Control]:
    """Return what a reader may choose in a plot: a value of each axis that is not drawn, and those shown in colours."""
    controls = []
    for column in held:
        levels = column.levels or []
        if column.name == hue and levels:
            names = [str(level) for level in levels]
            coloured = hue_looks(names, kind, colors)
            if hue == "dynamics":
                coloured = [look.over(hue) for look, hue in zip(dynamics_looks(names, kind), coloured, strict=True)]
            controls.append(Control(column.name, column.label, column.labels or [], coloured, html=column.html))
        elif column.name in dims and column.name not in series_axes and len(levels) > 1:
            dynamics = column.name == "dynamics" and kind != "map"
            looks = dynamics_looks([str(level) for level in levels], kind) if dynamics else None
            chosen = EVERY if column.name == "seed" else first.get(column.name, 0)
            controls.append(Control(column.name, column.label, column.labels or [], looks, chosen, column.html))
    return sorted(controls, key=lambda control: control.looks is None)


def _others(
    held: list[PageColumn], dims: list[str], along_axes: list[str], controls: list[Control], kind: str
) -> list[Control]:
    """Return the controls for other choices of the axes and colours: menus for boxes, boxes for menus, both for x."""
    choices = []
    for column in held:
        levels = column.levels or []
        if column.name not in dims or len(levels) < 2 or column.name == "dynamics":
            continue
        present = next((control for control in controls if control.column == column.name), None)
        label, labels = column.label, column.labels or []
        if present is None or present.looks:
            chosen = len(levels) - 1 if column.name == "time" else len(levels) // 2
            choices.append(
                Control(column.name, label, labels, None, chosen if column.name in along_axes else 0, column.html)
            )
        if (present is None or not present.looks) and len(levels) <= MOST_CHIPS and column.name != "seed":
            looks = hue_looks([str(level) for level in levels], kind, {})
            choices.append(Control(column.name, label, labels, looks, html=column.html))
    return choices


def _styles(looks: list[Look]) -> list[dict[str, Any]]:
    """Return looks for the page's script, each with its swatch."""
    return [look.json() | {"swatch": look.swatch} for look in looks]


def _choices(
    table: PageTable,
    declared: Chart,
    data: xr.Dataset,
    dims: list[str],
    chosen: tuple[list[str], list[str], str | None],
    controls: tuple[list[Control], list[Control]],
) -> dict[str, Any]:
    """Return the choices of axes and colours for the page's script."""
    xs, ys, hue = chosen
    held = {column.name for column in table.columns}
    boxes = {control.column: control for group in controls for control in group if control.looks}
    of_hues = {name: _styles(box.looks or []) for name, box in boxes.items()}
    looks_of_dynamics: list[dict[str, Any]] = []
    levels = next((column.levels for column in table.columns if column.name == "dynamics"), None) or []
    names = [str(level) for level in levels]
    if len(names) > 1:
        plain = dynamics_looks(names, declared.kind)
        coloured = [look.over(other) for look, other in zip(plain, hue_looks(names, declared.kind, {}), strict=True)]
        of_hues["dynamics"], looks_of_dynamics = _styles(coloured), _styles(plain)

    horizontals = [horizontal_choice(data, name, declared) for name in xs if name in held]
    verticals = [vertical_choice(data, name, held, declared) for name in ys if name in held]
    return {
        "choice": {"x": horizontals, "y": verticals, "hue": hue, "dims": dims},
        "hues": [{"name": name, "label": boxes[name].label} for name in of_hues if name in boxes],
        "looks_of": of_hues,
        "dynamics_looks": looks_of_dynamics,
        "steps": declared.steps,
    }


def _first(data: xr.Dataset, declared: Chart, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the places at which the filters begin: those of the picture, or of the option `where`."""
    places = {dim: place for dim, place in declared.begins_at().items() if place < data.sizes.get(dim, 0)}
    where = {dim: value for dim, value in (options.get("where") or {}).items() if dim in data.dims}
    return places | {dim: _chosen(data[dim].values.tolist(), value) for dim, value in where.items()}


def _chosen(levels: list[Any], wanted: Any) -> int:
    if isinstance(wanted, int | float) and all(isinstance(level, int | float) for level in levels):
        return int(np.argmin(np.abs(np.array(levels, float) - wanted)))
    return levels.index(wanted) if wanted in levels else 0


def _spec(
    table: PageTable,
    declared: Chart,
    data: xr.Dataset,
    dims: list[str],
    series_axes: list[str],
    controls: list[Control],
    kind: str,
) -> dict[str, Any]:
    """Return what the page's script knows of a plot: names of columns, looks, ranges, ticks and labels."""
    value = declared.z or declared.y
    cell_ticks = {axis: ticks_of_cells(data[getattr(declared, axis)]) for axis in "xy"} if declared.z else {}
    held = {column.name for column in table.columns}
    ends = [value + end for end in ("_low", "_high") if value + end in held]
    looks = {control.column: [look.json() for look in control.looks or []] for control in _layered(controls)}
    colours = range_of(data[value]) if declared.z and declared.z not in looks else None
    names = [*dims, *(name for name in (declared.x, declared.y, *declared.hover) if name not in (*dims, value))]
    return {
        "kind": kind,
        "joined": series_axes[-1] != POINT,
        "x": declared.x,
        "y": declared.y,
        "value": value,
        "error": f"{value}_error" if f"{value}_error" in held else None,
        "interval": ends if len(ends) == 2 else None,
        "interval_label": interval_of(data),
        "theory": declared.theory if declared.theory in held else None,
        "solid": _theories_differ(data, declared, kind),
        "bound": bound if (bound := data[value].attrs.get("bound")) in held and kind != "map" else None,
        "side": bound_side(data[value]),
        "series": [dim for dim in dims if dim not in series_axes],
        "shown": [
            name for name in dict.fromkeys(names) if name in held and not name.endswith(("_error", "_low", "_high"))
        ],
        "seeds": sorted(name for name in held if name.startswith("seeds_")),
        "looks": looks,
        "cells": cells(data, declared) if declared.z else None,
        "range": colours,
        "palette": sequence(64) if declared.z else None,
        "log_colours": bool(colours and wide(data[value].values)),
        "labels": {axis: plain_label(heading(data[getattr(declared, axis)])) for axis in "xy"},
        "cell_ticks": cell_ticks,
        "log": {axis: is_logarithmic(data, getattr(declared, axis), kind, declared) for axis in "xy"},
        "positive": {axis: kind != "map" and positive(data[getattr(declared, axis)]) for axis in "xy"},
        "ticks": {"x": few_ticks(data[declared.x]) if positive(data[declared.x]) else None},
        "lines": [list(line) for line in declared.lines],
        "extent": {axis: range_of(data[getattr(declared, axis)]) for axis in "xy"} if declared.frames else None,
    }


def _layered(controls: list[Control]) -> list[Control]:
    """Return the controls with looks, the dynamics last: their markers replace those of the colours."""
    return sorted((control for control in controls if control.looks), key=lambda control: control.column == "dynamics")
