"""Interactive plots: conversion of a declaration (chart) and labelled data to the data of the page.

`dims` are the axes of the points of a plot; those along which the points of one series lie, a curve say, are last
(`series_axes`). `xs` and `ys` are the quantities that a reader may choose for the axes. A control is what a reader may
choose: colours are boxes to tick, which also serve as legend, other axes are menus of one value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from sweeplib.pictures.figures.kit.quantities import ROUND, with_rounds
from sweeplib.pictures.report.choices import (
    DESCRIBING,
    Look,
    cells,
    columns_of,
    description,
    dynamics_looks,
    few_ticks,
    horizontal,
    horizontal_choice,
    hue_looks,
    is_logarithmic,
    mask_of,
    positive,
    range_of,
    samples,
    sequence,
    theory_of,
    ticks_of_cells,
    vertical,
    vertical_choice,
)
from sweeplib.pictures.report.mathematics import html_label, plain_label
from sweeplib.pictures.report.overview import run_counts
from sweeplib.pictures.report.tables import MOST_CELLS, PageColumn, PageTable, columns, heading, name_of, runs_column

MOST_CHIPS = 40
"""The most values of an axis of colours, each of which has a box."""
EVERY = -1
"""The choice of a menu that selects all levels."""


@dataclass(frozen=True)
class Control:
    """A filter of a column with the `labels` of its levels: boxes, with `looks`, a menu, or a slider.

    chosen : the level that a menu or slider begins at, or EVERY. html : the label with mathematics.
    """

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
    `figure` is the entry of `figures` below which it stands. `notes` are sentences below it.
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
    """Return the plot of a declaration, with an empty table if no point has a value or the page has no room for them.

    options : of its figure, which choose the colours and the initial filters.
    """
    dataset = by_columns(dataset, declared.columns)
    analyses = {entry: by_columns(analysis, declared.columns) for entry, analysis in analyses.items()}
    declared, data, dataset = declared.page(dataset, analyses)
    data = data.expand_dims([name for name in (declared.x, declared.y) if name in data.coords and not data[name].dims])
    declared = _against_what_varies(data, declared)
    value = declared.z or declared.y
    # plots of the same values against the same axis, or against none that varies, are one picture
    varied = declared.x if len(np.unique(data[declared.x].values)) > 1 else None
    picture = (declared.data, declared.needs, varied, declared.y)
    series_axes = _series_axes(data, declared)
    dims = [str(dim) for dim in data[value].dims if dim not in series_axes] + series_axes
    data = data.drop_dims([str(dim) for dim in data.dims if dim not in dims])
    numbers = numbers_of_runs(dataset, data)
    data = with_rounds(data.assign(numbers | {RUNS: run_counts(dataset, data)}), dataset, value)
    declared = replace(declared, hover=(*declared.hover, ROUND)) if ROUND in data else declared
    data, thinned = _thinned(data, dims, series_axes[-1])
    title = plain_label(declared.title or f"{name_of(data[value])} against {_lower(name_of(data[declared.x]))}")
    xs, ys = horizontal(data, declared, dims), vertical(data, declared, dims)
    names, mask, empty = _fitted(data, declared, dims, xs, ys)
    if not mask.any() or mask.sum() * (len(dims) + len(names)) > MOST_CELLS:
        return Plot(name, title, PageTable(name, title, int(mask.sum())))
    # `runs`, the last of the names, has a column of its own kind
    page_columns = [*columns(data, dims, names[:-1], mask), runs_column(data, data[RUNS], numbers[RUNS], dims, mask)]
    table = PageTable(name, title, int(mask.sum()), page_columns, _constants(dataset, names, dims))
    points = _Points(declared, data, page_columns, dims, series_axes, options)
    controls = points.controls()

    def notes_of(quantity: str) -> list[str]:
        """Return the notes below the plot where a quantity is drawn."""
        # along an axis of ranks, which is none of the sweep, places without a value are no points
        number = empty[quantity] if series_axes[-1] in dataset.dims or declared.z else 0
        several = f"{number:,} {'point has' if number == 1 else 'points have'} runs but no value, and are not drawn."
        return [*thinned, *([several] if number else []), *points.key(quantity)]

    spec = points.spec(controls)
    if declared.z:
        return Plot(name, title, table, controls, notes_of(value), spec | {"choice": None, "hues": [], "sampled": {}})
    others = points.others(controls)
    spec |= points.choices(xs, ys, [*controls, *others])
    spec["sampled"], spec["samples"], left_out = samples(dataset, data, ys, dims, mask)
    spec["sample_labels"] = {entry: str(html_label(heading(dataset[entry]))) for entry in spec["samples"]}
    for quantity in spec["choice"]["y"]:
        quantity["note"] = str(html_label(" ".join(notes_of(quantity["name"]) + left_out)))
    return Plot(name, title, table, controls, notes_of(value) + left_out, spec, others, picture)


def _fitted(
    data: xr.Dataset, declared: Chart, dims: list[str], xs: list[str], ys: list[str]
) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Return the variables of a plot, a mask of its points (flat, along dims), and how many have runs but no value.

    The last are by quantity.
    Choices are taken off the ends of `ys`, then of `xs`, until the page has room for the others.
    """
    value = declared.z or declared.y
    while True:
        names = _names(data, declared, dims, xs, ys)
        quantities = [value] if declared.z else ys
        spread = {name: data[[name, "runs"]].broadcast_like(data[value]).transpose(*dims) for name in quantities}
        masks = [mask_of(values, name) for name, values in spread.items()]
        points = np.any([mask for mask, _ in masks], axis=0)
        if points.sum() * (len(dims) + len(names)) <= MOST_CELLS or len(xs) + len(ys) == 2:
            return names, points, {name: number for name, (_, number) in zip(quantities, masks, strict=True)}
        (ys if len(ys) > 1 else xs).pop()


