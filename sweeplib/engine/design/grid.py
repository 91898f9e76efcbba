"""Grid: the points of a sweep, from axes, fixed values and values derived from them.

A point is given by its place along each axis, an index; `places` (points, dims) are those of several. `where` selects
points by values of axes, `when` by a condition. Expressions are evaluated once for each combination of values that they
read; checks look at some points of a large grid, the probes.
"""

import graphlib
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from sweeplib.engine.base.budget import ASKED, AXES, NAME_LENGTH, NAMES, OPERATIONS, POINTS, PROBES, refuse_more
from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.design.axis import POINT, Axis, TableAxis
from sweeplib.engine.design.fields import field_value, field_values
from sweeplib.engine.design.places import Condition, probe_places, probed_places, scattered, some_places
from sweeplib.engine.language import Expression, FormulaWithNames, is_symbol
from sweeplib.engine.parameters import FIRST
from sweeplib.engine.simulator import Simulator, networks
from sweeplib.errors import InputError, errors_under, together

__all__ = ["Axis", "Grid"]

RESERVED = ("case", "coordinates", "dynamics", POINT, "seed", "status", "zip")
"""Names that have another meaning in every dataset or config."""

Where = Mapping[str, Iterable[Any]]
"""Values of axes, by name; points have one of them for each name."""


