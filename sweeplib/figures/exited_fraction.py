"""The fraction of runs whose risk fell by the threshold, against the learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.labels import dynamics_label
from sweeplib.analysis.passages import passages
from sweeplib.analysis.phase_retrieval import escape_theory_holds
from sweeplib.analysis.problem_fields import field
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.analysis.scan import drawn_scan_dim
from sweeplib.analysis.status import STOPPED, with_status
from sweeplib.figures.facets import Facets, arranged, free_axes, numbered_parts, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, symbol, value_label, wrapped_label
from sweeplib.figures.legend import bound_entry, hue_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.scales import logarithmic_along
from sweeplib.figures.style import BOUND, INK, dynamics_look, line_look, look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Fraction of the runs whose risk fell by the threshold T before the horizon, against the learning rate, with "
    "Wilson intervals where some runs exited and some did not. Ticks on top: the largest learning rate at which linear "
    "theory learns, the smaller of twice the optimum and, for p > 1, p²/8; without a tick it lies beyond the axis. "
    "Points of several colours at one learning rate are shifted sideways. Open triangles: lower bounds, where all runs "
    "that did not exit were ended by their time limit, before the horizon."
)
BESIDE = 0.018
"""The shift between points of consecutive hues, as a fraction of the range of an axis."""
SMALLER = 0.75
"""The size of filled markers relative to other figures: open ones are visible behind them."""


def exited_fraction(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
) -> Drawing:
    """Return a figure of the exited fraction against γ/γ_opt (γ without a theory); by default a panel per threshold."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue)
    data = split.selected(_data(ds, analyses["exit_times"]))
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.4, alone=3.8, height=2.7)
    shown = used_dynamics(data)
    dim = drawn_scan_dim(ds, where)
    axes = panels.stacks[0][0]
    rates = data["gamma"] / data["unit"]
    if logarithmic_along(rates, dim):
        axes.set_xscale("log")
    for place, part in numbered_parts(data, parts):
        hues = list(numbered_parts(part, split.hues(part)))
        for index, one in hues:
            aside = BESIDE * (index - 0.5 * (len(hues) - 1))
            _curve(panels.stacks[place][0], _aside(one, rates, aside, axes.get_xscale()), dim, shown, index)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    axes.set_ylim(-0.05, 1.05)
    if axes.get_xscale() == "log":
        plain_ticks(axes.xaxis, (1.0, 2.0, 5.0))
    panels.xlabel(_label(ds, data))
    panels.ylabel(wrapped_label(data["exited_fraction"]))
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown)
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
) -> Facets:
    exits, dim = outline_of(analyses["exit_times"]), drawn_scan_dim(ds, where)
    several = "threshold" in free_axes(exits, where)
    panel = panel or ("threshold" if several and hue != "threshold" else None)
    return arranged(exits, {"dynamics", dim}, where, panel, hue)


def _data(ds: xr.Dataset, exits: xr.Dataset) -> xr.Dataset:
    import xarray as xr

    names = ["exited_fraction", "exited_fraction_low", "exited_fraction_high", "seeds_used"]
    known = bool(escape_theory_holds(ds).all())
    p, Delta = field(ds, "p"), field(ds, "Delta")
    unit = theory.optimal_learning_rate(p, Delta) if known else xr.ones_like(p, dtype=float)
    end = theory.learnable_range(p, Delta) / unit if known else xr.full_like(unit, np.nan)
    return (
        exits[names]
        .assign(unit=unit, end=end, cut_short=_cut_short(ds) & (exits["exited_fraction"] < 1.0))
        .assign_attrs(theory=known)
    )


def _cut_short(ds: xr.Dataset) -> xr.DataArray:
    """Return, per cell, whether no run without an exit was observed up to the horizon, for want of time."""
    left = passages(ds, "steps").censored()
    late = left & with_status(ds, *STOPPED)
    cut: xr.DataArray = late.any("seed") & ~(left & ~with_status(ds, *STOPPED)).any("seed")
    return cut


def _label(ds: xr.Dataset, data: xr.Dataset) -> str:
    gamma = field(ds, "gamma")
    return f"{symbol(gamma)}/${data['unit'].attrs['symbol']}$" if data.attrs["theory"] else axis_label(gamma)


def _aside(one: xr.Dataset, rates: xr.DataArray, aside: float, scale: str) -> xr.Dataset:
    """Return the data of a curve with its places `x`: learning rates, shifted by a fraction of the range of `rates`."""
    x, low, high = one["gamma"] / one["unit"], float(rates.min()), float(rates.max())
    return one.assign(x=x * (high / low) ** aside if scale == "log" else x + aside * (high - low))


def _curve(axes: Axes, one: xr.Dataset, dim: str, shown: list[str], index: int) -> None:
    """Draw the points of each dynamics with their intervals; those without noise have a line only if all are."""
    x = one["x"].transpose(dim)
    for name in shown:
        run = one.sel(dynamics=name)
        middle, low, high = (run[f"exited_fraction{end}"] for end in ("", "_low", "_high"))
        mixed = (middle > 0.0) & (middle < 1.0)
        error = np.clip([middle - low, high - middle], 0.0, None)
        style = _marks(name, shown, look(index)) | {"linewidth": 0.8, "clip_on": False}
        if not is_stochastic(name) and is_stochastic(shown[0]):
            style |= {"linestyle": "none"}
        axes.errorbar(x, middle, np.where(mixed, error, np.nan), elinewidth=0.8, **style)
        bound = {"color": style["color"], "gid": f"{style['gid']} bound", "zorder": 5, "clip_on": False}
        axes.plot(x, middle.where(run["cut_short"]), **BOUND | bound)
    end = one["end"].item()
    if float(x.min()) < end < float(x.max()):
        tick = line_look(index, "end") | {"linewidth": 2.2, "transform": axes.get_xaxis_transform()}
        axes.plot([end, end], [0.96, 1.0], **tick)


def _marks(name: str, shown: list[str], looks: dict[str, Any]) -> dict[str, Any]:
    """Return the marker of a dynamics, of a size at which points with one value are visible behind each other."""
    from matplotlib import rcParams

    found = dynamics_look(name, shown, looks)
    size = found.get("markersize", rcParams["lines.markersize"])
    return found | {"markersize": SMALLER * size} if name == shown[0] else found


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str]) -> None:
    hues = hue_entries(data, split, linewidth=0.8)
    blank = {"color": INK, "marker": "o"}
    kinds = [(_marks(name, shown, blank) | {"linestyle": "none"}, dynamics_label(name)) for name in shown]
    bar = {"color": INK, "marker": "|", "markersize": 8, "markeredgewidth": 2.2, "linestyle": "none", "gid": "end"}
    bounds = [bound_entry("runs were out of time")] if bool(data["cut_short"].any()) else []
    legend_below(drawing, [hues, kinds, [(bar, "end of linear theory"), *bounds]])


FIGURES.register(
    "exited_fraction",
    Figure("exited_fraction", exited_fraction, CAPTION, needs=("exit_times",), arrange=_arranged),
)
INTERACTIVE.register(
    "exited_fractions",
    Interactive(
        x="gamma", y="exited_fraction", needs=("exit_times",), hover=("exit_steps_median",), figure="exited_fraction"
    ),
)
