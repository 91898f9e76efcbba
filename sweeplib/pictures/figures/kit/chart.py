"""Chart: the one declaration of a figure, which its picture and its interactive plot draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.pictures.figures.figure import Figure
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.interactive import Interactive
from sweeplib.pictures.figures.kit.references import check_references, references

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from sweeplib.pictures.figures.kit.distances import Distance

Data: TypeAlias = "xr.Dataset | Outline"
ByName: TypeAlias = "Mapping[str, Data]"
"""A dataset, or its outline before anything runs, and those of analyses."""


@dataclass(frozen=True)
class Chart(Interactive):
    """An interactive plot that is also a picture; kinds of charts differ in what they draw.

    split : what the picture selects, its panels and colours; `hue` is that of the split by default.
    dash : the axis of the dashes.
    published : names of published values of y against x.
    paint : function (ds, analyses) that returns the picture of a chart of no further kind.
    """

    split: Facets = field(default_factory=lambda: Facets({}))
    dash: str | None = None
    published: Sequence[str] = ()
    paint: Callable[[xr.Dataset, Mapping[str, xr.Dataset]], Drawing] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hue", self.hue or self.split.hue)

    def begins_at(self) -> Mapping[str, int]:
        """Return the places on axes that the picture shows."""
        return {dim: place for dim, place in self.split.at.items() if isinstance(place, int)}

    def pictured(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the picture; constants are coordinates already."""
        return analyses[self.needs[0]] if self.data is None else self.data(ds, analyses)

    def distances(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> list[Distance]:
        """Return how far each dynamics in the picture is from the published values."""
        if not self.published:
            return []
        data = self.split.selected(self.pictured(ds, analyses))
        return references(self.published, self.x, self.y).distances(data, self.split, self.dash)

    def picture(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Drawing:
        """Return the picture; constants of the datasets are coordinates."""
        assert self.paint is not None
        return self.paint(ds, analyses)


def chart_figure(
    name: str,
    declare: Callable[..., Chart],
    caption: str,
    needs: tuple[str, ...] | Callable[..., tuple[str, ...]] = (),
) -> Figure:
    """Return the figure of a function (ds, analyses, **options) that returns a chart.

    The function is called with outlines before anything runs, to refuse what cannot be drawn, and then with datasets.
    """

    @wraps(declare)
    def declared(ds: Any, analyses: Mapping[str, Any], **options: Any) -> Chart:
        """Return the chart of a dataset, after a check that the measurements of others fit its axes."""
        chart = declare(ds, analyses, **options)
        if chart.published:
            source = analyses[chart.needs[0]] if chart.needs else ds
            check_references(chart.published, chart.x, chart.y, source, chart.split)
        return chart

    @wraps(declare)
    def picture(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], **options: Any) -> Drawing:
        return declared(ds, analyses, **options).picture(ds, analyses)

    return Figure(name, picture, caption, needs, arrange=declared, interactive=declared)
