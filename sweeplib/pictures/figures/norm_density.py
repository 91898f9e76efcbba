"""Densities of the students' norms at several times, of each dynamics that was run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures.figure import FIGURES, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import over_times
from sweeplib.pictures.figures.kit.style import COLOURS, DASHES, INK, Looks
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import values_of, with_status

CAPTION = (
    "Densities of the norms of the students at several times, from the quantiles of all seeds. Filled: the first "
    "dynamics with noise; lines: the others, deterministic ones from the same starts."
)
QUANTITY = "norm_quantiles"
"""The observable: quantiles of the norms of the students of a run."""
BINS = 60
"""The number of bins of a density."""
FILL, LINES = "#9fb6d0", (INK, COLOURS[1], COLOURS[3], COLOURS[4], COLOURS[2])
"""The colours of the first dynamics with noise, and of the others."""


def norm_density(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare one panel per time; by default four times, from the first to the last.

    Other axes that are not selected by `where` are fixed at their middle value.
    """
    require(ds, QUANTITY)
    outline = outline_of(ds).only(QUANTITY)
    split = over_times(outline, {"dynamics", "seed", "quantile"}, where or {})
    return Chart(
        x="norm",
        y="density",
        data=_densities,
        split=split,
        levels=(Level((Layer("bins", "density"),), limits=(0.0, None)),),
        log_x=lambda _: False,
        size=(1.7, 3.6, 2.5),
        looks=Looks(_look),
    )


def _densities(ds: xr.Dataset, _: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the densities of the norms of all seeds over the same bins."""
    norms = values_of(ds, QUANTITY)
    # a run that diverged has norms beyond all others
    widest = norms.where(with_status(ds, "ok")).max()
    edges = np.linspace(0.0, 1.02 * float(widest if widest > 0.0 else 1.0), BINS + 1)

    def density(values: np.ndarray) -> np.ndarray:
        """Return the density (BINS,) of some norms; NaN without any."""
        values = values[np.isfinite(values)]
        return np.histogram(values, edges, density=True)[0] if values.size else np.full(BINS, np.nan)

    inner = [dim for dim in ("seed", "quantile") if dim in norms.dims]
    flat = norms.stack(run=inner, create_index=False)
    heights = xr.apply_ufunc(density, flat, input_core_dims=[["run"]], output_core_dims=[["norm"]], vectorize=True)
    middle = xr.DataArray(0.5 * (edges[1:] + edges[:-1]), dims="norm")
    norm = labelled(middle, "norm", r"\|w\|/\sqrt{d}")
    return xr.Dataset({"density": labelled(heights, "density")}).assign_coords(norm=norm)


def _look(name: str, names: list[str], _: dict[str, Any]) -> dict[str, Any]:
    """Return the look of a dynamics, for `Looks`: a fill for the first with noise, lines told apart for the others.

    names : all dynamics that are drawn. The look of the colour is not used: the figure has no hue.
    """
    filled = [other for other in names if is_stochastic(other)][:1]
    if name in filled:
        return {"color": FILL, "linewidth": 6.0}  # in the legend a broad line stands for the fill
    place = [other for other in names if other not in filled].index(name)
    return {"color": LINES[place % len(LINES)], "linewidth": 1.2, "linestyle": DASHES[place % len(DASHES)]}


FIGURES.add(chart_figure("norm_density", norm_density, CAPTION))
