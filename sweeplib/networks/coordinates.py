"""The coordinates and the constants of a dataset of networks.

Fields are parameters of problems. A field that is the same at all points has no dimensions: it becomes a constant. A
`Coordinate` has a name, dimensions, a function that returns its values, and attributes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import RowCounts
from sweeplib.engine.language import Expression
from sweeplib.engine.storage.dataset.coordinates import (
    Constant,
    Coordinate,
    attribute_value,
    coordinate_over,
    grid_coordinates,
    over_points,
    round_coordinates,
    run_coordinates,
)
from sweeplib.networks.clock import TOTALS, Clock
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import DATA, STARTS, Part, Problem, meaningful, target
from sweeplib.networks.problem.parts import OF_PROBLEM
from sweeplib.networks.simulation.labels import label
from sweeplib.networks.views import QUANTILES


def coordinates(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return the coordinates of a sweep's dataset: fields that vary over the sweep, and the axes of its results.

    problem : any problem of the sweep, which has the values of fields that do not vary.
    """
    listed = [field for field in _fields(sweep, problem) if field.dims]
    listed += run_coordinates(sweep)
    listed.append(Coordinate("time", ("time",), lambda: sweep.recording.times, sweep.time_attributes))
    listed += [] if sweep.clock is None else _totals(sweep, sweep.clock)
    listed += [exponent for exponent in _target_exponents(sweep, problem) if exponent.dims]
    if isinstance(sweep.replicas, RowCounts):
        listed += round_coordinates(sweep, sweep.replicas)
    if any("quantile" in OBSERVABLES[name].all_dims for name in sweep.recording.observables):
        listed.append(Coordinate("quantile", ("quantile",), lambda: QUANTILES, label("quantile")))
    if sweep.recording.thresholds:
        listed.append(Coordinate("threshold", ("threshold",), lambda: sweep.recording.thresholds, label("threshold")))
    return [*listed, _instants(sweep)]


def _instants(sweep: Design) -> Coordinate:
    """The recording times as the earlier one of two times, for variables with the dimension `instant`."""
    attributes = sweep.time_attributes
    attributes = attributes | label("instant") | {"long_name": f"earlier {attributes['long_name']}"}
    return Coordinate("instant", ("instant",), lambda: sweep.recording.times, attributes)


def constants(sweep: Design, problem: Problem) -> dict[str, Constant]:
    """Return the values of fields and of other names of the grid that are the same at all points, by name.

    Fields without a value are left out; true and false are stored as 1 and 0, a list as its text.
    """
    fields = _fields(sweep, problem) + _target_exponents(sweep, problem)
    columns = {field.name: field.column() for field in fields if not field.dims}
    return {name: attribute_value(value) for name, value in columns.items() if value is not None}


def _fields(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return all names of the grid, the other fields that have a meaning for its problems, and the clock."""
    grid, fields = sweep.grid, grid_coordinates(sweep)
    others = (name for name in meaningful(_parts(sweep, problem)) if name not in grid.names)
    fields += [_default_coordinate(sweep, problem, name) for name in others]
    return fields + ([] if sweep.clock is None else [_clock(sweep, sweep.clock)])


def _parts(sweep: Design, problem: Problem) -> list[Part]:
    """Return the data laws, losses, updates, starts, targets and tasks of the sweep's problems, and its observables."""

    def named(field: str) -> set[Any]:
        """Return all values, names of parts, that a field has in the sweep."""
        return set(sweep.grid.values_of(field)) if field in sweep.grid.names else {getattr(problem, field)}

    starts = named("start") - {None} or {"gaussian", "sphere"}  # one of these is the default
    by_name = {"data": DATA, **OF_PROBLEM}.items()
    parts: list[Part] = [registry[name] for kind, registry in by_name for name in named(kind)]
    parts += [*map(STARTS.__getitem__, starts), *map(target, named("target"))]
    return [*parts, *(OBSERVABLES[name] for name in sweep.recording.measured)]


def _default_coordinate(sweep: Design, problem: Problem, name: str) -> Coordinate:
    """Return a field that the sweep does not set; two have defaults that depend on axes of the grid."""
    grid = sweep.grid
    if name == "teacher_activation":
        return coordinate_over(name, grid.dims_of("activation"), lambda _: grid.values_of("activation"), sweep)
    if name == "start" and "spherical" in grid.names and "m0" not in grid.names:

        def starts(_: str) -> list[str]:
            """Return the default start of each value of `spherical`."""
            return ["sphere" if is_spherical else "gaussian" for is_spherical in grid.values_of("spherical")]

        return coordinate_over(name, grid.dims_of("spherical"), starts, sweep)
    value = problem.student_start if name == "start" else getattr(problem, name)
    return Coordinate(name, (), lambda: value, label(name))


def _target_exponents(sweep: Design, problem: Problem) -> list[Coordinate]:
    """Return the information and leap exponents of the targets, along their axis, NaN where one is not known.

    The list is empty if no target has one: only formulas, and targets that say so, do.
    """
    grid, name = sweep.grid, "target"
    targets = list(grid.values_of(name)) if name in grid.names else [problem.target]
    exponents = {text: target(text).exponents() for text in dict.fromkeys(targets)}
    if all(exponent is None for pair in exponents.values() for exponent in pair):
        return []
    dims = grid.dims_of(name) if name in grid.names else ()

    def column(which: int) -> Callable[[], Any]:
        """Return a function that returns the exponents of all targets, the information (0) or the leap exponent (1)."""
        values = [np.nan if (exponent := exponents[text][which]) is None else exponent for text in targets]
        return lambda: np.array(values, dtype=float) if dims else values[0]

    names = ("target_information_exponent", "target_leap_exponent")
    return [Coordinate(name, dims, column(which), label(name)) for which, name in enumerate(names)]


def _clock(sweep: Design, clock: Clock) -> Coordinate:
    """Return the coordinate of the unit of the recording times at each point, in ODE time."""
    dims, values = over_points(sweep, sweep.names_of_clock, sweep.clocks)
    return Coordinate("clock", dims, values, label("clock") | {"formula": clock.text})


def _totals(sweep: Design, clock: Clock) -> list[Coordinate]:
    """Return the coordinate of the numbers of steps or samples until each recording time; none in ODE time."""
    if clock.count is None:
        return []
    scale = clock.scale or Expression("1")
    dims, values = over_points(sweep, scale.names, lambda points: points.over(sorted(scale.names), scale.evaluated))
    name, times = TOTALS[clock.count], np.array(sweep.recording.times)
    return [Coordinate(name, (*dims, "time"), lambda: np.multiply.outer(values(), times), label(name))]
