"""The distribution of exits or of an observable over the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sweeplib.analysis.averages import numbered
from sweeplib.analysis.kit.passages import passages
from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.pictures.figures.figure import FIGURES, BandConfidence, Drawn, Hue, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import wrapped_label
from sweeplib.pictures.figures.kit.quantities import EXITS, at_last_time, recorded_quantity
from sweeplib.pictures.figures.kit.style import by_dashes
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import sample_of, values_of
from sweeplib.statistics.survival import survival_curve

CAPTION = (
    "Fraction of the runs with at most the value on the horizontal axis, with a band of 95 % by default for the first "
    "dynamics. Exits are Kaplan-Meier curves, which end below 1 where runs did not exit. Points at which more than 2 % "
    "of the runs have no value are left out."
)
LABEL = "fraction of runs\nwith at most this value"
"""The label of the vertical axis."""
MOST_RUNS = 12_000
"""The number of runs of the interactive plot above which it has only the points of the figure."""


def distribution(
    ds: Data,
    analyses: ByName,
    *,
    y: Drawn = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    confidence: BandConfidence = 0.95,
) -> Chart:
    """Declare the distribution of exit_steps, exit_time or an observable at one time, by default the last.

    Other axes are fixed at `where`, or at their middle value.
    """
    outline = outline_of(ds)
    name = recorded_quantity(outline, y)
    measured = outline.only(name)
    split = arranged(measured, {"dynamics", "seed"}, at_last_time(measured, where, panel, hue), panel, hue)

    def data(whole: xr.Dataset, _: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the curves of the interactive plot: of all points, or of those of the figure if runs are many."""
        sample = _sample(whole, name)
        if "time" in sample.dims and "time" in split.at:
            sample = sample.isel(time=split.at["time"])
        sample = sample if sample["used"].size <= MOST_RUNS else split.selected(sample)
        return _curves(sample, confidence, whole[name].attrs)

    words = name if isinstance(ds, Outline) else ds[name].attrs.get("long_name", name)
    return Chart(
        x="value",
        y="fraction",
        data=data,
        xs=(),
        ys=("fraction_left",),
        title=f"Distribution of the {words} over the seeds",
        split=split,
        pictures=lambda whole, _: _curves(_sample(whole, name), confidence, whole[name].attrs),
        levels=(Level((Layer("stairs", "fraction"),), label=LABEL, limits=(-0.02, 1.02), log=False),),
        x_label="" if isinstance(ds, Outline) else wrapped_label(ds[name], 26),
        log_x=lambda values: wide(values.isel(rank=slice(1, None)).values),
        size=(2.5, 4.0, 2.6),
        looks=by_dashes(),
    )


def _sample(ds: xr.Dataset, name: str) -> xr.Dataset:
    """Return the value of each run, where it is `used`; for runs without an exit `value` is NaN and `end` their end."""
    if name in EXITS:
        sample = passages(ds, name.removeprefix("exit_"))
        return xr.Dataset({"value": sample.exit.where(sample.used), "end": sample.end, "used": sample.used})
    values = numbered(sample_of(values_of(ds, name), ds, of_means=False))
    return xr.Dataset({"value": values, "end": values, "used": values.notnull()})


def _curves(sample: xr.Dataset, confidence: float, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Return the curve of each sample over `seed` along the axis `rank`: its values and the fractions up to them.

    sample : as of `_sample`. attrs : those of the quantity.
    """

    def curve(values: np.ndarray, ends: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Return value, fraction, and the ends of its band (4, seeds + 1) of one cell, NaN behind the last step.

        values, ends, used (seeds,) : the variables of the sample in the cell.
        """
        result = np.full((4, values.size + 1), np.nan)
        reached = used & np.isfinite(values)
        if used.any() and not reached.any():
            # no run exited: the fraction is 0 up to the last end; its first place is set below
            result[0, 1], result[1, :2] = ends.max(initial=0.0, where=used & np.isfinite(ends)), 0.0
        if reached.any():
            places, survival, low, high = survival_curve(values[reached], ends[used & ~reached], confidence)
            result[:, 0] = places[0], 0.0, np.nan, np.nan
            result[:, 1 : len(places) + 1] = places, 1.0 - survival, 1.0 - high, 1.0 - low
        return result

    result = xr.apply_ufunc(
        curve,
        sample["value"],
        sample["end"],
        sample["used"],
        input_core_dims=[["seed"]] * 3,
        output_core_dims=[["part", "rank"]],
        vectorize=True,
    )
    value, fraction, low, high = (result.isel(part=row, drop=True) for row in range(4))
    begin = float(value.min()) if wide(value.values) else 0.0
    value = value.where(fraction.isnull() | value.notnull(), begin)
    at_most, more = (f"fraction of runs with {words} this value" for words in ("at most", "more than"))
    curves = with_bounds("fraction", (fraction, low, high), at_most)
    curves |= with_bounds("fraction_left", (1.0 - fraction, 1.0 - high, 1.0 - low), more)
    curves["value"] = labelled(value, attrs.get("long_name", "value"), attrs.get("symbol", ""), attrs.get("units", "1"))
    rank = labelled(xr.DataArray(np.arange(value.sizes["rank"]), dims="rank"), "rank of the run")
    return xr.Dataset(curves).assign_coords(rank=rank).assign_attrs(confidence=confidence)


FIGURES.add(chart_figure("distribution", distribution, CAPTION))
