"""Points of grids, one by one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sweeplib.engine.design.grid import Grid
from sweeplib.engine.language import Expression
from sweeplib.networks.problem import PARAMETERS, Problem
from sweeplib.networks.problem.columns import Problems


class Point(NamedTuple):
    """The index of a point along each dimension, its problem, and the values of all names."""

    index: tuple[int, ...]
    problem: Problem
    values: Mapping[str, Any]


def points_of(grid: Grid, where: Mapping[str, Any] | None = None, when: Expression | None = None) -> list[Point]:
    """Return the points of a grid, or of a part of it."""
    places, table = grid.points(where, when)
    problems = Problems({name: column for name, column in table.columns.items() if name in PARAMETERS}, len(table))
    values = [{name: column.value(at) for name, column in table.columns.items()} for at in range(len(table))]
    return [Point(tuple(index), problems.problem(at), values[at]) for at, index in enumerate(places.tolist())]
