"""Which axis of a dataset scans the learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.cells import field
from sweeplib.errors import InputError
from sweeplib.problem import PROBLEM_FIELDS

if TYPE_CHECKING:
    import xarray as xr


def scan_dim(ds: xr.Dataset, along: str | None = None) -> str:
    """The dimension along which gamma is scanned at a fixed problem.

    `gamma` itself where it is an axis; else the one axis of a derived gamma that is no field of the problem, such as
    gamma0 in gamma = gamma0 * d**-delta. InputError where there is none, or more than one and `along` does not say, and
    where other fields of the problem vary along it.
    """
    gamma = field(ds, "gamma")
    dims = [str(dim) for dim in gamma.dims]
    if along is not None and along not in dims:
        raise InputError("gamma does not vary along", key="along", value=along, choices=dims)
    candidates = [along] if along else ["gamma"] if "gamma" in dims else [d for d in dims if d not in PROBLEM_FIELDS]
    if len(candidates) != 1 or ds.sizes[candidates[0]] < 2:
        found = ", ".join(candidates) if candidates else f"gamma varies along {', '.join(dims) or 'no axis'}"
        raise InputError(f"no single axis scans the learning rate ({found})", key="along", value=along, choices=dims)
    (dim,) = candidates
    others = [name for name in PROBLEM_FIELDS if name != "gamma" and name in ds.coords and dim in ds.coords[name].dims]
    if others:
        raise InputError("not a scan at a fixed problem", key="along", value=dim, expected=f"{', '.join(others)} fixed")
    return dim
