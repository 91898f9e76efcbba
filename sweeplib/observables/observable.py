"""What an observable is: a labelled function of the state at one time, for each view that it can be taken from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.registry import Registry
from sweeplib.views import OverlapView, View

Array = NDArray[np.float64]
Function = Callable[[Any], Array]
Dims = tuple[str, ...]


@dataclass(frozen=True)
class Observable:
    """A quantity that can be recorded.

    `functions` says how it is taken, `{OverlapView: function, ParticleView: function}`: a function of the view gives an
    array (n, *dims). A function alone is one of an OverlapView. `dims` are dimensions of the view, the same for all
    views or by view: `{OverlapView: ("student",), ParticleView: ("particle",)}`. `symbol` is LaTeX without dollars;
    `over_time` says whether it is recorded at every time or, being constant, once. `reads` names the fields of a
    problem that it reads itself: all, unless it says less.
    """

    name: str
    functions: Function | Mapping[type[View], Function]
    dims: Dims | Mapping[type[View], Dims]
    long_name: str
    symbol: str
    units: str = "1"
    over_time: bool = True
    reads: frozenset[str] = frozenset(PROBLEM_FIELDS)

    @property
    def views(self) -> tuple[type[View], ...]:
        """The views that it can be taken from."""
        return tuple(self.functions) if isinstance(self.functions, Mapping) else (OverlapView,)

    def is_of(self, view: type[View]) -> bool:
        """Whether it can be taken from a view."""
        return issubclass(view, self.views)

    def function_of(self, view: type[View]) -> Function:
        """The function of a view."""
        return self.functions[self._own(view)] if isinstance(self.functions, Mapping) else self.functions

    def dims_of(self, view: type[View]) -> Dims:
        """The dimensions of what the function of a view gives."""
        return self.dims[self._own(view)] if isinstance(self.dims, Mapping) else self.dims

    def _own(self, view: type[View]) -> type[View]:
        """The nearest of its own views: the view itself, or one that it is derived from."""
        return next(kind for kind in view.__mro__ if kind in self.views)


OBSERVABLES: Registry[Observable] = Registry("observable")
