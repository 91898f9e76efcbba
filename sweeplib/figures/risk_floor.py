"""The final risk of runs against the learning rate, compared to the risk floor of theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.problem_fields import field
from sweeplib.analysis.scan import drawn_scan_dim
from sweeplib.figures.facets import Facets, arranged, numbered_parts, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Published, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, value_label
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.references import check_references, references
from sweeplib.figures.scales import logarithmic_along
from sweeplib.figures.style import DIM, FAINT, INK, dynamics_look, line_look, look, plain_ticks
from sweeplib.theory import asymptotic_risk

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean population risk over the last part of the runs against the learning rate, with standard errors over the "
    "seeds. Solid: the floor γΔ/(1 − 6γ) of theory. Below: the ratio to theory."
)
COLUMNS = ("gamma", "risk_floor")


def risk_floor(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    reference: Published = (),
) -> Drawing:
    """Return a figure of the final risk against γ, and below, where theory applies, of its ratio to theory."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue, reference=reference)
    data = split.selected(analyses["risk_floor"])
    parts = split.panels(data)
    known = bool((data["risk_floor_theory"] > 0.0).any())
    stack, height = ((2.2, 1.0), 3.9) if known else ((1.0,), 2.7)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=height, stack=stack)
    shown = used_dynamics(data)
    published = references(reference, *COLUMNS)
    axes = panels.stacks[0][0]
    if logarithmic_along(field(data, "gamma"), drawn_scan_dim(ds, where)):
        axes.set_xscale("log")
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place], part, split, shown)
        for _, one in numbered_parts(part, split.hues(part)):
            published.draw(panels.stacks[place][0], one)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            plain_ticks(axis, (1.0, 2.0, 5.0))
    panels.xlabel(axis_label(field(data, "gamma")))
    panels.ylabel(axis_label(data["risk_floor"]))
    if known:
        panels.ylabel("over theory", level=1)
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown, published.entries())
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
    reference: Sequence[str],
    **choice: Any,
) -> Facets:
    split = arranged(analyses["risk_floor"], {"dynamics", drawn_scan_dim(ds, where)}, where, **choice)
    check_references(reference, *COLUMNS, analyses["risk_floor"], split)
    return split


def _panel(grid: Any, part: xr.Dataset, split: Facets, shown: list[str]) -> None:
    import xarray as xr

    for row, axes in enumerate(grid):
        if row:
            axes.axhline(1.0, color=FAINT, linewidth=0.8, zorder=0)
            if not bool((part["risk_floor_theory"] > 0.0).any()):
                axes.text(0.5, 0.5, "no floor in theory", color=DIM, transform=axes.transAxes, ha="center", va="center")
        for index, one in numbered_parts(part, split.hues(part)):
            theory = one["risk_floor_theory"]
            unit = theory.where(theory > 0.0) if row else xr.ones_like(theory)
            for name in shown:
                run = one.sel(dynamics=name)
                style = dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
                axes.errorbar(run["gamma"], run["risk_floor"] / unit, run["risk_floor_error"] / unit,
                              elinewidth=0.8, **style)  # fmt: skip
        if not row:
            _theory(axes, part, split)


def _theory(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    """Draw the floor for each colour; one dark line if it is the same for all."""
    one_for_all = not field(part, "Delta").dims
    for index, one in numbered_parts(part, split.hues(part)):
        if not bool((one["risk_floor_theory"] > 0.0).any()):
            continue
        spaced = np.geomspace if axes.get_xscale() == "log" else np.linspace
        gamma = spaced(float(one["gamma"].min()), float(one["gamma"].max()), 200)
        floor = asymptotic_risk(gamma, float(field(one, "Delta")))
        line = {"color": INK, "gid": "theory"} if one_for_all else line_look(index, "theory")
        axes.plot(gamma, floor, linewidth=0.9, zorder=1, **line)
        if one_for_all:
            break


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], published: list[Entry]) -> None:
    line = {"color": INK, "linewidth": 0.9, "gid": "theory"}
    theory = [(line, r"theory, $\gamma\Delta/(1-6\gamma)$")]
    legend_below(drawing, [hue_entries(data, split), dynamics_entries(shown), theory, published])


FIGURES.register(
    "risk_floor",
    Figure("risk_floor", risk_floor, CAPTION, needs=("risk_floor",), arrange=_arranged),
)
INTERACTIVE.register(
    "risk_floors",
    Interactive(
        x="gamma",
        y="risk_floor",
        needs=("risk_floor",),
        hover=("risk_drift",),
        theory="risk_floor_theory",
        figure="risk_floor",
    ),
)
