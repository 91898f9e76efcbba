"""Problems: a table whose rows are problems, as one column for each field that some problem has.

A column has its different values once, and `codes`: for each of n rows the index of its value. A `Reading` reads the
columns at one row; functions of a problem are evaluated once for each different row of what they read.
"""

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.table import Column, Reading, Table
from sweeplib.networks.problem.base_parameters import CORE
from sweeplib.networks.problem.parameters import DEFAULTS, PARAMETERS, RESERVED
from sweeplib.networks.problem.problem import RESOLVED, Problem, changed_parameters, differs, in_order

FOLLOWING = (
    *("teacher", "rates", "noise_factor", "student_start", "has_offsets", "trains_second_layer", "learned"),
    *("criterion", "rule", "is_disturbed", "has_weight_noise", "has_averages"),
)
"""Properties that follow from the fields of a problem and are columns too: cases read them often."""


class ProblemRow(Problem):
    """A problem that reads its fields, and what follows from them, from the columns of a table."""

    def __init__(self, read: Reading) -> None:
        self.__dict__["read"] = read

    @property  # type: ignore[misc]
    def __class__(self) -> type[Problem]:  # type: ignore[override]
        """The class that `dataclasses.replace` makes of a row: a problem with fields of its own."""
        return Problem

    @property
    def of_parts(self) -> tuple[tuple[str, Any], ...]:
        """The parameters of parts that differ from their defaults, as pairs."""
        read = self.__dict__["read"]
        return changed_parameters({name: read(name) for name in read.table.fields if name not in CORE})

    def __getattr__(self, name: str) -> Any:
        """A parameter of a part, from its column."""
        return self.__dict__["read"](name) if name in PARAMETERS else super().__getattr__(name)


def column_property(name: str) -> Any:
    """Return a property of a row that reads the column `name` of its table."""
    return property(lambda row: row.__dict__["read"](name))


for _name in (*CORE, *FOLLOWING, "differing_names"):
    setattr(ProblemRow, _name, column_property(_name))
# an attribute of rows, so no parameter may have the name
RESERVED.add("read")


class Problems(Table):
    """n problems as the columns of their fields, valid one by one; fields without a column have their defaults."""

    others: ClassVar[frozenset[str]] = frozenset()
    """The names of columns that are no fields."""

    def __init__(self, columns: Mapping[str, Column], count: int) -> None:
        super().__init__(columns, count)
        self._following: dict[str, Column] = {}  # columns of properties that were read (`FOLLOWING`)

    @cached_property
    def fields(self) -> list[str]:
        """The fields that have columns, in the order of a problem's text."""
        return in_order(self.columns.keys() - self.others)

    def column(self, name: str) -> Column:
        """Return the column of a field, or of a property in `FOLLOWING`, which is evaluated when it is first read."""
        if name in self.columns:
            return self.columns[name]
        if name not in self._following:
            self._following[name] = self._column(name)
        return self._following[name]

    def _column(self, name: str) -> Column:
        """The column of a property in `FOLLOWING`, of the `differing_names`, or of a default."""
        if name in FOLLOWING:
            values, codes = self.column_of(getattr(Problem, name).fget, ProblemRow)
            different = Column.of(values)  # rows that differ in what they read may have one value
            return different._replace(codes=different.codes[codes])
        return self._differing() if name == "differing_names" else self.constant(DEFAULTS[name])

    def _differing(self) -> Column:
        """Return the column of `differing_names`, the names of the fields that differ from their defaults in a row."""
        columns = {name: _differs_from_default(name, self._resolved(name)) for name in self.fields}
        return Table(columns, self._rows).over(
            self.fields,
            lambda chosen, count: [frozenset(name for name in chosen if chosen[name][at]) for at in range(count)],
        )

    def _resolved(self, name: str) -> Column:
        """Return the column of a field as the text of a problem has it: `Problem.resolved`."""
        return self.column_of(lambda row: row.resolved(name), ProblemRow) if name in RESOLVED else self.columns[name]

    def row(self, read: Reading) -> Any:
        """Return a problem that reads its fields from the columns."""
        return ProblemRow(read)

    def problem(self, at: int) -> Problem:
        """Return the problem of row `at`, one object for rows that follow each other and differ in no field of it."""
        same, differing = self._parts
        codes = [column.codes[at] for column in differing.values()]
        if self._latest is None or self._latest[0] != codes:
            values = {name: column.value(at) for name, column in differing.items()}
            self._latest = codes, Problem.unchecked(same | values)
        return self._latest[1]

    _latest: tuple[list[Any], Problem] | None = None
    """The codes and the object of the problem that was made last."""

    @cached_property
    def _parts(self) -> tuple[dict[str, Any], dict[str, Column]]:
        """The fields of problems that are the same in all rows, and the columns of the others."""
        return self.parts(self.fields)

    def parts(self, names: Iterable[str]) -> tuple[dict[str, Any], dict[str, Column]]:
        """Return the values of the columns `names` that are the same in all rows, and the columns of the others."""
        same = {name: self.columns[name].value(0) for name in names if self.is_constant(name)}
        return same, {name: self.columns[name] for name in names if name not in same}

    def texts(self, but: frozenset[str] = frozenset()) -> Column:
        """Return the texts of the problems (`Problem.text`), without the fields in `but`, of each different row."""
        first, codes = self.distinct(self.fields)
        return Column(self.at(first).each_text(but), codes)

    def each_text(self, but: frozenset[str] = frozenset()) -> list[str]:
        """Return the text of each problem, as `Problem.text`, without the fields in `but`; for all rows at once."""
        parts = (self._part_of_text(name) for name in self.fields if name not in but)
        texts: str | NDArray[np.object_] = reduce(operator.add, parts, "")  # each part begins with ", "
        if isinstance(texts, str):
            return [f"{{{texts[2:]}}}"] * self._rows
        return [f"{{{text[2:]}}}" for text in texts.tolist()]

    def _part_of_text(self, name: str) -> str | NDArray[np.object_]:
        """Return a field in the texts of the rows: nothing for its default; one text if it is the same in all."""
        column = self._resolved(name)
        if len(column.values) == 1:
            value = column.listed()[0]
            return f', "{name}": {json.dumps(value)}' if differs(name, value) else ""
        write, key = repr if isinstance(column.values, np.ndarray) else json.dumps, f', "{name}": '
        parts = np.array([key + write(value) for value in column.listed()], object)[column.codes]
        return parts if name not in DEFAULTS else np.where(_differs_from_default(name, column).array(bool), parts, "")


def columns_of(problems: Sequence[Mapping[str, Any]], place: NDArray[np.int32]) -> dict[str, Column]:
    """Return the columns of rows, of which row i has `problems[place[i]]`, given by its `differing` fields."""
    names = set[str]().union(*problems)
    lists = {name: [problem.get(name, DEFAULTS.get(name)) for problem in problems] for name in names}
    columns = {name: Column.of(values) for name, values in lists.items()}
    return {name: Column(column.values, column.codes[place]) for name, column in columns.items()}


def _differs_from_default(name: str, column: Column) -> Column:
    """Return the column of whether the values of a field differ from its default; one without a default always does."""
    if name not in DEFAULTS:  # one value in all rows, whose codes take no memory
        return Column((True,), np.broadcast_to(np.int32(0), len(column.codes)))
    values, default = column.values, DEFAULTS[name]
    differing = values != default if isinstance(values, np.ndarray) else [value != default for value in values]
    return Column((False, True), np.array(differing, np.int32)[column.codes])
