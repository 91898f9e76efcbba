"""Steps and samples to the exit against the batch size, with the fitted powers."""

from __future__ import annotations

from functools import partial

import numpy as np

from sweeplib.analysis.kit.headlines import interval_text
from sweeplib.figures.figure import FIGURES, Hue, Panel, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.facets import arranged, measured_dynamics
from sweeplib.figures.kit.labels import MINUS
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.late_modules import xarray as xr

CAPTION = (
    "Mean numbers of steps and of fresh samples to the exit against the batch size, with standard errors over the "
    "seeds. Lines: powers of the batch size fitted to the steps of the first dynamics, with their slope and interval, "
    "over the batch sizes of the fit. Points with too many runs without an exit are left out, and marked by ∅."
)
NARROW = 0.05
"""The width of an interval below which a slope is written with three digits."""


def batch_tradeoff(ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None) -> Points:
    """Declare steps above and samples below; axes not selected or drawn are fixed at their middle value."""
    split = arranged(analyses["batch_tradeoff"], {"dynamics", "batch_size"}, where, panel, hue)
    levels = tuple(
        Level(name, (Curve("fit", "", partial(_power, name=name)),), log=True) for name in ("steps", "samples")
    )
    return Points(
        x="batch_size",
        y="steps",
        needs=("batch_tradeoff",),
        hover=("exponent",),
        split=split,
        levels=levels,
        log_x=lambda _: True,
        hue_text=_slope,
    )


def _first(one: xr.Dataset) -> xr.Dataset | None:
    """Return the part of the first dynamics with steps, if a power was fitted to it."""
    shown = measured_dynamics(one, "steps")
    first = one.sel(dynamics=shown[0]) if shown else None
    return first if first is not None and np.isfinite(first["exponent"].item()) else None


def _power(one: xr.Dataset, sizes: np.ndarray, name: str) -> np.ndarray:
    first = _first(one)
    if first is None:
        return np.full(sizes.shape, np.nan)
    used = first["batch_size"].where(first["steps"].notnull() & (first["batch_size"] <= one.attrs["largest_batch"]))
    steps = first["prefactor"].item() * sizes ** first["exponent"].item()
    repeats = float(one["repeats"]) if "repeats" in one.coords else 1.0
    heights = steps if name == "steps" else steps * sizes / repeats
    return np.where((sizes >= float(used.min())) & (sizes <= float(used.max())), heights, np.nan)


def _slope(one: xr.Dataset) -> str:
    first = _first(one)
    if first is None:
        return ""
    exponent, low, high = (first[name].item() for name in ("exponent", "exponent_low", "exponent_high"))
    digits = 2 if high - low > NARROW else 3
    return f"slope {exponent:.{digits}f} {interval_text(f'{low:.{digits}f}', f'{high:.{digits}f}')}".replace("-", MINUS)


FIGURES.add(chart_figure("batch_tradeoff", batch_tradeoff, CAPTION, ("batch_tradeoff",)))
