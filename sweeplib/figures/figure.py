"""What a figure is: a named function from a dataset and its analyses to a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import check_options
from sweeplib.analysis.constants import with_constants
from sweeplib.registry import Registry

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Figure:
    """A figure: called with a dataset and its options, it returns a matplotlib Figure.

    `function(ds, analyses, **options)`; every option has a default. In these datasets, what is the same everywhere is a
    coordinate too. `caption` says what is seen, `needs` names the
    analyses it draws, which are computed with their defaults where they are not given.
    """

    name: str
    function: Callable[..., Drawing]
    caption: str
    needs: tuple[str, ...] = ()

    def __call__(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset] | None = None, **options: Any) -> Drawing:
        """Return the drawing; InputError for an unknown option, or an axis that cannot be drawn."""
        from sweeplib.figures.style import styled

        self.check(options)
        given = dict(analyses or {})
        needed = {name: given[name] if name in given else ANALYSES[name](ds) for name in self.needs}
        whole = {name: with_constants(analysis) for name, analysis in needed.items()}
        with styled():
            return self.function(with_constants(ds), whole, **options)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise InputError, naming the key, for an option that the figure does not have."""
        check_options(self.function, f"option of the figure {self.name!r}", options, arguments=2)


FIGURES: Registry[Figure] = Registry("figure")
