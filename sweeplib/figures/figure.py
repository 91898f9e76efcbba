"""Figure: a named function from a dataset and its analyses to a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.constants import with_constants
from sweeplib.analysis.options import checked_options
from sweeplib.registry import Registry

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline


@dataclass(frozen=True)
class Figure:
    """A figure. Called with a dataset and its options, it returns a matplotlib Figure.

    function : function (ds, analyses, **options). Every option has a default and an annotation, which gives its type.
        Fields that are the same at all points of the datasets are coordinates.
    caption : text that describes the figure.
    needs : names of the analyses that it draws; they are computed with default options if the config omits them.
    arrange : function (ds, analyses, **options), called with outlines of datasets, that raises InputError if the figure
        cannot be drawn. It is called before anything runs. None: no check.
    """

    name: str
    function: Callable[..., Drawing]
    caption: str
    needs: tuple[str, ...] = ()
    arrange: Callable[..., Any] | None = None

    def __call__(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset] | None = None, **options: Any) -> Drawing:
        """Return the drawing; InputError for a wrong option or an axis that cannot be drawn."""
        from sweeplib.figures.fit import fitted
        from sweeplib.figures.style import styled

        self.check(options)
        given = dict(analyses or {})
        needed = {name: given[name] if name in given else ANALYSES[name](ds) for name in self.needs}
        with_coordinates = {name: with_constants(analysis) for name, analysis in needed.items()}
        with styled():
            return fitted(self.function(with_constants(ds), with_coordinates, **options))

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, defaults included; InputError, naming the key, for an unknown name or a wrong type."""
        return checked_options(self.function, f"option of the figure {self.name!r}", options, arguments=2)

    def check_fit(self, ds: Outline, analyses: Mapping[str, Outline | None], options: Mapping[str, Any]) -> None:
        """Raise InputError if the figure cannot be drawn from a dataset and analyses with these outlines.

        Does nothing if the outline of an analysis that it draws is unknown.
        """
        complete = self.check(options)
        if self.arrange is not None and all(analyses.get(name) is not None for name in self.needs):
            self.arrange(ds, analyses, **complete)


FIGURES: Registry[Figure] = Registry("figure")
