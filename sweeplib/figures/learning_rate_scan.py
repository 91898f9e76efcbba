"""Mean exit steps against the learning rate, and the optimum of SGD compared to theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sweeplib import theory
from sweeplib.analysis.phase_retrieval import exit_theory_holds
from sweeplib.analysis.problem_fields import field
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.figures.expected import exit_steps_expected, optima_expected
from sweeplib.figures.facets import Facets, arranged, numbered_parts, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Published, Theories, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, plain_mean, symbol, value_label
from sweeplib.figures.legend import (
    Entry,
    bound_entry,
    dynamics_entries,
    hue_entries,
    legend_below,
    theory_entries,
)
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.quantities import interval
from sweeplib.figures.references import check_references, references
from sweeplib.figures.style import BOUND, FAINT, INK, THEORY_DASHES, dynamics_look, line_look, look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean number of steps to the exit against the learning rate, with the intervals of the means; open triangles: "
    "lower bounds where some runs did not exit. Curves: the selected theories. "
    "Below: the learning rate of least steps with its bootstrap interval (an arrow where the interval reaches the end "
    "of the scan; no mark if fewer than 5 learning rates have a mean over three runs or more), the optimum of annealed "
    "and quenched theory (vertical line) and the noise-corrected optimum (bars)."
)
COLUMNS = ("gamma", "exit_steps_mean")
WIDE = 10.0
"""The factor in learning rate above which its axis is logarithmic."""
SCALES = {"d": "/d", "d log d": r"/(d\,\log d)", "1": ""}

Scale = Annotated[Literal["d", "d log d", "1"], Field(description="the unit of the exit steps.")]


def learning_rate_scan(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    scale: Scale = "d",
    theories: Theories = ("quenched", "noise-corrected"),
    reference: Published = (),
) -> Drawing:
    """Return a figure of mean exit steps over `scale` against γ/γ_opt (γ if no theory applies), with the optima below.

    `where` fixes axes at values; of the other axes, one becomes the panels and one the colours. Markers: filled for the
    first stochastic dynamics, open for a second, crosses for deterministic ones.
    """
    split = _arranged(
        ds, analyses, where=where, panel=panel, hue=hue, scale=scale, theories=theories, reference=reference
    )
    data = _data(analyses, split)
    parts = split.panels(data)
    rows = len(split.hues(data))
    published = references(reference, *COLUMNS)
    stack = (2.3, 0.25 + 0.21 * rows)
    panels = panel_grid(len(parts), width=2.4, alone=4.2, height=2.8 + 0.17 * rows, stack=stack, share_x=False)
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place], part, split, scale, theories)
        for _, one in numbered_parts(part, split.hues(part)):
            units = {"x_unit": one["unit"].item(), "y_unit": _step_unit(one, scale)}
            published.draw(panels.stacks[place][0], one, **units)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    panels.xlabel(_rate_label(data))
    panels.ylabel(_steps_label(data, scale))
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, theories, published.entries())
    return panels.drawing


def _arranged(
    _: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
    scale: str,
    theories: Sequence[str],
    reference: Sequence[str],
) -> Facets:
    along = outline_of(analyses["optimal_learning_rate"]).attrs["along"]
    split = arranged(analyses["exit_times"], {"dynamics", along}, where, panel, hue, spare=False)
    check_references(reference, *COLUMNS, analyses["exit_times"], split)
    return split


def _data(analyses: Mapping[str, xr.Dataset], split: Facets) -> xr.Dataset:
    """Return exit times and optima of the selected part, as one dataset; `unit` is γ_opt of theory or 1."""
    import xarray as xr

    merged = [analyses["exit_times"], analyses["optimal_learning_rate"]]
    data = split.selected(xr.merge(merged, compat="override", combine_attrs="override"))
    known = bool(data["gamma_opt_theory"].notnull().all())
    unit = data["gamma_opt_theory"] if known else xr.ones_like(data["gamma_opt_theory"])
    return data.assign(unit=unit).assign_attrs(theory=known)


def _panel(axes: Any, part: xr.Dataset, split: Facets, scale: str, theories: Sequence[str]) -> None:
    above, below = axes
    for axis in axes:
        if part.attrs["theory"]:
            axis.axvline(1.0, color=FAINT, linewidth=0.8, zorder=0, gid="optimum")
    hues = split.hues(part)
    for index, one in numbered_parts(part, hues):
        _curves(above, one, scale, index, theories)
        for name in used_dynamics(one):
            _points(above, one.sel(dynamics=name), scale, dynamics_look(name, used_dynamics(part), look(index)))
        _optima(below, one, -index, look(index))
    above.set_yscale("log")
    plain_ticks(above.yaxis, (1.0, 2.0, 3.0, 5.0))
    _frame(below, part, split)
    _rate_axes(axes, part)


def _rate_axes(axes: Any, part: xr.Dataset) -> None:
    """Make the axes of the learning rate logarithmic where it varies by more than a factor of ten."""
    from matplotlib.ticker import MaxNLocator

    rates = part["gamma"].values
    above, below = axes
    if 0.0 < WIDE * rates.min() < rates.max():
        for axis in axes:
            axis.set_xscale("log")
            plain_ticks(axis.xaxis, (1.0, 2.0, 5.0))
        above.tick_params(labelbottom=False)
    else:
        below.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def _frame(below: Axes, part: xr.Dataset, split: Facets) -> None:
    hues = split.hues(part)
    below.set_ylim(-len(hues) + 0.4, 0.6)
    each = [one for _, one in numbered_parts(part, hues)]
    labels = [value_label(one[split.hue], part[split.hue]) if split.hue else "optimum" for one in each]
    below.set_yticks([-index for index in range(len(hues))], labels)
    below.tick_params(left=False)
    below.spines["left"].set_visible(False)


def _rate_label(data: xr.Dataset) -> str:
    gamma, unit = data["gamma"], data["gamma_opt_theory"].attrs["symbol"]
    return f"{symbol(gamma)}/${unit}$" if data.attrs["theory"] else axis_label(gamma)


def _points(above: Axes, one: xr.Dataset, scale: str, looks: dict[str, Any]) -> None:
    unit = _step_unit(one, scale)
    mean = one["exit_steps_mean"].where(~one["restricted"]) / unit
    line = {"linestyle": "none"} if one.attrs["theory"] else {"linestyle": ":", "linewidth": 0.7}
    x = one["gamma"] / one["unit"]
    bars = np.nan_to_num(interval(one, "exit_steps_mean")) / unit
    above.errorbar(x, mean, bars, elinewidth=0.8, **looks, **line)
    bounds = (one["exit_steps_mean"] / unit).where(one["restricted"])
    above.plot(x, bounds, **BOUND | {"color": looks["color"], "gid": f"{looks['gid']} bound"})


def _curves(above: Axes, one: xr.Dataset, scale: str, index: int, theories: Sequence[str]) -> None:
    unit = _step_unit(one, scale)
    gamma = np.linspace(float(one["gamma"].min()), float(one["gamma"].max()), 200)
    for kind in _curves_that_hold(one, theories):
        steps = theory_steps(kind, gamma, one) / unit
        line = line_look(index, kind) | {"linestyle": THEORY_DASHES[kind], "linewidth": 0.9}
        above.plot(gamma / one["unit"].item(), steps, zorder=1, alpha=0.55 if kind == "annealed" else 1.0, **line)


def _curves_that_hold(one: xr.Dataset, theories: Sequence[str]) -> list[str]:
    """Return the theories that hold here: the noise correction does not for the ODE, nor where noise alone exits."""
    corrected = _stochastic(one) and bool(np.isfinite(one["gamma_opt_noise_corrected"]))
    kinds = [kind for kind in THEORY_DASHES if kind in theories] if one.attrs["theory"] else []
    return [kind for kind in kinds if corrected or kind != "noise-corrected"]


def theory_steps(kind: str, gamma: np.ndarray, one: xr.Dataset) -> np.ndarray:
    """Return exit steps p d/γ times the annealed, quenched or noise-corrected exit time, at one point of the sweep.

    NaN at learning rates at which the units of a student align: the exit times do not hold there.
    """
    formula = getattr(theory, kind.replace("-", "_") + "_exit_time")
    p, d, Delta, T = (float(field(one, name)) for name in ("p", "d", "Delta", "threshold"))
    steps = formula(gamma, p, d, Delta, T) * p * d / gamma
    return np.where((p == 1) | (theory.student_alignment_rate(gamma, p) > 0.0), steps, np.nan)


def _optima(below: Axes, one: xr.Dataset, row: int, looks: dict[str, str]) -> None:
    unit = one["unit"].item()
    corrected = one["gamma_opt_noise_corrected"].item() / unit
    if np.isfinite(corrected) and _stochastic(one):
        bar: dict[str, Any] = {
            "marker": "|",
            "markersize": 13,
            "markeredgewidth": 2.4,
            "alpha": 0.4,
            "gid": "corrected",
        }
        below.plot(corrected, row, color=looks["color"], zorder=1, **bar)
    shown = used_dynamics(one)
    for place, name in enumerate(shown):
        found = one.sel(dynamics=name)
        best, low, high = (found[f"gamma_opt{end}"].item() / unit for end in ("", "_low", "_high"))
        y = row - 0.22 * (place - (len(shown) - 1) / 2)
        style = dynamics_look(name, used_dynamics(one), looks) | {"markersize": 3.6}
        edges = _edges(one["gamma"].values / unit, (low, best, high)) if found["at_edge"] else {}
        if best in edges:
            style |= {"marker": "none"}
        below.errorbar(best, y, xerr=[[best - low], [high - best]], elinewidth=0.9, **style)
        for end, marker in edges.items():
            arrow = {"marker": marker, "markersize": 4.5, "color": style["color"], "gid": style["gid"]}
            below.plot(end, y, clip_on=False, zorder=4, **arrow)


def _edges(scanned: np.ndarray, found: tuple[float, ...]) -> dict[float, str]:
    """Return the numbers at an end of the scanned learning rates, each with an arrow marker that points beyond."""
    middle = np.median(scanned)
    return {x: "<" if x < middle else ">" for x in found if np.isclose(scanned, x, rtol=1e-9, atol=0.0).any()}


def _stochastic(part: xr.Dataset) -> bool:
    return any(map(is_stochastic, used_dynamics(part)))


def _step_unit(one: xr.Dataset, scale: str) -> float:
    d = float(field(one, "d"))
    return {"d log d": d * np.log(d), "d": d, "1": 1.0}[scale]


def _steps_label(data: xr.Dataset, scale: str) -> str:
    steps = plain_mean(data["exit_steps_mean"]).attrs
    return f"{steps['long_name']}\n${steps['symbol']}{SCALES[scale]}$"


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, theories: Sequence[str], published: list[Entry]) -> None:
    shown = used_dynamics(data)
    mark = {"marker": "|", "linestyle": "none", "markersize": 9}
    line = mark | {"markeredgewidth": 0.8, "color": FAINT, "gid": "optimum"}
    bar = mark | {"markeredgewidth": 2.4, "color": INK, "alpha": 0.4, "gid": "corrected"}
    marks: list[Entry] = [(line, "optimum of theory"), (bar, "noise-corrected optimum")]
    hues = hue_entries(data, split)
    bounds = [bound_entry("some runs did not exit")] if bool(data["restricted"].any()) else []
    legend_below(drawing, [hues, dynamics_entries(shown), theory_entries(theories), marks, published, bounds])


def exit_points(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return exit times, and the exit steps of theory for each dynamics, where it holds."""
    exits = analyses["exit_times"]
    mean = exits["exit_steps_mean"]
    steps = exit_steps_expected(exits).where(exit_theory_holds(ds))
    attrs = {"long_name": "exit steps of theory", "units": "1", "symbol": mean.attrs["symbol"]}
    return exits.assign(exit_steps_theory=steps.assign_attrs(attrs))


def optima(_: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the optimal learning rates, measured and of theory for each dynamics."""
    found = analyses["optimal_learning_rate"]
    attrs = found["gamma_opt_theory"].attrs | {"long_name": "optimal learning rate of theory"}
    return found.assign(gamma_opt_expected=optima_expected(found).assign_attrs(attrs))


FIGURES.register(
    "learning_rate_scan",
    Figure(
        "learning_rate_scan",
        learning_rate_scan,
        CAPTION,
        needs=("exit_times", "optimal_learning_rate"),
        arrange=_arranged,
    ),
)
INTERACTIVE.register(
    "exit_steps",
    Interactive(
        x="gamma",
        y="exit_steps_mean",
        data=exit_points,
        needs=("exit_times", "optimal_learning_rate"),
        hover=("exit_steps_median", "exited_fraction"),
        theory="exit_steps_theory",
        figure="learning_rate_scan",
    ),
)
INTERACTIVE.register(
    "optimal_learning_rates",
    Interactive(
        x="d",
        y="gamma_opt",
        data=optima,
        needs=("optimal_learning_rate",),
        hover=("exit_steps_min", "at_edge"),
        theory="gamma_opt_expected",
        figure="learning_rate_scan",
    ),
)
