"""The limit that describes SGD, as a function of learning rate and dimension, in one panel per width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label, labelled
from sweeplib.analysis.kit.needs import need_axis
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.scan import drawn_scan_dim, scan_dim, scan_dims
from sweeplib.figures.figure import FIGURES, Where
from sweeplib.figures.kit.chart import ByName, Chart, Data, chart_figure
from sweeplib.figures.kit.facets import Facets, arranged, free_axes
from sweeplib.figures.kit.labels import axis_label
from sweeplib.figures.kit.legend import Entry, legend_below
from sweeplib.figures.kit.panels import panels_of
from sweeplib.figures.kit.rounds import ADDED_SIZE, is_added, is_asked, with_rounds
from sweeplib.figures.kit.scales import logarithm
from sweeplib.figures.kit.style import FAINT, INK, UNDECIDED, plain_ticks
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import outline_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "The simplest limit that describes SGD: the mean of SGD deviates from it by less than the scatter of runs, and the "
    "scatter is less than half of the change of the risk. Open: undecided. Small: points that rounds have added. "
    "Lines, of which theory gives only the slopes: gradient flow deviates by γ/p, runs scatter by √(γ/(pd)); and one "
    "step changes Q by more than Q itself."
)
LOOKS: dict[str, dict[str, Any]] = {
    "gradient_flow": {"color": "#2b9a93", "marker": "o", "markersize": 4.6},
    "ode": {"color": "#e39b1f", "marker": "s", "markersize": 4.4},
    "mean_field_hd": {"color": "#8c5fb0", "marker": "^", "markersize": 4.8},
    "mean_field": {"color": "#c8452b", "marker": "D", "markersize": 4.2},
}
OTHERS: tuple[dict[str, Any], ...] = (
    {"color": "#7fb8e6", "marker": "v", "markersize": 4.8},
    {"color": "#5a5a5a", "marker": "P", "markersize": 4.8},
)
"""The looks of candidates that are not built in, in their order."""
NONE: dict[str, Any] = {"color": "#14365f", "marker": "X", "markersize": 5.2}
OPEN = {"color": "#6a6a6a", "marker": "o", "markersize": 3.6, "markerfacecolor": "white", "markeredgewidth": 0.8}
NOT_RUN: dict[str, Any] = {"color": FAINT, "linestyle": "none", "marker": ".", "markersize": 2.0, "gid": "not-run"}
LINES: dict[str, tuple[float, Any]] = {r"$\gamma/p=1/d$": (-1.0, "solid"), r"$\gamma/p=\sqrt{d}$": (0.5, (0, (5, 2)))}


def limits_diagram(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare the limits over (γ/p, d), with one panel per width p; other axes need a value in `where`."""
    found = outline_of(analyses["limits"])
    limit = found.only("limit")
    need_axis(limit, "d")
    panel = "p" if "p" in free_axes(limit, where) else None
    drawn = {drawn_scan_dim(found, where), "d"}
    split = arranged(limit, drawn, where, panel, spare=False, most=1 if panel else 0)
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
        paint=lambda ds, made: _painted(split.selected(with_rounds(made["limits"], ds, "limit")), split),
    )


def _painted(found: xr.Dataset, split: Facets) -> Drawing:
    found = found.assign_coords(ratio=labelled(field(found, "gamma") / field(found, "p"), "", r"\gamma/p"))
    panels = panels_of(found, split, width=2.1, height=3.0)
    for place, part in split.parts(found):
        _panel(panels.stacks[place][0], part)
    panels.xlabel(axis_label(found["ratio"]).strip())
    panels.ylabel(axis_label(found["d"]))
    legend_below(panels.drawing, [[entry] for entry in (*_entries(found), *map(_line, LINES))])
    return panels.drawing


def _panel(axes: Axes, part: xr.Dataset) -> None:
    limit, ratio, d = xr.broadcast(part["limit"], part["ratio"], part["d"])
    run = xr.broadcast(_was_run(part), limit)[0].transpose(*limit.dims)
    ends = np.array([float(part["d"].min()), float(part["d"].max())]) * [0.7, 1.4]
    axes.set(xscale="log", yscale="log", ylim=ends, xlim=np.array([ratio.min(), ratio.max()]) * [0.6, 1.6])
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis, (1.0, 3.0))
    for title, (power, dash) in LINES.items():
        axes.plot(ends**power, ends, color=INK, linewidth=0.9, linestyle=dash, zorder=1, gid=title)
    left_out = ~run.values & is_asked(part, limit)
    axes.plot(ratio.values[left_out], d.values[left_out], **NOT_RUN)
    added = is_added(part, limit)
    for size, kind in ((1.0, ~added), (ADDED_SIZE, added)):
        for code, look in enumerate(_looks(part)) if kind.any() else ():
            here = (limit.values == code) & run.values & kind
            style = look | {"markersize": size * look["markersize"], "linestyle": "none", "gid": f"code-{code}"}
            axes.plot(ratio.values[here], d.values[here], zorder=3, **style)


def _was_run(found: xr.Dataset) -> xr.DataArray:
    """Return a mask: where the compared dynamics were run, even if too many of their runs were lost."""
    return (found["bias"].notnull() | (found["seeds_lost"] > 0)).any("candidate")


def _looks(found: xr.Dataset) -> list[dict[str, Any]]:
    """Return the marker styles by code: undecided, the candidates, none of them."""
    names = [str(name) for name in found["candidate"].values]
    others = [name for name in names if name not in LOOKS]
    return [OPEN, *(LOOKS.get(name) or OTHERS[others.index(name) % len(OTHERS)] for name in names), NONE]


def _entries(found: xr.Dataset) -> list[Entry]:
    names = ["undecided", *(dynamics_label(str(name)) for name in found["candidate"].values), "no limit"]
    looks = enumerate(zip(_looks(found), names, strict=True))
    entries: list[Entry] = [(look | {"linestyle": "none", "gid": f"code-{code}"}, name) for code, (look, name) in looks]
    return [*entries, (NOT_RUN, "not run")]


def _line(title: str) -> Entry:
    return {"color": INK, "linestyle": LINES[title][1], "gid": title}, title


def limits_map(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the limits over the logarithms of d and γ/p, or of the scanned axis if γ/p depends on other axes too.

    Of several axes that vary γ it is the longest.
    bias_least and spread are the least of the candidates.
    """
    found = analyses["limits"]
    need_axis(outline_of(found), "d")
    several = scan_dims(outline_of(found))
    scan = max(several, key=found.sizes.__getitem__) if len(several) > 1 else scan_dim(found)
    ratio = field(found, "gamma") / field(found, "p")
    alone = ratio.isel(dict.fromkeys((dim for dim in ratio.dims if dim != scan), 0), drop=True)
    x = labelled(alone, "γ/p") if bool((abs(ratio / alone - 1.0) < 1e-9).all()) else found[scan]
    limit = found["limit"].where(_was_run(found))
    parts = {"limit": limit.assign_attrs(found["limit"].attrs)}
    parts["bias_least"] = labelled(found["bias"].min("candidate"), "least deviation of a limit over the scatter")
    parts["spread"] = labelled(found["spread"].min("candidate"), "least scatter over the change of the risk")
    over = {"log_x": logarithm(x), "log_d": logarithm(found["d"])}
    return xr.Dataset(parts).assign_coords(over | {"gamma": field(found, "gamma"), "p": field(found, "p")})


FIGURES.add(chart_figure("limits_diagram", limits_diagram, CAPTION, ("limits",)))