def _lower(label: str) -> str:
    """Return a label with a small letter, but for one in capitals such as ODE."""
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
    note = f"Thinned for this page: one of {stride} of the {size} values of {axis}; the stored data have all."
    return data.isel({x: slice(None, None, stride)}), [note]


def _names(data: xr.Dataset, declared: Chart, dims: list[str], xs: list[str], ys: list[str]) -> list[str]:
    """Return the variables of a plot that the data have along no other axes than `dims`, `runs` last."""
    wanted = [*xs, declared.y, *columns_of(data, declared.z)] if declared.z else list(xs)
    wanted += [column for name in ys for column in columns_of(data, name)]
    for name in (*declared.hover, *filter(None, [declared.theory])):
        wanted += columns_of(data, name) if name in data.variables else []
    wanted += sorted(str(name) for name in data.data_vars if str(name).startswith("seeds_"))
    wanted += [*parameters_along(data, dims), *(str(name) for name in data.data_vars if str(name).startswith("runs_"))]
    names = [name for name in wanted if name in data.variables and set(data[name].dims) <= set(dims)]
    return [*dict.fromkeys(name for name in names if name not in (*dims, RUNS)), RUNS]


def _constants(dataset: xr.Dataset, names: list[str], dims: list[str]) -> dict[str, Any]:
    """Return the values that all points of a plot share, by name."""
    return {name: value for name, value in constant_values(dataset).items() if name not in (*names, *dims)}


