"""The units of students as points of overlap and norm, and their empirical measure, pooled over the seeds."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.averages import numbered
from sweeplib.analysis.kit.options import LostPart
from sweeplib.analysis.kit.variables import require
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST, sample_of, values_of, with_status

OVERLAP, SELF_OVERLAP = "overlap_M", "self_overlap"
"""The observables of the units: m_ir (student, teacher), and ‖w_i‖²/d (student)."""


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


Bins = Annotated[int, Field(ge=1, le=500, description="the number of bins of the overlap, and of the norm.")]
Sample = Annotated[
    int, Field(ge=1, le=100_000, description="the number of units that are kept, of those of all seeds.")
]
NORM = r"\|w\|/\sqrt{d}"
"""The symbol, in LaTeX, of the norm of a unit."""


def unit_measure(
    ds: xr.Dataset, *, bins: Bins = 40, sample: Sample = 1000, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return the density of the units over (m_r, ‖w‖/√d), for each teacher r, dynamics and time, and some of the units.

    unit_density : the fraction of the units of all seeds in a bin, over its area. There are `bins` × `bins` equal bins,
        the same everywhere, over the values of the runs that are ok; overlap_bin and norm_bin are their centres.
    unit_overlap, unit_norm : m_r and ‖w‖/√d of at most `sample` units, drawn from all seeds at each point of the sweep,
        the same at all times and in all dynamics: their motion.
    NaN where more than the fraction `max_lost` of the runs has no value.
    """
    norm, overlap = norms(ds), numbered(values_of(ds, OVERLAP))
    norm, overlap = (sample_of(array, ds, max_lost, of_means=False) for array in (norm, overlap))
    ok = with_status(ds, "ok")
    # the density, from the units of all seeds together
    edges = [_edges(array.where(ok), bins) for array in (overlap, norm)]
    units = {"pooled": ("seed", "student")}
    pooled = [array.stack(units, create_index=False).drop_vars("seed") for array in (overlap, norm)]
    counted = xr.apply_ufunc(
        lambda m, length: _density(m, length, *edges),
        *pooled,
        input_core_dims=[["pooled"], ["pooled"]],
        output_core_dims=[["overlap_bin", "norm_bin"]],
        vectorize=True,
    )
    # some units; numbers below zero stand for none
    choice = _choice(pooled[1], sample)
    some_overlaps, some_norms = (array.isel(pooled=choice.clip(0)).where(choice >= 0) for array in pooled)
    variables = {
        "unit_density": labelled(counted, "density of the units over overlap and norm", rf"\rho(m,{NORM})"),
        "unit_overlap": labelled(some_overlaps, "overlap of a unit with the teacher", "m"),
        "unit_norm": labelled(some_norms, "norm of a unit", NORM),
    }
    centres = [0.5 * (array[1:] + array[:-1]) for array in edges]
    axes: dict[str, tuple[Any, ...]] = {
        "unit": (np.arange(choice.sizes["unit"]), "unit"),
        "overlap_bin": (centres[0], "centre of the bin of the overlap", "m"),
        "norm_bin": (centres[1], "centre of the bin of the norm", NORM),
    }
    coords = {name: labelled(xr.DataArray(at, dims=name), *labels) for name, (at, *labels) in axes.items()}
    return xr.Dataset(variables).assign_coords(coords).assign_attrs(max_lost=max_lost)


def _edges(values: xr.DataArray, bins: int) -> Array:
    """Return the edges (bins + 1,) of equal bins from the least to the greatest value; of width 1 for equal values."""
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(low + high):
        low, high = 0.0, 1.0
    return np.linspace(low, high, bins + 1) if high > low else np.linspace(low - 0.5, high + 0.5, bins + 1)


def _density(overlaps: Array, lengths: Array, overlap_edges: Array, norm_edges: Array) -> Array:
    """Return the density (bins, bins) of the units (n,); units outside the bins count as units. NaN without units."""
    finite = np.isfinite(overlaps) & np.isfinite(lengths)
    if not finite.any():
        return np.full((len(overlap_edges) - 1, len(norm_edges) - 1), np.nan)
    counts, _, _ = np.histogram2d(overlaps[finite], lengths[finite], (overlap_edges, norm_edges))
    area = (overlap_edges[1] - overlap_edges[0]) * (norm_edges[1] - norm_edges[0])
    return np.asarray(counts / (finite.sum() * area))


def _choice(norm: xr.DataArray, sample: int) -> xr.DataArray:
    """Return places along `pooled` of at most `sample` units at each point, in random order, along `unit`.

    norm : of the units, NaN where there is none. Points with fewer units are filled up with −1.
    """
    has_units = norm.notnull().any([dim for dim in ("dynamics", "time") if dim in norm.dims])
    size = max(1, min(sample, int(has_units.sum("pooled").max())))

    def choose(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the places (size,) that are chosen of those at which the mask (pooled,) is true."""
        places = np.random.default_rng(0).permutation(np.flatnonzero(mask))[:size]
        return np.pad(places, (0, size - len(places)), constant_values=-1)

    return xr.apply_ufunc(choose, has_units, input_core_dims=[["pooled"]], output_core_dims=[["unit"]], vectorize=True)


def _outline(ds: Outline, *, bins: int, sample: int, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: units along `unit`, and their density along bins.

    The values along bins and `unit` are not known before.
    """
    require_units(ds)
    outline = ds.only("self_overlap", "overlap_M").without("seed", "student")
    overlap, norm = outline.dims_of("overlap_M"), outline.dims_of("self_overlap")
    outline = outline.along("teacher", range(1, ds.sizes["teacher"] + 1))
    outline = outline.with_variables({"unit_overlap": (*overlap, "unit"), "unit_norm": (*norm, "unit")})
    return outline.with_variables({"unit_density": (*overlap, "overlap_bin", "norm_bin")})


ANALYSES.add(analysis_of(unit_measure, "The units over overlap and norm", overlaps=True, outline=_outline))
