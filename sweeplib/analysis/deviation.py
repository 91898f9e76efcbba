"""The deviation of each dynamics from a reference dynamics (by default the ODE), seed by seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.differences import comparison_attrs, deviations_outline, differences
from sweeplib.analysis.kit.labels import with_article
from sweeplib.analysis.kit.options import LostPart, Reference, Until
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import normal_scores, with_error


def deviation(
    ds: xr.Dataset, *, reference: Reference = "ode", until: Until = np.inf, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return statistics over `seed` of x(t) − x_reference(t), t ≤ `until`, for each observable x with a time axis.

    x_deviation, x_deviation_error, x_deviation_z: at each time (and entry) the mean difference, its standard error, and
    the z-score of their ratio t: t has Student's law if the means agree and differences are normal, and the z-score is
    the number that a standard normal one exceeds as often as Student's t exceeds t. NaN for fewer than three pairs;
    z also where the differences are only rounding errors. All are NaN where more than the fraction `max_lost` of the
    pairs has no value because a run stopped earlier, at its exit or for any other reason: the runs that continue are
    not a random sample.
    x_sup_deviation, x_sup_deviation_error: mean and standard error of the largest |difference| over the recorded times
    (and entries). overlaps_sup_deviation takes the largest over all recorded overlap matrices: ‖Ω^ν − Ω(νγ/(pd))‖∞.
    Where runs stop at their exits, `until` has to be a time before them, the same last time of all pairs.
    seeds_paired: number of pairs used for these maxima; both runs were recorded up to the last time or `until`.
    seeds_lost: number of pairs in which a run ended before that for any reason, also as it diverged. The maxima are
    NaN where these are more than the fraction `max_lost` of all pairs, otherwise those of the others.
    """
    deviations = differences(ds, reference, until, max_lost)
    result = deviations.counts
    for name, difference in deviations.at_each_time().items():
        result |= _means(name, difference, with_article(reference))
    for name, largest in deviations.largest().items():
        result |= sup_deviations(name, largest)
    return xr.Dataset(result).assign_attrs(comparison_attrs(ds, reference, until, max_lost))


def _means(name: str, difference: xr.DataArray, reference: str) -> dict[str, xr.DataArray]:
    """Return the mean difference of an observable x, its standard error and its z-score: x_deviation, and _error, _z.

    name : that of x. difference : x − x_reference of each pair, with the label and the units of x itself.
    reference : the other dynamics in words, "the ODE".
    """
    title = f"deviation of the {difference.attrs['long_name']} from {reference}"
    x, name = difference.attrs.get("symbol", name), f"{name}_deviation"
    symbol, units = rf"\langle {x}-{x}'\rangle", difference.attrs.get("units", "1")
    pair = with_error(name, difference, f"mean {title}", symbol, error_symbol=rf"\mathrm{{se}}{symbol}", units=units)
    mean, error = pair.values()
    # an error of 0 is one of differences that are only rounding errors: they have no score
    scores = normal_scores(mean / error.where(error > 0.0), difference.count("seed") - 1.0)
    return pair | {f"{name}_z": labelled(scores, f"z-score, by Student's t, of the {title}", "z")}


def sup_deviations(name: str, largest: xr.DataArray) -> dict[str, xr.DataArray]:
    """Return mean and standard error over `seed` of the largest deviations of the observable `name`, labelled."""
    title, symbol = f"mean {largest.attrs['long_name']}", rf"\langle {largest.attrs['symbol']}\rangle"
    return with_error(f"{name}_sup_deviation", largest, title, symbol, units=largest.attrs["units"])


def _outline(ds: Outline, **options: Any) -> Outline:
    """Return the structure of the result, before anything runs: its suprema alone, which figures draw."""
    outline, names = deviations_outline(ds, options["reference"], options["until"])
    return outline.with_variables({f"{name}_sup_deviation": outline.dims_of("status") for name in names}, **options)


ANALYSES.add(
    analysis_of(
        deviation,
        "Deviation of each dynamics from a reference, paired by seed",
        overlaps=True,
        outline=_outline,
        quantities=[f"{name}_sup_deviation" for name in ("risk", "overlaps")],
    )
)
