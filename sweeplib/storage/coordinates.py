"""The coordinates of a dataset, from the grid of its sweep."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.problem import PROBLEM_FIELDS, Problem
from sweeplib.storage.labels import label

if TYPE_CHECKING:
    from sweeplib.sweep.sweep import Sweep


@dataclass(frozen=True)
class Coordinate:
    """A coordinate: its values over `dims`, its attributes."""

    name: str
    dims: tuple[str, ...]
    values: np.ndarray
    attributes: Mapping[str, Any]

    def at(self, places: Mapping[str, np.ndarray]) -> "Coordinate":
        """The coordinate at some places along some dimensions."""
        index = np.ix_(
            *(places.get(dim, np.arange(size)) for dim, size in zip(self.dims, self.values.shape, strict=True))
        )
        return replace(self, values=np.asarray(self.values[index]))


def coordinates(sweep: "Sweep", problem: Problem) -> list[Coordinate]:
    """All coordinates of a sweep's dataset; `problem`, any of its problems, has the defaults of what is not given."""
    grid = sweep.grid
    found = [_coordinate(name, grid.dims_of(name), grid.values_of(name), sweep) for name in grid.names]
    found += [_default(sweep, problem, name) for name in PROBLEM_FIELDS if name not in grid.names]
    found = [coordinate for coordinate in found if coordinate.values.dtype.kind != "O"]
    found += [
        Coordinate("dynamics", ("dynamics",), np.array(list(sweep.runs)), label("dynamics")),
        Coordinate("seed", ("seed",), np.array(sweep.seeds), label("seed")),
        Coordinate("time", ("time",), np.array(sweep.recording.times, dtype=float), _time_attributes(sweep)),
    ]
    if sweep.recording.thresholds:
        thresholds = np.array(sweep.recording.thresholds, dtype=float)
        found.append(Coordinate("threshold", ("threshold",), thresholds, label("threshold")))
    return found + _clock(sweep)


def _coordinate(name: str, dims: tuple[str, ...], values: Sequence[Any], sweep: "Sweep") -> Coordinate:
    expression = sweep.grid.derived.get(name)
    formula = {"formula": expression.text} if expression else {}
    if not dims:
        return _scalar(name, values[0], formula)
    sizes = dict(zip(sweep.grid.dims, sweep.grid.shape, strict=True))
    return Coordinate(name, dims, np.array(values).reshape([sizes[dim] for dim in dims]), label(name) | formula)


def _scalar(name: str, value: Any, formula: Mapping[str, str] | None = None) -> Coordinate:
    value = str(list(value)) if isinstance(value, list | tuple) else value
    return Coordinate(name, (), np.array(value), label(name) | dict(formula or {}))


def _default(sweep: "Sweep", problem: Problem, name: str) -> Coordinate:
    """A field that the sweep does not give, resolved where it follows another one; None where it has no value."""
    grid = sweep.grid
    if name == "teacher_activation":
        return _coordinate(name, grid.dims_of("activation"), grid.values_of("activation"), sweep)
    if name == "start" and "spherical" in grid.names and "m0" not in grid.names:
        laws = ["sphere" if spherical else "gaussian" for spherical in grid.values_of("spherical")]
        return _coordinate(name, grid.dims_of("spherical"), laws, sweep)
    return _scalar(name, problem.student_start if name == "start" else getattr(problem, name))


def _time_attributes(sweep: "Sweep") -> dict[str, Any]:
    if sweep.clock is None:
        return label("time")
    return label("time") | {"long_name": f"time in units of {sweep.clock.text}", "scale": sweep.clock.text}


def _clock(sweep: "Sweep") -> list[Coordinate]:
    """The unit of the recording times at each point, where it is not one everywhere."""
    if sweep.clock is None:
        return []
    grid = sweep.grid
    sizes = dict(zip(grid.dims, grid.shape, strict=True))
    used = {
        name: dict(zip(_places(grid.dims_of(name), sizes), grid.values_of(name), strict=True))
        for name in sweep.clock.names
    }
    dims = tuple(dim for dim in grid.dims if any(dim in grid.dims_of(name) for name in used))
    values = []
    for place in _places(dims, sizes):
        at = dict(zip(dims, place, strict=True))
        here = {name: column[tuple(at[dim] for dim in grid.dims_of(name))] for name, column in used.items()}
        values.append(float(sweep.clock.evaluate(here)))
    attributes = label("clock") | {"formula": sweep.clock.text}
    return [Coordinate("clock", dims, np.array(values).reshape([sizes[dim] for dim in dims]), attributes)]


def _places(dims: Sequence[str], sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(sizes[dim]) for dim in dims)))
