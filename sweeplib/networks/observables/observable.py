"""Observable: a labelled function of the state at one time, for each view that it supports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem import (
    CORE,
    READERS,
    Part,
    Problem,
    declare_parameters_of,
    names_with_parts,
    problem_expectations,
    read_by,
)
from sweeplib.networks.views import Estimate, ExitLevel, OverlapView, View

Function = Callable[..., Array | Estimate]
"""A function (view, **parameters) that returns the values (n, *dims) of an observable, or these with their errors."""
Dims = tuple[str, ...]
"""Names of dimensions, without the first, of the replicas."""


def is_inexact(problem: Problem) -> bool:
    """Whether risks of a problem have errors, of quadrature, of the forms of activations or of series for offsets."""
    return problem.has_offsets or not problem_expectations(problem).exact


@dataclass(frozen=True)
class Observable(Part):
    """A quantity that can be recorded.

    functions : by view, `{OverlapView: function, ParticleView: function}`, functions (view, **parameters) that return
        an array (n, *dims), or an `Estimate`; its own parameters are arrays (n,), zero for None. A single one is of an
        OverlapView.
    dims : dimensions of the view, the same for all views, `("student",)`, or by view,
        `{OverlapView: ("student", "student_2"), ParticleView: ("student",)}`.
    symbol : LaTeX without dollars.
    over_time : whether it is recorded at every time or, if constant, once.
    reads : the other parameters of a problem that it depends on, with "data", "start" or "target" also those of the
        part; by default all that dynamics may read.
    needs : the optional fields that a problem has to set, such as `samples`.
    uses_drifts : whether it uses the drifts of the overlaps, which not all activations have.
    least : the least possible value. A mean over the states of a run that is below it, in a run that is not inaccurate,
        is so by rounding or by its error, and is recorded as this.
    needs_teacher : whether it needs a teacher, as all do that have a dimension of it.
    estimated : whether, of a problem, it is an `Estimate`, of which the error is recorded too, as NAME_error.
    level : function of a problem that returns its `ExitLevel`, with which runs `exit_on` it; InputError if it has none.
        The observable then is a number of an OverlapView, and falls towards 0. None, the default: no exits.
    """

    name: str
    functions: Function | Mapping[type[View], Function]
    dims: Dims | Mapping[type[View], Dims]
    long_name: str
    symbol: str
    units: str = "1"
    over_time: bool = True
    needs: frozenset[str] = frozenset()
    uses_drifts: bool = False
    needs_teacher: bool = False
    least: float = -np.inf
    estimated: Callable[[Problem], bool] = field(default=lambda problem: False, kw_only=True)
    level: Callable[[Problem], ExitLevel] | None = field(default=None, kw_only=True)
    reads: frozenset[str] = field(default=frozenset(CORE), kw_only=True)

    @property
    def acts_on(self) -> frozenset[str]:
        """The names of all parameters that it depends on, with those of the parts that it reads."""
        return names_with_parts(self.reads.union(self.parameter_names))

    @property
    def views(self) -> tuple[type[View], ...]:
        """The views that it supports."""
        return tuple(self.functions) if isinstance(self.functions, Mapping) else (OverlapView,)

    def is_of(self, view: type[View]) -> bool:
        """Whether it supports a view."""
        return issubclass(view, self.views)

    def function_of(self, view: type[View]) -> Function:
        """The function of a view."""
        return self.functions[self._nearest_view(view)] if isinstance(self.functions, Mapping) else self.functions

    def dims_of(self, view: type[View]) -> Dims:
        """The dimensions of the result for a view."""
        return self.dims[self._nearest_view(view)] if isinstance(self.dims, Mapping) else self.dims

    @property
    def all_dims(self) -> frozenset[str]:
        """The dimensions that it has for some view."""
        return frozenset().union(*(self.dims.values() if isinstance(self.dims, Mapping) else [self.dims]))

    def mean(self, states: Sequence[tuple[Array, View]], parameters: Mapping[str, Any]) -> tuple[Array, Array | None]:
        """The weighted mean (n, *dims) over `states`, pairs of weights (n,) and views; and its error, None if unknown.

        The error is the weighted mean of the errors of an `Estimate`. To it are added the standard error by the batches
        of the first state, if it is a mean over batches; or else, for an `Estimate`, its difference to the companion's.
        parameters : values (n,) of the observable's own parameters, by name.
        """

        def of(now: View) -> Array | Estimate:
            """Return the values of the observable at a view, perhaps with their errors."""
            return self.function_of(type(now))(now, **parameters)

        def value_of(now: View) -> Array:
            """Return the value of the observable, without its error if it is an estimate."""
            value = of(now)
            return value.value if isinstance(value, Estimate) else value

        def weighted(values: Sequence[Any], weights: Sequence[Array]) -> Array:
            """Return the sum of values (n, ...) of the states times their weights (n,)."""
            return np.asarray(sum((value.T * weight).T for value, weight in zip(values, weights, strict=True)))

        weights, values, scatter = [weight for weight, _ in states], [of(now) for _, now in states], None
        first = states[0][1]
        # what is added: the scatter of batches, or the difference to the companion times its factor
        if batches := list(map(value_of, first.batches())):
            scatter = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
        elif isinstance(values[0], Estimate) and isinstance(first, OverlapView) and (second := first.companion()):
            scatter = second[1] * np.abs(value_of(second[0]) - values[0].value)
        if not isinstance(values[0], Estimate):
            return weighted(values, weights), scatter
        value, error = zip(*values, strict=True)
        errors = weighted(error, [np.abs(weight) for weight in weights])
        return weighted(value, weights), errors if scatter is None else errors + scatter

    def _nearest_view(self, view: type[View]) -> type[View]:
        """The supported view that is nearest in the inheritance of `view`."""
        return next(kind for kind in view.__mro__ if kind in self.views)


OBSERVABLES: Registry[Observable] = Registry("observable", declare_parameters_of("observables"))
READERS["observables"] = read_by(OBSERVABLES)
