"""The picture of a chart: panels, scales, the marks of its layers, and a legend of what is drawn.

A level is the axes of one quantity in each panel, a look the properties of lines and markers by which dynamics or
colours are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.errors import InputError
from sweeplib.pictures.figures.kit.cells import colour_bar, entries_of_cells
from sweeplib.pictures.figures.kit.chart import Chart, Layer, Level
from sweeplib.pictures.figures.kit.facets import dynamics_where, numbered_parts
from sweeplib.pictures.figures.kit.labels import (
    axis_label,
    dynamics_order,
    plain_mean,
    row_label,
    value_label,
    wrapped_label,
)
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.marks import AFTER, MARKS, ONCE, POINTS, RUN, STOPPED
from sweeplib.pictures.figures.kit.panels import Panels, mark_empty, panels_of, side_by_side
from sweeplib.pictures.figures.kit.points import DASHES, Part, law_look, places_of, unit_of
from sweeplib.pictures.figures.kit.quantities import bound_side, with_requests
from sweeplib.pictures.figures.kit.references import References, references
from sweeplib.pictures.figures.kit.scales import few_short_values, logarithmic_above_zero
from sweeplib.pictures.figures.kit.style import INK, UNKNOWN, bound_mark, look, plain_ticks, set_log

THEORY: Any = (0, (2, 1))
"""The dashes of the theory that a variable names."""
MOST_TICKS, MOST_ROWS = 5, 8
"""The most values of a horizontal axis, and rows of a table of points, that have a tick each."""
MAPS = ("cells", "classes", "kinds")
"""Marks over two axes."""
WRITTEN = ("note", "texts", "region", *MAPS)
"""Marks whose labels stand in the panels."""
TOUCHING = 0.04
"""The fraction of the height of the axes below which the zero would cut a marker."""


def picture_of(chart: Chart, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> mpl.figure.Figure:
    """Return the picture that a declaration describes; constants of the datasets are coordinates."""
    other = chart.beside
    if other is None:
        panels, entries = _panels_and_entries(chart, ds, analyses)
    else:
        counts, widths = (len(chart.levels), len(other.levels)), (chart.size[0], other.size[0])
        panels, right = side_by_side(counts, widths, chart.size[2])
        _, entries = _panels_and_entries(chart, ds, analyses, panels)
        _, others = _panels_and_entries(other, ds, analyses, right)
        entries += [group for group in others if group not in entries]
    legend_below(panels.drawing, entries, *filter(None, [chart.looks.handle]))
    return panels.drawing


def _panels_and_entries(
    chart: Chart, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], panels: Panels | None = None
) -> tuple[Panels, list[list[Entry]]]:
    """Return the panels of a chart, by default in a new drawing, with its marks, and the entries of its legend.

    analyses : by name. Levels of which nothing would be drawn are left out.
    """
    whole, chart = chart.pictured(ds, analyses), replace(chart, x=chart.across)
    selected = chart.chosen(whole)
    if chart.x_over and not bool(selected[chart.x_over].notnull().all()):
        chart = replace(chart, x_over="", x_label="")
    if unknown := {layer.mark for level in chart.levels for layer in level.layers} - MARKS.keys() - ONCE.keys():
        raise InputError("no such mark", key="mark", value=min(unknown), choices=[*MARKS, *ONCE])
    # a level of what is positive nowhere would be empty
    top, *below = chart.levels
    levels = (top, *(lower for lower in below if not lower.over or bool((selected[lower.over] > 0.0).any())))
    levels = tuple(_with_theory(level, whole) for level in levels)
    datasets = [chart.chosen(_requested(chart, whole, level, ds)) for level in levels]
    data = datasets[0]
    if data[chart.x].dtype.kind not in "iuf":
        raise InputError("not an axis of numbers", key="x", value=chart.x, expected="another axis")
    panels = panels or panels_of(
        data,
        chart.split,
        *chart.size,
        stack=tuple(level.height for level in levels),
        share_x=chart.share_x,
        whole=None if chart.needs else ds,
    )
    picture = _Picture(
        chart, panels, _names(chart, data, top.range or top.y), references(chart.published, chart.x, chart.y)
    )
    picture.scale(data)
    for place, (level, of_level) in enumerate(zip(levels, datasets, strict=True)):
        picture.draw(place, level, of_level)
    mark = top.layers[0].mark
    if mark == "cells":
        colour_bar(panels, data[top.y])
    if mark not in MAPS:
        picture.set_ticks(data)
    if mark not in (*POINTS, *MAPS):
        mark_empty(panels)
    panels.xlabel(chart.x_label or wrapped_label(data[chart.x], 24))
    return panels, picture.entries(data, levels)


def _with_theory(level: Level, data: xr.Dataset) -> Level:
    """Return a level with the theory that the attributes of its points name, if it has no law."""
    has_points = level.y and level.layers[0].mark in POINTS and not level.over
    name = data[level.y].attrs.get("theory") if has_points else None
    if name is None or any(layer.mark == "law" for layer in level.layers):
        return level
    theory = Layer("law", name, data[name].attrs["long_name"], "theory", THEORY)
    return replace(level, layers=(level.layers[0], theory, *level.layers[1:]))


def _requested(chart: Chart, whole: xr.Dataset, level: Level, ds: xr.Dataset) -> xr.Dataset:
    """Return the data with a mask `requested` of the runs made: their own `Y_requested`, else that of the dataset."""
    mark = level.layers[0].mark
    # values along x, as optima are, have no such axis: the runs are those of what is drawn against it
    y = chart.y if mark == "ticks" else level.y
    if not y or mark not in (*POINTS, "cells", "ticks"):
        return whole
    name = f"{y}_requested"
    return whole.assign(requested=whole[name]) if name in whole else with_requests(whole, y, ds)


def _names(chart: Chart, data: xr.Dataset, y: str) -> list[str]:
    """Return the dynamics that are drawn, in the order of their looks: those with a value of y or a stochastic run.

    If the chart says what points without a value lack (`unknown`), all that have runs.
    """
    if "dynamics" not in data.dims:
        return []
    run = data.get("requested", xr.zeros_like(data[y], bool))
    return dynamics_where(run if chart.unknown else data[y].notnull() | (run & stochastic(data)))


@dataclass(frozen=True)
class _Picture:
    """A picture that is being drawn; `names` are its dynamics in the order of their looks."""

    chart: Chart
    panels: Panels
    names: list[str]
    published: References

    def scale(self, data: xr.Dataset) -> None:
        """Make the horizontal axes logarithmic where the chart says so; one from 0 on is linear to its next place."""
        x, over_time = places_of(self.chart, data), self.chart.kind == "curves"
        log = self.chart.is_log_x(x)
        chosen = self.chart.log_axes is not None or self.chart.log_x is not None
        for axes in (axes for stack in self.panels.stacks for axes in stack):
            if log:
                set_log(axes, "x")
            elif not chosen and not over_time and logarithmic_above_zero(x.values):
                first = float(x.values[x.values > 0.0].min())
                axes.set_xscale("symlog", linthresh=first, linscale=0.5)
                axes.set_xlim(-0.15 * first, 1.25 * float(x.values.max()))

    def draw(self, place: int, level: Level, data: xr.Dataset) -> None:
        """Draw one level, at its place in the stacks from the top, in all panels."""
        axes = self.panels.stacks[0][place]
        if level.y:
            values = (data[level.range or level.y] / level.unit(data)).values
            if level.is_logarithmic(values, self.chart.log_axes):
                set_log(axes, "y")
        for panel, subset in self.chart.split.parts(data):
            self._panel(self.panels.stacks[panel][place], level, subset, data, first=place == 0)
        if level.limits is not None:
            axes.set_ylim(*level.limits)
        else:
            self.panels.room_for_arrows(place)
        if level.from_zero and level.limits is None and axes.get_yscale() == "linear":
            top = axes.get_ylim()[1]
            axes.set_ylim(bottom=-TOUCHING * top if bool((data[level.y] < TOUCHING * top).any()) else 0.0)
        if level.title:
            axes.set_title(level.title, fontsize=8)
        if level.label:
            self.panels.ylabel(level.label, place)
        elif level.layers[0].up:
            self.panels.ylabel(axis_label(data[level.layers[0].up]), place)
        elif level.y:
            self.panels.heights(plain_mean(data[level.y]) if "bound" in data[level.y].attrs else data[level.y], place)

    def _panel(self, axes: mpl.axes.Axes, level: Level, subset: xr.Dataset, data: xr.Dataset, *, first: bool) -> None:
        """Draw the layers of a panel: what each colour has, the published values, and what the panel has once."""
        chart, rows = self.chart, list(self.chart.split.colours(subset))
        for index, coloured in rows:
            for dash, series in numbered_parts(coloured, chart.dash):
                for layer in (layer for layer in level.layers if layer.mark in MARKS):
                    piece = Part(chart, axes, level, layer, self.names, data, subset, series, index, dash)
                    MARKS[layer.mark](piece)
                if first:
                    x_unit, y_unit = unit_of(series, chart.x_over), unit_of(series, level.over)
                    self.published.draw(axes, series, x_unit=x_unit, y_unit=y_unit)
        for layer in level.layers:
            if layer.mark in ONCE:
                ONCE[layer.mark](Part(chart, axes, level, layer, self.names, data, subset, subset))
        if any(layer.mark == "ticks" for layer in level.layers):
            # such a level has no vertical axis but a row for each colour, from 0 down
            hue = chart.split.hue
            labels = [value_label(row[hue], subset[hue]) if hue else "optimum" for _, row in rows]
            axes.set_ylim(-len(rows) + 0.4, 0.6)
            axes.set_yticks([-index for index, _ in rows], labels)
            axes.tick_params(left=False)
            axes.spines["left"].set_visible(False)

    def set_ticks(self, data: xr.Dataset) -> None:
        """Give logarithmic axes plain ticks, at the values of a horizontal axis if these are few and short.

        Integers have ticks at whole numbers, rows of a table of points their parameters.
        """
        places = few_short_values(places_of(self.chart, data).values, MOST_TICKS)
        stacks = self.panels.stacks if not self.chart.share_x else self.panels.stacks[:1]
        for axes in (axes for stack in stacks for axes in stack):
            for axis in (axes.xaxis, axes.yaxis):
                plain_ticks(axis)
            if axes.get_xscale() == "linear" and places_of(self.chart, data).dtype.kind in "iu":
                axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator("auto", integer=True))
            if axes.get_xscale() == "log" and places and places[-1] <= 1e3 * places[0]:
                axes.xaxis.set_major_locator(mpl.ticker.FixedLocator(places))
            if self.chart.x == POINT and data.sizes[POINT] <= MOST_ROWS:
                axes.set_xticks(data[POINT].values, [row_label(row, data[POINT]) for row in data[POINT]])

    def entries(self, data: xr.Dataset, levels: tuple[Level, ...]) -> list[list[Entry]]:
        """Return the entries of the legend, in groups: colours, dashes, dynamics, cells, layers, published values."""
        chart, layers = self.chart, [layer for level in levels for layer in level.layers]
        line = {"color": INK, "linewidth": 1.0}
        dashes: list[Entry] = [
            (line | {"linestyle": DASHES[n], "gid": f"dash-{n}"}, value_label(series[chart.dash], data[chart.dash]))
            for n, series in numbered_parts(data, chart.dash)
            if chart.dash
        ]
        laws = any(layer.label for layer in layers if layer.mark == "law")
        # a single dynamics has an entry beside laws and published values, which are of something else
        names_dynamics = chart.looks.listed or len(self.names) > 1 or laws or chart.published
        kinds = self._kinds(self.names) if names_dynamics else []
        columns: list[list[Entry]] = [[] for _ in range(1 + max((layer.column for layer in layers), default=0))]
        for layer in layers:
            columns[layer.column] += [
                entry for entry in _entries_of(chart, layer) if entry not in columns[layer.column]
            ]
        for layer in layers:
            if layer.mark == "ticks":
                # dynamics that rows alone show: a look depends on the place among all names
                columns[-1] += self._kinds([*self.names, *self._others(data)])[len(self.names) :]
                beyond = {"marker": AFTER, "color": INK, "linestyle": "none", "gid": "beyond"}
                columns[-1].append((beyond, data[data[layer.y].attrs["bound"]].attrs["reason"]))
        columns[-1] += _marks_of_points(chart, data, levels[0])
        maps = entries_of_cells(data, layers[0]) if layers[0].mark in MAPS else []
        return [
            _hues(data, chart),
            dashes,
            kinds,
            *maps,
            *columns,
            self.published.entries(data, chart.split, chart.dash),
        ]

    def _kinds(self, names: list[str]) -> list[Entry]:
        """Return an entry per dynamics; a single one without a hue may have its colour."""
        looks, is_ink = self.chart.looks, self.chart.looks.listed or self.chart.split.hue or len(names) > 1
        blank = {"color": INK if is_ink else look(0)["color"], "marker": "o"}
        return [
            (looks.of(name, names, blank) | looks.entry(name), dynamics_label(name) + looks.words) for name in names
        ]

    def _others(self, data: xr.Dataset) -> list[str]:
        """Return the dynamics that no point of the top level shows."""
        return [name for name in dynamics_order(data["dynamics"].values) if name not in self.names]


def _entries_of(chart: Chart, layer: Layer) -> list[Entry]:
    """Return the entries of a layer: its label, unless it stands in the panels, and that of runs that stopped."""
    if not layer.label or layer.mark in WRITTEN:
        return []
    if layer.mark == "law":
        return [(law_look(chart, layer.dashes) | {"color": INK, "gid": layer.name, **layer.look}, layer.label)]
    if layer.mark in ("runs", "lines"):
        ended: list[Entry] = [(STOPPED | {"color": INK}, "last record of a run\nthat stopped")]
        ink = INK if chart.split.hue else look(0)["color"]
        return [
            (RUN | {"color": ink} | layer.look | {"alpha": None}, layer.label),
            *(ended if layer.mark == "runs" else []),
        ]
    wide = {"linewidth": 7, "solid_capstyle": "butt"} if layer.mark == "band" else {}
    return [({"color": INK} | wide | layer.look | layer.entry, layer.label)]


def _hues(data: xr.Dataset, chart: Chart) -> list[Entry]:
    """Return an entry per colour, with its `hue_text`; without colours an entry of that text alone."""
    hue, has_text = chart.split.hue, chart.hue_text is not None and not chart.split.panel
    if hue is None and not has_text:
        return []
    entries: list[Entry] = []
    for index, series in chart.split.colours(data):
        label = value_label(series[hue], data[hue]) if hue else ""
        text = chart.hue_text(series) if chart.hue_text is not None and has_text else ""
        style = look(index) | chart.looks.hue if hue else look(0) | {"color": INK, "linestyle": "none"}
        entries.append((style, ": ".join(filter(None, [label, text]))))
    return [entry for entry in entries if entry[1]]


def _marks_of_points(chart: Chart, data: xr.Dataset, level: Level) -> list[Entry]:
    """Return the entries of points without a value, of bounds and of fits."""
    if not level.y or level.layers[0].mark not in POINTS:
        return []
    measured, words = data[level.y], chart.unknown or "no value"
    if chart.unknown:
        names = dynamics_where(data["requested"] & measured.isnull())
        words = f"{words}: {', '.join(map(dynamics_label, names))}"
    entries: list[Entry] = [(UNKNOWN | {"color": INK, "gid": "unknown"}, words)]
    if name := measured.attrs.get("bound"):
        arrow = bound_mark(bound_side(measured)) | {"color": INK, "markersize": 12.0}
        entries.append((arrow, data[name].attrs["reason"]))
    if fit := measured.attrs.get("fit"):
        entries.append(({"color": INK, "linewidth": 1.0, "gid": "fit"}, data[fit].attrs["long_name"]))
    return entries
