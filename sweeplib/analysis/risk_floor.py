"""The final risk of runs: the mean over the last part of each run, compared to the risk floor of theory."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Treated, analysis_of
from sweeplib.analysis.kit.options import LostPart, Part
from sweeplib.analysis.kit.phase_retrieval import floor_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import require, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.networks.theory import asymptotic_risk
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, unless_lost, values_of, without_value
from sweeplib.statistics.seed_means import with_error

LastPart = Annotated[
    Part, Field(description="the last fraction of the recorded times, over which the risk is averaged.")
]


def risk_floor(ds: xr.Dataset, *, last: LastPart = 0.5, max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return statistics over `seed` of the risk averaged over the `last` part of the recorded times.

    risk_floor, risk_floor_error: mean over the runs and its standard error, per dynamics and point. risk_drift,
    risk_drift_error: the mean over the second half of that window minus that over the first; far from zero where the
    floor is not reached, NaN of a single time. seeds_used: number of runs used; seeds_lost: number of runs without a
    value somewhere in the window, because they stopped at their exit, diverged, timed out, became inaccurate or failed.
    NaN where more than the fraction `max_lost` of all runs is lost: the remaining runs are not a random sample.
    risk_floor_theory: γΔ/(1 − 6γ), the floor of phase retrieval by one unit under SGD and its ODE; NaN elsewhere.
    """
    time = ds["time"].values
    window = np.flatnonzero(time >= time[-1] - last * (time[-1] - time[0]))
    run, risk = has_run(ds), values_of(ds, "risk").isel(time=window)
    lost = without_value(risk, run).any("time")
    sample = unless_lost(risk.where(run & ~lost), lost, run, max_lost)
    middle = len(window) // 2
    level = sample.mean("time")
    drift = sample.isel(time=slice(middle, None)).mean("time") - sample.isel(time=slice(0, middle)).mean("time")
    symbol = r"\mathcal{R}_\infty"
    named = {"error_symbol": rf"\mathrm{{se}}\,{symbol}", "theory": "risk_floor_theory"}
    result = with_error("risk_floor", level, "risk at the end", symbol, **named)
    result |= with_error("risk_drift", drift, "drift of the risk at the end")
    floor = asymptotic_risk(field(ds, "gamma"), field(ds, "Delta")).where(floor_theory_holds(ds))
    result |= {
        "seeds_used": labelled(level.count("seed"), "runs used"),
        "seeds_lost": labelled(lost.sum("seed"), "runs without a value at the end"),
        "risk_floor_theory": labelled(floor, "floor of the risk, theory", symbol),
    }
    return xr.Dataset(result).assign_attrs(last=last, max_lost=max_lost)


def _outline(ds: Outline, *, last: float, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: numbers over seeds and times.

    InputError without the risk, or for an empty window.
    """
    if not 0.0 < last <= 1.0:
        raise InputError("not a part of the times", key="last", value=last, expected="a number in (0, 1]")
    require(ds, "risk")
    return statistics_outline(ds, "risk", "risk_floor")


ANALYSES.add(
    analysis_of(
        risk_floor,
        "The risk at which runs end up, beside theory",
        outline=_outline,
        ends={"exit": Treated.refused},
        quantities=["risk_floor"],
    )
)
