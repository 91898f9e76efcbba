"""Differences between dynamics, seed by seed: the runs of one seed start at the same place under every dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeplib.analysis.labels import labelled
from sweeplib.analysis.lost_runs import made, recorded, unless_lost, without_value
from sweeplib.analysis.recorded import over_time
from sweeplib.analysis.status import with_status
from sweeplib.errors import InputError
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

ROUNDING = 1e-12
"""Differences below this fraction of the largest value are rounding, and mean nothing."""


@dataclass(frozen=True)
class Differences:
    """X − x_reference of observables with a time axis, by name, NaN where either run has no value.

    `paired` says where both runs of a pair were made, `whole` which pairs count for what is asked of a whole run: both
    runs ended as they should, be it at their exits, or went on to the last time.
    """

    values: dict[str, xr.DataArray]
    paired: xr.DataArray
    whole: xr.DataArray
    max_lost: float

    @property
    def counts(self) -> dict[str, xr.DataArray]:
        """How many pairs of whole runs there are, and how many of which one was lost on its way."""
        lost = self.paired & ~self.whole
        return {
            "seeds_paired": labelled(self.whole.sum("seed"), "pairs of runs used"),
            "seeds_lost": labelled(lost.sum("seed"), "pairs of runs, one of which diverged, timed out or failed"),
        }

    def at_each_time(self) -> dict[str, xr.DataArray]:
        """The differences, NaN for all seeds where too many pairs have no value any more, whatever stopped them."""
        return {
            name: unless_lost(values, without_value(values, self.paired), self.paired, self.max_lost)
            for name, values in self.values.items()
        }

    def largest(self) -> dict[str, xr.DataArray]:
        """The largest |x − x_reference| over recorded times and entries of whole runs; NaN where too many are not.

        With overlap matrices among the observables also that over the entries of all of them, `overlaps`.
        """
        import xarray as xr

        found = {}
        for name, values in self.values.items():
            inner = [dim for dim in values.dims if dim not in self.paired.dims]
            largest = abs(values).max(inner).where(self.whole)
            largest = unless_lost(largest, self.paired & ~self.whole, self.paired, self.max_lost)
            found[name] = labelled(largest, *_sup_label(values))
        matrices = [largest for name, largest in found.items() if name.startswith("overlap_")]
        if matrices:
            overlaps = xr.concat(matrices, "matrix", combine_attrs="drop").max("matrix")
            found["overlaps"] = labelled(overlaps, "largest deviation of the overlaps", r"\|\Omega-\Omega'\|_\infty")
        return found


def check_reference(ds: xr.Dataset | Outline, reference: str) -> None:
    """Raise InputError unless the dataset has runs of `reference` and of another dynamics."""
    known = list(outline_of(ds).axes.get("dynamics", ()))
    if reference not in known:
        raise InputError("not among the dynamics that were run", key="reference", value=reference, choices=known)
    if len(known) < 2:
        raise InputError("nothing to compare with", key="dynamics", value=known, expected="two dynamics or more")


def deviations_outline(ds: Outline, reference: str) -> tuple[Outline, list[str]]:
    """The outline of statistics over the seeds of the other dynamics, and the names of what deviates.

    InputError for a reference that is not run, or without an observable over time.
    """
    check_reference(ds, reference)
    names = over_time(ds)
    if not names:
        wanted = "one over time, such as risk, among the `observables`"
        raise InputError("no observable is recorded over time", expected=wanted)
    others = [name for name in ds.axes["dynamics"] if name != reference]
    matrices = any(name.startswith("overlap_") for name in names)
    return ds.only("status").without("seed").along("dynamics", others), names + ["overlaps"] * matrices


def differences(ds: xr.Dataset, reference: str, until: float, max_lost: float) -> Differences:
    """The differences of each of the other dynamics from `reference`, up to the time `until`.

    An observable with axes of its own, such as an overlap matrix, has them still.
    """
    check_reference(ds, reference)
    others = (ds["dynamics"] != reference).values

    def both(of_run: xr.DataArray) -> xr.DataArray:
        pair: xr.DataArray = of_run.isel(dynamics=others) & of_run.sel(dynamics=reference, drop=True)
        return pair

    ok = with_status(ds, "ok")
    paired, whole = both(made(ds)), both(ok)
    found = {}
    for name in over_time(ds):
        values = recorded(ds, name).isel(time=ds["time"].values <= until)
        difference = values.isel(dynamics=others) - values.sel(dynamics=reference, drop=True)
        scale = float(abs(values).where(ok).max())  # those that diverge may become as large as they like
        difference = difference.where(abs(difference) > ROUNDING * scale, 0.0 * difference).where(paired)
        found[name] = difference.assign_attrs(ds[name].attrs)
        whole = whole | (paired & ~without_value(difference, paired).any("time"))
    return Differences(found, paired, whole.transpose(*paired.dims), max_lost)


def _sup_label(difference: xr.DataArray) -> tuple[str, str]:
    long_name, symbol = difference.attrs["long_name"], difference.attrs.get("symbol", "x")
    return f"largest deviation of the {long_name}", rf"\sup_t|{symbol}-{symbol}'|"
