"""How far other dynamics are from a reference, the ODE by default, seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.differences import deviations_outline, differences
from sweeplib.analysis.labels import labelled
from sweeplib.analysis.lost_runs import MOST_LOST
from sweeplib.analysis.options import LostPart, Positive

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline


def deviation(
    ds: xr.Dataset, *, reference: str = "ode", until: Positive = np.inf, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Statistics over `seed` of x(t) − x_reference(t) for each observable x with a time axis, to the time `until`.

    x_deviation, _error, _z: at each time (and entry) the mean difference, its standard error, their ratio, which is a
    standard normal where the means agree; NaN where the differences are but rounding, and where more than the fraction
    `max_lost` of the pairs has no value, because a run stopped before, at its exit or for what reason ever: those that
    go on are no sample of all.
    x_sup_deviation, _error: mean and standard error of the largest |difference| over recorded times (and entries); the
    same for `overlaps`, all recorded overlap matrices together: ‖Ω^ν − Ω(νγ/(pd))‖∞. Where runs stop at their exits, a
    pair counts until the first of them has; `until` makes that the same for all.
    seeds_paired: the pairs that count for these, both with the status ok or recorded up to `until`; seeds_lost: those
    of which a run diverged, timed out, failed or was killed before. NaN where these are more than `max_lost` of all.
    """
    import xarray as xr

    found = differences(ds, reference, until, max_lost)
    result = found.counts
    for name, difference in found.at_each_time().items():
        result |= _means(name, difference, reference)
    for name, largest in found.largest().items():
        result |= _sup(name, largest)
    return xr.Dataset(result).assign_attrs(reference=reference, max_lost=max_lost)


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """The mean over `seed` of what is not NaN, and its standard error."""
    count = values.count("seed")
    return values.mean("seed"), values.std("seed", ddof=1) / np.sqrt(count.where(count > 1))


def _means(name: str, difference: xr.DataArray, reference: str) -> dict[str, xr.DataArray]:
    mean, error = mean_and_error(difference)
    words = f"deviation of the {difference.attrs['long_name']} from {reference}"
    x = difference.attrs.get("symbol", name)
    symbol, units = rf"\langle {x}-{x}'\rangle", difference.attrs.get("units", "1")
    return {
        f"{name}_deviation": labelled(mean, f"mean {words}", symbol, units),
        f"{name}_deviation_error": labelled(error, f"standard error of the mean {words}", rf"\mathrm{{se}}{symbol}"),
        f"{name}_deviation_z": labelled(mean / error.where(error > 0.0), f"z-score of the {words}", "z"),
    }


def _sup(name: str, largest: xr.DataArray) -> dict[str, xr.DataArray]:
    mean, error = mean_and_error(largest)
    attrs: dict[str, Any] = largest.attrs
    symbol = rf"\langle {attrs['symbol']}\rangle"
    return {
        f"{name}_sup_deviation": labelled(mean, f"mean {attrs['long_name']}", symbol),
        f"{name}_sup_deviation_error": labelled(error, f"standard error of the mean {attrs['long_name']}"),
    }


def _outline(ds: Outline, *, reference: str, **_: Any) -> Outline:
    found, names = deviations_outline(ds, reference)
    return found.with_variables({f"{name}_sup_deviation": found.dims_of("status") for name in names})


ANALYSES.register(
    "deviation",
    Analysis(
        "deviation",
        deviation,
        "Deviation of each dynamics from the ODE, paired by seed",
        overlaps=True,
        outline=_outline,
    ),
)
