"""The value of an axis at which the mean of a quantity, or a fraction of runs, passes a level, with its interval."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.seed_values import AlongAxis, AtTime, Of, curves_along, outline_along, quantity_of, source_of
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.simulation.labels import label
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import FEWEST, MeanCurve

Level = Annotated[float, Field(allow_inf_nan=False, description="the level that is passed.")]


class _Passage(NamedTuple):
    """The place of a crossing with its interval, whether it is no single one, and how many values and crossings are."""

    at: float = np.nan
    low: float = np.nan
    high: float = np.nan
    unsettled: bool = True
    crossings: int = 0
    used: int = 0


def crossing(
    ds: xr.Dataset,
    *,
    of: Of = "exited",
    level: Level = 0.5,
    along: AlongAxis = None,
    time: AtTime = None,
    confidence: Confidence = 0.95,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return where along an axis the mean of a quantity passes a level, per dynamics and point of the other axes.

    crossing (_low, _high): the place on the axis, of the smooth curve through the means, without a form that is given
    (`smooth_curve`). The interval has in it the errors of the means and what they leave open of the curve. With several
    crossings it is the first along the axis, and with none NaN.
    crossings: how many there are; not_one: another number than one. unsettled: not one, or an end of its interval lies
    beyond the values used.
    values_used: the number of values of the axis that have a mean: of three seeds or more, of which no more than
    `max_lost` are lost, and none diverged or, for exits, did not exit. NaN with fewer than 5.
    """
    curves = curves_along(ds, of, along, time, max_lost)
    parts = xr.apply_ufunc(
        lambda values, x: _first(MeanCurve(values, x), level, confidence), curves.values, curves.x,
        input_core_dims=[["seed", curves.along], [curves.along]], output_core_dims=[()] * len(_Passage._fields),
        vectorize=True, output_dtypes=[float] * 3 + [bool, int, int],
    )  # fmt: skip
    axis, (quantity, _) = label(curves.along), quantity_of(ds, of)
    variables = with_bounds("crossing", parts[:3], f"{axis['long_name']} at which the {quantity} passes {level:g}")
    variables["crossing"].attrs |= {
        "units": axis.get("units", "1"),
        "bound": "unsettled",
        "needs": f"{FEWEST} values of {curves.along} with means of three runs or more, on both sides of the level",
    }
    variables["unsettled"] = labelled(
        parts[3], "there is not one crossing, or its interval ends beyond the values used"
    )
    reason = "the level is passed more than once, never, or too near to the last values"
    variables["unsettled"].attrs |= {"reason": reason, "lasting": "not_one"}
    variables["crossings"] = labelled(parts[4], "crossings of the level")
    variables["not_one"] = labelled(parts[4] != 1, "the level is passed more than once or never")
    variables["values_used"] = labelled(parts[5], f"values of {curves.along} used")
    options = {"of": of, "level": level, "along": curves.along, "confidence": confidence, "max_lost": max_lost}
    return xr.Dataset(variables).assign_attrs(options)


def _first(curve: MeanCurve, level: float, confidence: float) -> _Passage:
    """Return the first crossing of a level."""
    every = curve.crossings(level, confidence)
    if not every:
        return _Passage(used=len(curve.x))
    at, low, high, _ = every[0]
    is_open = low < curve.x[0] or high > curve.x[-1]
    ends = max(low, float(curve.x[0])), min(high, float(curve.x[-1]))
    return _Passage(at, *ends, is_open or len(every) > 1, len(every), len(curve.x))


def _outline(ds: Outline, *, of: str, along: str | None, time: float | None, **_: Any) -> Outline:
    axis, dims = outline_along(ds, of, along, time)
    outline = ds.only(source_of(of)).without("seed", "time", axis)
    return outline.with_variables({"crossing": dims}, along=axis)


ANALYSES.add(
    Analysis(
        "crossing",
        crossing,
        "Where along an axis the mean of a quantity, or a fraction of runs, passes a level",
        outline=_outline,
        headline="crossing",
        quantities={"crossing": "crossing"},
    ),
)
