"""The limit that theory expects to describe SGD, from the orders of its scatter and of what each limit leaves out.

A student of width p learns a committee in d dimensions with r = γ/p. Ψ^Var enters Q̇ with the weight r, so that the risk
changes in the time 1/max(1, r), in n = d/(r max(1, r)) steps. In units of the change of the risk, without constants:
runs scatter by n^(−1/2): √(r/d) up to r = 1, r/√d beyond, where √d makes no limit possible;
gradient flow and the mean fields leave Ψ^Var out, min(r, 1);
the mean fields leave out the fluctuations of the cosines between units, 1/p in sums over pairs of units;
for d → ∞ also the mean square 1/d of these cosines; and the ODE neglects n^(−1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sweeplib.analysis.kit.problem_fields import field, one_pass_committee
from sweeplib.engine.base.late_modules import xarray as xr


def limits_expected(ds: xr.Dataset, candidates: Sequence[str], most_spread: float, margin: float) -> xr.DataArray:
    """Return the position of the first of the `candidates` that describes SGD, from 1; one more for none.

    It is 0 where theory is silent: where the orders that decide differ by less than the factor `margin`, for other
    problems than plain students with a frozen second layer, and from the first candidate on whose order is not known.
    """
    scatter, biases = _orders(ds)
    limit = xr.zeros_like(scatter, dtype=np.uint8)
    undescribed = xr.ones_like(scatter, dtype=bool)
    for place, name in enumerate(candidates, start=1):
        bias = biases.get(name, xr.full_like(scatter, np.nan))
        within = (margin * bias < scatter) & (margin * scatter < most_spread)
        limit = limit.where(~(undescribed & within), np.uint8(place))
        undescribed = undescribed & ((bias >= margin * scatter) | (scatter >= margin * most_spread))
    return limit.where(~undescribed, np.uint8(len(candidates) + 1)).where(_holds(ds), np.uint8(0))


def _orders(ds: xr.Dataset) -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """Return the order n^(−1/2) of the scatter of runs, and by its name the order of what each limit leaves out."""
    p, d = field(ds, "p"), field(ds, "d")
    ratio, p, d = xr.broadcast(field(ds, "gamma") / p, p, d)
    steps = d / (ratio * ratio.clip(1.0))
    noise = ratio.clip(max=1.0)
    mean_field = xr.ufuncs.maximum(1.0 / p, noise)
    return steps**-0.5, {
        "mean_field_hd": xr.ufuncs.maximum(1.0 / d, mean_field),
        "mean_field": mean_field,
        "gradient_flow": noise,
        "ode": 1.0 / steps,
    }


def _holds(ds: xr.Dataset) -> xr.DataArray:
    """Return where theory says what describes SGD: for plain students of a committee with a frozen second layer."""
    plain = ~field(ds, "spherical", False).astype(bool) & (field(ds, "second_layer_rate", 0.0) == 0.0)
    return one_pass_committee(ds) & plain
