"""The power of time by which a mean over the seeds grows or falls, as in scaling laws of the risk."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Treated, analysis_of
from sweeplib.analysis.averages import averaged_observables, numbered, numbered_axes
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.variables import statistics_outline
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.fits import FEWEST_POINTS
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST, sample_of, values_of
from sweeplib.statistics.slopes import slopes_of_mean

Observable = Annotated[
    str, Field(description="the observable; a number, or one per teacher direction or task, at each time.")
]
First = Annotated[
    float | None,
    Field(gt=0, description="the recorded time from which the exponent is measured; by default the first above zero."),
]
Last = Annotated[
    float | None, Field(gt=0, description="the recorded time to which the exponent is measured; by default the last.")
]
KINDS = {
    "time_exponent": ("exponent in time", r"\mathrm{d}\ln\langle X\rangle/\mathrm{d}\ln t"),
    "exponent_change": ("exponent in the later half of the times minus that in the earlier half", ""),
}
"""The long names and symbols of the results."""


def time_exponent(
    ds: xr.Dataset,
    *,
    of: Observable = "risk",
    first: First = None,
    last: Last = None,
    confidence: Confidence = 0.95,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return the exponent x of ⟨X⟩ ∝ t^x for the mean over `seed` of an observable X, per dynamics and point.

    time_exponent (_low, _high): the slope of ln ⟨X⟩ over ln t by least squares, all recorded times from `first` to
    `last` alike. It is a property of the mean curve at these times whether that is a power of t or not; the interval,
    that of a mean by the jackknife, is due to the seeds, which all times share. exponent_change (_low, _high): the
    slope of the later half of the times minus that of the earlier half, which has the middle one too; 0 for a power.
    seeds_used: the least number of runs with a value. NaN if ⟨X⟩ is not above zero by two standard errors at all of the
    times, with three runs or more, and above zero without any one of them, and where more than the fraction `max_lost`
    of the runs has no value.
    """
    times = _times(ds["time"].values, first, last)
    selection = sample_of(numbered(values_of(ds, of).sel(time=times)), ds, max_lost)
    exponents = law_along("time", selection, ds["time"].sel(time=times), slopes_of_mean, confidence=confidence)
    result = {"seeds_used": labelled(selection.count("seed").min("time"), "runs used")}
    needs = "a mean above zero by two standard errors at all times, from three runs or more"
    for at, (name, (long_name, symbol)) in enumerate(KINDS.items()):
        title, bounds = f"{long_name} of the {ds[of].attrs['long_name']}", exponents[3 * at : 3 * at + 3]
        result |= with_bounds(name, bounds, title, symbol, needs=needs)
    return xr.Dataset(result).assign_attrs(
        of=of, first=float(times[0]), last=float(times[-1]), confidence=confidence, max_lost=max_lost
    )


def _times(recorded: Array, first: float | None, last: float | None) -> Array:
    """Return the `recorded` times (n,) above zero from `first` to `last`; InputError for fewer than three."""
    low, high = first or 0.0, np.inf if last is None else last
    times = recorded[(recorded > 0.0) & (recorded >= low) & (recorded <= high)]
    if len(times) < FEWEST_POINTS:
        key = "last" if last is not None else "first" if first is not None else "times"
        expected = f"{FEWEST_POINTS} recorded times or more, above zero"
        raise InputError("too few times for an exponent", key=key, value=f"{len(times)} times", expected=expected)
    return times


def _outline(ds: Outline, *, of: str, first: float | None, last: float | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: exponents over seeds and times.

    InputError for too few times.
    """
    names = averaged_observables(ds)
    if of not in names:
        raise InputError("not recorded as numbers over time", key="of", value=of, choices=names)
    _times(np.array(ds.axes["time"], float), first, last)
    return statistics_outline(numbered_axes(ds), of, *KINDS)


ANALYSES.add(
    analysis_of(
        time_exponent,
        "The power of time by which the mean of an observable grows or falls",
        overlaps=True,
        outline=_outline,
        ends={"exit": Treated.refused},
        headline="time_exponent",
        quantities=["time_exponent"],
    )
)
