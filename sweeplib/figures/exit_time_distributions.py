"""The distribution of exit times over the seeds, compared to the quenched and the noise-corrected law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.labels import dynamics_label, labelled
from sweeplib.analysis.needs import need_passages
from sweeplib.analysis.passages import passages
from sweeplib.analysis.phase_retrieval import exit_theory_holds
from sweeplib.analysis.problem_fields import field
from sweeplib.analysis.survival import survival_curve
from sweeplib.figures.expected import by_dynamics
from sweeplib.figures.facets import Facets, arranged, numbered_parts
from sweeplib.figures.figure import FIGURES, BandConfidence, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_order, value_label
from sweeplib.figures.legend import Entry, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, line_look
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Fraction of runs that have not exited against time: Kaplan-Meier curves over the seeds, with 95 % bands for the "
    "first dynamics; strokes: ends of runs that did not exit. Dashed: the quenched law, which includes only the random "
    "starts; dotted: the law with the noise of SGD; triangles: the annealed exit time, from the mean start."
)
LAWS: dict[str, Any] = {"quenched": (0, (4, 1.6)), "noise-corrected": (0, (1, 0.9))}
STEPS = ("solid", (0, (6, 1.5, 1, 1.5)), (0, (10, 2)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))
HANDLE = 3.6
"""The length in font sizes of the lines of the legend: enough for two of the longest dashes."""
CENSORED: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "markeredgewidth": 1.0}
"""The mark of the end of a run that did not exit."""
CONFIDENCE = 0.95
PLACES = 60


def exit_time_distributions(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    confidence: BandConfidence = CONFIDENCE,
) -> Drawing:
    """Return a figure of the survival functions of the exit time; other axes are fixed at `where` or their middle."""
    import xarray as xr

    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue, confidence=confidence)
    sample = passages(ds, "time")
    data = xr.Dataset({"exit": sample.exit, "end": sample.end, "used": sample.used, "applies": exit_theory_holds(ds)})
    data = split.selected(data.assign(stopped=ds["end_time"]))
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.5, alone=4.0, height=2.6, share_x=False)
    shown = _shown(data)
    for place, part in numbered_parts(data, parts):
        axes = panels.stacks[place][0]
        latest = _latest(part)
        for index, one in numbered_parts(part, split.hues(part)):
            _measured(axes, one, shown, index, confidence, latest)
            if bool(one["applies"]):
                _theory(axes, one, index)
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.02)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    panels.xlabel(axis_label(ds["exit_time"]))
    panels.ylabel("fraction of runs\nthat have not exited")
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown)
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    _: Mapping[str, xr.Dataset | Outline],
    *,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
    confidence: float,
) -> Facets:
    outline = outline_of(ds)
    need_passages(outline)
    return arranged(outline.only("exit_time"), {"dynamics", "seed"}, where, panel, hue)


def _shown(data: xr.Dataset) -> list[str]:
    used = data["used"].any([dim for dim in data["used"].dims if dim != "dynamics"])
    return dynamics_order(data["dynamics"].values[used.values])


def _measured(axes: Axes, one: xr.Dataset, shown: list[str], index: int, confidence: float, latest: float) -> None:
    """Draw the curve of each dynamics; that of diverged runs, which never exit, goes on to the `latest` time."""
    for place, name in enumerate(shown):
        run = one.sel(dynamics=name)
        exits = run["exit"].values[run["used"].values]
        ends = run["end"].values[run["used"].values]
        if not len(exits):
            continue
        reached = np.isfinite(exits)
        times, curve, low, high = _from_the_start(*_survival(exits[reached], ends[~reached], confidence))
        if np.isinf(ends[~reached]).any():
            times, curve, low, high = (np.append(part, part[-1]) for part in (times, curve, low, high))
            times[-1] = max(times[-1], latest)
        line = line_look(index, name) | {"linestyle": STEPS[place % len(STEPS)]}
        axes.step(times, curve, where="post", zorder=3 - place, **line)
        if place == 0:
            axes.fill_between(times, low, high, step="post", color=line["color"], alpha=0.2, linewidth=0, zorder=1)
        watched = np.unique(ends[~reached & np.isfinite(ends)])
        left = curve[np.searchsorted(times, watched, side="right") - 1]
        axes.plot(watched, left, **CENSORED | {"color": line["color"], "gid": f"{line['gid']} censored"})


def _latest(part: xr.Dataset) -> float:
    """Return the last time of an exit, or of the end of a run that could have exited later; else of any run."""
    seen = part["exit"].fillna(part["end"]).where(part["used"])
    finite = seen.where(np.isfinite(seen))
    return float((finite if bool(finite.notnull().any()) else part["stopped"]).max())


def _survival(exits: np.ndarray, ends: np.ndarray, confidence: float) -> tuple[np.ndarray, ...]:
    """Return the Kaplan-Meier curve and its band; without exits all runs are left until the last of the ends."""
    if exits.size:
        return survival_curve(exits, ends, confidence)
    last = np.max(ends, where=np.isfinite(ends), initial=0.0)
    return np.array([last]), np.ones(1), np.full(1, np.nan), np.full(1, np.nan)


def _from_the_start(times: np.ndarray, *curves: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the curves with the point (0, 1) in front: at time 0 no run has exited."""
    return np.concatenate([[0.0], times]), *(np.concatenate([[1.0], curve]) for curve in curves)


