"""Analysis: a named function from the dataset of a sweep to a smaller, labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.constants import with_constants, without_constants
from sweeplib.analysis.options import checked_options
from sweeplib.registry import Registry
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline


@dataclass(frozen=True)
class Analysis:
    """An analysis. Called with a dataset and its options, it returns a Dataset in which every variable is labelled.

    function : function (ds, **options). Every option has a default and an annotation, which gives its type. Fields that
        are the same at all points of the dataset are coordinates of `ds`.
    doc : one line that describes the result.
    overlaps : whether the analysis reads the overlap matrices, if the dataset has them.
    outline : function (ds, **options) that returns the outline of the result, given the outline of the dataset. It
        raises InputError if the analysis does not apply. It is called before anything runs. None: no check.
    headline : the variable that is put into words when a sweep is done, with its interval `<headline>_low`,
        `<headline>_high`. None: no such lines.
    quantities : the variables that the general figures draw under a name of their own: name and variable.
    """

    name: str
    function: Callable[..., xr.Dataset]
    doc: str
    overlaps: bool = False
    outline: Callable[..., Outline] | None = None
    headline: str | None = None
    quantities: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, ds: xr.Dataset, **options: Any) -> xr.Dataset:
        """Return the labelled result; InputError for a wrong option or an unsuitable dataset."""
        self.outlined(outline_of(with_constants(ds)), options)
        result = without_constants(self.function(with_constants(ds), **options), ds)
        return result.assign_attrs(title=self.doc, analysis=self.name)

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, defaults included; InputError, naming the key, for an unknown name or a wrong type."""
        return checked_options(self.function, f"option of the analysis {self.name!r}", options, arguments=1)

    def outlined(self, ds: Outline, options: Mapping[str, Any]) -> Outline | None:
        """Return the outline of the result, or None without `outline`; InputError if the analysis does not apply."""
        complete = self.check(options)
        return None if self.outline is None else self.outline(ds, **complete)


ANALYSES: Registry[Analysis] = Registry("analysis")
