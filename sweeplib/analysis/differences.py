"""Differences between dynamics, seed by seed: the runs of one seed start at the same place under every dynamics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.cells import labelled, over_time, with_status
from sweeplib.errors import InputError
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

ROUNDING = 1e-12
"""Differences below this fraction of the largest value are rounding, and mean nothing."""


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


def differences(ds: xr.Dataset, reference: str = "ode", until: float = np.inf) -> xr.Dataset:
    """X − x_reference of every observable with a time axis, for each of the other dynamics, up to the time `until`.

    NaN where not both runs of a pair have the status ok, or not both were recorded. `paired` says which have. An
    observable with axes of its own, such as an overlap matrix, has them still.
    """
    import xarray as xr

    check_reference(ds, reference)
    ok = with_status(ds, "ok")
    others = ds["dynamics"] != reference
    paired = ok.isel(dynamics=others.values) & ok.sel(dynamics=reference, drop=True)
    found = {"paired": labelled(paired, "both runs of the pair were made")}
    for name in over_time(ds):
        values = ds[name].isel(time=ds["time"].values <= until)
        difference = values.isel(dynamics=others.values) - values.sel(dynamics=reference, drop=True)
        scale = float(abs(values).max())
        difference = difference.where(abs(difference) > ROUNDING * scale, 0.0 * difference).where(paired)
        found[name] = difference.assign_attrs(ds[name].attrs)
    return xr.Dataset(found)


def sup_deviations(difference: xr.Dataset, outer: tuple[str, ...]) -> dict[str, xr.DataArray]:
    """The largest |x − x_reference| over the recorded times and over entries, by observable, with the `outer` dims.

    With overlap matrices among the observables also that over the entries of all of them, `overlaps`.
    """
    import xarray as xr

    found = {}
    for name in over_time(difference):
        inner = [dim for dim in difference[name].dims if dim not in outer]
        found[name] = labelled(abs(difference[name]).max(inner), *_sup_label(difference[name]))
    matrices = [largest for name, largest in found.items() if name.startswith("overlap_")]
    if matrices:
        overlaps = xr.concat(matrices, "matrix", combine_attrs="drop").max("matrix")
        found["overlaps"] = labelled(overlaps, "largest deviation of the overlaps", r"\|\Omega-\Omega'\|_\infty")
    return found


def _sup_label(difference: xr.DataArray) -> tuple[str, str]:
    long_name, symbol = difference.attrs["long_name"], difference.attrs.get("symbol", "x")
    return f"largest deviation of the {long_name}", rf"\sup_t|{symbol}-{symbol}'|"
