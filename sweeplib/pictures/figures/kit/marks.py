"""The marks of layers: what each draws of a colour in a panel, or once in a panel.

Each mark is a function of a piece (`points.Part`), which draws on its axes: the variable `layer.y` of the data of one
colour, `series`, or of the `panel`, against `x`. MARKS and ONCE have them by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.cells import cells, classes, kinds, line_of_sum, power, region
from sweeplib.pictures.figures.kit.facets import dynamics_where
from sweeplib.pictures.figures.kit.panels import say
from sweeplib.pictures.figures.kit.points import Part, law, places_of, points, unit_of
from sweeplib.pictures.figures.kit.scales import edges_of
from sweeplib.pictures.figures.kit.style import (
    COLOURS,
    FAINT,
    INK,
    dynamics_look,
    line_look,
    look,
)

FEW_MARKS = 5
"""The number of markers on a curve over time."""
MANY, LARGER = 300, 3.4
"""The number of dots above which they may be smaller than that size."""
BEFORE, AFTER = 8, 9  # matplotlib's CARETLEFTBASE and CARETRIGHTBASE
"""The markers of arrows that begin at an end of x and point beyond it."""
MOST_PLACES = 1000
"""The number of steps of a curve above which it is thinned."""
ROW = 0.075
"""The height of a line of text, as a fraction of that of the axes."""
BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0, "zorder": 1}
RUN: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.75, "zorder": 2, "gid": "run"}
STOPPED: dict[str, Any] = {"marker": "o", "markersize": 2.6, "linestyle": "none", "gid": "stopped"}
"""The looks of bands, of single runs, and of the last records of runs that stopped."""


def _line(piece: Part) -> None:
    """Draw the curve of each dynamics; `marked`: the first has markers, to tell colours apart in grey print."""
    marks = piece.layer.mark == "marked" and piece.chart.split.hue is not None
    for _, series, style in piece.dynamics():
        if bool(series[piece.layer.y].notnull().any()):
            style.pop("marker", None)
            piece.axes.plot(series[piece.x], series[piece.layer.y], **style | (_few_marks(piece) if marks else {}))
            marks = False


def _few_marks(piece: Part) -> dict[str, Any]:
    """Return the properties of a plot that give a curve FEW_MARKS markers, at other places than other colours."""
    step, mark = max(piece.series.sizes[piece.x] // FEW_MARKS, 1), look(piece.index)
    return {
        "marker": mark["marker"],
        "markersize": 4.0,
        "markerfacecolor": mark["color"],
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        # the first place, in the middle of the colour's part of a step, and the distance between places
        "markevery": (step * (2 * piece.index + 1) // (2 * len(COLOURS)), step),
    }


def _band(piece: Part) -> None:
    """Draw the interval of each dynamics with noise as a band."""
    for name, series, _ in piece.dynamics():
        low, high = (series[f"{piece.layer.y}{end}"] for end in ("_low", "_high"))
        if bool((low < high).any()) and (not name or is_stochastic(name)):
            style = BAND | {"color": look(piece.index)["color"]} | piece.layer.look | {"gid": None}
            piece.axes.fill_between(series[piece.x], low, high, **style)


def _stairs(piece: Part) -> None:
    """Draw curves each of whose values holds up to the next place, the first of a colour with its interval."""
    first = True
    for _, series, style in piece.dynamics():
        names = (piece.x, piece.layer.y, f"{piece.layer.y}_low", f"{piece.layer.y}_high")
        columns = np.array([series[name].values for name in names])
        columns = columns[:, np.isfinite(columns[:2]).all(axis=0)]
        if (count := columns.shape[1]) == 0:
            continue
        thinned = np.unique(np.linspace(0, count - 1, min(count, MOST_PLACES)).round().astype(int))
        x, y, low, high = columns[:, thinned]
        style.pop("marker", None)
        piece.axes.step(x, y, where="post", **style)
        if first:
            piece.axes.fill_between(x, low, high, step="post", **BAND, color=style["color"])
        first = False


def _bins(piece: Part) -> None:
    """Draw densities over bins around x: filled for the first dynamics with noise, as lines for the others."""
    filled = [name for name in piece.names if is_stochastic(name)][:1]
    for name, series, style in piece.dynamics():
        x, y = series[piece.x].values, series[piece.layer.y].values
        if name in (filled or [""]) and np.isfinite(y).any():
            piece.axes.stairs(y, edges_of(x), fill=True, color=style["color"])
            piece.axes.plot([], [])  # a panel without a line counts as empty (`mark_empty`)
        elif np.isfinite(y).any():
            piece.axes.plot(x, y, drawstyle="steps-mid", **style)


def _runs(piece: Part) -> None:
    """Draw lines along x, thin; values of the variable `stopped` are the dots of `runs`."""
    for _, series, style in piece.dynamics():
        x, dim = series[piece.x].values, series[piece.x].dims[-1]
        values = series[piece.layer.y].transpose(..., dim).values
        thin = {"linestyle": style.get("linestyle", "solid"), "color": style["color"]} | RUN | piece.layer.look
        for run in values[np.isfinite(values).any(axis=1)]:
            piece.axes.plot(x, run, **thin)
        if piece.layer.mark == "runs":
            for run, place in np.argwhere(np.isfinite(ends := series["stopped"].transpose(..., dim).values)):
                piece.axes.plot(x[place], ends[run, place], color=style["color"], **STOPPED)


def _dots(piece: Part) -> None:
    """Draw the points of each dynamics, which nothing connects."""
    for _, series, style in piece.dynamics():
        x, y = np.broadcast_arrays(series[piece.x].values, series[piece.layer.y].values)
        finite = np.isfinite(x) & np.isfinite(y)
        if finite.sum() <= MANY:
            style["markersize"] = max(style.get("markersize", 0.0), LARGER)
        if finite.any():
            piece.axes.plot(x[finite], y[finite], **{"linestyle": "none"} | style)


def _ticks(piece: Part) -> None:
    """Draw values along x with their intervals, in the row of the colour; arrows where they lie at an end of x."""
    series, y, unit = piece.series, piece.layer.y, unit_of(piece.series, piece.chart.x_over)
    names = dynamics_where(series["seeds_used"] > 0)
    for place, name in enumerate(names):
        dynamics = series.sel(dynamics=name)
        best, low, high = (dynamics[f"{y}{end}"].item() / unit for end in ("", "_low", "_high"))
        # dynamics lie beside each other in the row
        row = -piece.index - 0.22 * (place - (len(names) - 1) / 2)
        style = dynamics_look(name, names, look(piece.index)) | {"markersize": 3.6}
        piece.axes.errorbar(best, row, xerr=[[best - low], [high - best]], elinewidth=0.9, **style)
        scanned = places_of(piece.chart, dynamics).where(dynamics["requested"])
        for end, marker in (_arrows(scanned, (low, best, high)) if dynamics["at_edge"] else {}).items():
            arrow = {"marker": marker, "markersize": 5.4, "color": style["color"], "gid": f"{style['gid']} beyond"}
            piece.axes.plot(end, row, clip_on=False, zorder=4, **arrow)


def _arrows(scanned: xr.DataArray, values: tuple[float, ...]) -> dict[float, int]:
    """Return the marker of an arrow, BEFORE or AFTER, for each of the `values` at the first or the last scanned place.

    It begins there and points out of the scan, so that it does not cover the mark. values : an optimum and the ends of
    its interval. An end at a place within the scan is no edge: the places beyond have clearly larger values.
    """
    edges = {scanned.min().item(): BEFORE, scanned.max().item(): AFTER}
    return {x: marker for x in values for edge, marker in edges.items() if np.isclose(edge, x, rtol=1e-9, atol=0.0)}


def _bar(piece: Part) -> None:
    """Draw a value along x as a broad bar in the row of the colour."""
    if np.isfinite(at := piece.series[piece.layer.y].item() / unit_of(piece.series, piece.chart.x_over)):
        piece.axes.plot(at, -piece.index, **line_look(piece.index) | {"zorder": 1} | piece.layer.look)


def _end(piece: Part) -> None:
    """Draw a tick for each colour: `right` at the height y, `top` at the place y if it lies between the points."""
    tick: dict[str, Any] = line_look(piece.index, "end") | {"linewidth": 1.8, "clip_on": False}
    axes, at = piece.axes, piece.series[piece.layer.y]
    places = places_of(piece.chart, piece.series).where(piece.series["requested"].any())
    if piece.layer.mark == "right" and np.isfinite(at := at.where(places.notnull().any()).item()):
        axes.plot([0.97, 1.0], [at, at], transform=axes.get_yaxis_transform(), **tick)
    elif piece.layer.mark == "top" and float(places.min()) < (at := at.item()) < float(places.max()):
        axes.plot([at, at], [0.96, 1.0], transform=axes.get_xaxis_transform(), **tick)


def _level(piece: Part) -> None:
    """Draw a line across at a value of each colour, where it is known."""
    if (at := float(piece.series[piece.layer.y])) > 0.0:
        piece.axes.axhline(at, **{"color": look(piece.index)["color"]} | piece.layer.look)


def _across(piece: Part) -> None:
    """Draw a horizontal line at a number."""
    piece.axes.axhline(piece.number, color=FAINT, linewidth=0.8, zorder=0)


def _upright(piece: Part) -> None:
    """Draw a vertical line at a number."""
    style: dict[str, Any] = {"color": FAINT, "linewidth": 0.8, "zorder": 0}
    piece.axes.axvline(piece.number, **style | piece.layer.look)


def _path(piece: Part) -> None:
    """Draw a line through all points of a panel, in the order of x."""
    x, y = (array.values.ravel() for array in xr.broadcast(piece.panel[piece.x], piece.panel[piece.layer.y]))
    order = np.argsort(x)
    piece.axes.plot(x[order], y[order], **piece.layer.look)


def _shade(piece: Part) -> None:
    """Draw a band between a number and its negative."""
    piece.axes.axhspan(-piece.number, piece.number, color="#e9e9e9", linewidth=0, zorder=0)


def _begin(piece: Part) -> None:
    """Let the horizontal axis begin at a number."""
    piece.axes.set_xlim(left=piece.number)


def _note(piece: Part) -> None:
    """Write the label into the middle of a panel in which the variable is true wherever it is known."""
    values = piece.panel[piece.layer.y].values.astype(float)
    if (finite := values[np.isfinite(values)]).size and finite.all():
        say(piece.axes, piece.layer.label)


def _texts(piece: Part) -> None:
    """Write the text of each dynamics above the points, a line each, with its marker if there are several."""
    axes, texts = piece.axes, piece.panel[piece.layer.y]
    names = [str(name) for name in texts["dynamics"].values]
    texts = texts.isel({dim: 0 for dim in texts.dims if dim != "dynamics"})
    bottom, top = axes.get_ylim()
    # room for the lines, on a logarithmic axis
    axes.set_ylim(bottom, top * (top / bottom) ** (ROW * len(names)))
    lines = [(name, text) for name, text in zip(names, texts.values.tolist(), strict=True) if text]
    for place, (name, text) in enumerate(lines):
        if several := len(lines) > 1:
            mark = dynamics_look(name, names, {"color": INK, "marker": "o"}) | {
                "transform": axes.transAxes,
                "gid": None,
            }
            axes.plot(0.04, 0.955 - ROW * place, scalex=False, scaley=False, **mark)
        line = text if several else f"{piece.layer.label} {text}"
        axes.text(0.09 if several else 0.04, 0.98 - ROW * place, line, transform=axes.transAxes, va="top", fontsize=8)


def _guide(piece: Part) -> None:
    """Draw a line whose slope is the number of the layer, below the leftmost point of a panel, on logarithmic axes."""
    mean, x, axes = piece.panel[piece.level.y], piece.panel[piece.x], piece.axes
    ends = np.unique(x.values[x.values > 0])
    lowest = mean.where(mean > 0.0).min([dim for dim in mean.dims if dim not in x.dims])
    if axes.get_xscale() != "log" or axes.get_yscale() != "log" or len(ends) < 2 or not bool(lowest.notnull().any()):
        return
    lowest = lowest.broadcast_like(x).transpose(*x.dims)
    places = zip(x.values.ravel().tolist(), lowest.values.ravel().tolist(), strict=True)
    start, height = min((at, low) for at, low in places if at > 0 and np.isfinite(low))
    axes.plot(ends, 0.7 * height * (ends / start) ** piece.number, **piece.layer.look)


POINTS = dict.fromkeys(("points", "sparse", "joined", "steps"), points)
MARKS: Mapping[str, Callable[[Part], None]] = POINTS | {
    "law": law,
    "line": _line,
    "marked": _line,
    "band": _band,
    "stairs": _stairs,
    "bins": _bins,
    "runs": _runs,
    "lines": _runs,
    "dots": _dots,
    "level": _level,
    "ticks": _ticks,
    "bar": _bar,
    "top": _end,
    "right": _end,
}
"""What draws each kind of mark of a colour."""
ONCE: Mapping[str, Callable[[Part], None]] = {
    "cells": cells,
    "classes": classes,
    "kinds": kinds,
    "power": power,
    "sum": line_of_sum,
    "region": region,
    "shade": _shade,
    "path": _path,
    "across": _across,
    "upright": _upright,
    "begin": _begin,
    "note": _note,
    "texts": _texts,
    "guide": _guide,
}
"""What draws each kind of mark of a panel."""
