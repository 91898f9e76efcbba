"""The limit that describes SGD, as a function of learning rate and dimension, in one panel per width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.needs import need_axis
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.scan import drawn_scan_dim, scan_dim, scan_dims
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures.figure import FIGURES, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data
from sweeplib.pictures.figures.kit.facets import Facets, arranged, free_axes
from sweeplib.pictures.figures.kit.labels import axis_label
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import panels_of
from sweeplib.pictures.figures.kit.rounds import ADDED_SIZE, is_added, is_asked, with_rounds
from sweeplib.pictures.figures.kit.scales import edges_of, logarithm
from sweeplib.pictures.figures.kit.style import FAINT, INK, UNDECIDED, plain_ticks
from sweeplib.statistics.labelled import labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "The simplest limit that describes SGD: the mean of SGD deviates from it by less than the scatter of runs, and the "
    "scatter is less than half of the change of the risk. Cells reach half way to the next point. Open: undecided, for "
    "the reason in the legend. Small: points that rounds have added. "
    "Lines, of which theory gives only the slopes: gradient flow deviates by γ/p, runs scatter by √(γ/(pd)); and one "
    "step changes Q by more than Q itself."
)
LOOKS: dict[str, dict[str, Any]] = {
    "gradient_flow": {"color": "#2b9a93", "marker": "o", "markersize": 4.6},
    "ode": {"color": "#e39b1f", "marker": "s", "markersize": 4.4},
    "mean_field_hd": {"color": "#8c5fb0", "marker": "h", "markersize": 4.8},
    "mean_field": {"color": "#c8452b", "marker": "D", "markersize": 4.2},
}
OTHERS: tuple[dict[str, Any], ...] = (
    {"color": "#7fb8e6", "marker": "v", "markersize": 4.8},
    {"color": "#5a5a5a", "marker": "P", "markersize": 4.8},
)
"""The looks of candidates that are not built in, in their order."""
NONE: dict[str, Any] = {"color": "#14365f", "marker": "X", "markersize": 5.2}
OPEN = {"color": "#6a6a6a", "marker": "o", "markersize": 4.6, "markerfacecolor": "white", "markeredgewidth": 0.8}
LOST, UNRUN = OPEN | {"marker": "s"}, OPEN | {"marker": "D"}
UNDECIDED_BY: tuple[tuple[dict[str, Any], str], ...] = (
    (OPEN, "undecided: more seeds may tell"),
    (LOST, "undecided: runs were lost"),
    (UNRUN, "undecided: what may decide was not run"),
)
"""The marks of points without a limit, by the reason, and their texts."""
SIZE, TINT = 0.72, 0.35
"""The size of markers in cells relative to that in the legend, and the opacity of cells."""
NOT_RUN: dict[str, Any] = {"color": FAINT, "linestyle": "none", "marker": ".", "markersize": 2.0, "gid": "not-run"}
NOWHERE = -9
"""The code of a point that was not run."""
LINES: dict[str, tuple[float, Any]] = {r"$\gamma/p=1/d$": (-1.0, "solid"), r"$\gamma/p=\sqrt{d}$": (0.5, (0, (5, 2)))}


def limits_diagram(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare the limits over (γ/p, d), with one panel per width p; other axes need a value in `where`."""
    outline = outline_of(analyses["limits"])
    limit = outline.only("limit")
    need_axis(limit, "d")
    panel = "p" if "p" in free_axes(limit, where) else None
    axes = {drawn_scan_dim(outline, where), "d"}
    split = arranged(limit, axes, where, panel, spare=False, most=1 if panel else 0)
    return Chart(
        x="log_x",
        y="log_d",
        z="limit",
        data=limits_map,
        needs=("limits",),
        hover=("d", "gamma", "bias_least", "spread"),
        colors={"undecided": UNDECIDED, "none": NONE["color"]} | {name: look["color"] for name, look in LOOKS.items()},
        title="Simplest limit that describes SGD over learning rate and dimension",
        split=split,
        paint=lambda ds, results: _painted(split.selected(with_rounds(results["limits"], ds, "limit")), split),
    )


def _painted(result: xr.Dataset, split: Facets) -> Drawing:
    result = result.assign_coords(ratio=labelled(field(result, "gamma") / field(result, "p"), "", r"\gamma/p"))
    panels = panels_of(result, split, width=2.1, height=3.0)
    for place, subset in split.parts(result):
        _panel(panels.stacks[place][0], subset)
    panels.xlabel(axis_label(result["ratio"]).strip())
    panels.ylabel(axis_label(result["d"]))
    legend_below(panels.drawing, [[entry] for entry in (*_entries(result), *map(_line, LINES))])
    return panels.drawing


