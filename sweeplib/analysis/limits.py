"""The limit that describes SGD: the simplest that differs from the mean of SGD by less than the scatter of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.labels import labelled
from sweeplib.analysis.lost_runs import MOST_LOST, made, recorded, too_many, without_value
from sweeplib.analysis.needs import need_stochastic
from sweeplib.analysis.options import Confidence, LostPart, Positive
from sweeplib.analysis.recorded import require
from sweeplib.analysis.regime_samples import sgd_values
from sweeplib.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline


def limits(
    ds: xr.Dataset,
    *,
    candidates: Annotated[Sequence[str], Field(min_length=1)] = ("gradient_flow", "ode"),
    confidence: Confidence = 0.95,
    most_spread: Positive = 0.5,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return the first of the `candidates`, ordered from the simplest, that describes SGD, at each point.

    For each candidate X, with the same starts:
    bias: the largest |mean R_SGD − R_X| over the seed error (the standard deviation of R_SGD − R_X over the seeds), at
    any recorded time; bias_error is its standard error.
    spread: the largest seed error over the largest |R_X − R_X(0)|.
    X describes SGD where bias < 1 and spread < `most_spread`: the mean of SGD lies within the scatter of its runs, and
    this scatter is small compared to the change of the risk. `limit` is the position of the first such X in
    `candidates`, counted from 1; the next position means "none". It is 0, undecided, where 1 lies within the interval
    of a bias that decides, or where runs are missing.
    seeds_lost: number of pairs of runs without a value at some time. Where at any time these are more than the fraction
    `max_lost` of all pairs, bias and spread are NaN and the limit is undecided: the runs that diverge or time out
    differ systematically from the others.
    Other limits take part if their dynamics are run and named in `candidates`.
    """
    import xarray as xr

    parts = [_discrepancy(ds, name, max_lost) for name in candidates]
    found = xr.concat(parts, "candidate", combine_attrs="override").assign_coords(candidate=list(candidates))
    found["candidate"] = labelled(found["candidate"], "limit that may describe SGD")
    found["limit"] = _first(found, confidence, most_spread)
    return found.assign_attrs(confidence=confidence, most_spread=most_spread, max_lost=max_lost)


def _discrepancy(ds: xr.Dataset, name: str, max_lost: float) -> xr.Dataset:
    import xarray as xr

    run, risk = made(ds), recorded(ds, "risk")
    limit = risk.sel(dynamics=name, drop=True)
    paired = sgd_values(run, run) & run.sel(dynamics=name, drop=True)
    difference = (sgd_values(risk, run) - limit).where(paired).isel(time=slice(1, None))
    lost = without_value(difference, paired)
    known = ~too_many(lost, paired, max_lost).any("time")
    count = difference.count("seed").min("time")
    error = difference.std("seed", ddof=1)
    bias = (abs(difference.mean("seed")) / error).where(known & (count > 2)).max("time")
    moved = abs(limit - limit.isel(time=0)).where(paired).mean("seed").max("time")
    return xr.Dataset(
        {
            "bias": labelled(bias, "bias of a limit over the seed error", "b"),
            "bias_error": labelled(((1.0 + 0.5 * bias**2) / count) ** 0.5, "standard error of the bias"),
            "spread": labelled(error.max("time").where(known) / moved, "seed error over the change of the risk"),
            "seeds_lost": labelled(lost.any("time").sum("seed"), "pairs of runs without a value at some time"),
        }
    )


def _first(found: xr.Dataset, confidence: float, most_spread: float) -> xr.DataArray:
    """Return the position of the first candidate that describes SGD, from 1; one more for none; 0 if undecided."""
    import xarray as xr
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + 0.5 * confidence))
    within = (found["bias"] + z * found["bias_error"] < 1.0) & (found["spread"] < most_spread)
    beyond = (found["bias"] - z * found["bias_error"] > 1.0) | (found["spread"] >= most_spread)
    names = [str(name) for name in found["candidate"].values]
    limit = xr.zeros_like(within.isel(candidate=0, drop=True), dtype=np.uint8)
    left = xr.ones_like(limit, dtype=bool)
    for place, name in enumerate(names, start=1):
        limit = limit.where(~(left & within.sel(candidate=name, drop=True)), np.uint8(place))
        left = left & beyond.sel(candidate=name, drop=True)
    limit = limit.where(~left, np.uint8(len(names) + 1))
    flags = {"flag_values": list(range(len(names) + 2)), "flag_meanings": " ".join(("undecided", *names, "none"))}
    return limit.assign_attrs({"long_name": "simplest limit that describes SGD", "units": "1"} | flags)


def _outline(ds: Outline, *, candidates: Sequence[str], **_: Any) -> Outline:
    require(ds, "risk")
    known = ds.axes["dynamics"]
    for name in candidates:
        if name not in known:
            raise InputError("not among the dynamics that were run", key="candidates", value=name, choices=known)
    need_stochastic(ds)
    found = ds.only("risk").without("dynamics", "seed", "time")
    return found.along("candidate", candidates).with_variables({"limit": found.dims_of("status")})


ANALYSES.register(
    "limits",
    Analysis("limits", limits, "The simplest limit that describes SGD within its seed error", outline=_outline),
)
