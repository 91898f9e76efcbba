"""The optimal schedules that runs had: the factors of the learning rate at their knots."""

from __future__ import annotations

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.variables import require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled

RATE, RISK = "schedule_rate", "schedule_risk"
"""The recorded variables: the factor of the learning rate at each knot, and the risk that the schedule leads to."""


def optimal_schedules(ds: xr.Dataset) -> xr.Dataset:
    """Return the optimal schedules per dynamics and point; all seeds of a point have the same.

    rate_at_knot: the factor of the learning rate at each knot, numbered from 0 at time zero; NaN beyond the last knot
    and for schedules that were given. optimal_risk: the mean risk of the ODE at the last time for which it was found.
    """
    # all seeds have the same, but for NaN of cases without a run, which the maximum leaves out
    rate, risk = (ds[name].max("seed") for name in (RATE, RISK))
    variables = {
        "rate_at_knot": labelled(rate, "factor of the learning rate at a knot", r"\xi_k"),
        "optimal_risk": labelled(risk, "risk of the ODE with the optimal schedule", r"\mathcal{R}_\xi"),
    }
    knot = xr.Variable("knot", np.arange(ds.sizes["knot"]), {"long_name": "knot", "units": "1"})
    return xr.Dataset(variables).assign_coords(knot=knot)


def _outline(ds: Outline) -> Outline:
    """Return the structure of the result, before anything runs: rates along `knot`, the last dimension, and risks."""
    require(ds, RATE)
    outline = ds.only(RATE).without("seed")
    dims = outline.dims_of(RATE)
    return outline.with_variables({"rate_at_knot": dims, "optimal_risk": dims[:-1]})


DOC = "The schedules that minimise the risk at the end"
ANALYSES.add(analysis_of(optimal_schedules, DOC, outline=_outline, quantities=["rate_at_knot"]))
