"""The coordinates and the constants of a dataset, from the grid of its sweep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sweeplib.design.clock import TOTALS, Clock
from sweeplib.design.design import Design
from sweeplib.design.grid import Grid
from sweeplib.design.questions import RowCounts
from sweeplib.language import Expression
from sweeplib.observables import OBSERVABLES
from sweeplib.problem import DATA, LOSSES, STARTS, TASKS, UPDATES, Part, Problem, meaningful, target
from sweeplib.simulation.labels import label
from sweeplib.table import Column, Table
from sweeplib.views import QUANTILES

Constant = int | float | str


@dataclass(frozen=True)
class Coordinate:
    """A coordinate: its dimensions `dims`, a function `column` that computes its values, and its attributes."""

    name: str
    dims: tuple[str, ...]
    column: Callable[[], Any]
    attributes: Mapping[str, Any]

    @cached_property
    def values(self) -> np.ndarray:
        """Return the values over `dims`."""
        return np.asarray(self.column())

    def at(self, places: Mapping[str, np.ndarray]) -> "Coordinate":
        """Return the coordinate at some indices along some dimensions."""
        index = np.ix_(
            *(places.get(dim, np.arange(size)) for dim, size in zip(self.dims, self.values.shape, strict=True))
        )
        return replace(self, column=lambda: self.values[index])


def coordinates(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return the coordinates of a sweep's dataset: fields that vary over the sweep, and the axes of its results.

    `problem`, any problem of the sweep, gives the defaults of fields that the sweep does not set.
    """
    listed = [field for field in _fields(sweep, problem) if field.dims]
    listed += [
        Coordinate("dynamics", ("dynamics",), lambda: list(sweep.simulators), label("dynamics")),
        Coordinate("seed", ("seed",), lambda: sweep.seeds, label("seed")),
        Coordinate("time", ("time",), lambda: sweep.recording.times, sweep.time_attributes),
    ]
    listed += [] if sweep.clock is None else _totals(sweep, sweep.clock)
    listed += [exponent for exponent in _target_exponents(sweep, problem) if exponent.dims]
    if isinstance(sweep.replicas, RowCounts):
        listed += _round_coordinates(sweep.grid, sweep.replicas)
    if any("quantile" in OBSERVABLES[name].all_dims for name in sweep.recording.observables):
        listed.append(Coordinate("quantile", ("quantile",), lambda: QUANTILES, label("quantile")))
    if sweep.recording.thresholds:
        listed.append(Coordinate("threshold", ("threshold",), lambda: sweep.recording.thresholds, label("threshold")))
    return listed


def _round_coordinates(grid: Grid, counts: RowCounts) -> list[Coordinate]:
    """Return the round that asked for each point first, and why; -1 where no round did."""
    names = sorted(counts.names)
    first = [pair for points in grid.evaluated(names) for pair in points.over(names, counts.first_rounds).items()]
    rounds, reasons = (np.array(column).reshape(grid.shape) for column in zip(*first, strict=True))
    return [
        Coordinate("round", grid.dims, lambda: rounds, label("round")),
        Coordinate("reason", grid.dims, lambda: reasons, label("reason")),
    ]


def instants(sweep: Design) -> Coordinate:
    """The recording times as the earlier one of two times, for variables with the dimension `instant`."""
    attributes = sweep.time_attributes
    more = label("instant") | {"long_name": f"earlier {attributes['long_name']}"}
    return Coordinate("instant", ("instant",), lambda: sweep.recording.times, attributes | more)


def constants(sweep: Design, problem: Problem) -> dict[str, Constant]:
    """Return the fields and numbers of expressions that are the same at all points, by name.

    Fields without a value are left out; true and false are stored as 1 and 0, a list as its text.
    """
    fields = _fields(sweep, problem) + _target_exponents(sweep, problem)
    columns = {field.name: field.column() for field in fields if not field.dims}
    return {name: _attribute_value(value) for name, value in columns.items() if value is not None}


def _attribute_value(value: Any) -> Constant:
    if isinstance(value, bool):
        return int(value)
    return str(list(value)) if isinstance(value, list | tuple) else value


