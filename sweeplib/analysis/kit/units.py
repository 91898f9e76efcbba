"""The units of students as points (m_1, ..., m_k, ‖w‖/√d): overlaps with the teacher, and norm."""

from __future__ import annotations

from sweeplib.analysis.kit.variables import require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.lost_runs import values_of

OVERLAP, SELF_OVERLAP = "overlap_M", "self_overlap"


def require_units(ds: xr.Dataset | Outline) -> None:
    """Raise InputError unless overlaps with the teacher and self-overlaps are recorded."""
    require(ds, OVERLAP, SELF_OVERLAP)


def norms(ds: xr.Dataset) -> xr.DataArray:
    """Return ‖w_i‖/√d of each student; NaN beyond the width of a point and where a run has no value."""
    roots: xr.DataArray = values_of(ds, SELF_OVERLAP).clip(min=0.0) ** 0.5
    return roots


def points(ds: xr.Dataset) -> xr.DataArray:
    """Return the units along `student`, with their k + 1 numbers along `number`: the overlaps, then the norm."""
    overlaps = values_of(ds, OVERLAP).rename(teacher="number")
    return xr.concat([overlaps, norms(ds).expand_dims("number")], "number", combine_attrs="drop")