def _panel(axes: Axes, subset: xr.Dataset) -> None:
    limit, ratio, d = xr.broadcast(subset["limit"], subset["ratio"], subset["d"])
    run = xr.broadcast(_was_run(subset), limit)[0].transpose(*limit.dims)
    ends = np.array([float(subset["d"].min()), float(subset["d"].max())]) * [0.7, 1.4]
    axes.set(xscale="log", yscale="log", ylim=ends, xlim=np.array([ratio.min(), ratio.max()]) * [0.6, 1.6])
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis, (1.0, 3.0))
    for title, (power, dash) in LINES.items():
        axes.plot(ends**power, ends, color=INK, linewidth=0.9, linestyle=dash, zorder=1, gid=title)
    wanted, added = is_asked(subset, limit), is_added(subset, limit)
    left_out = ~run.values & wanted
    axes.plot(ratio.values[left_out], d.values[left_out], **NOT_RUN)
    codes, looks = _codes(subset, limit), _looks(subset)
    _cells(axes, ratio.values, d.values, np.where(run.values, codes, NOWHERE), wanted | run.values, looks)
    for size, kind in ((SIZE, ~added), (SIZE * ADDED_SIZE, added)):
        for code, look in looks.items():
            here = (codes == code) & run.values & kind
            style = look | {"markersize": size * look["markersize"], "linestyle": "none", "gid": f"code-{code}"}
            axes.plot(ratio.values[here], d.values[here], zorder=3, **style)


def _codes(subset: xr.Dataset, limit: xr.DataArray) -> np.ndarray:
    """Return the limits by code; of undecided points −1 where runs were lost, −2 where what may decide was not run."""
    lost = subset["bias"].isnull().any("candidate") & (subset["seeds_lost"] > 0).any("candidate")
    unrun = subset["decidable"] == 0.0
    undecided = xr.where(unrun, -2, xr.where(lost, -1, 0)).broadcast_like(limit).transpose(*limit.dims)
    return np.where(limit.values == 0, undecided.values, limit.values)


def _cells(
    axes: Axes, x: np.ndarray, d: np.ndarray, codes: np.ndarray, wanted: np.ndarray, looks: Mapping[int, dict[str, Any]]
) -> None:
    """Draw a cell in the colour of its limit around each point that was run: half way to those that were asked for."""
    rows = np.unique(d)
    heights = edges_of(rows.astype(float), logarithmic=True)
    for place, row in enumerate(rows):
        here = wanted & (d == row)
        order = np.argsort(x[here])
        sides, kinds = edges_of(x[here][order], logarithmic=True), codes[here][order]
        for code in set(kinds.tolist()) & looks.keys():
            left, right = sides[:-1][kinds == code], sides[1:][kinds == code]
            colour = UNDECIDED if code <= 0 else looks[code]["color"]
            box = {"bottom": heights[place], "height": heights[place + 1] - heights[place]}
            axes.bar(left, width=right - left, align="edge", color=colour, alpha=TINT, linewidth=0, zorder=0.5, **box)


def _was_run(result: xr.Dataset) -> xr.DataArray:
    """Return a mask: where the compared dynamics were run, even if too many of their runs were lost."""
    return (result["bias"].notnull() | (result["seeds_lost"] > 0)).any("candidate")


def _looks(result: xr.Dataset) -> dict[int, dict[str, Any]]:
    """Return the marker styles by code: undecided for a reason (0, −1, −2), the candidates, none of them."""
    names = [str(name) for name in result["candidate"].values]
    others = [name for name in names if name not in LOOKS]
    limits = [*(LOOKS.get(name) or OTHERS[others.index(name) % len(OTHERS)] for name in names), NONE]
    return {-code: look for code, (look, _) in enumerate(UNDECIDED_BY)} | dict(enumerate(limits, start=1))


def _entries(result: xr.Dataset) -> list[Entry]:
    reasons = [text for _, text in UNDECIDED_BY]
    names = [*reasons, *(dynamics_label(str(name)) for name in result["candidate"].values), "no limit"]
    looks = zip(_looks(result).items(), names, strict=True)
    entries: list[Entry] = [(look | {"linestyle": "none", "gid": f"code-{code}"}, name) for (code, look), name in looks]
    limits, open_ones = entries[len(reasons) :], entries[: len(reasons)]
    return [*limits, *open_ones, (NOT_RUN, "not run")]


def _line(title: str) -> Entry:
    return {"color": INK, "linestyle": LINES[title][1], "gid": title}, title


def limits_map(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the limits over the logarithms of d and γ/p, or of the scanned axis if γ/p depends on other axes too.

    Of several axes that vary γ it is the longest.
    bias_least and spread are the least of the candidates.
    """
    result = analyses["limits"]
    need_axis(outline_of(result), "d")
    several = scan_dims(outline_of(result))
    scan = max(several, key=result.sizes.__getitem__) if len(several) > 1 else scan_dim(result)
    ratio = field(result, "gamma") / field(result, "p")
    alone = ratio.isel(dict.fromkeys((dim for dim in ratio.dims if dim != scan), 0), drop=True)
    x = labelled(alone, "γ/p") if bool((abs(ratio / alone - 1.0) < 1e-9).all()) else result[scan]
    limit = result["limit"].where(_was_run(result))
    parts = {"limit": limit.assign_attrs(result["limit"].attrs)}
    parts["bias_least"] = labelled(result["bias"].min("candidate"), "least deviation of a limit over the scatter")
    parts["spread"] = labelled(result["spread"].min("candidate"), "least scatter over the change of the risk")
    over = {"log_x": logarithm(x), "log_d": logarithm(result["d"])}
    return xr.Dataset(parts).assign_coords(over | {"gamma": field(result, "gamma"), "p": field(result, "p")})


FIGURES.add(chart_figure("limits_diagram", limits_diagram, CAPTION, ("limits",)))
