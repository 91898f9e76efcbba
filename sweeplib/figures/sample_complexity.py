"""Mean exit steps over d against d, with the growth that the information exponent predicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.growth_laws import growth
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.figures.facets import Facets, arranged, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_order, value_label, wrapped_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, dynamics_look, line_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean number of steps to the exit over the input dimension, with standard errors over the seeds. Curves: the law "
    "that the information exponent κ of student and teacher predicts, fitted to the first dynamics with three "
    "dimensions; drawn only where starts and learning rates scale as the law requires."
)
DASHES: dict[int, Any] = {1: (0, (1, 1.2)), 2: (0, (5, 2)), 3: "solid"}
HIGHER: Any = (0, (6, 1.5, 1, 1.5))
DECADES = 20.0
"""The range above which steps have a logarithmic axis, and dimensions have powers of ten as ticks."""


def sample_complexity(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
) -> Drawing:
    """Return a figure of n/d against d; axes that are not selected or drawn are fixed at their middle value."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue)
    data = split.selected(analyses["sample_complexity"])
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=2.9)
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place][0], part, split)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    panels.xlabel(axis_label(data["d"]))
    panels.ylabel(wrapped_label(data["steps_over_d"], 22))
    panels.note(split.title(data))
    _scales(panels.stacks[0][0], data["steps_over_d"])
    _legend(panels.drawing, data, split)
    return panels.drawing


def _arranged(_: xr.Dataset | Outline, analyses: Mapping[str, xr.Dataset | Outline], **choice: Any) -> Facets:
    return arranged(analyses["sample_complexity"], {"dynamics", "d", "law"}, **choice)


def _panel(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    shown = _shown(part)
    for index, one in numbered_parts(part, split.hues(part)):
        for name in shown:
            run, style = one.sel(dynamics=name), dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
            if not is_stochastic(name):
                style |= {"markersize": 7.5}  # larger, so that crosses are visible behind markers at the same position
            axes.errorbar(run["d"], run["steps_over_d"], run["steps_over_d_error"], elinewidth=0.8, **style)
        fitted = next((name for name in shown if bool(one["law_offset"].sel(dynamics=name).notnull().any())), None)
        if fitted is not None:
            _law(axes, one.sel(dynamics=fitted), index)


def _law(axes: Axes, one: xr.Dataset, index: int) -> None:
    law = one["expected_law"].item()
    if not np.isfinite(law):
        return
    exponent, fit = int(law), one.sel(law=law)
    d = np.geomspace(float(one["d"].min()), float(one["d"].max()), 200)
    curve = fit["law_offset"].item() + fit["law_amplitude"].item() * growth(exponent, d)
    line = line_look(index, f"law-{exponent}") | {"linestyle": _dashes(exponent)}
    axes.plot(d, np.where(curve > 0.0, curve, np.nan), zorder=1, **line)


def _dashes(exponent: int) -> Any:
    return DASHES.get(exponent, HIGHER)


def _formula(exponent: int) -> str:
    return {1: "a", 2: r"a+b\,\log d", 3: r"a+b\,d"}.get(exponent, rf"a+b\,d^{exponent - 2}")


def _scales(axes: Axes, steps: xr.DataArray) -> None:
    axes.set_xscale("log")
    if float(steps["d"].max()) < DECADES * float(steps["d"].min()):
        plain_ticks(axes.xaxis, (1.0, 3.0))
    if float(steps.max()) > DECADES * float(steps.min()):
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, (1.0, 2.0, 5.0))
    else:
        axes.set_ylim(bottom=0.0)


def _shown(part: xr.Dataset) -> list[str]:
    """Return the dynamics with points in this part, stochastic ones first."""
    names = part["dynamics"].values
    return dynamics_order(name for name in names if bool(part["steps_over_d"].sel(dynamics=name).notnull().any()))


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets) -> None:
    shown = _shown(data)
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    expected, kappa = np.unique(data["expected_law"].values), data["expected_law"].attrs["symbol"]
    steps = data["steps_over_d"].attrs["symbol"]
    laws = [
        (
            {"color": INK, "linestyle": _dashes(found), "gid": f"law-{found}"},
            rf"fit for ${kappa}={found}$: ${steps}={_formula(found)}$",
        )
        for found in expected[np.isfinite(expected)].astype(int).tolist()
    ]
    legend_below(drawing, [hues, kinds, laws])


FIGURES.register(
    "sample_complexity",
    Figure("sample_complexity", sample_complexity, CAPTION, needs=("sample_complexity",), arrange=_arranged),
)
INTERACTIVE.register(
    "steps_over_d",
    Interactive(
        x="d",
        y="steps_over_d",
        needs=("sample_complexity",),
        hover=("exponent", "information_exponent", "expected_law"),
        figure="sample_complexity",
    ),
)
