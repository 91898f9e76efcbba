"""The optimal learning rate against the student width, with its intervals, beside theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.cells import field
from sweeplib.figures.facets import Facets, each
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, symbol, value_label, wrapped_label
from sweeplib.figures.learning_rate_scan import optima
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.over_width import dodged, measured_dynamics, over_width, width_axis
from sweeplib.figures.style import FAINT, INK, THEORY_DASHES, dynamics_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "The learning rate of least mean exit steps against the student width, with bootstrap intervals over the seeds; an "
    "arrow where the interval goes on beyond the learning rates scanned. Dashed: theory for d → ∞; solid: theory with "
    "the noise of SGD at this d, ending where it has no optimum. Below: the same over the dashed line."
)
LIMIT: Any = THEORY_DASHES["quenched"]
WIDTHS = 25


def optimal_learning_rate(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
) -> Drawing:
    """A figure of γ_opt against p, and below, where theory applies, of its ratio to theory.

    By default a panel for each d and a colour for each Δ; other axes stand at `where`, or at their middle.
    """
    from matplotlib.figure import Figure as Drawing

    data, split = over_width(analyses["optimal_learning_rate"], where, panel, hue)
    known = bool(data["gamma_opt_theory"].notnull().all())
    panels = split.panels(data)
    rows = 2 if known else 1
    width = min(7.0, 1.2 + 2.1 * len(panels)) if len(panels) > 1 else 3.6
    drawing = Drawing(figsize=(width, 2.9 + 1.8 * (rows - 1)), layout="constrained")
    grid = drawing.subplots(rows, len(panels), sharex=True, sharey="row", squeeze=False)
    shown = measured_dynamics(data, "gamma_opt")
    for column, part in each(data, panels):
        _panel(grid[:, column], part, split, shown)
        if split.panel:
            grid[0, column].set_title(value_label(part[split.panel]))
        grid[-1, column].set_xlabel(axis_label(data["p"]))
    grid[0, 0].set_ylabel(wrapped_label(data["gamma_opt"], 24))
    if known:
        optimum, unit = symbol(data["gamma_opt"]), symbol(data["gamma_opt_theory"])
        grid[1, 0].set_ylabel(f"over theory, $d\\to\\infty$\n{optimum}/{unit}")
    _legend(drawing, data, split, shown, known)
    return drawing


def _panel(grid: Any, part: xr.Dataset, split: Facets, shown: list[str]) -> None:
    import xarray as xr

    hues = split.hues(part)
    for row, axes in enumerate(grid):
        if row:
            axes.axhline(1.0, color=FAINT, linewidth=0.8, zorder=0)
        for index, one in each(part, hues):
            unit = one["gamma_opt_theory"] if row else xr.ones_like(one["gamma_opt_theory"])
            p = dodged(one["p"].values, index, len(hues))
            for name in shown:
                _points(axes, p, one.sel(dynamics=name) / unit, one["at_edge"].sel(dynamics=name),
                        dynamics_look(name, shown, look(index)))  # fmt: skip
            if len(grid) > 1:
                _theory(axes, one, look(index)["color"], relative=bool(row))
        width_axis(axes, part["p"].values)
    grid[0].set_yscale("log")
    plain_ticks(grid[0].yaxis, (1.0, 3.0))


def _points(axes: Axes, p: np.ndarray, found: xr.Dataset, at_edge: xr.DataArray, looks: dict[str, Any]) -> None:
    best, low, high = (found[f"gamma_opt{end}"].values for end in ("", "_low", "_high"))
    inside = ~at_edge.values
    axes.errorbar(p[inside], best[inside], yerr=[(best - low)[inside], (high - best)[inside]], elinewidth=0.9,
                  linestyle="none", **looks)  # fmt: skip
    for x, start, end in zip(p[~inside], low[~inside], high[~inside], strict=True):
        axes.plot([x, x], [start, end], color=looks["color"], linewidth=0.9, zorder=3)
        axes.plot(x, end, marker="^", markersize=5, markerfacecolor="white", color=looks["color"], zorder=4)


def _theory(axes: Axes, one: xr.Dataset, colour: str, *, relative: bool) -> None:
    ends = np.array([one["p"].min(), one["p"].max()], float)
    p = np.geomspace(ends[0], ends[1], WIDTHS) if ends[1] > ends[0] else ends
    d, Delta, T = (float(field(one, name)) for name in ("d", "Delta", "threshold"))
    limit = theory.optimal_learning_rate(p, Delta)
    corrected = theory.noise_corrected_optimal_learning_rate(p, d, Delta, T)
    if not relative:
        axes.plot(p, limit, color=colour, linewidth=0.9, linestyle=LIMIT, zorder=1)
    axes.plot(p, corrected / (limit if relative else 1.0), color=colour, linewidth=0.9, zorder=1)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], known: bool) -> None:
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    kinds += [({"color": INK, "marker": "^", "markerfacecolor": "white", "linestyle": "none"}, "beyond the scan")]
    lines: list[tuple[dict[str, Any], str]] = [
        ({"color": INK, "linewidth": 0.9, "linestyle": LIMIT}, r"theory, $d\to\infty$"),
        ({"color": INK, "linewidth": 0.9}, "noise-corrected theory"),
    ]
    legend_below(drawing, [hues, kinds, lines if known else []])


FIGURES.register(
    "optimal_learning_rate",
    Figure("optimal_learning_rate", optimal_learning_rate, CAPTION, needs=("optimal_learning_rate",)),
)
INTERACTIVE.register(
    "optima_over_width",
    Interactive(
        x="p",
        y="gamma_opt",
        data=optima,
        needs=("optimal_learning_rate",),
        also=("gamma_opt_theory", "exit_steps_min", "at_edge"),
        theory="gamma_opt_expected",
        figure="optimal_learning_rate",
    ),
)
