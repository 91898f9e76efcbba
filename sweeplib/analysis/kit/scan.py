"""The axis of a dataset that scans the learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS

SEVERAL = "several axes vary the learning rate"


def scan_dim(ds: xr.Dataset | Outline, along: str | None = None) -> str:
    """Return the dimension along which gamma is scanned at a fixed problem.

    `gamma` itself if it is an axis. Otherwise the single axis that gamma is derived from and that is no field of the
    problem, such as gamma0 in gamma = gamma0 * d**-delta. InputError if there is none, if there are several and `along`
    does not choose one, or if other fields of the problem vary along it.
    """
    outline = outline_of(ds)
    dims = outline.dims_of("gamma")
    if along is not None and along not in dims:
        raise InputError("gamma does not vary along", key="along", value=along, choices=dims)
    candidates = [along] if along else scan_dims(outline)
    if len(candidates) > 1:
        raise InputError(SEVERAL, key="along", value=candidates, expected="one of them")
    return _checked(outline, candidates)


def drawn_scan_dim(ds: xr.Dataset | Outline, where: Mapping[str, Any] | None) -> str:
    """Return the dimension along which gamma is scanned in a figure: that which its option `where` does not fix.

    InputError as for `scan_dim`.
    """
    outline = outline_of(ds)
    fixed = {axis for axis, values in (where or {}).items() if not isinstance(values, list | tuple)}
    every = scan_dims(outline)
    candidates = [dim for dim in every if dim not in fixed] or every
    if len(candidates) > 1:
        raise InputError(SEVERAL, key="where", value=candidates, expected="a value for all but one of them")
    return _checked(outline, candidates)


def scan_dims(outline: Outline) -> list[str]:
    """Return the dimensions along which gamma may be scanned at a fixed problem; several if it is derived from them."""
    dims = outline.dims_of("gamma")
    return ["gamma"] if "gamma" in dims else [dim for dim in dims if dim not in PARAMETERS and dim != SWEEP]


def _checked(outline: Outline, candidates: list[str]) -> str:
    """Return the one candidate; InputError if there is none, or if it is no scan at a fixed problem."""
    if not candidates or outline.sizes[candidates[0]] < 2:
        dims = ", ".join(outline.dims_of("gamma")) if not candidates else ""
        problem = f"the learning rate varies only along {dims}" if dims else "the learning rate does not vary"
        expected = "two learning rates or more in `grid`, or an axis there from which gamma is derived"
        raise InputError(problem, expected=expected)
    (dim,) = candidates
    others = [name for name in PARAMETERS if name != "gamma" and dim in outline.variables.get(name, ())]
    if others:
        raise InputError("not a scan at a fixed problem", key="along", value=dim, expected=f"{', '.join(others)} fixed")
    return dim
