"""A line of a slope, with which points on logarithmic axes are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.labels import MINUS
from sweeplib.pictures.figures.kit.legend import Entry
from sweeplib.pictures.figures.kit.style import DIM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GUIDE: Any = (0, (6, 2, 1, 2))


def draw_guide(axes: Axes, mean: xr.DataArray, x: xr.DataArray, slope: float) -> None:
    """Draw a line of the slope through the lower left of the points of a panel, on logarithmic axes."""
    where = np.unique(x.values[x.values > 0])
    lowest = mean.where(mean > 0.0).min([dim for dim in mean.dims if dim not in x.dims])
    if axes.get_xscale() != "log" or axes.get_yscale() != "log" or len(where) < 2 or not bool(lowest.notnull().any()):
        return
    lowest = lowest.broadcast_like(x).transpose(*x.dims)
    points = zip(x.values.ravel().tolist(), lowest.values.ravel().tolist(), strict=True)
    start, height = min((at, low) for at, low in points if at > 0 and np.isfinite(low))
    axes.plot(where, 0.7 * height * (where / start) ** slope, color=DIM, linestyle=GUIDE, linewidth=0.9, gid="guide")


def guide_entry(slope: float) -> Entry:
    """Return the entry of the line in a legend."""
    text = f"slope {slope:g}".replace("-", MINUS)
    return {"color": DIM, "linestyle": GUIDE, "linewidth": 0.9, "gid": "guide"}, text
