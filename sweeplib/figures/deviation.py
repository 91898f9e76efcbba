"""The largest deviation from the ODE against γ/(pd), the ODE time of a step, with the fitted power law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.headlines import between
from sweeplib.analysis.problem_fields import field, step_time
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.errors import InputError
from sweeplib.figures.facets import MOST_HUES, Facets, arranged, free_axes, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import MINUS, dynamics_order, value_label, wrapped_label
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, dynamics_look, look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean over the seeds of the largest deviation of SGD from its ODE over the recorded times, paired by seed, with "
    "its standard error, against the ODE time of a step. Solid: the power law fitted to all points, with its exponent "
    "and 95 % interval. Dashed: slope 1/2 of the theoretical bound, shifted down."
)
SHIFT = 0.5
GUIDE = (0, (5, 2))
ROW = 0.075
MEASURED = "_sup_deviation"
FIT = ("exponent", "exponent_low", "exponent_high", "prefactor")

Deviating = Annotated[
    str,
    Field(description="the observable whose deviation is drawn; `overlaps` is that of all overlap matrices."),
]


def deviation(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    observable: Deviating = "risk",
) -> Drawing:
    """Return a figure of the mean largest deviation of `observable` (or of all `overlaps`) against γ/(pd).

    All points of the fit are drawn, coloured by `hue`, by default d. Of the remaining axes, two become panels and
    colours, the others are fixed at their middle value.
    """
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue, observable=observable)
    data = _data(analyses, observable, split)
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=3.0)
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place][0], part, split)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    bottom, top = panels.stacks[0][0].get_ylim()
    panels.stacks[0][0].set_ylim(bottom, top * (top / bottom) ** (ROW * len(_shown(data))))
    panels.xlabel(_step_label(ds))
    panels.ylabel(wrapped_label(data["mean"]))
    panels.note(split.title(data))
    _legend(panels.drawing, data, split)
    return panels.drawing


def measured_observables(measured: Outline) -> list[str]:
    """The observables whose largest deviations a dataset of the analysis `deviation` has."""
    return [name.removesuffix(MEASURED) for name in measured.variables if name.endswith(MEASURED)]


def check_measured(measured: Outline, observable: str) -> None:
    """Raise InputError for an observable whose deviations were not measured."""
    known = measured_observables(measured)
    if observable not in known:
        raise InputError("no deviation of it was measured", key="observable", value=observable, choices=known)


def _arranged(
    _: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
    observable: str,
) -> Facets:
    measured, fitted = (outline_of(analyses[name]) for name in ("deviation", "deviation_scaling"))
    check_measured(measured, observable)
    if not any(map(is_stochastic, measured.axes["dynamics"])):
        raise InputError("no stochastic dynamics to draw", value=measured.axes["dynamics"], expected="sgd or sgd_chain")
    points = measured.only(f"{observable}{MEASURED}")
    over = free_axes(points, where).intersection(fitted.attrs["over"].split())
    few = [dim for dim in ("d", "p", *sorted(over)) if dim in over and points.sizes[dim] <= MOST_HUES]
    hue = hue or next((dim for dim in few if dim != panel), None)
    return arranged(points, {"dynamics", *over} - {hue, panel}, where, panel, hue)


def _data(analyses: Mapping[str, xr.Dataset], observable: str, split: Facets) -> xr.Dataset:
    """Return points and fits of the stochastic dynamics, for the selected part of the data."""
    import xarray as xr

    measured, fitted = analyses["deviation"], analyses["deviation_scaling"]
    points = {"mean": measured[f"{observable}{MEASURED}"], "error": measured[f"{observable}{MEASURED}_error"]}
    fits = {part: fitted[f"{observable}_{part}"].sel(variable="coupling", drop=True) for part in FIT}
    step = step_time(measured)
    data = split.selected(xr.Dataset(points | fits).assign(step=step))
    return data.isel(dynamics=[is_stochastic(str(name)) for name in data["dynamics"].values])


def _panel(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    import xarray as xr

    shown = _shown(part)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.yaxis, (1.0, 3.0))
    for index, one in numbered_parts(part, split.hues(part)):
        for name in shown:
            run = one.sel(dynamics=name)
            step, mean, error = (array.values.ravel() for array in xr.broadcast(run["step"], run["mean"], run["error"]))
            style = dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
            axes.errorbar(step, mean, error, elinewidth=0.8, **style)
    for place, name in enumerate(shown):
        _fit(axes, part.sel(dynamics=name), shown, place)


def _fit(axes: Axes, part: xr.Dataset, shown: list[str], place: int) -> None:
    name, count = shown[place], len(shown)
    fit = part.isel(dict.fromkeys(part["exponent"].dims, 0))
    exponent, low, high, prefactor = (
        fit[key].item() for key in ("exponent", "exponent_low", "exponent_high", "prefactor")
    )
    if not np.isfinite(exponent):
        return
    step = part["step"].where(part["mean"] > 0.0)
    ends = np.array([float(step.min()) / 1.3, float(step.max()) * 1.3])
    axes.plot(ends, prefactor * ends**exponent, color=INK, linewidth=0.9, zorder=1, gid="fit")
    if place == 0:
        middle = np.sqrt(ends.prod())
        axes.plot(
            ends,
            SHIFT * prefactor * middle**exponent * np.sqrt(ends / middle),
            color=INK,
            linestyle=GUIDE,
            linewidth=0.9,
            gid="guide",
        )
    text = f"{exponent:.2f} {between(f'{low:.2f}', f'{high:.2f}')}".replace("-", MINUS)
    if count > 1:
        mark = dynamics_look(name, shown, {"color": INK, "marker": "o"}) | {"transform": axes.transAxes}
        axes.plot(0.04, 0.955 - ROW * place, scalex=False, scaley=False, **mark)
    exponent_text = text if count > 1 else f"exponent {text}"
    axes.text(
        0.09 if count > 1 else 0.04, 0.98 - ROW * place, exponent_text, transform=axes.transAxes, va="top", fontsize=8
    )


def _shown(part: xr.Dataset) -> list[str]:
    """Return the dynamics that have points in this part."""
    names = part["dynamics"].values
    return dynamics_order(name for name in names if bool((part["mean"].sel(dynamics=name) > 0.0).any()))


def _step_label(ds: xr.Dataset) -> str:
    gamma, p, d = (field(ds, name).attrs.get("symbol", name) for name in ("gamma", "p", "d"))
    return rf"ODE time of a step ${gamma}/({p}\,{d})$"


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets) -> None:
    shown = _shown(data)
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    lines: list[Entry] = [
        ({"color": INK, "linewidth": 0.9, "gid": "fit"}, "fitted power"),
        ({"color": INK, "linewidth": 0.9, "linestyle": GUIDE, "gid": "guide"}, "slope 1/2"),
    ]
    legend_below(drawing, [hues, kinds, lines])


def step_deviations(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the mean largest deviations of the risk (or the first observable) over the ODE time of a step."""
    import xarray as xr

    found = analyses["deviation"]
    names = [str(name) for name in found if str(name).endswith("_sup_deviation")]
    name = "risk_sup_deviation" if "risk_sup_deviation" in names else names[0]
    step = step_time(found)
    step.attrs = {"long_name": "ODE time of a step", "units": "1", "symbol": r"\gamma/(pd)"}
    kept = {"mean": found[name], "mean_error": found[f"{name}_error"], "seeds_paired": found["seeds_paired"]}
    return xr.Dataset(kept).assign_coords(step=step)


FIGURES.register(
    "deviation",
    Figure("deviation", deviation, CAPTION, needs=("deviation", "deviation_scaling"), arrange=_arranged),
)
INTERACTIVE.register(
    "deviations",
    Interactive(
        x="step", y="mean", data=step_deviations, needs=("deviation",), hover=("gamma", "p"), figure="deviation"
    ),
)
