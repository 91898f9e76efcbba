"""The largest deviation from the ODE against γ/(pd), the time of a step, with the fitted power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.cells import field, is_stochastic, step_time
from sweeplib.errors import InputError
from sweeplib.figures.facets import MOST_HUES, Facets, at_middle, each, facets, selected
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import dynamics_label, dynamics_order, value_label, wrapped_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.style import INK, dynamics_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Largest deviation of SGD from its ODE over the recorded times, paired by seed: the mean over the seeds with its "
    "standard error, against the ODE time of a step. Solid: the power law fitted to all points, with its exponent and "
    "95 % bootstrap interval. Dashed: slope 1/2, that of the theoretical bound, shifted down."
)
SHIFT = 0.5
GUIDE = (0, (5, 2))
ROW = 0.075
FIT = ("exponent", "exponent_low", "exponent_high", "prefactor")


def deviation(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
    observable: str = "risk",
) -> Drawing:
    """A figure of the mean largest deviation of `observable` (or of all `overlaps`) against γ/(pd).

    All points of the fit are drawn, coloured by `hue`, by default d; of other axes, two are panel and colour, the rest
    stand at their middle.
    """
    from matplotlib.figure import Figure as Drawing

    data = _data(analyses, observable, where)
    over = [dim for dim in analyses["deviation_scaling"].attrs["over"].split() if dim in data.dims]
    hue = hue or next((dim for dim in ("d", "p", *over) if dim in over and data.sizes[dim] <= MOST_HUES), None)
    drawn = ({"dynamics", "variable"} | set(over)) - {hue}
    data = at_middle(data, drawn, panel, hue)
    split = facets(data, drawn, panel, hue)
    panels = split.panels(data)
    width = min(7.0, 1.0 + 2.3 * len(panels)) if len(panels) > 1 else 3.8
    drawing = Drawing(figsize=(width, 3.6), layout="constrained")
    axes = drawing.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for column, part in each(data, panels):
        _panel(axes[column], part, split)
        if split.panel:
            axes[column].set_title(value_label(part[split.panel]))
        axes[column].set_xlabel(_step_label(ds))
    bottom, top = axes[0].get_ylim()
    axes[0].set_ylim(bottom, top * (top / bottom) ** (ROW * len(_shown(data))))
    axes[0].set_ylabel(wrapped_label(data["mean"]))
    _legend(drawing, data, split)
    return drawing


def _data(analyses: Mapping[str, xr.Dataset], observable: str, where: Mapping[str, Any] | None) -> xr.Dataset:
    """Points and fits of the stochastic dynamics that deviate, at `where`, without axes of one value."""
    import xarray as xr

    measured, fitted = analyses["deviation"], analyses["deviation_scaling"]
    known = [str(name).removesuffix("_sup_deviation") for name in measured if str(name).endswith("_sup_deviation")]
    if observable not in known:
        raise InputError("no deviation of it was measured", key="observable", value=observable, choices=known)
    points = {"mean": measured[f"{observable}_sup_deviation"], "error": measured[f"{observable}_sup_deviation_error"]}
    fits = {part: fitted[f"{observable}_{part}"].sel(variable="coupling", drop=True) for part in FIT}
    step = step_time(measured)
    data = xr.Dataset(points | fits).assign(step=step)
    data = data.isel(dynamics=[is_stochastic(str(name)) for name in data["dynamics"].values])
    if not data.sizes["dynamics"]:
        raise InputError("no stochastic dynamics to draw", key="dynamics", expected="sgd or sgd_chain, run")
    data = selected(data, where)
    return data.isel({dim: 0 for dim in data.dims if data.sizes[dim] == 1 and dim != "dynamics"})


def _panel(axes: Axes, part: xr.Dataset, split: Facets) -> None:
    import xarray as xr

    shown = _shown(part)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.yaxis, (1.0, 3.0))
    for index, one in each(part, split.hues(part)):
        for name in shown:
            of = one.sel(dynamics=name)
            step, mean, error = (array.values.ravel() for array in xr.broadcast(of["step"], of["mean"], of["error"]))
            style = dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
            axes.errorbar(step, mean, error, elinewidth=0.8, **style)
    for place, name in enumerate(shown):
        _fit(axes, part.sel(dynamics=name), name, place, len(shown))


def _fit(axes: Axes, part: xr.Dataset, name: str, place: int, count: int) -> None:
    fit = part.isel(dict.fromkeys(part["exponent"].dims, 0))
    exponent, low, high, prefactor = (
        fit[key].item() for key in ("exponent", "exponent_low", "exponent_high", "prefactor")
    )
    if not np.isfinite(exponent):
        return
    step = part["step"].where(part["mean"] > 0.0)
    ends = np.array([float(step.min()) / 1.3, float(step.max()) * 1.3])
    axes.plot(ends, prefactor * ends**exponent, color=INK, linewidth=0.9, zorder=1)
    if place == 0:
        middle = np.sqrt(ends.prod())
        axes.plot(
            ends,
            SHIFT * prefactor * middle**exponent * np.sqrt(ends / middle),
            color=INK,
            linestyle=GUIDE,
            linewidth=0.9,
        )
    words = f"{dynamics_label(name)}: " if count > 1 else "exponent "
    text = f"{words}{exponent:.2f} [{low:.2f}, {high:.2f}]"
    axes.text(0.04, 0.98 - ROW * place, text, transform=axes.transAxes, va="top", fontsize=8)


def _shown(part: xr.Dataset) -> list[str]:
    """The dynamics with points in this part."""
    names = part["dynamics"].values
    return dynamics_order(name for name in names if bool((part["mean"].sel(dynamics=name) > 0.0).any()))


def _step_label(ds: xr.Dataset) -> str:
    gamma, p, d = (field(ds, name).attrs.get("symbol", name) for name in ("gamma", "p", "d"))
    return rf"ODE time of a step ${gamma}/({p}\,{d})$"


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets) -> None:
    shown = _shown(data)
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    lines: list[tuple[dict[str, Any], str]] = [
        ({"color": INK, "linewidth": 0.9}, "fitted power"),
        ({"color": INK, "linewidth": 0.9, "linestyle": GUIDE}, "slope 1/2"),
    ]
    legend_below(drawing, [hues, kinds, lines])


def step_deviations(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """The mean largest deviations of the risk, or of what else was recorded, over the ODE time of a step."""
    import xarray as xr

    found = analyses["deviation"]
    names = [str(name) for name in found if str(name).endswith("_sup_deviation")]
    name = "risk_sup_deviation" if "risk_sup_deviation" in names else names[0]
    step = step_time(found)
    step.attrs = {"long_name": "ODE time of a step", "units": "1", "symbol": r"\gamma/(pd)"}
    kept = {"mean": found[name], "mean_error": found[f"{name}_error"], "seeds_paired": found["seeds_paired"]}
    return xr.Dataset(kept).assign_coords(step=step)


FIGURES.register("deviation", Figure("deviation", deviation, CAPTION, needs=("deviation", "deviation_scaling")))
INTERACTIVE.register(
    "deviations",
    Interactive(
        x="step", y="mean", data=step_deviations, needs=("deviation",), also=("gamma", "p"), figure="deviation"
    ),
)
