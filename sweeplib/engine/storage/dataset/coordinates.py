"""What coordinates and constants of a dataset are made from: names of a grid, runs, seeds, rounds.

Simulators call these functions for their `coordinates` and `constants`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import RowCounts

Constant = int | float | str
"""A value that an attribute of a dataset may have."""


@dataclass(frozen=True)
class Coordinate:
    """A coordinate: its dimensions `dims`, a function `column` that returns its values over these, its attributes."""

    name: str
    dims: tuple[str, ...]
    column: Callable[[], Any]
    attributes: Mapping[str, Any]

    @cached_property
    def values(self) -> np.ndarray:
        """Return the values over `dims`."""
        return np.asarray(self.column())

    def at(self, places: Mapping[str, np.ndarray]) -> "Coordinate":
        """Return the coordinate at some indices (m,) along the dimensions that `places` names."""
        index = np.ix_(
            *(places.get(dim, np.arange(size)) for dim, size in zip(self.dims, self.values.shape, strict=True))
        )
        return replace(self, column=lambda: self.values[index])


def grid_coordinates(sweep: Design) -> list[Coordinate]:
    """Return a coordinate for each name of the grid, without dimensions for those that are the same everywhere."""
    grid = sweep.grid
    dims = {name: grid.dims_of(name) for name in grid.names}
    readers = {name: grid.array_of if dims[name] else grid.values_of for name in grid.names}
    return [coordinate_over(name, dims[name], readers[name], sweep) for name in grid.names]


def run_coordinates(sweep: Design) -> list[Coordinate]:
    """Return the coordinates `dynamics` and `seed`; runs of one law have its name, as one entry of the dataset."""
    label = sweep.simulator.label
    return [
        Coordinate("dynamics", ("dynamics",), lambda: list(sweep.laws), label("dynamics")),
        Coordinate("seed", ("seed",), lambda: sweep.seeds, label("seed")),
    ]


def round_coordinates(sweep: Design, counts: RowCounts) -> list[Coordinate]:
    """Return the coordinates of the round that asked for each point first, -1 where none did, and of its reason.

    counts : the rows of the sweep's rounds.
    """
    grid, label = sweep.grid, sweep.simulator.label
    names = sorted(counts.names)
    first = [pair for points in grid.evaluated(names) for pair in points.over(names, counts.first_rounds).items()]
    rounds, reasons = (np.array(column).reshape(grid.shape) for column in zip(*first, strict=True))
    return [
        Coordinate("round", grid.dims, lambda: rounds, label("round")),
        Coordinate("reason", grid.dims, lambda: reasons, label("reason")),
    ]


def attribute_value(value: Any) -> Constant:
    """Return a value as an attribute of zarr can have it: true and false as 1 and 0, a list as its text."""
    if isinstance(value, bool):
        return int(value)
    return str(list(value)) if isinstance(value, list | tuple) else value


def coordinate_over(
    name: str, dims: tuple[str, ...], values_of: Callable[[str], Sequence[Any] | np.ndarray], sweep: Design
) -> Coordinate:
    """Return a name of the grid as a coordinate over `dims`; `values_of(name)` returns its values in C order."""
    label = sweep.simulator.label
    expression = sweep.grid.derived.get(name)
    formula = {"formula": expression.text} if expression else {}
    if not dims:
        return Coordinate(name, (), lambda: values_of(name)[0], label(name) | formula)
    sizes = dict(zip(sweep.grid.dims, sweep.grid.shape, strict=True))
    shape = [sizes[dim] for dim in dims]
    return Coordinate(name, dims, lambda: np.array(values_of(name)).reshape(shape), label(name) | formula)


def over_points(
    sweep: Design, names: frozenset[str], column: Callable[[Table], Column]
) -> tuple[tuple[str, ...], Callable[[], Any]]:
    """Return the dimensions of a column of numbers, and a function that returns its values over these.

    names : of the grid, on which the column depends. column : returns it for a table of points.
    """
    grid = sweep.grid
    dims = tuple(dim for dim in grid.dims if any(dim in grid.dims_of(name) for name in names))
    sizes = [size for dim, size in zip(grid.dims, grid.shape, strict=True) if dim in dims]

    def values() -> Any:
        """Return the values over the dimensions: an array, or a number if there are none."""
        parts = [column(points).array() for points in grid.evaluated(names)]
        return np.concatenate(parts).reshape(sizes) if dims else float(parts[0][0])

    return dims, values
