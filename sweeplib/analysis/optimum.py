"""The value of an axis at which the mean of a quantity is least or greatest, with its interval."""

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
from sweeplib.statistics.optima import FEWEST, minimum

Greatest = Annotated[bool, Field(description="look for the greatest value, not for the least.")]


def optimum(
    ds: xr.Dataset,
    *,
    of: Of = "risk",
    along: AlongAxis = None,
    time: AtTime = None,
    greatest: Greatest = False,
    confidence: Confidence = 0.95,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return where along an axis the mean of a quantity is least, and how small it is, per dynamics and other axes.

    optimum (_low, _high): the place on the axis, of the smooth curve through the means, without a form that is given
    (`smooth_curve`). The interval has in it the errors of the means, which may be those of shared starts or samples,
    and what they leave open of the curve. best (_low, _high): the mean there, by the curve.
    at_edge: the optimum or an end of its interval is at the first or last value used, so that it may lie beyond;
    at_end: the optimum is.
    values_used: the number of values of the axis that have a mean: of three seeds or more, of which no more than
    `max_lost` are lost, none diverged or is infinite and, for exits, .2 % at most did not exit. NaN with fewer than 5.
    """
    curves = curves_along(ds, of, along, time, max_lost)
    *numbers, at_edge, at_end, used = curves.law(minimum, confidence=confidence, greatest=greatest)
    axis, extreme = axis_labels(ds, curves.along), "greatest" if greatest else "least"
    quantity, units = quantity_of(ds, of, time)
    title, needs = f"{axis['long_name']} of the {extreme} {quantity}", "with means of three runs or more"
    needed = {"bound": "at_edge", "needs": f"{FEWEST} values of {curves.along} {needs}"}
    side = needed | {"bound_side": "above" if greatest else "below"}
    # numbers: the place, low, high; the value there, low, high
    variables = with_bounds("optimum", numbers[:3], title, units=axis["units"], **needed)
    variables |= with_bounds("best", numbers[3:6], f"{extreme} {quantity}", units=units, **side)
    title = "the optimum or its interval ends at the edge of the values used"
    reason = "the optimum may lie beyond the values of the axis"
    variables["at_edge"] = labelled(at_edge, title, reason=reason, lasting="at_end")
    variables["at_end"] = labelled(at_end, "the optimum is the first or the last of the values used")
    variables["values_used"] = labelled(used, f"values of {curves.along} used")
    options = {"of": of, "along": curves.along, "greatest": int(greatest), "confidence": confidence}
    return xr.Dataset(variables).assign_attrs(options | {"max_lost": max_lost}, **curves.at)


def _outline(ds: Outline, *, of: str, along: str | None, time: float | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: one place and one value for the whole axis."""
    return outline_along(ds, of, along, time, "optimum", "best")


DOC = "Where along an axis the mean of a quantity is least or greatest"
ANALYSES.add(analysis_of(optimum, DOC, outline=_outline, headline="optimum", quantities=["optimum", "best"]))
