"""What an analysis is: a named function from the dataset of a sweep to a smaller, labelled dataset."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.constants import with_constants, without_constants
from sweeplib.errors import InputError
from sweeplib.registry import Registry

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Analysis:
    """An analysis: called with a dataset and its options, it returns a Dataset with every variable labelled.

    `function(ds, **options)`; every option has a default. In `ds`, what is the same everywhere is a coordinate too.
    `doc` is one line on what it returns. `overlaps` says that it reads the overlap matrices too, where they are in the
    dataset.
    """

    name: str
    function: Callable[..., xr.Dataset]
    doc: str
    overlaps: bool = False

    def __call__(self, ds: xr.Dataset, **options: Any) -> xr.Dataset:
        """Return the labelled result; InputError for an unknown option."""
        self.check(options)
        result = without_constants(self.function(with_constants(ds), **options), ds)
        return result.assign_attrs(title=self.doc, analysis=self.name)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise InputError, naming the key, for an option that the analysis does not have."""
        check_options(self.function, f"option of the analysis {self.name!r}", options, arguments=1)


def check_options(function: Callable[..., Any], kind: str, options: Mapping[str, Any], *, arguments: int) -> None:
    """Raise InputError for an option that is no parameter of `function` after its first `arguments`."""
    known = list(inspect.signature(function).parameters)[arguments:]
    for key in options:
        if key not in known:
            raise InputError(f"unknown {kind}", key=key, value=key, choices=known)


ANALYSES: Registry[Analysis] = Registry("analysis")
