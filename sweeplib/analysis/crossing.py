"""The value of an axis at which the mean of a quantity, or a fraction of runs, passes a level, with its interval."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.seed_values import (
    AlongAxis,
    AtTime,
    Of,
    axis_labels,
    curves_along,
    outline_along,
    quantity_of,
)
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import FEWEST, first_crossing

Level = Annotated[float, Field(allow_inf_nan=False, description="the level that is passed.")]


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
    `max_lost` are lost, none diverged or is infinite and, for exits, .2 % at most did not exit. NaN with fewer than 5.
    """
    curves = curves_along(ds, of, along, time, max_lost)
    axis, (quantity, _) = axis_labels(ds, curves.along), quantity_of(ds, of, time)
    *place, unsettled, number, used = curves.law(first_crossing, level=level, confidence=confidence)
    title, needs = f"{axis['long_name']} at which the {quantity} passes {level:g}", "means of three runs or more"
    needs = f"{FEWEST} values of {curves.along} with {needs}, on both sides of the level"
    variables = with_bounds("crossing", place, title, units=axis["units"], bound="unsettled", needs=needs)
    title = "there is not one crossing, or its interval ends beyond the values used"
    reason = "the level is passed more than once, never, or too near to the last values"
    variables["unsettled"] = labelled(unsettled, title, reason=reason, lasting="not_one")
    variables["crossings"] = labelled(number, "crossings of the level")
    variables["not_one"] = labelled(number != 1, "the level is passed more than once or never")
    variables["values_used"] = labelled(used, f"values of {curves.along} used")
    options = {"of": of, "level": level, "along": curves.along, "confidence": confidence, "max_lost": max_lost}
    return xr.Dataset(variables).assign_attrs(options, **curves.at)


def _outline(ds: Outline, *, of: str, along: str | None, time: float | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: one number for the whole axis.

    InputError if the quantity has no such axis.
    """
    return outline_along(ds, of, along, time, "crossing")


DOC = "Where along an axis the mean of a quantity, or a fraction of runs, passes a level"
ANALYSES.add(analysis_of(crossing, DOC, outline=_outline, headline="crossing", quantities=["crossing"]))