def _fields(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return all names of the grid, the other fields of a problem but those of no teacher, and the clock."""
    grid = sweep.grid
    dims = {name: grid.dims_of(name) for name in grid.names}
    readers = {name: grid.array_of if dims[name] else grid.values_of for name in grid.names}
    fields = [_coordinate(name, dims[name], readers[name], sweep) for name in grid.names]
    others = (name for name in meaningful(_parts(sweep, problem)) if name not in grid.names)
    fields += [_default_coordinate(sweep, problem, name) for name in others]
    return fields + ([] if sweep.clock is None else [_clock(sweep, sweep.clock)])


def _parts(sweep: Design, problem: Problem) -> list[Part]:
    """Return the data laws, losses, steps, targets and starts of the sweep's problems, and its observables."""

    def named(field: str) -> set[Any]:
        return set(sweep.grid.values_of(field)) if field in sweep.grid.names else {getattr(problem, field)}

    starts = named("start") - {None} or {"gaussian", "sphere"}
    parts: list[Part] = [*map(DATA.__getitem__, named("data")), *map(LOSSES.__getitem__, named("loss"))]
    parts += [
        *map(UPDATES.__getitem__, named("update")),
        *map(STARTS.__getitem__, starts),
        *map(target, named("target")),
    ]
    parts += map(TASKS.__getitem__, named("tasks"))
    return [*parts, *(OBSERVABLES[name] for name in sweep.recording.measured)]


def _coordinate(
    name: str, dims: tuple[str, ...], values_of: Callable[[str], Sequence[Any] | np.ndarray], sweep: Design
) -> Coordinate:
    """Return a name of the grid as a coordinate over `dims`; `values_of` gives its values in C order."""
    expression = sweep.grid.derived.get(name)
    formula = {"formula": expression.text} if expression else {}
    if not dims:
        return Coordinate(name, (), lambda: values_of(name)[0], label(name) | formula)
    sizes = dict(zip(sweep.grid.dims, sweep.grid.shape, strict=True))
    shape = [sizes[dim] for dim in dims]
    return Coordinate(name, dims, lambda: np.array(values_of(name)).reshape(shape), label(name) | formula)


def _default_coordinate(sweep: Design, problem: Problem, name: str) -> Coordinate:
    """Return a field that the sweep does not set, with its default resolved; None if it has no value."""
    grid = sweep.grid
    if name == "teacher_activation":
        return _coordinate(name, grid.dims_of("activation"), lambda _: grid.values_of("activation"), sweep)
    if name == "start" and "spherical" in grid.names and "m0" not in grid.names:

        def starts(_: str) -> list[str]:
            return ["sphere" if is_spherical else "gaussian" for is_spherical in grid.values_of("spherical")]

        return _coordinate(name, grid.dims_of("spherical"), starts, sweep)
    value = problem.student_start if name == "start" else getattr(problem, name)
    return Coordinate(name, (), lambda: value, label(name))


def _target_exponents(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return the information and leap exponents of targets that are formulas, NaN for others; none without formulas."""
    grid, name = sweep.grid, "target"
    targets = list(grid.values_of(name)) if name in grid.names else [problem.target]
    exponents = {text: target(text).exponents() for text in dict.fromkeys(targets)}
    if all(exponent is None for pair in exponents.values() for exponent in pair):
        return []
    dims = grid.dims_of(name) if name in grid.names else ()

    def column(which: int) -> Callable[[], Any]:
        values = [np.nan if (exponent := exponents[text][which]) is None else exponent for text in targets]
        return lambda: np.array(values, dtype=float) if dims else values[0]

    names = ("target_information_exponent", "target_leap_exponent")
    return [Coordinate(name, dims, column(which), label(name)) for which, name in enumerate(names)]


def _clock(sweep: Design, clock: Clock) -> Coordinate:
    """Return the unit of the recording times at each point."""
    dims, values = _over_points(sweep, sweep.names_of_clock, sweep.clocks)
    return Coordinate("clock", dims, values, label("clock") | {"formula": clock.text})


def _totals(sweep: Design, clock: Clock) -> list[Coordinate]:
    """Return the numbers of steps or samples until the recording times at each point; none in ODE time."""
    if clock.count is None:
        return []
    scale = clock.scale or Expression("1")
    dims, values = _over_points(sweep, scale.names, lambda points: points.over(sorted(scale.names), scale.evaluated))
    name, times = TOTALS[clock.count], np.array(sweep.recording.times)
    return [Coordinate(name, (*dims, "time"), lambda: np.multiply.outer(values(), times), label(name))]


def _over_points(
    sweep: Design, names: frozenset[str], column: Callable[[Table], Column]
) -> tuple[tuple[str, ...], Callable[[], Any]]:
    """Return the dimensions of a column of numbers by the names on which it depends, and its values over these."""
    grid = sweep.grid
    dims = tuple(dim for dim in grid.dims if any(dim in grid.dims_of(name) for name in names))
    sizes = [size for dim, size in zip(grid.dims, grid.shape, strict=True) if dim in dims]

    def values() -> Any:
        parts = [column(points).array() for points in grid.evaluated(names)]
        return np.concatenate(parts).reshape(sizes) if dims else float(parts[0][0])

    return dims, values
