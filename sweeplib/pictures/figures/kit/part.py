"""What a layer is drawn of: the data of a colour in a panel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.style import line_look, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sweeplib.pictures.figures.kit.chart import Chart, Layer, Level


@dataclass(frozen=True)
class Part:
    """What a layer is drawn of: the data of a colour and of its panel, and of all panels.

    names : the dynamics in the order of their looks. index, dash: the numbers of the colour and of the dash.
    """

    chart: Chart
    axes: Axes
    level: Level
    layer: Layer
    names: list[str]
    data: xr.Dataset
    panel: xr.Dataset
    series: xr.Dataset
    index: int = 0
    dash: int = 0

    def dynamics(self) -> Iterator[tuple[str, xr.Dataset, dict[str, Any]]]:
        """Yield each dynamics, its data and its look; all data in the look of the colour if dynamics are no axis."""
        if "dynamics" not in self.series[self.layer.y].dims:
            yield "", self.series, line_look(self.index) | self.layer.look
            return
        for name in self.names:
            style = self.chart.looks.of(name, self.names, look(self.index))
            yield name, self.series.sel(dynamics=name), style | self.layer.look

    @property
    def number(self) -> float:
        """Return the number that is y."""
        assert isinstance(self.layer.y, int | float)
        return self.layer.y

    @property
    def x(self) -> str:
        """Return the variable of the horizontal axis."""
        return self.layer.x or self.chart.x


def places_of(chart: Chart, data: xr.Dataset) -> xr.DataArray:
    """Return the places of data on the horizontal axis, without the shift of colours."""
    return data[chart.x] / data[chart.x_over] if chart.x_over else data[chart.x]


def unit_of(series: xr.Dataset, over: str) -> float:
    """Return the unit of an axis for one colour; 1 if it is not the same for all of its points."""
    return series[over].item() if over and not series[over].dims else 1.0