@dataclass(frozen=True)
class _Points:
    """The points of a plot that is being made: the data of a chart along `dims`, as `columns`.

    series_axes : the last of the axes, along which the points of a series lie.
    options : those of the figure, which choose the colours and the initial filters.
    """

    chart: Chart
    data: xr.Dataset
    columns: list[PageColumn]
    dims: list[str]
    series_axes: list[str]
    options: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Return the kind of the plot."""
        return "map" if self.chart.z else self.chart.kind

    @cached_property
    def names(self) -> set[str]:
        """The names of the columns."""
        return {column.name for column in self.columns}

    @cached_property
    def hue(self) -> str | None:
        """The column of the colours: the quantity of a map, the requested axis, or the first, those of panels last."""
        if self.chart.z:
            return self.chart.z
        others = ("dynamics", self.chart.frames, *self.series_axes)
        free = [dim for dim in self.dims if dim not in others and 1 < self.data.sizes[dim] <= MOST_CHIPS]
        wanted = self.options.get("hue") or self.chart.hue
        if wanted in free:
            return wanted
        chosen = next((dim for dim in free if dim not in PANELS_FIRST), next(iter(free), None))
        return chosen or ("dynamics" if self.data.sizes.get("dynamics", 1) > 1 else None)

    def key(self, quantity: str) -> list[str]:
        """Return the meaning of bars, bands and dashed curves where a quantity is drawn."""
        data, is_map, notes = self.data, self.kind == "map", []
        y, theory = (self.chart.y, self.chart.theory) if is_map else (quantity, theory_of(data, quantity, self.chart))
        marks = "Band" if self.kind == "curves" else "Bars"
        if not is_map and {f"{y}_low", f"{y}_high"} <= self.names:
            notes.append(f"{marks}: {interval_of(data)}.")
        elif not is_map and f"{y}_error" in self.names:
            notes.append(f"{marks}: one standard error to each side.")
        if theory in self.names:
            apart = f"{heading(data[theory])}: solid with noise, dashed without."
            is_apart = y == self.chart.y and self._theories_differ()
            notes.append(apart if is_apart else f"Dashed: {axis_label(data[theory])}.")
        bound = None if is_map else data[y].attrs.get("bound")
        if bound in self.names and bool((data[bound] & data[y].notnull()).any()):
            notes.append(f"Arrows: {data[bound].attrs['reason']}.")
        lines = ", ".join(name for _, _, name in self.chart.lines)
        return notes + [f"Dashed lines: {lines}."] * bool(lines)

    def _theories_differ(self) -> bool:
        """Return whether points of stochastic and of deterministic dynamics have a theory each."""
        theory = self.chart.theory
        if self.kind != "points" or theory not in self.data or "dynamics" not in self.data[theory].dims:
            return False
        return len(set(map(is_stochastic, dynamics_where(self.data[theory].notnull())))) == 2

    def controls(self) -> list[Control]:
        """Return what a reader may choose: a value of each axis that is not drawn, and those shown in colours."""
        controls, first = [], self._first()
        for column in self.columns:
            looks = dynamics_looks(column.names, self.kind) if column.name == "dynamics" and not self.chart.z else None
            if column.name == self.hue and column.names:
                coloured = hue_looks(column.names, self.kind, self.chart.colors)
                looks = [look.over(hue) for look, hue in zip(looks, coloured, strict=True)] if looks else coloured
                controls.append(_control(column, looks))
            elif column.name in self.dims and column.name not in self.series_axes and len(column.names) > 1:
                chosen = EVERY if column.name == "seed" else first.get(column.name, 0)
                controls.append(_control(column, looks, chosen, slider=column.name == self.chart.frames))
        return sorted(controls, key=lambda control: control.looks is None)

    def _first(self) -> dict[str, int]:
        """Return the places at which the filters begin: those of the picture, or of the option `where`."""
        places = {dim: at for dim, at in self.chart.begins_at().items() if at < self.data.sizes.get(dim, 0)}
        where = {dim: value for dim, value in (self.options.get("where") or {}).items() if dim in self.data.dims}
        return places | {dim: _chosen(self.data[dim].values.tolist(), value) for dim, value in where.items()}

    def others(self, controls: list[Control]) -> list[Control]:
        """Return the controls after other choices of axes or colours, beside `controls`, which the plot begins with.

        An axis with boxes gets a menu, one with a menu gets boxes, an axis of x, which begins with none, gets both.
        """
        others, has_boxes = [], {control.column: bool(control.looks) for control in controls}
        for column in self.columns:
            count = len(column.names)
            if column.name not in self.dims or count < 2 or column.name in ("dynamics", self.chart.frames):
                continue
            if has_boxes.get(column.name, True):
                chosen = count - 1 if column.name == "time" else count // 2
                others.append(_control(column, None, chosen if column.name in self.series_axes else 0))
            if not has_boxes.get(column.name, False) and count <= MOST_CHIPS and column.name != "seed":
                others.append(_control(column, hue_looks(column.names, self.kind, {})))
        return others

    def choices(self, xs: list[str], ys: list[str], controls: list[Control]) -> dict[str, Any]:
        """Return the choices of axes and colours for the page's script, of all controls."""
        boxes = {control.column: control for control in controls if control.looks}
        of_hues = {name: _styles(box.looks or []) for name, box in boxes.items()}
        plain: list[Look] = []  # the looks of dynamics beside another hue
        names = next((column.names for column in self.columns if column.name == "dynamics"), [])
        if len(names) > 1:
            plain, hues = dynamics_looks(names, self.kind), hue_looks(names, self.kind, {})
            of_hues["dynamics"] = _styles([look.over(hue) for look, hue in zip(plain, hues, strict=True)])
        x = [horizontal_choice(self.data, name, self.chart) for name in xs if name in self.names]
        y = [vertical_choice(self.data, name, self.names, self.chart) for name in ys if name in self.names]
        return {
            "choice": {"x": x, "y": y, "hue": self.hue, "dims": self.dims},
            "hues": [{"name": name, "label": boxes[name].label} for name in of_hues if name in boxes],
            "looks_of": of_hues,
            "dynamics_looks": _styles(plain),
            "steps": self.chart.steps,
        }

    def spec(self, controls: list[Control]) -> dict[str, Any]:
        """Return what the page's script knows of a plot: names of columns, looks, ranges, ticks and labels."""
        data, chart, names, kind = self.data, self.chart, self.names, self.kind
        value, axes = chart.z or chart.y, {"x": chart.x, "y": chart.y}
        looks = {control.column: [look.json() for look in control.looks or []] for control in _layered(controls)}
        colours = range_of(data[value]) if chart.z and chart.z not in looks else None
        hover = [*self.dims, *(name for name in (*axes.values(), *chart.hover) if name not in (*self.dims, value))]
        return {
            "kind": kind,
            "joined": self.series_axes[-1] != POINT,
            **axes,
            "value": value,
            **description(data, value, names),
            **({"bound": None} if kind == "map" else {}),
            "interval_label": interval_of(data),
            "theory": chart.theory if chart.theory in names else None,
            "solid": self._theories_differ(),
            "series": [dim for dim in self.dims if dim not in self.series_axes],
            "shown": [name for name in dict.fromkeys(hover) if name in names and not name.endswith(DESCRIBING)],
            "seeds": sorted(name for name in names if name.startswith("seeds_")),
            "looks": looks,
            "cells": cells(data, chart) if chart.z else None,
            "range": colours,
            "palette": sequence(64) if chart.z else None,
            **({"log_colours": wide(data[value].values)} if colours else {}),
            "labels": {axis: plain_label(heading(data[name])) for axis, name in axes.items()},
            "cell_ticks": {axis: ticks_of_cells(data[name]) for axis, name in axes.items()} if chart.z else {},
            "log": {axis: is_logarithmic(data, name, kind, chart) for axis, name in axes.items()},
            "positive": {axis: kind != "map" and positive(data[name]) for axis, name in axes.items()},
            "ticks": {"x": few_ticks(data[chart.x]) if positive(data[chart.x]) else None},
            "lines": [list(line) for line in chart.lines],
            "extent": {axis: range_of(data[name]) for axis, name in axes.items()} if chart.frames else None,
        }


def _control(column: PageColumn, looks: list[Look] | None, chosen: int = 0, *, slider: bool = False) -> Control:
    """Return the control of a column."""
    return Control(column.name, column.label, column.labels or [], looks, chosen, column.html, slider)


def _styles(looks: list[Look]) -> list[dict[str, Any]]:
    """Return looks for the page's script, each with its swatch."""
    return [look.json() | {"swatch": look.swatch} for look in looks]


def _chosen(levels: list[Any], wanted: Any) -> int:
    """Return the place of a value among the levels of an axis: of a number the nearest one, of an unknown name 0."""
    if isinstance(wanted, int | float) and all(isinstance(level, int | float) for level in levels):
        return int(np.argmin(np.abs(np.array(levels, float) - wanted)))
    return levels.index(wanted) if wanted in levels else 0


def _layered(controls: list[Control]) -> list[Control]:
    """Return the controls with looks, the dynamics last: their markers replace those of the colours."""
    return sorted((control for control in controls if control.looks), key=lambda control: control.column == "dynamics")
