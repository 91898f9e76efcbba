"""Panels of a quantity against the student width, for the figures that share this axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.recorded import is_stochastic
from sweeplib.errors import InputError
from sweeplib.figures.facets import Facets, arranged, free_axes, measured_dynamics
from sweeplib.figures.labels import number
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from sweeplib.storage.outline import Outline

WIDTHS, ABOUT = 25, 1.2
STEP = 0.045
"""The factor in width between the points of neighbouring colours."""


def over_width(
    data: xr.Dataset | Outline, where: Mapping[str, Any] | None, panel: str | None, hue: str | None
) -> Facets:
    """Return the facets of a figure against the width: by default one panel per dimension and one colour per noise.

    InputError if the widths vary along an axis other than p.
    """
    outline = outline_of(data)
    if "p" not in outline.axes and outline.dims_of("p"):
        raise InputError("the student width has no axis of its own", value=outline.dims_of("p"), expected="an axis p")
    free = free_axes(outline, where)
    panel = panel or ("d" if "d" in free and hue != "d" else None)
    hue = hue or ("Delta" if "Delta" in free and panel != "Delta" else None)
    return arranged(outline, {"dynamics", "p"}, where, panel, hue)


def with_width(data: xr.Dataset) -> xr.Dataset:
    """Return the data with an axis p; a width that is the same everywhere becomes an axis of one value."""
    return data if "p" in data.dims else data.expand_dims("p")


def dodged(p: np.ndarray, index: int, count: int) -> np.ndarray:
    """Return the widths, shifted sideways for colour number `index` of `count`."""
    return np.asarray(p, float) * np.exp(STEP * (index - (count - 1) / 2))


def widths(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return axis positions and their widths for curves of theory: between the widths, or around a single one."""
    if p.min() < p.max():
        between = np.geomspace(float(p.min()), float(p.max()), WIDTHS)
        return between, between
    return p.min() * np.array([1.0 / ABOUT, ABOUT]), np.full(2, float(p.min()))


def width_axis(axes: Axes, p: np.ndarray) -> None:
    """Make the horizontal axis logarithmic with a tick at each width."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xlim(p.min() / 1.3, p.max() * 1.3)
    axes.xaxis.set_major_locator(FixedLocator([float(value) for value in p]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def stochastic_or_all(data: xr.Dataset, name: str) -> list[str]:
    """Return the stochastic dynamics with a value of the variable `name`, or all with a value if there is none."""
    known = measured_dynamics(data, name)
    return [kind for kind in known if is_stochastic(kind)] or known
