"""The value of an axis at which the mean of a quantity is least or greatest, with its interval."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.seed_values import AlongAxis, AtTime, Of, curves_along, outline_along, quantity_of, source_of
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.simulation.labels import label
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import FEWEST, MeanCurve, Optimum

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
    `max_lost` are lost, none diverged and, for exits, .2 % at most did not exit. NaN with fewer than 5.
    """
    curves = curves_along(ds, of, along, time, max_lost)
    parts = xr.apply_ufunc(
        lambda values, x: MeanCurve(values, x, greatest=greatest).optimum(confidence), curves.values, curves.x,
        input_core_dims=[["seed", curves.along], [curves.along]], output_core_dims=[()] * len(Optimum._fields),
        vectorize=True, output_dtypes=[float] * 6 + [bool, bool, int],
    )  # fmt: skip
    axis, extreme, (quantity, units) = label(curves.along), "greatest" if greatest else "least", quantity_of(ds, of)
    variables = with_bounds("optimum", parts[:3], f"{axis['long_name']} of the {extreme} {quantity}")
    variables |= with_bounds("best", parts[3:6], f"{extreme} {quantity}")
    variables["at_edge"] = labelled(parts[6], "the optimum or its interval ends at the edge of the values used")
    variables["at_end"] = labelled(parts[7], "the optimum is the first or the last of the values used")
    variables["values_used"] = labelled(parts[8], f"values of {curves.along} used")
    needed = f"{FEWEST} values of {curves.along} with means of three runs or more"
    variables["optimum"].attrs |= {"bound": "at_edge", "needs": needed, "units": axis.get("units", "1")}
    variables["best"].attrs |= {"bound": "at_edge", "bound_side": "above" if greatest else "below", "units": units}
    variables["at_edge"].attrs |= {"reason": "the optimum may lie beyond the values of the axis", "lasting": "at_end"}
    options = {"of": of, "along": curves.along, "greatest": int(greatest), "confidence": confidence}
    return xr.Dataset(variables).assign_attrs(options | {"max_lost": max_lost})


def _outline(ds: Outline, *, of: str, along: str | None, time: float | None, **_: Any) -> Outline:
    axis, dims = outline_along(ds, of, along, time)
    outline = ds.only(source_of(of)).without("seed", "time", axis)
    return outline.with_variables(dict.fromkeys(("optimum", "best"), dims), along=axis)


ANALYSES.add(
    Analysis(
        "optimum",
        optimum,
        "Where along an axis the mean of a quantity is least or greatest",
        outline=_outline,
        headline="optimum",
        quantities={"optimum": "optimum", "best": "best"},
    ),
)
