"""The distribution of exit times over the seeds, compared to the quenched and the noise-corrected law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sweeplib.analysis.kit.expected import by_dynamics
from sweeplib.analysis.kit.needs import need_passages
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import exit_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.networks import theory
from sweeplib.pictures.figures.figure import FIGURES, BandConfidence, Hue, Panel, Where
from sweeplib.pictures.figures.kit.against import theory_along
from sweeplib.pictures.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.points import Curve
from sweeplib.pictures.figures.kit.runs import Runs, survival_steps
from sweeplib.statistics.labelled import labelled

CAPTION = (
    "Fraction of runs that have not exited against time: Kaplan-Meier curves over the seeds, with 95 % bands for the "
    "first dynamics of each colour; strokes: ends of runs that did not exit. Dashed: the quenched law, which includes "
    "only the random starts; dotted: the law with the noise of SGD; triangles: the annealed exit time, from the mean "
    "start."
)
LAWS: tuple[tuple[str, Any, Any], ...] = (
    ("quenched", theory.quenched_survival, (0, (4, 1.6))),
    ("noise-corrected", theory.noise_corrected_survival, (0, (1, 0.9))),
)
ANNEALED = theory_along(theory.annealed_exit_time, "t", "applies")
CONFIDENCE = 0.95
PLACES = 60


def exit_time_distributions(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    confidence: BandConfidence = CONFIDENCE,
) -> Runs:
    """Declare the survival functions of the exit time; other axes are fixed at `where` or their middle."""
    outline = outline_of(ds)
    need_passages(outline)
    split = arranged(outline.only("exit_time"), {"dynamics", "seed"}, where, panel, hue)
    return Runs(
        x="passed",
        y="survival",
        data=survival_curves,
        theory="survival_theory",
        kind="curves",
        split=split,
        quantity="exit_time",
        sample=_sample,
        confidence=confidence,
        label="fraction of runs\nthat have not exited",
        survival=True,
        laws=tuple(Curve(name, f"{name} law", theory_along(law, "t", "applies"), dashes) for name, law, dashes in LAWS),
        marks={"annealed": lambda series: float(ANNEALED(series, np.empty(0)))},
    )


def _sample(ds: xr.Dataset) -> xr.Dataset:
    sample = passages(ds, "time")
    runs = {"value": sample.exit.where(sample.used), "end": sample.end, "used": sample.used, "stopped": ds["end_time"]}
    return xr.Dataset(runs | {"applies": exit_theory_holds(ds)})


def survival_curves(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return Kaplan-Meier curves at `PLACES` times up to the last exit, and the law of theory at these times.

    Without an exit they are 1 up to the last end of a run.

    The law is noise-corrected for stochastic dynamics and quenched for the ODE.
    """
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
    curves = xr.Dataset(
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
        return curves
    gamma, *others = (field(ds, name) for name in ("gamma", "p", "d", "Delta", "threshold"))
    law = by_dynamics(
        ds,
        _at_times(theory.noise_corrected_survival, time, gamma, *others),
        _at_times(theory.quenched_survival, time, gamma, *others),
        _at_times(theory.quenched_survival, time, 0.0 * gamma, *others),
    )
    return curves.assign(survival_theory=labelled(law.where(applies), "law of theory"))


def _at_times(law: Callable[..., xr.DataArray], time: xr.DataArray, *fields: xr.DataArray) -> xr.DataArray:
    """Return the law of theory at the times of each curve."""
    return xr.apply_ufunc(
        law, time, *(field.astype(float) for field in fields), input_core_dims=[["place"], *([] for _ in fields)],
        output_core_dims=[["place"]], vectorize=True,
    )  # fmt: skip


def _at_places(exits: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return times, the survival curve and its band; NaN if nothing was observed. NaN in `ends` means no run."""
    reached = np.isfinite(exits)
    times, *curves = survival_steps(exits[reached], ends[~reached & ~np.isnan(ends)], CONFIDENCE)
    last = 1.05 * exits[reached].max() if reached.any() else times[-1]
    if last == 0.0:
        return (np.full(PLACES, np.nan),) * 4
    grid = np.linspace(0.0, last, PLACES)
    before = np.searchsorted(times, grid, side="right") - 1
    return grid, *(curve[before] for curve in curves)


FIGURES.add(chart_figure("exit_time_distributions", exit_time_distributions, CAPTION))
