"""The table of optimal learning rates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from sweeplib.analysis.kit.headlines import number_with_interval
from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.labels import axis_label, dynamics_order, number
from sweeplib.pictures.report.tables import heading

THEORY = {"gamma_opt_theory": "Annealed and quenched theory", "gamma_opt_noise_corrected": "Noise-corrected theory"}

SCANNED = ("gammas_used", "gammas_censored", "gammas_lost", "gammas_few")
"""The numbers of learning rates of a scan, used or left out."""


@dataclass(frozen=True)
class OptimaTable:
    """Headings and rows of cells; the first `axes` cells name the point; `fixed` lists what all points share.

    `unknown`: whether dynamics that were run have no optimum at some point.
    """

    headings: list[str]
    rows: list[list[str]]
    axes: int
    fixed: list[str]
    confidence: float
    at_edge: bool
    unknown: bool


def optima_table(optima: xr.Dataset) -> OptimaTable:
    """Return a table with a row per point and a column per dynamics ('value [low, high]', † at the scan's edge)."""
    every = [str(dim) for dim in optima["gamma_opt"].dims if dim != "dynamics"]
    dims = [dim for dim in every if optima.sizes[dim] > 1]
    fixed = [f"{axis_label(optima[dim])} = {number(optima[dim].values[0].item())}" for dim in every if dim not in dims]
    optima = optima.isel({dim: 0 for dim in every if dim not in dims})
    scanned = optima[list(SCANNED)].to_dataarray().sum("variable") > 0
    names = dynamics_order(optima["dynamics"].values[scanned.any(dims).values])
    unknown = bool((scanned & optima["gamma_opt"].isnull()).any())
    theory = [name for name in THEORY if optima[name].notnull().any()]
    headings = [heading(optima[dim]) for dim in dims]
    headings += [dynamics_label(name) for name in names] + [THEORY[name] for name in theory]
    rows = []
    for place in product(*(range(optima.sizes[dim]) for dim in dims)):
        point = optima.isel(dict(zip(dims, place, strict=True)))
        measured = [_measured(point.sel(dynamics=name)) for name in names]
        expected = [f"{x:.4g}" if np.isfinite(x := point[name].item()) else "–" for name in theory]
        rows.append([number(point[dim].item()) for dim in dims] + measured + expected)
    at_edge, confidence = bool(optima["at_edge"].any()), float(optima.attrs["confidence"])
    return OptimaTable(headings, rows, len(dims), fixed, confidence, at_edge, unknown)


def _measured(optimum: xr.Dataset) -> str:
    if np.isnan(optimum["gamma_opt"]):
        return "–"
    return number_with_interval(optimum, "gamma_opt") + (" †" if optimum["at_edge"] else "")
