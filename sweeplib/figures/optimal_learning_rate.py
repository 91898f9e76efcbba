"""The optimal learning rate against the student width, with its intervals, compared to theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.labels import dynamics_label
from sweeplib.analysis.problem_fields import field
from sweeplib.figures.facets import Facets, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Published, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_order, symbol, value_label, wrapped_label
from sweeplib.figures.learning_rate_scan import optima
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below, unknown_entry
from sweeplib.figures.over_width import dodged, over_width, width_axis, widths, with_width
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.quantities import with_requests
from sweeplib.figures.references import check_references, references
from sweeplib.figures.style import (
    FAINT,
    INK,
    THEORY_DASHES,
    beyond_look,
    dynamics_look,
    line_look,
    look,
    mark_unknown,
    plain_ticks,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "The learning rate of least mean exit steps against the student width, with bootstrap intervals over the seeds; an "
    "arrow where the interval extends beyond the scanned learning rates. Dashed: theory for d → ∞; solid: theory with "
    "the noise of SGD at this d, up to the last width with an optimum. Below: the ratio to the dashed line. ∅: no "
    "optimum, as fewer than 5 learning rates have a mean over three runs or more."
)
COLUMNS = ("p", "gamma_opt")
LIMIT: Any = THEORY_DASHES["quenched"]


def optimal_learning_rate(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    reference: Published = (),
) -> Drawing:
    """Return a figure of γ_opt against p, and below, where theory applies, of its ratio to theory.

    By default there is a panel for each d and a colour for each Δ; other axes are fixed at `where` or their middle.
    """
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue, reference=reference)
    found = with_requests(analyses["optimal_learning_rate"], "gamma_opt", ds)
    data = with_width(split.selected(found))
    known = bool(data["gamma_opt_theory"].notnull().all())
    parts = split.panels(data)
    stack, height = ((1.0, 1.0), 4.2) if known else ((1.0,), 2.4)
    panels = panel_grid(len(parts), width=2.1, alone=3.6, height=height, stack=stack)
    run = data["requested"].any([dim for dim in data["requested"].dims if dim != "dynamics"])
    shown = dynamics_order(data["dynamics"].values[run.values])
    published = references(reference, *COLUMNS)
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place], part, split, shown)
        for _, one in numbered_parts(part, split.hues(part)):
            published.draw(panels.stacks[place][0], one)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    panels.xlabel(axis_label(data["p"]))
    panels.ylabel(wrapped_label(data["gamma_opt"], 24))
    if known:
        optimum, unit = symbol(data["gamma_opt"]), symbol(data["gamma_opt_theory"])
        panels.ylabel(f"over theory, $d\\to\\infty$\n{optimum}/{unit}", level=1)
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown, published.entries())
    return panels.drawing


def _arranged(
    _: xr.Dataset | Outline, analyses: Mapping[str, xr.Dataset | Outline], *, reference: Sequence[str], **choice: Any
) -> Facets:
    split = over_width(analyses["optimal_learning_rate"], **choice)
    check_references(reference, *COLUMNS, analyses["optimal_learning_rate"], split)
    return split


def _panel(grid: Any, part: xr.Dataset, split: Facets, shown: list[str]) -> None:
    import xarray as xr

    hues = split.hues(part)
    for row, axes in enumerate(grid):
        if row:
            axes.axhline(1.0, color=FAINT, linewidth=0.8, zorder=0)
        for index, one in numbered_parts(part, hues):
            unit = one["gamma_opt_theory"] if row else xr.ones_like(one["gamma_opt_theory"])
            p = dodged(one["p"].values, index, len(hues))
            for name in shown:
                _points(axes, p, one.sel(dynamics=name) / unit, one["at_edge"].sel(dynamics=name),
                        dynamics_look(name, shown, look(index)))  # fmt: skip
                mark_unknown(axes, p[_unknown(one).sel(dynamics=name).values], look(index)["color"])
            if len(grid) > 1:
                _theory(axes, one, index, relative=bool(row))
        width_axis(axes, part["p"].values)
    if bool((part["gamma_opt"] > 0.0).any()):
        grid[0].set_yscale("log")
        plain_ticks(grid[0].yaxis, (1.0, 3.0))


def _unknown(data: xr.Dataset) -> xr.DataArray:
    """Return a mask: where a dynamics was run and has no optimum."""
    return data["requested"] & data["gamma_opt"].isnull()


def _points(axes: Axes, p: np.ndarray, found: xr.Dataset, at_edge: xr.DataArray, looks: dict[str, Any]) -> None:
    best, low, high = (found[f"gamma_opt{end}"].values for end in ("", "_low", "_high"))
    inside = ~at_edge.values
    axes.errorbar(p[inside], best[inside], yerr=[(best - low)[inside], (high - best)[inside]], elinewidth=0.9,
                  linestyle="none", **looks)  # fmt: skip
    for x, start, end in zip(p[~inside], low[~inside], high[~inside], strict=True):
        axes.plot([x, x], [start, end], color=looks["color"], linewidth=0.9, zorder=3)
        axes.plot(x, end, zorder=4, **beyond_look(looks))


def _theory(axes: Axes, one: xr.Dataset, index: int, *, relative: bool) -> None:
    x, p = widths(one["p"].values)
    d, Delta, T = (float(field(one, name)) for name in ("d", "Delta", "threshold"))
    limit = theory.optimal_learning_rate(p, Delta)
    corrected = theory.noise_corrected_optimal_learning_rate(p, d, Delta, T)
    if not relative:
        axes.plot(x, limit, linewidth=0.9, linestyle=LIMIT, zorder=1, **line_look(index, "limit"))
    ratio = corrected / (limit if relative else 1.0)
    axes.plot(x, ratio, linewidth=0.9, zorder=1, **line_look(index, "corrected"))


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], published: list[Entry]) -> None:
    beyond = beyond_look({"color": INK}) | {"linestyle": "none"}
    without = [dynamics_label(name) for name in shown if bool(_unknown(data).sel(dynamics=name).any())]
    marks = [(beyond, "beyond the scan"), unknown_entry(f"no optimum: {', '.join(without)}")]
    kinds = [*dynamics_entries(shown), *marks]
    lines: list[Entry] = [
        ({"color": INK, "linewidth": 0.9, "linestyle": LIMIT, "gid": "limit"}, r"theory, $d\to\infty$"),
        ({"color": INK, "linewidth": 0.9, "gid": "corrected"}, "noise-corrected theory"),
    ]
    legend_below(drawing, [hue_entries(data, split), kinds, lines, published])


FIGURES.register(
    "optimal_learning_rate",
    Figure(
        "optimal_learning_rate",
        optimal_learning_rate,
        CAPTION,
        needs=("optimal_learning_rate",),
        arrange=_arranged,
    ),
)
INTERACTIVE.register(
    "optima_over_width",
    Interactive(
        x="p",
        y="gamma_opt",
        data=optima,
        needs=("optimal_learning_rate",),
        hover=("gamma_opt_theory", "exit_steps_min", "at_edge"),
        theory="gamma_opt_expected",
        figure="optimal_learning_rate",
    ),
)