def _theory(axes: Axes, one: xr.Dataset, index: int) -> None:
    p, d, Delta, T, gamma = (float(field(one, name)) for name in ("p", "d", "Delta", "threshold", "gamma"))
    exits = one["exit"].values
    if not np.isfinite(exits).any():
        return
    t = np.linspace(0.0, 1.05 * float(np.nanmax(exits)), 200)
    for kind, dashes in LAWS.items():
        law = getattr(theory, f"{kind.replace('-', '_')}_survival")
        axes.plot(t, law(t, gamma, p, d, Delta, T), linestyle=dashes, linewidth=1.0, zorder=5, **line_look(index, kind))
    annealed = float(theory.annealed_exit_time(gamma, p, d, Delta, T))
    axes.plot(annealed, 0.0, marker="v", markersize=6, clip_on=False, zorder=6, **line_look(index, "annealed"))


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str]) -> None:
    hues: list[Entry] = [
        (line_look(index) | {"linewidth": 2.0}, value_label(one[split.hue], data[split.hue]))
        for index, one in numbered_parts(data, split.hues(data))
        if split.hue
    ]
    kinds: list[Entry] = [
        ({"color": INK, "linestyle": STEPS[place % len(STEPS)], "gid": name}, dynamics_label(name))
        for place, name in enumerate(shown)
    ]
    laws: list[Entry] = [
        ({"color": INK, "linestyle": dashes, "linewidth": 1.0, "gid": kind}, f"{kind} law")
        for kind, dashes in LAWS.items()
    ]
    mark = {"color": INK, "marker": "v", "linestyle": "none", "markersize": 6, "gid": "annealed"}
    watched = np.isfinite(data["end"]) & data["used"] & data["exit"].isnull()
    ends: list[Entry] = [(CENSORED | {"color": INK, "gid": "censored"}, "end of a run\nthat did not exit")]
    marks = ends if bool(watched.any()) else []
    legend_below(drawing, [hues, kinds, [*laws, (mark, "annealed exit time"), *marks]], HANDLE)


def survival_curves(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return Kaplan-Meier curves at `PLACES` times up to the last exit, and the law of theory at these times.

    Without an exit they are 1 up to the last end of a run.

    The law is noise-corrected for stochastic dynamics and quenched for the ODE.
    """
    import xarray as xr

    sample = passages(ds, "time")
    parts = xr.apply_ufunc(
        _at_places,
        sample.exit.where(sample.used),
        sample.end.where(sample.used),
        input_core_dims=[["seed"], ["seed"]],
        output_core_dims=[["place"]] * 4,
        vectorize=True,
    )
    time, survival, low, high = parts
    quantity = "fraction of runs that have not exited"
    found = xr.Dataset(
        {
            "survival": labelled(survival, quantity),
            "survival_low": labelled(low, f"lower end of the {quantity}"),
            "survival_high": labelled(high, f"upper end of the {quantity}"),
        },
        {
            "passed": time.assign_attrs(ds["exit_time"].attrs),
            "place": labelled(xr.DataArray(np.arange(PLACES), dims="place"), "position on the curve"),
        },
        {"confidence": CONFIDENCE},
    )
    applies = exit_theory_holds(ds)
    if not bool(applies.any()):
        return found
    gamma, *others = (field(ds, name) for name in ("gamma", "p", "d", "Delta", "threshold"))
    law = by_dynamics(
        ds,
        _law(theory.noise_corrected_survival, time, gamma, *others),
        _law(theory.quenched_survival, time, gamma, *others),
        _law(theory.quenched_survival, time, 0.0 * gamma, *others),
    )
    return found.assign(survival_theory=labelled(law.where(applies), "law of theory"))


def _law(law: Callable[..., xr.DataArray], time: xr.DataArray, *fields: xr.DataArray) -> xr.DataArray:
    """Return the law of theory at the times of each curve."""
    import xarray as xr

    found: xr.DataArray = xr.apply_ufunc(
        law, time, *(field.astype(float) for field in fields), input_core_dims=[["place"], *([] for _ in fields)],
        output_core_dims=[["place"]], vectorize=True,
    )  # fmt: skip
    return found


def _at_places(exits: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return times, the survival curve and its band; NaN if nothing was observed. NaN in `ends` means no run."""
    reached = np.isfinite(exits)
    times, *curves = _survival(exits[reached], ends[~reached & ~np.isnan(ends)], CONFIDENCE)
    last = 1.05 * exits[reached].max() if reached.any() else times[-1]
    if last == 0.0:
        return (np.full(PLACES, np.nan),) * 4
    grid = np.linspace(0.0, last, PLACES)
    before = np.searchsorted(times, grid, side="right") - 1
    return grid, *(np.where(before < 0, 1.0, curve[before]) for curve in curves)


FIGURES.register(
    "exit_time_distributions",
    Figure("exit_time_distributions", exit_time_distributions, CAPTION, arrange=_arranged),
)
INTERACTIVE.register(
    "survival_curves",
    Interactive(
        x="passed",
        y="survival",
        data=survival_curves,
        theory="survival_theory",
        kind="curves",
        figure="exit_time_distributions",
    ),
)
