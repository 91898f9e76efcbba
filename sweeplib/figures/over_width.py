"""Panels of a quantity against the student width, for figures that share this axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.cells import field, is_stochastic
from sweeplib.errors import InputError
from sweeplib.figures.facets import Facets, at_middle, facets, selected
from sweeplib.figures.labels import dynamics_order, number

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

STEP = 0.045
"""How far apart, in factors of the width, the colours stand."""


def over_width(
    data: xr.Dataset, where: Mapping[str, Any] | None, panel: str | None, hue: str | None
) -> tuple[xr.Dataset, Facets]:
    """The data at `where` with an axis p, and its panels and colours: by default dimensions, and noise."""
    data = selected(data, where)
    width = field(data, "p")
    if not width.ndim:
        data = data.assign_coords(p=width).expand_dims("p")
    if "p" not in data.dims:
        raise InputError("the student width has no axis of its own", key="p", expected="an axis p")
    drawn = {"dynamics", "p"}
    data = data.isel({dim: 0 for dim in data.dims if data.sizes[dim] == 1 and dim not in drawn})
    free = [dim for dim in data.dims if dim not in drawn]
    panel = panel or ("d" if "d" in free and hue != "d" else None)
    hue = hue or ("Delta" if "Delta" in free and panel != "Delta" else None)
    data = at_middle(data, drawn, panel, hue)
    return data, facets(data, drawn, panel, hue)


def dodged(p: np.ndarray, index: int, count: int) -> np.ndarray:
    """The widths, moved a little to the side that colour number `index` of `count` has."""
    return np.asarray(p, float) * np.exp(STEP * (index - (count - 1) / 2))


def width_axis(axes: Axes, p: np.ndarray) -> None:
    """Give the axes a logarithmic axis with a tick at each width."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xlim(p.min() / 1.3, p.max() * 1.3)
    axes.xaxis.set_major_locator(FixedLocator([float(value) for value in p]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def measured_dynamics(data: xr.Dataset, name: str) -> list[str]:
    """The dynamics for which the variable `name` was measured anywhere: stochastic ones, or all where there is none."""
    known = [kind for kind in data["dynamics"].values if bool(data[name].sel(dynamics=kind).notnull().any())]
    return dynamics_order([kind for kind in known if is_stochastic(kind)] or known)
