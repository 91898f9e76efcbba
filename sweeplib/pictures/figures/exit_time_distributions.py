"""The distribution of exit times over the seeds, compared to the quenched and the noise-corrected law."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import by_dynamics, exit_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import need_passages
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.networks import theory
from sweeplib.pictures.figures.figure import FIGURES, BandConfidence, Hue, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.against import theory_along
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import Facets, arranged
from sweeplib.pictures.figures.kit.labels import wrapped_label
from sweeplib.pictures.figures.kit.style import by_dashes
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.survival import survival_curve

CAPTION = (
    "Fraction of runs that have not exited against time: Kaplan-Meier curves over the seeds, with bands, of 95 % by "
    "default, for the first dynamics of each colour; strokes: ends of runs that did not exit. Dashed: the quenched "
    "law, which includes only the random starts; dotted: the law with the noise of SGD; triangles: the annealed exit "
    "time, from the mean start."
)
THIN = {"linewidth": 1.0, "zorder": 5}
LAWS: tuple[tuple[str, Any, Any], ...] = (
    ("quenched", theory.quenched_survival, (0, (4, 1.6))),
    ("noise-corrected", theory.noise_corrected_survival, (0, (1, 0.9))),
)
"""Name, survival function and dashes of each law."""
LONG_DASHES: tuple[Any, ...] = ("solid", (0, (6, 1.5, 1, 1.5)), (0, (10, 2)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))
LONG_DASHES += ((0, (1, 4)), (0, (16, 4)), (0, (6, 1.5, 1, 1.5, 1, 1.5, 1, 1.5)), (0, (12, 2, 4, 2)))
"""The dashes of several dynamics beside laws, which have shorter ones."""
CENSORED: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "markeredgewidth": 1.0, "zorder": 2}
TRIANGLE = {"linestyle": "none", "marker": "v", "markersize": 6, "clip_on": False, "zorder": 6, "gid": "annealed"}
LAYERS = (
    Layer("stairs", "survival"),
    *(
        Layer("law", theory_along(law, "t", "applies"), f"{name} law", name, dashes, x="times", look=THIN)
        for name, law, dashes in LAWS
    ),
    Layer("dots", "zero", "annealed exit time", x="annealed", look=TRIANGLE),
    Layer("dots", "left", "end of a run\nthat did not exit", x="ended", look=CENSORED | {"gid": "censored"}),
    Layer("begin", 0.0),
)
ARGUMENTS = ("gamma", "p", "d", "Delta", "threshold")
"""The fields of a problem that formulas of exit times take, in their order."""
SMOOTH = 200
"""The number of places at which laws are drawn."""


def exit_time_distributions(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    confidence: BandConfidence = 0.95,
) -> Chart:
    """Declare the survival functions of the exit time; other axes are fixed at `where` or their middle."""
    outline = outline_of(ds)
    need_passages(outline)
    split = arranged(outline.only("exit_time"), {"dynamics", "seed"}, where, panel, hue)
    return Chart(
        x="passed",
        y="survival",
        data=partial(survival_curves, split=split, confidence=confidence),
        theory="survival_theory",
        xs=(),
        ys=(),
        split=split,
        levels=(Level(LAYERS, label="fraction of runs\nthat have not exited", limits=(0.0, 1.02), log=False),),
        x_label="" if isinstance(ds, Outline) else wrapped_label(ds["exit_time"], 26),
        log_x=lambda _: False,
        share_x=False,
        size=(2.5, 4.0, 2.6),
        looks=by_dashes(LONG_DASHES, 3.6),
    )


def survival_curves(ds: xr.Dataset, _: ByName, split: Facets, confidence: float) -> xr.Dataset:
    """Return Kaplan-Meier curves at their steps, the ends of runs that did not exit, and theory where it holds.

    Along `rank`: times `passed`, `survival` and its band, ends `ended` and the heights `left` of the curve there.
    The law at the steps is noise-corrected for stochastic dynamics and quenched for the ODE.
    """
    sample, applies = passages(ds, "time"), exit_theory_holds(ds)
    exits, ends = sample.exit.where(sample.used), sample.end.where(sample.used)
    together = [dim for dim in ("dynamics", "seed", split.hue) if dim in exits.dims]
    # the curves of a panel end at one time, if runs never exit
    last = exits.fillna(ends).where(np.isfinite(exits.fillna(ends))).max(together)
    result = xr.apply_ufunc(
        partial(_steps, confidence=confidence),
        exits,
        ends,
        last.fillna(ds["end_time"].max(together)),
        input_core_dims=[["seed"], ["seed"], []],
        output_core_dims=[["part", "rank"]],
        vectorize=True,
    )
    passed, survival, low, high, ended, heights = (result.isel(part=row, drop=True) for row in range(6))
    latest = exits.max([dim for dim in ("dynamics", "seed") if dim in exits.dims]).where(applies)
    annealed = theory.annealed_exit_time(*(field(ds, name) for name in ARGUMENTS)).where(latest.notnull())
    times = 1.05 * latest * xr.DataArray(np.linspace(0.0, 1.0, SMOOTH), dims="place")
    curves = with_bounds("survival", (survival, low, high), "fraction of runs that have not exited")
    rank = labelled(xr.DataArray(np.arange(passed.sizes["rank"]), dims="rank"), "rank of the run")
    laws = {"annealed": annealed, "zero": 0.0 * latest, "applies": applies, "times": times}
    data = xr.Dataset(curves | {"ended": ended, "left": heights} | laws, attrs={"confidence": confidence})
    data = data.assign_coords(passed=passed.assign_attrs(ds["exit_time"].attrs), rank=rank)
    if not bool(applies.any()):
        return data
    gamma, *others = (field(ds, name).astype(float) for name in ARGUMENTS)

    def at_steps(law: Callable[..., xr.DataArray], gamma: xr.DataArray) -> xr.DataArray:
        """Return a survival function of theory at the times of the curves, for learning rates gamma."""
        core = [["rank"], *([] for _ in ARGUMENTS)]
        arguments = (passed.fillna(0.0), gamma, *others)
        return xr.apply_ufunc(law, *arguments, input_core_dims=core, output_core_dims=[["rank"]], vectorize=True)

    # gradient flow is the limit γ → 0
    kinds = (theory.noise_corrected_survival, gamma), (theory.quenched_survival, gamma)
    law = by_dynamics(ds, *(at_steps(*kind) for kind in (*kinds, (theory.quenched_survival, 0.0 * gamma))))
    return data.assign(survival_theory=labelled(law.where(applies & passed.notnull()), "law of theory"))


def _steps(exits: np.ndarray, ends: np.ndarray, latest: float, confidence: float) -> np.ndarray:
    """Return six rows (6, seeds + 3): times, heights and band of a curve, then ends of runs and its heights there.

    exits, ends (seeds,) : of the runs of one cell, NaN where there is none; an infinite end is that of a run that
    diverged, which never exits: its curve goes on to the `latest` time. Rows are filled up with NaN.
    """
    result = np.full((6, exits.size + 3), np.nan)
    reached = np.isfinite(exits)
    ends_without_exit = ends[~reached & ~np.isnan(ends)]
    if not reached.any() and not ends_without_exit.size:
        return result
    curve = np.array(survival_steps(exits[reached], ends_without_exit, confidence))
    if np.isinf(ends_without_exit).any():
        curve = np.append(curve, curve[:, -1:], axis=1)
        curve[0, -1] = max(curve[0, -1], latest)
    result[:4, : curve.shape[1]] = curve
    ended = np.unique(ends_without_exit[np.isfinite(ends_without_exit)])
    result[4:, : ended.size] = ended, curve[1, np.searchsorted(curve[0], ended, side="right") - 1]
    return result


def survival_steps(exits: np.ndarray, ends: np.ndarray, confidence: float) -> tuple[np.ndarray, ...]:
    """Return the places, the heights and the two ends of the band of a Kaplan-Meier curve from (0, 1) on.

    exits (m,) : of the runs that exited. ends (n,) : of the others. Without exits the curve is 1 to the last end.
    """
    if exits.size:
        places, *curves = survival_curve(exits, ends, confidence)
    else:
        places = np.array([np.max(ends, where=np.isfinite(ends), initial=0.0)])
        curves = [np.ones(1), np.full(1, np.nan), np.full(1, np.nan)]
    return np.append(0.0, places), *(np.append(1.0, curve) for curve in curves)


FIGURES.add(chart_figure("exit_time_distributions", exit_time_distributions, CAPTION))
