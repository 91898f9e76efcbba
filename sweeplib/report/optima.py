"""The table of optimal learning rates."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr

from sweeplib.analysis.headlines import with_interval
from sweeplib.analysis.labels import dynamics_label
from sweeplib.figures.labels import axis_label, dynamics_order, number
from sweeplib.report.tables import heading

THEORY = {"gamma_opt_theory": "Annealed and quenched theory", "gamma_opt_noise_corrected": "Noise-corrected theory"}


@dataclass(frozen=True)
class Table:
    """Headings and rows of cells; the first `axes` cells name the point; `fixed` lists what all points share."""

    headings: list[str]
    rows: list[list[str]]
    axes: int
    fixed: list[str]
    confidence: float
    at_edge: bool


def optima_table(optima: xr.Dataset) -> Table:
    """Return a table with a row per point and a column per dynamics ('value [low, high]', † at the scan's edge)."""
    every = [str(dim) for dim in optima["gamma_opt"].dims if dim != "dynamics"]
    dims = [dim for dim in every if optima.sizes[dim] > 1]
    fixed = [f"{axis_label(optima[dim])} = {number(optima[dim].values[0].item())}" for dim in every if dim not in dims]
    optima = optima.isel({dim: 0 for dim in every if dim not in dims})
    shown = _found(optima)
    theory = [name for name in THEORY if optima[name].notnull().any()]
    headings = [heading(optima[dim]) for dim in dims]
    headings += [dynamics_label(name) for name in shown] + [THEORY[name] for name in theory]
    rows = []
    for place in product(*(range(optima.sizes[dim]) for dim in dims)):
        one = optima.isel(dict(zip(dims, place, strict=True)))
        point = [number(one[dim].item()) for dim in dims]
        rows.append(
            point + [_measured(one.sel(dynamics=name)) for name in shown] + [_number(one[name]) for name in theory]
        )
    return Table(headings, rows, len(dims), fixed, float(optima.attrs["confidence"]), bool(optima["at_edge"].any()))


def _found(optima: xr.Dataset) -> list[str]:
    """Return the dynamics with an optimum, stochastic ones first."""
    names = optima["dynamics"].values
    return dynamics_order(name for name in names if optima["gamma_opt"].sel(dynamics=name).notnull().any())


def _measured(one: xr.Dataset) -> str:
    if np.isnan(one["gamma_opt"]):
        return "–"
    return with_interval(one, "gamma_opt") + (" †" if one["at_edge"] else "")


def _number(value: xr.DataArray) -> str:
    return f"{value.item():.4g}" if np.isfinite(value) else "–"