@dataclass(frozen=True)
class Grid:
    """All combinations of the values of `axes`, with the `fixed` values and those `derived` from both.

    Names are the parameters of the simulator, the symbols of expressions and the options of runs, such as `sde.step`;
    `used` are the names used outside the grid, such as by the clock of a sweep. Axes are sorted to the order of the
    dataset.

    InputError, with the key of the config file, for a name that is unknown, unused or given twice; for a missing field;
    for a cycle of derived names; for a point whose values do not fit. All points of a small grid are checked. Of a
    grid with more than `PROBES` points the corners and as many others are checked, which include each value of every
    axis; fewer if expressions are long. InputError also for more names, axes or points than the limits.
    """

    axes: tuple[Axis, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    derived: Mapping[str, Expression | FormulaWithNames] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    simulator: Simulator = field(default_factory=networks, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the axes, order what is derived, convert what is fixed, and refuse what the class says.

        Sizes and names come first, since they cost no evaluation.
        """
        object.__setattr__(self, "axes", tuple(sorted(self.axes, key=lambda axis: dataset_order(axis.name))))
        self._refuse_excess()
        self._refuse_repeats()
        object.__setattr__(self, "derived", self._in_order())
        self._refuse_unknown()
        self._refuse_missing()
        parameters = self.simulator.parameters
        with errors_under(parameters.section):
            fixed = {name: field_value(parameters, name, value) for name, value in self.fixed.items()}
        object.__setattr__(self, "fixed", fixed)
        self._probe()

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the names of the dimensions, in the order of the dataset."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of values along each dimension."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """Return the number of points."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that has a value: swept, linked, fixed, derived."""
        swept = (name for axis in self.axes for name in axis.names)
        return (*swept, *self.fixed, *self.derived)

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Return the dimensions on which the value of `name` depends; () if it is fixed."""
        return self._dims_of[name]

    def values_of(self, name: str) -> tuple[Any, ...]:
        """Return the values of `name` over `dims_of(name)`, in C order."""
        return tuple(self._over_dims(name).items())

    def array_of(self, name: str) -> np.ndarray:
        """Return `values_of(name)` as an array over `dims_of(name)`."""
        values, codes = self._over_dims(name)
        return np.array(values)[codes].reshape([len(axis) for axis in self.axes if axis.name in self.dims_of(name)])

    def _over_dims(self, name: str) -> Column:
        """Return the values of `name` over `dims_of(name)`, in C order, as a column."""
        return Column.joined([table.column(name) for table in self.evaluated((name,))])

    def origin(self, name: str) -> str:
        """Return the key of the config that gives `name` its value."""
        for axis in self.axes:
            if name in axis.names:
                return _key(axis, name)
        return self._own_key(name)

    def _own_key(self, name: str) -> str:
        """Return the key of the config that gives a value to a name that is no axis."""
        section = "derive" if isinstance(self.derived.get(name), Expression) else self.simulator.parameters.section
        return f"{section}.{name}"

    def points(self, where: Where | None = None, when: Condition | None = None) -> tuple[np.ndarray, Table]:
        """Return the places (points, dims) of the selected points, in C order, and a table of all names there.

        InputError for a point whose values do not fit together.
        """
        places, tables = zip(*self.batches(where, when), strict=True)
        return np.concatenate(places), self._checked(Table.joined(tables))

    def batches(
        self, where: Where | None = None, when: Condition | None = None, names: Iterable[str] | None = None
    ) -> Iterator[tuple[np.ndarray, Table]]:
        """Yield the places (points, dims) of the selected points, some thousands at a time, and a table of names there.

        names : of the table's columns, by default all. Points are not checked.
        """
        for places in some_places(self.positions(where)):
            selected = self._where_true(when, places)
            yield selected, self.table(selected, self.names if names is None else names)

    def probed(self, where: Where | None = None, when: Condition | None = None) -> Table:
        """Return a table of points for checks: all that `where` selects, or of many the corners and some more.

        Of a long axis the first place of each text is among them. Of these, only those where `when` is true; if it is
        at none, one point at which it is, of all or, of many, of `ASKED` that are spread over the grid.
        """
        positions = self.positions(where)
        wanted = [axis.places_of_texts for axis in self.axes]
        indices = self._where_true(when, probed_places(positions, wanted, self._most_probes))
        if not len(indices) and when is not None:
            some = some_places(positions, max(1, ASKED * self._most_probes // PROBES))
            true = (self._where_true(when, places) for places in some)
            indices = next((places[:1] for places in true if len(places)), indices)
        return self._checked(self.table(indices, self.names))

    def positions(self, where: Where | None = None) -> tuple[list[int], ...]:
        """Return the indices along each axis that `where` selects, ascending; InputError if it selects none."""
        where = where or {}
        swept = {name: axis for axis in self.axes for name in axis.names}
        for name in where:
            if name not in swept:
                raise InputError("not an axis of the grid", value=name, choices=swept)
        positions = []
        for axis in self.axes:
            chosen = [axis.places(name, where[name]) for name in axis.names if name in where]
            positions.append(sorted(set(range(len(axis))).intersection(*chosen)))
        if where and not all(positions):
            raise InputError("no point of the grid has these values", value={n: list(w) for n, w in where.items()})
        return tuple(positions)

    def size_where(self, where: Where | None = None, when: Condition | None = None) -> int:
        """Return the number of points that `where` and `when` select."""
        positions = self.positions(where)
        if when is None:
            return math.prod(map(len, positions))
        # the condition is evaluated at one place of each axis on which it does not depend
        along = self._along(when.names, positions)
        others = math.prod(map(len, positions)) // max(1, math.prod(map(len, along)))
        return others * sum(len(self._where_true(when, places)) for places in some_places(along))

    def evaluated(self, names: Iterable[str]) -> Iterator[Table]:
        """Yield tables of some names over the axes on which any of them depends, in C order, thousands of rows each."""
        for places in some_places(self._along(names := list(names), [range(len(axis)) for axis in self.axes])):
            yield self.table(places, names)

    def of_each_code(self, where: Where | None = None, when: Condition | None = None) -> Table:
        """Return a table of one selected point for each combination of values of the names on which code depends.

        None of a small grid, whose points are all probed. Of a large one, all are looked at. Of thousands of
        combinations, which are formulas with numbers, `PROBES` count.
        """
        read = self.simulator.parameters.of_code() if self.size > self._most_probes else ()
        names = [name for name in read if name in self.names and self.dims_of(name)]
        along = self._along([*names, *(when.names if when else ())], self.positions(where))
        firsts: dict[tuple[str, ...], np.ndarray] = {}
        for places in map(partial(self._where_true, when), some_places(along) if names else ()):
            first = (points := self.table(places, names)).distinct(names)[0]
            values = zip(*(map(str, points.column(name).at(first).items()) for name in names), strict=True)
            firsts = dict(zip(values, places[first], strict=True)) | firsts
            if len(firsts) > ASKED:
                break
        chosen = np.array([*firsts.values()], np.int64).reshape(len(firsts), len(self.axes))
        numbers = np.concatenate([np.empty(0, np.int64), *scattered(len(chosen), PROBES)])
        return self.table(chosen[numbers], self.names)

    def _along(self, names: Iterable[str], positions: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Return the positions along the axes on which some names depend, and the first one along each other axis."""
        dims = {dim for name in names for dim in self.dims_of(name)}
        return [along if dim in dims else along[:1] for dim, along in zip(self.dims, positions, strict=True)]

    @cached_property
    def _values(self) -> dict[str, Column]:
        """Return the values of each name that an axis has, along that axis."""
        return {name: Column.of(axis.column(name)) for axis in self.axes for name in axis.names}

    @cached_property
    def _most_probes(self) -> int:
        """Return the number of probes of a large grid: `PROBES`, or fewer if its expressions are long."""
        operations = sum(expression.operations for expression in self.derived.values())
        return max(1, min(PROBES, OPERATIONS // max(1, operations)))

    @cached_property
    def _dims_of(self) -> dict[str, tuple[str, ...]]:
        """Return, of each name, the dimensions on which its value depends: those of all names it is derived from."""
        dims: dict[str, tuple[str, ...]] = {name: (axis.name,) for axis in self.axes for name in axis.names}
        dims |= dict.fromkeys(self.fixed, ())
        for name, expression in self.derived.items():
            reached = {dim for used in expression.names for dim in dims[used]}
            dims[name] = tuple(dim for dim in self.dims if dim in reached)
        return dims

    def _where_true(self, when: Condition | None, places: np.ndarray) -> np.ndarray:
        """Return those of the `places` (points, dims) at which `when` is true, all if it is None."""
        if when is None:
            return places
        return places[self.table(places, when.names).over(when.names, when.evaluated).array(bool)]

    def table(self, places: np.ndarray, names: Iterable[str]) -> Table:
        """Return a table of some names, and of those they are derived from, at `places` (points, dims)."""
        needed = self._needed(names)
        table = Table({}, len(places))
        table.columns |= {name: table.constant(value) for name, value in self.fixed.items() if name in needed}
        for axis, along in zip(self.axes, places.T.astype(np.int32), strict=True):
            values = {name: self._values[name] for name in axis.names if name in needed}
            table.columns |= {name: Column(column.values, column.codes[along]) for name, column in values.items()}
        for name, expression in self.derived.items():
            if name in needed:
                table.columns[name] = table.over(sorted(expression.names), self._derivation(name, expression))
        return table

    def _needed(self, names: Iterable[str]) -> set[str]:
        """Return some names and all names from which they are derived."""
        needed, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting.extend(self.derived[name].names if name in self.derived else ())
        return needed

    def _derivation(
        self, name: str, expression: Expression | FormulaWithNames
    ) -> Callable[[dict[str, list[Any]], int], Sequence[Any]]:
        """Return the function, for `Table.over`, that derives a name; it raises InputError for an invalid value."""

        def derived(columns: dict[str, list[Any]], count: int) -> Sequence[Any]:
            """Return the valid values of the name at `count` points."""
            try:
                return field_values(self.simulator.parameters, name, expression.evaluated(columns, count))
            except InputError:
                # again one by one, for the point of the message
                for at in range(count):
                    self._refuse_derived(name, expression, {used: column[at] for used, column in columns.items()})
                raise

        return derived

    def _refuse_derived(self, name: str, expression: Expression | FormulaWithNames, where: Mapping[str, Any]) -> None:
        """Raise InputError if the value that is derived `where` names have some values is not valid for the name."""
        try:
            field_value(self.simulator.parameters, name, expression.evaluate(where))
        except InputError as error:
            error.key = self.origin(name)
            if error.value != expression.text:
                error.problem += f": {expression.text}{_at_values(where)}"
            raise

    def _checked(self, points: Table) -> Table:
        """Return a table of points unchanged; InputError for a point whose values do not fit together.

        Each value alone has been checked before.
        """

        def refuse(error: InputError, row: int) -> None:
            """Raise the error of a point, with its values, and the key of the config that gave the wrong one."""
            varying = (name for name in points.columns if name not in self.fixed)
            error.problem += _at_values({name: points.column(name).value(row) for name in varying})
            error.key = self.origin(error.key) if error.key else None
            raise error

        self.simulator.parameters.check(points, refuse)
        return points

    def _probe(self) -> None:
        """Evaluate derived values and whole points where they are probed: InputError for one that is not valid.

        Names that depend on the same dimensions are probed on these alone: so few probes meet more of their values.
        """
        along: dict[tuple[str, ...], list[str]] = {}
        for name in self.derived:
            along.setdefault(self.dims_of(name), []).append(name)
        for dims, names in along.items():
            lengths = [len(axis) if axis.name in dims else 1 for axis in self.axes]
            self.table(probe_places(lengths, max(1, self._most_probes // len(along))), names)
        self.probed()

    def _refuse_excess(self) -> None:
        """Raise InputError for more names, axes or points than the limits, or too long a name."""
        fewer = "fewer values of an axis, or several sweeps"
        refuse_more("names", len(self.names), NAMES, key="grid", instead="fewer axes and symbols")
        refuse_more("axes", len(self.axes), AXES, key="grid", instead="axes linked by `zip`, or several sweeps")
        refuse_more("points", self.size, POINTS, key="grid", instead=fewer)
        for name in self.names:
            if len(name.encode(errors="replace")) > NAME_LENGTH:
                raise InputError("too long a name", key=self.origin(name), expected=f"at most {NAME_LENGTH} bytes")

    def _refuse_repeats(self) -> None:
        """Raise InputError for a name that is given twice, has another meaning, or is read as another one."""
        keys: dict[str, str] = {}
        swept = [(name, _key(axis, name)) for axis in self.axes for name in axis.names]
        fixed = [(name, f"{self.simulator.parameters.section}.{name}") for name in self.fixed]
        derived = [(name, self._own_key(name)) for name in self.derived]
        for name, key in (*fixed, *swept, *derived):
            is_reserved = name in RESERVED or self.simulator.parameters.is_reserved(name)
            if is_reserved and (name, key) != (POINT, "points"):
                hint = "seeds are given by `seeds`" if name == "seed" else "another name"
                raise InputError("this name has another meaning", key=key, value=name, expected=hint)
            if (read := unicodedata.normalize("NFKC", name)) != name:
                problem = f"another character than in expressions, where this name is read as {read!a}"
                raise InputError(problem, key=key, value=ascii(name), expected=f"`{read}`, copied from here")
            if name in keys:
                raise InputError(f"given twice, in {keys[name]} too", key=key, value=name, expected="one of the two")
            keys[name] = key

    def _in_order(self) -> dict[str, Expression | FormulaWithNames]:
        """Return the derived names, each after the names that it uses."""
        earlier = set(self.names)
        for name, expression in self.derived.items():
            for used in sorted(expression.names - earlier):
                problem = f"unknown name in {expression.text!r}"
                raise InputError(problem, key=f"derive.{name}", value=used, choices=sorted(earlier - {name}))
        uses = {name: expression.names & set(self.derived) for name, expression in self.derived.items()}
        try:
            order = list(graphlib.TopologicalSorter(uses).static_order())
        except graphlib.CycleError as error:
            cycle = " -> ".join(reversed(error.args[1]))
            name = error.args[1][0]
            text = self.derived[name].text
            raise InputError(f"derived from itself ({cycle})", key=f"derive.{name}", value=text) from None
        return {name: self.derived[name] for name in order}

    def _refuse_unknown(self) -> None:
        """Raise InputError for names that are no parameter, and that nothing in the config uses."""
        used = self.used.union(*(expression.names for expression in self.derived.values()))
        parameters = self.simulator.parameters
        fields, names = {*parameters.names(), POINT}, (*parameters.names(), *used)
        # options of runs, whose names have a dot, and the symbols of expressions
        symbols = {name for name in used if "." in name or is_symbol(name)}
        if unknown := [name for name in self.names if name not in fields | symbols]:
            problem = f"unknown name: no {parameters.kind}, and no expression uses it"
            words = parameters.synonyms()
            errors = (InputError(problem, key=self.origin(n), value=n, choices=names, synonyms=words) for n in unknown)
            raise together(errors, len(unknown))

    def _refuse_missing(self) -> None:
        """Raise InputError for a parameter that every point needs and that the config does not give."""
        parameters = self.simulator.parameters
        for name in parameters.needed:
            if name not in self.names:
                expected = "a value here, an axis in `grid`, or an expression in `derive`"
                raise InputError(f"this {parameters.kind} is needed", key=self.origin(name), expected=expected)


def _key(axis: Axis, name: str) -> str:
    """Return the key of the config that gives an axis the values of one of its names."""
    return "points" if isinstance(axis, TableAxis) else "grid.zip" if axis.linked else f"grid.{name}"


def dataset_order(name: str) -> tuple[int, str]:
    """Return what the axes of a dataset are sorted by: those in `FIRST` in their order, then others by name."""
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def _at_values(values: Mapping[str, Any]) -> str:
    """Return ` at name=value, ...`, or nothing without values."""
    return " at " + ", ".join(f"{name}={value}" for name, value in values.items()) if values else ""
