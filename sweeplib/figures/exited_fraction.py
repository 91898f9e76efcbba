"""The fraction of runs whose risk fell by the threshold, against the learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.phase_retrieval import escape_theory_holds
from sweeplib.analysis.problem_fields import field
from sweeplib.analysis.scan import scan_dim
from sweeplib.figures.facets import Facets, arranged, free_axes, numbered_parts, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, symbol, value_label, wrapped_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, dynamics_look, line_look, look
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Fraction of the runs whose risk fell by the threshold T before the horizon, against the learning rate, with "
    "Wilson intervals where some runs exited and some did not. Ticks on top: the largest learning rate at which linear "
    "theory learns, the smaller of 2 γ_opt and, for p > 1, p²/8; without a tick it lies beyond the axis. Points at one "
    "learning rate are shifted sideways; where all runs exited, or none, lines are shifted up and down instead."
)
BESIDE = 0.012
"""The shift between points of consecutive hues, as a fraction of the range of an axis."""


def exited_fraction(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
) -> Drawing:
    """Return a figure of the exited fraction against γ/γ_opt (γ without a theory); by default a panel per threshold."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue)
    data = split.selected(_data(ds, analyses["exit_times"]))
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.4, alone=3.8, height=2.7)
    shown = used_dynamics(data)
    for place, part in numbered_parts(data, parts):
        hues = list(numbered_parts(part, split.hues(part)))
        for index, one in hues:
            aside = BESIDE * (index - 0.5 * (len(hues) - 1))
            _curve(panels.stacks[place][0], one, scan_dim(ds), shown, index, aside)
        if split.panel:
            panels.title(place, value_label(part[split.panel]))
    panels.stacks[0][0].set_ylim(-0.05, 1.05)
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
    exits, dim = outline_of(analyses["exit_times"]), scan_dim(ds)
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
    return exits[names].assign(unit=unit, end=end).assign_attrs(theory=known)


def _label(ds: xr.Dataset, data: xr.Dataset) -> str:
    gamma = field(ds, "gamma")
    return f"{symbol(gamma)}/${data['unit'].attrs['symbol']}$" if data.attrs["theory"] else axis_label(gamma)


def _curve(axes: Axes, one: xr.Dataset, dim: str, shown: list[str], index: int, aside: float) -> None:
    x = (one["gamma"] / one["unit"]).transpose(dim)
    sideways = aside * float(x.max() - x.min())
    for name in shown:
        run = one.sel(dynamics=name)
        middle, low, high = (run[f"exited_fraction{end}"] for end in ("", "_low", "_high"))
        mixed = (middle > 0.0) & (middle < 1.0)
        error = np.clip([middle - low, high - middle], 0.0, None)
        style = dynamics_look(name, shown, look(index)) | {"linewidth": 0.8}
        axes.plot(x + mixed * sideways, middle + ~mixed * aside, clip_on=False, **style | {"marker": "none"})
        points = style | {"linestyle": "none", "clip_on": False}
        axes.plot(x.where(~mixed), middle + aside, **points | {"markersize": 2.2})
        axes.errorbar(x.where(mixed) + sideways, middle, error, elinewidth=0.8, **points)
    end = one["end"].item()
    if float(x.min()) < end < float(x.max()):
        tick = line_look(index, "end") | {"linewidth": 2.2, "transform": axes.get_xaxis_transform()}
        axes.plot([end, end], [0.96, 1.0], **tick)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str]) -> None:
    hues = hue_entries(data, split, linewidth=0.8)
    kinds = dynamics_entries(shown)
    bar = {"color": INK, "marker": "|", "markersize": 8, "markeredgewidth": 2.2, "linestyle": "none", "gid": "end"}
    legend_below(drawing, [hues, kinds, [(bar, "end of linear theory")]])


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
