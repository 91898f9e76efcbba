"""Outline: the structure of a dataset, known before it is computed; it decides whether analyses and figures apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.cases import Case
from sweeplib.engine.design.axis import POINT
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.grid import dataset_order
from sweeplib.engine.variable import END_STATE, Variable
from sweeplib.errors import InputError


@dataclass(frozen=True)
class Outline:
    """The axes of a dataset with their values, the axes of each variable, and the attributes.

    axes : in the order of a sweep's grid, in whatever order they are given.
    variables : the dims of each; coordinates are variables too.
    coordinates, errors : the names of the variables that are coordinates, and of those that are errors of others.
    columns : the values of a table of points, by name. split : whether the axis of its points became axes of columns.
    """

    axes: Mapping[str, Sequence[Any]]
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    errors: frozenset[str] = frozenset()
    coordinates: frozenset[str] = frozenset()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    split: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", {name: self.axes[name] for name in sorted(self.axes, key=dataset_order)})

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of values along each axis."""
        return {name: len(values) for name, values in self.axes.items()}

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Return the axes along which a variable or a constant varies; InputError if the dataset does not have it."""
        if name in self.variables:
            return self.variables[name]
        if name in self.attrs:
            return ()
        raise InputError("the dataset does not say", value=name, choices=[*self.variables, *self.attrs])

    def without(self, *axes: str) -> Outline:
        """Return the outline after some axes are reduced, or one of their values is selected."""
        axes_kept = {name: values for name, values in self.axes.items() if name not in axes}
        variables = {name: dims for name, dims in self.variables.items() if name not in axes}
        variables = {name: tuple(dim for dim in dims if dim in axes_kept) for name, dims in variables.items()}
        return replace(self, axes=axes_kept, variables=variables)

    def only(self, *names: str) -> Outline:
        """Return the outline of some variables, with all others that have no other axes than theirs.

        Those are coordinates, statuses and constants among others.
        """
        dims_kept = {dim for name in names for dim in self.dims_of(name)}
        variables = {name: dims for name, dims in self.variables.items() if dims_kept.issuperset(dims)}
        axes = {name: values for name, values in self.axes.items() if name in dims_kept}
        return replace(self, axes=axes, variables=variables)

    def along(self, axis: str, values: Sequence[Any]) -> Outline:
        """Return the outline with one more axis, or with other values along an existing one."""
        return replace(self, axes={**self.axes, axis: values})

    def with_variables(self, variables: Mapping[str, tuple[str, ...]], **attrs: Any) -> Outline:
        """Return the outline with more variables and attributes."""
        return replace(self, variables={**self.variables, **variables}, attrs={**self.attrs, **attrs})

    def with_coordinate(self, name: str, dims: tuple[str, ...]) -> Outline:
        """Return the outline with one more coordinate."""
        return replace(self.with_variables({name: dims}), coordinates=self.coordinates | {name})


def outline_of(ds: xr.Dataset | Outline) -> Outline:
    """Return the outline of a dataset; an outline is returned unchanged."""
    if isinstance(ds, Outline):
        return ds
    axes = {str(dim): ds[dim].values.tolist() if dim in ds.coords else range(size) for dim, size in ds.sizes.items()}
    variables = {str(name): tuple(map(str, variable.dims)) for name, variable in ds.variables.items()}
    # coordinates without dims are constants, as attributes are
    fixed = {str(name): coordinate.item() for name, coordinate in ds.coords.items() if not coordinate.dims}
    errors = frozenset(str(name) for name, variable in ds.variables.items() if "error_of" in variable.attrs)
    attrs = {str(name): value for name, value in ds.attrs.items()} | fixed
    columns = {str(name): ds[name].values.tolist() for name in ds.coords if name != POINT and ds[name].dims == (POINT,)}
    return Outline(axes, variables, attrs, errors, frozenset(map(str, ds.coords)), columns)


def fixed_axes(where: Mapping[str, Any] | None, along: str | None = None) -> set[str]:
    """Return the axes that `where` fixes at a single value, alone or in a list; a list does not fix the axis `along`.

    So a figure that is drawn along an axis may be of one value of it, which a list says.
    """
    return {
        axis
        for axis, value in (where or {}).items()
        if not isinstance(value, list | tuple) or (axis != along and len(set(map(str, value))) == 1)
    }


def planned_outline(sweep: Design, *, groups: bool = False) -> Outline:
    """Return the outline of the dataset that a sweep will produce.

    groups : whether it has the variables, too, whose shapes not all cases share, such as overlaps.
    """
    cases = _example_cases(sweep, every_shape=groups)
    simulator, first = sweep.simulator, cases[0]
    outer = ("dynamics", *sweep.grid.dims, "seed")
    recorded = {name: variable for case in cases for name, variable in _recorded(case).items()}
    observed = {name: variable for name, variable in recorded.items() if groups or simulator.shares(variable.dims)}
    inner = _inner_sizes(cases, observed)
    # a coordinate is there if its other dimensions have the same size in all groups of cases
    dims_here = (*outer, *inner)
    held = [c for c in simulator.coordinates(sweep, first) if simulator.shares({*c.dims}.difference(dims_here))]
    axes: dict[str, Sequence[Any]] = {dim: range(size) for dim, size in inner.items()}
    axes |= {coordinate.name: coordinate.column() for coordinate in held if coordinate.dims == (coordinate.name,)}
    axes |= {axis.name: axis.values for axis in sweep.grid.axes}
    variables = {coordinate.name: coordinate.dims for coordinate in held} | {"status": outer}
    variables |= {dim: (dim,) for dim in inner if simulator.counted(dim) is not None}
    variables |= {"simulator": outer[:-1]} if sweep.takes_the_cheapest else {}
    variables |= {name: (*outer, *variable.dims) for name, variable in observed.items()}
    errors = frozenset(name for name, variable in observed.items() if "error_of" in variable.attrs)
    named = frozenset({*axes, *(coordinate.name for coordinate in held)})
    attrs = simulator.constants(sweep, first) | sweep.recording.of_runs
    columns = {name: values for axis in sweep.grid.axes if axis.name == POINT for name, values in axis.linked.items()}
    return Outline(axes, variables, attrs, errors, named, columns)


def _recorded(case: Case) -> dict[str, Variable]:
    """Return the variables of a case that datasets have."""
    return {name: variable for name, variable in case.simulator.variables(case).items() if name != END_STATE}


def _example_cases(sweep: Design, *, every_shape: bool) -> list[Case]:
    """Return a case of each run that has cases with each shape of its variables, among the probed points.

    every_shape : whether variables count whose shapes not all cases share; otherwise, cases that differ in these alone
    have one example.
    """

    def lengths(case: Case) -> tuple[Any, ...]:
        """Return what tells the shapes of a case's variables from those of another."""
        variables = _recorded(case).items()
        return tuple((name, v.dims, v.shape) for name, v in variables if every_shape or case.simulator.shares(v.dims))

    cases: list[Case] = []
    # without any, all runs say what cases would have
    for run in [run for run in sweep.runs if sweep.has_cases(run)] or sweep.runs:
        probed = sweep.probed(run)
        by_shape = [probed[int(places[0])] for places in probed.of_one_shape()]  # these have variables of one shape
        first: dict[tuple[Any, ...], Case] = {}
        for case in by_shape:
            first.setdefault(lengths(case), case)
        cases += first.values()
    return cases


def _inner_sizes(cases: Sequence[Case], variables: Mapping[str, Variable]) -> dict[str, int]:
    """Return the largest length, over some cases, of each dimension that some variables of a case have.

    variables : by name; their own lengths do not count.
    """
    sizes: dict[str, int] = {}
    for case in cases:
        for name, variable in _recorded(case).items():
            if name in variables:
                for dim, length in zip(variable.dims, variable.shape, strict=True):
                    sizes[dim] = max(length, sizes.get(dim, 0))
    return sizes
