"""Which limit describes SGD, over learning rate and dimension, a panel a width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.cells import field, labelled
from sweeplib.analysis.scan import scan_dim
from sweeplib.errors import InputError
from sweeplib.figures.facets import each, facets, selected
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_label, value_label
from sweeplib.figures.legend import Entry, legend_below
from sweeplib.figures.style import INK, UNDECIDED

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "The simplest limit that describes SGD: the mean of SGD is off it by less than runs scatter, and these scatter by "
    "less than half of what is learned. Open: undecided. Lines, of which theory has the slopes only: gradient flow is "
    "off by γ/p, runs scatter by √(γ/(pd)); and one step moves Q by more than itself."
)
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#2b9a93", "marker": "o", "markersize": 4.6},
    {"color": "#e39b1f", "marker": "s", "markersize": 4.4},
    {"color": "#8c5fb0", "marker": "^", "markersize": 4.8},
    {"color": "#c8452b", "marker": "D", "markersize": 4.2},
)
NONE: dict[str, Any] = {"color": "#14365f", "marker": "X", "markersize": 5.2}
OPEN = {"color": "#6a6a6a", "marker": "o", "markersize": 3.6, "markerfacecolor": "white", "markeredgewidth": 0.8}
LINES: dict[str, tuple[float, Any]] = {r"$\gamma/p=1/d$": (-1.0, "solid"), r"$\gamma/p=\sqrt{d}$": (0.5, (0, (5, 2)))}


def limits_diagram(
    ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, where: Mapping[str, Any] | None = None
) -> Drawing:
    """A figure of the limits over (γ/p, d), a panel a width p; other axes need a value in `where`."""
    from matplotlib.figure import Figure as Drawing

    found = selected(analyses["limits"], where).squeeze()
    _check_axes(found)
    found = found.assign_coords(ratio=labelled(field(found, "gamma") / field(found, "p"), "", r"\gamma/p"))
    split = facets(found[["limit"]], {scan_dim(found), "d"}, panel="p" if "p" in found["limit"].dims else None)
    panels = split.panels(found)
    drawing = Drawing(figsize=(min(7.2, 1.4 + 2.1 * len(panels)), 3.4), layout="constrained")
    axes = drawing.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for column, part in each(found, panels):
        _panel(axes[column], part)
        if split.panel:
            axes[column].set_title(value_label(part[split.panel]))
    axes[0].set_ylabel(axis_label(found["d"]))
    legend_below(drawing, [[entry] for entry in (*_entries(found), *map(_line, LINES))])
    return drawing


def _check_axes(found: xr.Dataset) -> None:
    if "d" not in found["limit"].dims:
        raise InputError("the input dimension does not vary", key="d", expected="an axis of it")
    rest = [str(dim) for dim in found["limit"].dims if dim not in (scan_dim(found), "d", "p")]
    if rest:
        raise InputError("too many axes for one figure", key="where", value=rest, expected="a value for each")


def _panel(axes: Axes, part: xr.Dataset) -> None:
    import xarray as xr

    limit, ratio, d = xr.broadcast(part["limit"], part["ratio"], part["d"])
    run = xr.broadcast(part["bias"].notnull().any("candidate"), limit)[0].transpose(*limit.dims)
    ends = np.array([float(part["d"].min()), float(part["d"].max())]) * [0.7, 1.4]
    axes.set(xscale="log", yscale="log", ylim=ends, xlim=np.array([ratio.min(), ratio.max()]) * [0.6, 1.6])
    for power, dash in LINES.values():
        axes.plot(ends**power, ends, color=INK, linewidth=0.9, linestyle=dash, zorder=1)
    for code, look in enumerate(_looks(part)):
        here = (limit.values == code) & run.values
        axes.plot(ratio.values[here], d.values[here], linestyle="none", zorder=3, **look)
    axes.set_xlabel(axis_label(part["ratio"]).strip())


def _looks(found: xr.Dataset) -> list[dict[str, Any]]:
    """By code: undecided, the candidates, none of them."""
    return [OPEN, *LOOKS[: found.sizes["candidate"]], NONE]


def _entries(found: xr.Dataset) -> list[Entry]:
    names = ["undecided", *(dynamics_label(str(name)) for name in found["candidate"].values), "no limit"]
    return [(look | {"linestyle": "none"}, name) for look, name in zip(_looks(found), names, strict=True)]


def _line(words: str) -> Entry:
    return {"color": INK, "linestyle": LINES[words][1]}, words


def limits_map(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """The limits that were run, over logarithms of d and of γ/p, or of what is scanned where γ/p depends on more.

    With the bias and the spread of each candidate as variables of their own.
    """
    import xarray as xr

    found = analyses["limits"].squeeze()
    _check_axes(found)
    scan = scan_dim(found)
    ratio = field(found, "gamma") / field(found, "p")
    alone = ratio.isel(dict.fromkeys((dim for dim in ratio.dims if dim != scan), 0), drop=True)
    x = labelled(alone, "γ/p") if bool((abs(ratio / alone - 1.0) < 1e-9).all()) else found[scan]
    limit = found["limit"].where(found["bias"].notnull().any("candidate"))
    parts = {"limit": limit.assign_attrs(found["limit"].attrs)}
    for name in found["candidate"].values:
        for measure in ("bias", "spread"):
            part = found[measure].sel(candidate=name, drop=True)
            words = f"{measure} of {dynamics_label(str(name))}"
            parts[f"{measure}_{name}"] = labelled(part, words)
    over = {"log_x": _logarithm(x), "log_d": _logarithm(found["d"])}
    return xr.Dataset(parts).assign_coords(over | {"gamma": field(found, "gamma"), "p": field(found, "p")})


def _logarithm(of: xr.DataArray) -> xr.DataArray:
    import xarray as xr

    return labelled(xr.apply_ufunc(np.log10, of), f"log₁₀ of {of.attrs.get('long_name', of.name)}")


FIGURES.register("limits_diagram", Figure("limits_diagram", limits_diagram, CAPTION, needs=("limits",)))
INTERACTIVE.register(
    "limits",
    Interactive(
        x="log_x",
        y="log_d",
        z="limit",
        data=limits_map,
        needs=("limits",),
        also=("d", "gamma", "bias_gradient_flow", "spread_gradient_flow", "bias_ode", "spread_ode"),
        colors={
            "undecided": UNDECIDED,
            "gradient_flow": LOOKS[0]["color"],
            "ode": LOOKS[1]["color"],
            "none": NONE["color"],
        },
        title="Simplest limit that describes SGD over learning rate and dimension",
        figure="limits_diagram",
    ),
)
