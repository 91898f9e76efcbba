"""First passages of any quantity over time: when it is first above or below a level, with censoring."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Treated, analysis_of
from sweeplib.analysis.averages import averaged_observables, numbered, numbered_axes
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.passages import recorded_passages
from sweeplib.analysis.kit.variables import over_time, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, values_of

Quantity = Annotated[
    str, Field(description="the quantity: a result of a function over time, or an observable such as risk.")
]
Passed = Annotated[
    dict[Literal["below", "above"], Annotated[float, Field(allow_inf_nan=False)]],
    Field(min_length=1, max_length=1, description="what a run passes: `{below: 0.1}` or `{above: 3}`."),
]
BELOW: dict[Literal["below", "above"], float] = {"below": 0.1}
"""The default of `when`."""
QUANTITIES = {name: name for name in ("passage_time_median", "passed_fraction")} | {"passage_time": "passage_time_mean"}
"""The variables that figures may draw, by the names that a config gives them."""


def first_passages(
    ds: xr.Dataset,
    *,
    of: Quantity = "risk",
    when: Passed = BELOW,
    confidence: Confidence = 0.95,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return when a quantity is first below or above a level: statistics over `seed`, per dynamics and point.

    A run passes at the first recorded time at which its value is beyond the level. Times between recorded ones are not
    seen: what is said is that of the recorded times. A run that does not pass is censored at its last value, and one
    that diverges before never passes. Runs that stop at exits are refused: an exit may say when they would pass.
    passed_fraction (_low, _high): the Kaplan-Meier fraction at the last observed time (Clopper and Pearson).
    passage_time_mean (_low, _high), passage_time_mean_error: mean of min(passage, horizon), its interval and standard
    error, NaN where no run passed. passage_time_horizon is the last observed time, inf where all passed. `restricted`
    says that runs were censored, so that the mean is a lower bound.
    passage_time_median (_low, _high): the Kaplan-Meier median; NaN where fewer than half of the runs passed.
    seeds_used, seeds_censored: runs used, and those of them that did not pass. NaN where more than `max_lost` of the
    runs have no value at any time.
    """
    [(side, level)] = when.items()
    values = numbered(values_of(ds, of))
    sample = recorded_passages(ds, values, values > level if side == "above" else values < level, ds["time"], max_lost)
    # what recorded times count, and in which unit
    labels = ds["time"].attrs
    time = str(labels["long_name"]) if labels.keys() & {"clock", "scale"} else "time"
    units, words = str(labels.get("units", "1")), f"{ds[of].attrs['long_name']} is {side} {level:g}"
    fraction, mean, median = (number(confidence) for number in (sample.fraction, sample.mean, sample.median))
    title, symbol = f"mean {time} at which the {words}", r"\langle t\rangle"
    variables = sample.mean_variables("passage_time_mean", mean, title, symbol, units=units)
    variables |= with_bounds("passage_time_median", median, f"median {time} at which the {words}", "", units)
    variables |= with_bounds("passed_fraction", fraction, f"fraction of runs of which the {words} at a recorded time")
    title, reason = "the mean is restricted to the horizon", "lower bound: some runs did not pass"
    variables |= {
        "passage_time_horizon": labelled(sample.horizon, f"{time} to which the mean is restricted", units=units),
        "restricted": labelled(sample.censored().any("seed"), title, reason=reason),
    } | sample.used_runs("pass")
    attrs = {"of": of, side: level, "confidence": confidence, "max_lost": max_lost}
    return xr.Dataset(variables).assign_attrs(attrs)


def _outline(ds: Outline, *, of: str, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: statistics over seeds and times.

    InputError if `of` is not recorded over time.
    """
    names = [name for name in averaged_observables(ds) if name in over_time(ds)]
    if of not in names:
        expected = {"choices": names} if names else {"expected": "a quantity over time, with a dimension `time`"}
        raise InputError("not recorded over time in this sweep", key="of", value=of, **expected)
    return statistics_outline(numbered_axes(ds), of, *QUANTITIES.values())


ANALYSES.add(
    analysis_of(
        first_passages,
        "When a quantity over time is first above or below a level, with censoring",
        outline=_outline,
        ends=EXITS_ONLY | {"exit": Treated.refused},
        headline="passage_time_mean",
        quantities=QUANTITIES,
    )
)
