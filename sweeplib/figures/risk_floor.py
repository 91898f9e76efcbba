"""The risk at which runs end up, against the learning rate, beside the floor of theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.cells import field
from sweeplib.analysis.scan import scan_dim
from sweeplib.figures.facets import Facets, at_middle, each, facets, selected, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, value_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.style import FAINT, INK, dynamics_look, look
from sweeplib.theory import asymptotic_risk

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Mean population risk over the last part of the runs against the learning rate, with standard errors over the "
    "seeds. Solid: the floor γΔ/(1 − 6γ) of theory. Below: the ratio to it."
)


def risk_floor(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
) -> Drawing:
    """A figure of the final risk against γ, and below, where theory applies, of its ratio to theory."""
    from matplotlib.figure import Figure as Drawing

    data = selected(analyses["risk_floor"], where)
    dim = scan_dim(ds)
    drawn = {"dynamics", dim}
    data = data.isel({dim: 0 for dim in data.dims if data.sizes[dim] == 1 and dim not in drawn})
    data = at_middle(data, drawn, panel, hue)
    split = facets(data, drawn, panel, hue)
    panels = split.panels(data)
    known = bool((data["risk_floor_theory"] > 0.0).any())
    rows = 2 if known else 1
    width = min(7.0, 1.2 + 2.3 * len(panels)) if len(panels) > 1 else 3.8
    drawing = Drawing(figsize=(width, 3.2 + 1.2 * (rows - 1)), layout="constrained")
    grid = drawing.subplots(
        rows, len(panels), sharex=True, sharey="row", squeeze=False, height_ratios=[2.2, 1.0][:rows]
    )
    shown = used_dynamics(data)
    for column, part in each(data, panels):
        _panel(grid[:, column], part, split, shown)
        if split.panel:
            grid[0, column].set_title(value_label(part[split.panel]))
        grid[-1, column].set_xlabel(axis_label(field(data, "gamma")))
    grid[0, 0].set_yscale("log")
    grid[0, 0].set_ylabel(axis_label(data["risk_floor"]))
    if known:
        grid[1, 0].set_ylabel("over theory")
    _legend(drawing, data, split, shown, known)
    return drawing


def _panel(grid: Any, part: xr.Dataset, split: Facets, shown: list[str]) -> None:
    import xarray as xr

    for row, axes in enumerate(grid):
        if row:
            axes.axhline(1.0, color=FAINT, linewidth=0.8, zorder=0)
        for index, one in each(part, split.hues(part)):
            theory = one["risk_floor_theory"]
            unit = theory.where(theory > 0.0) if row else xr.ones_like(theory)
            for name in shown:
                of = one.sel(dynamics=name)
                style = dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
                axes.errorbar(of["gamma"], of["risk_floor"] / unit, of["risk_floor_error"] / unit,
                              elinewidth=0.8, **style)  # fmt: skip
        if not row:
            _theory(axes, part, split)


def _theory(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    for index, one in each(part, split.hues(part)):
        if not bool((one["risk_floor_theory"] > 0.0).any()):
            continue
        gamma = np.linspace(float(one["gamma"].min()), float(one["gamma"].max()), 200)
        axes.plot(
            gamma,
            asymptotic_risk(gamma, float(field(one, "Delta"))),
            color=look(index)["color"],
            linewidth=0.9,
            zorder=1,
        )


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], known: bool) -> None:
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    line: list[tuple[dict[str, Any], str]] = [({"color": INK, "linewidth": 0.9}, r"theory, $\gamma\Delta/(1-6\gamma)$")]
    legend_below(drawing, [hues, kinds, line if known else []])


FIGURES.register("risk_floor", Figure("risk_floor", risk_floor, CAPTION, needs=("risk_floor",)))
INTERACTIVE.register(
    "risk_floors",
    Interactive(
        x="gamma",
        y="risk_floor",
        needs=("risk_floor",),
        also=("risk_drift",),
        theory="risk_floor_theory",
        figure="risk_floor",
    ),
)
