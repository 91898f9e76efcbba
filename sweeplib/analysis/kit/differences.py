"""Differences and distances between dynamics, seed by seed: runs with the same seed have the same start in all.

A pair is two runs with the same seed, one of a dynamics and one of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeplib.analysis.kit.labels import with_article
from sweeplib.analysis.kit.variables import need_later_time, over_time
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import has_diverged, has_run, unless_lost, values_of, with_status, without_value

if TYPE_CHECKING:
    Distance = Callable[[xr.DataArray, xr.DataArray], xr.DataArray]


ROUNDING = 1e-12
"""Differences below this fraction of the largest value at a point are rounding errors and are set to 0."""


@dataclass(frozen=True)
class Differences:
    """X − x_reference of observables with a time axis, by name in `values`; NaN where either run has no value.

    `paired` is true where both runs of a pair were computed. `complete` is true for the pairs used in statistics of
    whole runs: both have values of an observable up to the last time. `diverged` is true where one of them diverged.
    `max_lost` is the fraction of pairs without a value above which statistics are NaN.
    """

    values: dict[str, xr.DataArray]
    paired: xr.DataArray
    complete: xr.DataArray
    diverged: xr.DataArray
    max_lost: float
    reference: str

    @property
    def counts(self) -> dict[str, xr.DataArray]:
        """Return the numbers of complete pairs and of pairs in which a run was lost before its end."""
        lost = self.paired & ~self.complete
        return {
            "seeds_paired": labelled(self.complete.sum("seed"), "pairs of runs used"),
            "seeds_lost": labelled(lost.sum("seed"), "pairs of runs, one of which ended before the last time"),
        }

    def at_each_time(self) -> dict[str, xr.DataArray]:
        """Return the differences; NaN for all seeds where too many pairs have no value, or one run diverged before."""
        return {
            name: unless_lost(values, without_value(values, self.paired), self.paired, self.max_lost, self.diverged)
            for name, values in self.values.items()
        }

    def largest(self) -> dict[str, xr.DataArray]:
        """Return the largest |x − x_reference| over recorded times and entries, of complete pairs.

        NaN where too many pairs are incomplete. If overlap matrices are among the observables, `overlaps` is the
        largest over the entries of all of them.
        """
        suprema = {}
        for name, values in self.values.items():
            inner = [dim for dim in values.dims if dim not in self.paired.dims]
            largest = abs(values).max(inner).where(self.complete)
            largest = unless_lost(largest, self.paired & ~self.complete, self.paired, self.max_lost)
            suprema[name] = labelled(largest, *self._sup_label(values), units=values.attrs.get("units", "1"))
        matrices = [largest for name, largest in suprema.items() if name.startswith("overlap_")]
        if matrices:
            overlaps = xr.concat(matrices, "matrix", combine_attrs="drop").max("matrix")
            title = f"largest deviation of the overlaps from {with_article(self.reference)}"
            suprema["overlaps"] = labelled(overlaps, title, r"\|\Omega-\Omega'\|_\infty")
        return suprema

    def _sup_label(self, difference: xr.DataArray) -> tuple[str, str]:
        """Return the long name and the symbol of the largest deviation of an observable."""
        long_name, symbol = difference.attrs["long_name"], difference.attrs.get("symbol", "x")
        title = f"largest deviation of the {long_name} from {with_article(self.reference)}"
        return title, rf"\sup_t|{symbol}-{symbol}'|"


def check_reference(ds: xr.Dataset | Outline, reference: str) -> None:
    """Raise InputError unless the dataset has runs of `reference` and of another dynamics."""
    names = list(outline_of(ds).axes.get("dynamics", ()))
    if reference not in names:
        raise InputError("not among the dynamics that were run", key="reference", value=reference, choices=names)
    if len(names) < 2:
        raise InputError("nothing to compare with", key="dynamics", value=names, expected="two dynamics or more")


def deviations_outline(ds: Outline, reference: str, until: float) -> tuple[Outline, list[str]]:
    """Return the outline of statistics over seeds of the dynamics but `reference`, and the names of what is compared.

    An outline is the structure of a dataset, known before anything runs. InputError for a reference that is not run, if
    no observable has a time axis, if no time between the start and `until` is recorded, and if runs stop at their exits
    but are to be compared without end.
    """
    check_reference(ds, reference)
    if ds.attrs.get("stop") == "exit" and until == float("inf"):
        expected = "a time before the exits, or `stop: end`"
        raise InputError("runs stop at their exits, each at another time", key="until", value=until, expected=expected)
    names = over_time(ds)
    if not names:
        expected = "one over time, such as risk, among the `observables`"
        raise InputError("no observable is recorded over time", expected=expected)
    need_later_time(ds, until)
    others = [name for name in ds.axes["dynamics"] if name != reference]
    matrices = any(name.startswith("overlap_") for name in names)
    return ds.only("status").without("seed").along("dynamics", others), names + ["overlaps"] * matrices


def comparison_attrs(ds: xr.Dataset, reference: str, until: float, max_lost: float) -> dict[str, str | float]:
    """Return the options of a comparison as attributes; `until` is the last time that is compared, a finite one."""
    return {"reference": reference, "until": min(until, float(ds["time"].max())), "max_lost": max_lost}


def differences(ds: xr.Dataset, reference: str, until: float, max_lost: float) -> Differences:
    """Return the differences between each other dynamics and `reference`, up to the time `until`.

    Axes that an observable has of its own, such as those of an overlap matrix, are kept.
    """
    others = (ds["dynamics"] != reference).values

    def paired_where(condition: xr.DataArray) -> xr.DataArray:
        """Return where a condition holds for the other dynamics and for the reference, of the same seed."""
        pair: xr.DataArray = condition.isel(dynamics=others) & condition.sel(dynamics=reference, drop=True)
        return pair

    ok, paired = with_status(ds, "ok"), paired_where(has_run(ds))
    complete = xr.zeros_like(paired)
    variables = {}
    for name in over_time(ds):
        values = values_of(ds, name).isel(time=ds["time"].values <= until)
        difference = values.isel(dynamics=others) - values.sel(dynamics=reference, drop=True)
        inner = ["dynamics", "seed", *(dim for dim in values.dims if dim not in ok.dims)]
        scale = abs(values).where(ok).max(inner).fillna(0.0)  # of runs that diverge values may be arbitrarily large
        difference = difference.where(abs(difference) > ROUNDING * scale, 0.0 * difference).where(paired)
        variables[name] = difference.assign_attrs(ds[name].attrs)
        complete = complete | (paired & ~without_value(difference, paired).any("time"))
    gone = has_diverged(ds)
    diverged = gone.isel(dynamics=others) | gone.sel(dynamics=reference, drop=True)
    return Differences(variables, paired, complete.transpose(*paired.dims), diverged, max_lost, reference)


def from_reference(
    ds: xr.Dataset, state: xr.DataArray, distance: Distance, reference: str, max_lost: float
) -> xr.DataArray:
    """Return the distance of the `state` of each dynamics from that of `reference`, per seed; NaN for `reference`.

    state : what the `distance` of two states takes, over dynamics, seeds, times and axes of its own.
    NaN for all seeds where more than the fraction `max_lost` of the pairs has no value, and from a divergence on.
    """
    run, diverged, others = has_run(ds), has_diverged(ds), (ds["dynamics"] != reference).values
    paired = run.isel(dynamics=others) & run.sel(dynamics=reference, drop=True)
    either_diverged = diverged.isel(dynamics=others) | diverged.sel(dynamics=reference, drop=True)
    distances = distance(state.isel(dynamics=others), state.sel(dynamics=reference, drop=True))
    distances = _distances_unless_lost(distances, paired, max_lost, either_diverged)
    # NaN for the reference
    return distances.reindex(dynamics=ds["dynamics"].values)


def from_start(ds: xr.Dataset, state: xr.DataArray, distance: Distance, max_lost: float) -> xr.DataArray:
    """Return the distance of the `state` of each dynamics from its start, per seed; NaN if that is not recorded."""
    start = state.isel(time=0, drop=True).where(ds["time"][0].item() == 0.0)
    return _distances_unless_lost(distance(state, start), has_run(ds), max_lost, has_diverged(ds))


def _distances_unless_lost(
    distance: xr.DataArray, run: xr.DataArray, max_lost: float, diverged: xr.DataArray
) -> xr.DataArray:
    """Return the distances of pairs that were run, NaN for all seeds where too many have none, or a lost one diverged.

    run, diverged : masks of the pairs that were run, and of those of which a run diverged. max_lost : the fraction of
    pairs that may be lost.
    """
    distance = distance.where(run)
    return unless_lost(distance, without_value(distance, run), run, max_lost, diverged)
