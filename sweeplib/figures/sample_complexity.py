"""Mean exit steps over d against d, with the growth that the information exponent makes expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.cells import is_stochastic
from sweeplib.analysis.growth_laws import growth
from sweeplib.figures.facets import Facets, at_middle, each, facets, selected
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_order, value_label, wrapped_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.style import INK, dynamics_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Mean number of steps to the exit over the input dimension, with standard errors over the seeds. Curves: the law "
    "that the information exponent κ of student and teacher makes expect, where starts and learning rates scale as it "
    "asks, fitted to the first dynamics."
)
DASHES: dict[int, Any] = {1: (0, (1, 1.2)), 2: (0, (5, 2)), 3: "solid"}
HIGHER: Any = (0, (6, 1.5, 1, 1.5))
DECADES = 20.0
"""The range from which on steps have a logarithmic axis, and dimensions powers of ten for ticks."""


def sample_complexity(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
) -> Drawing:
    """A figure of n/d against d; axes neither fixed by `where` nor panel nor colour stand at their middle."""
    from matplotlib.figure import Figure as Drawing

    data = selected(analyses["sample_complexity"], where)
    drawn = {"dynamics", "d", "law"}
    data = data.isel({dim: 0 for dim in data.dims if data.sizes[dim] == 1 and dim not in drawn})
    data = at_middle(data, drawn, panel, hue)
    split = facets(data, drawn, panel, hue)
    panels = split.panels(data)
    width = min(7.0, 1.0 + 2.3 * len(panels)) if len(panels) > 1 else 3.8
    drawing = Drawing(figsize=(width, 3.4), layout="constrained")
    axes = drawing.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for column, part in each(data, panels):
        _panel(axes[column], part, split)
        axes[column].set_xlabel(axis_label(data["d"]))
        if split.panel:
            axes[column].set_title(value_label(part[split.panel]))
    axes[0].set_ylabel(wrapped_label(data["steps_over_d"], 22))
    _scales(axes[0], data["steps_over_d"])
    _legend(drawing, data, split)
    return drawing


def _panel(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    shown = _shown(part)
    for index, one in each(part, split.hues(part)):
        for name in shown:
            of, style = one.sel(dynamics=name), dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
            if not is_stochastic(name):
                style |= {"markersize": 7.5}  # crosses lie below markers of the same place, and stick out
            axes.errorbar(of["d"], of["steps_over_d"], of["steps_over_d_error"], elinewidth=0.8, **style)
        if shown:
            _law(axes, one.sel(dynamics=shown[0]), look(index)["color"])


def _law(axes: Axes, one: xr.Dataset, colour: str) -> None:
    law = one["expected_law"].item()
    if not np.isfinite(law):
        return
    exponent, of = int(law), one.sel(law=law)
    d = np.geomspace(float(one["d"].min()), float(one["d"].max()), 200)
    curve = of["law_offset"].item() + of["law_amplitude"].item() * growth(exponent, d)
    axes.plot(d, np.where(curve > 0.0, curve, np.nan), color=colour, linestyle=_dashes(exponent), zorder=1)


def _dashes(exponent: int) -> Any:
    return DASHES.get(exponent, HIGHER)


def _words(exponent: int) -> str:
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
    """The dynamics with points in this part, stochastic ones first."""
    names = part["dynamics"].values
    return dynamics_order(name for name in names if bool(part["steps_over_d"].sel(dynamics=name).notnull().any()))


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets) -> None:
    shown = _shown(data)
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    expected, kappa = np.unique(data["expected_law"].values), data["expected_law"].attrs["symbol"]
    laws = [
        ({"color": INK, "linestyle": _dashes(found)}, rf"${kappa}={found}$: ${_words(found)}$")
        for found in expected[np.isfinite(expected)].astype(int).tolist()
    ]
    legend_below(drawing, [hues, kinds, laws])


FIGURES.register(
    "sample_complexity", Figure("sample_complexity", sample_complexity, CAPTION, needs=("sample_complexity",))
)
INTERACTIVE.register(
    "steps_over_d",
    Interactive(
        x="d",
        y="steps_over_d",
        needs=("sample_complexity",),
        also=("exponent", "information_exponent", "expected_law"),
        figure="sample_complexity",
    ),
)
