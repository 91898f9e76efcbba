"""Table: rows as named columns, each with its different values once and the index of its value for each row.

Functions of a row are evaluated once for each different row of the columns that they read. Two designs were sketched.

    work = table.column_of(work_of, reads=("p", "k", "d"))    # each function declares the columns that it reads
    work = table.column_of(work_of)                           # what it reads is found when it is evaluated

The second is kept. A declaration that lacks a column gives wrong values in silence, and functions of plugins would need
one too. `column_of` evaluates the function at the first row, then at the first of all rows that differ in what was read
there, until nothing else is read. Where functions of columns exist, as of expressions, the columns are named (`over`).
A formula is evaluated for all rows at once (`numbers`): what it reads are arrays with arithmetic and nothing else, so
that its values have the bits of those one by one; where it decides on a column, once for each value of that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

Rows = slice | NDArray[np.intp]
"""Some rows of a table: a range, or indices (m,)."""
Names = dict[str, None]
"""Names of columns: a set that keeps its order."""
LARGEST = 2**53
"""Whole numbers below are the same as floats."""


class Column(NamedTuple):
    """A column: its `values` (m,), mostly all different, and the index of its value for each row, `codes` (n,)."""

    values: Sequence[Any] | NDArray[np.float64]
    codes: NDArray[np.integer[Any]]

    @classmethod
    def of(cls, items: Iterable[Any]) -> "Column":
        """Return the column of items (n,), of which those of one text are one value: 0 and -0, 1 and 1.0 are two."""
        items = list(items)
        numbers = np.array(items) if set(map(type, items)) in ({float}, {int}) else np.empty(0)
        if len(numbers) and numbers.dtype in (float, np.int64):
            # as bits, so that 0.0 and −0.0, which are equal, are two values
            _, first, codes = np.unique(numbers.view(np.int64), return_index=True, return_inverse=True)
            values = numbers[first] if numbers.dtype == float else numbers[first].tolist()
            return cls(values, codes.astype(np.int32))
        texts = list(map(repr, items))
        items_by_text = dict(zip(texts, items, strict=True))
        places = {text: place for place, text in enumerate(items_by_text)}
        return cls(list(items_by_text.values()), np.array([places[text] for text in texts], np.int32))

    def value(self, row: int) -> Any:
        """Return the value at a row."""
        value = self.values[self.codes[row]]
        return value.item() if isinstance(value, np.generic) else value

    def listed(self) -> Sequence[Any]:
        """Return the values (m,) as objects of Python."""
        return self.values.tolist() if isinstance(self.values, np.ndarray) else self.values

    def items(self) -> list[Any]:
        """Return the values (n,) of all rows as objects of Python."""
        values = self.listed()
        return [values[code] for code in self.codes.tolist()]

    def array(self, dtype: Any = float) -> NDArray[Any]:
        """Return the values (n, ...) of all rows; zero for None."""
        return np.array([0 if value is None else value for value in self.listed()], dtype)[self.codes]

    def at(self, rows: Rows) -> "Column":
        """Return the column of some rows; if it has many more values than rows, only those that occur are kept."""
        codes = self.codes[rows]
        if len(self.values) == 1:
            return Column(self.values, _zeros(len(codes)))
        if len(self.values) <= 2 * len(codes):
            return Column(self.values, codes)
        present, codes = np.unique(codes, return_inverse=True)
        is_array = isinstance(self.values, np.ndarray)
        return Column(self.values[present] if is_array else [self.values[at] for at in present.tolist()], codes)

    @classmethod
    def joined(cls, parts: Sequence["Column"]) -> "Column":
        """Return columns, one below the other, as one."""
        first, codes = parts[0].values, [column.codes for column in parts]
        # batches of one grid often have one and the same object, which stays one value
        if all(len(column.values) == 1 and column.values[0] is first[0] for column in parts):
            return cls(first, _zeros(sum(map(len, codes))))
        if all(column.values is first for column in parts):
            return cls(first, np.concatenate(codes))
        starts = np.cumsum([0, *(len(column.values) for column in parts[:-1])]).tolist()
        codes = [codes_of_part + start for codes_of_part, start in zip(codes, starts, strict=True)]
        if all(isinstance(column.values, np.ndarray) for column in parts):
            return cls(np.concatenate([column.values for column in parts]), np.concatenate(codes))
        return cls([value for column in parts for value in column.listed()], np.concatenate(codes))


class Table:
    """n rows as named columns; `_constant` remembers, by name, which columns have one value."""

    def __init__(self, columns: Mapping[str, Column], count: int) -> None:
        """Make a table of columns, by name, of `count` rows each."""
        self.columns = dict(columns)
        self._rows = count
        self._constant: dict[str, bool] = {}

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return tables with the same columns, one below the other, as one."""
        columns = {name: Column.joined([table.columns[name] for table in parts]) for name in parts[0].columns}
        return cls(columns, sum(len(table) for table in parts))

    def __len__(self) -> int:
        return self._rows

    @classmethod
    def of_one_value(cls, values: Mapping[str, Any], count: int) -> Self:
        """Return a table of columns with one value each."""
        return cls({name: Column((value,), _zeros(count)) for name, value in values.items()}, count)

    def column(self, name: str) -> Column:
        """Return a column."""
        return self.columns[name]

    def constant(self, value: Any) -> Column:
        """Return a column of this table's length with one value."""
        return Column((value,), _zeros(self._rows))

    def at(self, rows: Rows) -> Self:
        """Return some rows."""
        count = len(range(*rows.indices(self._rows))) if isinstance(rows, slice) else len(rows)
        return type(self)({name: column.at(rows) for name, column in self.columns.items()}, count)

    def replaced(self, **columns: Column) -> Self:
        """Return the table with columns of these names in place of its own, or beside them."""
        return type(self)(self.columns | columns, self._rows)

    def row(self, read: "Reading") -> Any:
        """Return what functions of a row get: `read`, which returns values by name; subclasses make an object of it."""
        return read

    def is_constant(self, name: str) -> bool:
        """Return whether all rows have the same value of a column."""
        if name not in self._constant:
            values, codes = self.column(name)
            self._constant[name] = len(values) < 2 or not len(codes) or bool((codes == codes[0]).all())
        return self._constant[name]

    def distinct(self, names: Iterable[str]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the first row (m,) of each different combination of values of some columns, in the order of the table.

        Also returned is the index (n,) of the combination that each row has. A value that a column has twice, under two
        indices, counts as two.
        """
        columns = [self.column(name) for name in names if not self.is_constant(name)]
        if not columns:
            return np.arange(min(1, self._rows)), _zeros(self._rows)
        size, codes = 1, np.zeros(self._rows, np.int64)
        for values, column_codes in columns:
            if size * len(values) >= 2**62:  # combinations are numbered anew, before a number overflows
                size, codes = _ranked(size, codes)[1:]
            size, codes = size * len(values), codes * len(values) + column_codes
        first, _, codes = _ranked(size, codes)
        return first, codes.astype(np.int32)

    def over(self, names: Collection[str], function: Callable[[dict[str, list[Any]], int], Iterable[Any]]) -> Column:
        """Return the column of a function of some columns, called once for all rows that differ in these.

        function : gets the values of the columns, by name, and the number of rows; returns a value for each.
        """
        first, codes = self.distinct(names)
        if not len(first):
            return Column((), codes)
        columns = {name: self.column(name).at(first).items() for name in names}
        return Column(_values(function(columns, len(first))), codes)

    def column_of(self, function: Callable[[Any], Any], row: Callable[["Reading"], Any] | None = None) -> Column:
        """Return the column of a function of a row, called once for each different combination of what it reads.

        row : makes what the function gets from a `Reading`, by default `self.row`.
        """
        row_of, names = row or self.row, Names()
        # each pass may find that more columns are read, in which further rows differ
        while True:
            count = len(names)
            first, codes = self.distinct(names)
            values = [function(row_of(Reading(self, at, names))) for at in first.tolist()]
            if len(names) == count:
                return Column(values, codes)

    def numbers(self, function: Callable[[Any], Any], dtype: Any = float) -> NDArray[Any]:
        """Return the numbers (n,) that a function of a row returns; zero for None. A formula is evaluated for all rows.

        Where it decides on a column, or does anything but arithmetic, it is evaluated for each value of that alone.
        """
        decided = Names()  # the columns on which the function was found to decide: each try may add some
        while (numbers := self._formula(function, decided, dtype)) is None:
            pass
        return numbers

    def _formula(self, function: Callable[[Any], Any], decided: Names, dtype: Any) -> NDArray[Any] | None:
        """Return the numbers (n,) of a function; None if it decides on columns beside `decided`, which are added there.

        It is called once for each combination of values of the `decided` columns, with the others as arrays.
        """
        (first, codes), count, numbers = self.distinct(decided), len(decided), np.empty(self._rows, dtype)
        for at, rows in zip(first.tolist(), _groups(codes, len(first)), strict=True):
            read = _Arrays(self, at, decided, rows)
            try:
                value = function(self.row(read))
            except _DecidesError as decides:
                decided.update(decides.names)
            except Exception:
                # it may have been an array that the function could not do with
                if not read.names_of_arrays:
                    raise
                decided.update(read.names_of_arrays)
            if len(decided) > count:
                return None
            value = value.values if isinstance(value, RowNumbers) else value
            numbers[rows] = 0 if value is None else value
        return numbers


class Reading:
    """Reads the columns of a table at a `row`; the names of those that are not constant are added to `names`."""

    def __init__(self, table: Table, row: int, names: Names) -> None:
        """Read at one row; the names of columns that are read, and are not constant, are added to `names`."""
        self.table, self.row, self.names = table, row, names

    def __call__(self, name: str) -> Any:
        """Return the value of a column."""
        if not self.table.is_constant(name):
            self.names[name] = None
        return self.table.column(name).value(self.row)


class _Arrays(Reading):
    """Reads columns at some `rows` in which each of the `decided` columns has one value; other numbers as arrays.

    first : the first of the rows, whose values stand for all where a column is no array: a text that is read becomes
        one of the `decided`, and the function is called again.
    names_of_arrays : of the columns that were read as arrays.
    """

    def __init__(self, table: Table, first: int, decided: Names, rows: NDArray[np.intp]) -> None:
        super().__init__(table, first, decided)
        self.rows, self.names_of_arrays = rows, Names()

    def __call__(self, name: str) -> Any:
        """Return the one value that a column has at the rows, or its numbers there as an array.

        A column has one value if it is constant or among the decided ones; one of other things than numbers becomes one
        of these (`Reading` notes its name), at which the formula is evaluated again.
        """
        if name in self.names or self.table.is_constant(name):
            return super().__call__(name)
        values = self.table.column(name).at(self.rows)
        if not _are_numbers(values.values):
            return super().__call__(name)
        self.names_of_arrays[name] = None
        return RowNumbers(values.array(), frozenset([name]))


def _are_numbers(values: Any) -> bool:
    """Return whether the values of a column have the arithmetic of floats: floats, and whole numbers below 2⁵³."""
    if isinstance(values, np.ndarray):
        return True
    return all(type(value) is float or (type(value) is int and abs(value) < LARGEST) for value in values)


class _DecidesError(BaseException):
    """A formula decides on columns of some `names`; no Exception, so that the formula itself does not handle it."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = dict.fromkeys(names)


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """The numbers (n,) of some rows, made from columns with these `names`, with the arithmetic that keeps their bits.

    Everything else, such as a comparison, is a decision.
    """

    values: NDArray[np.float64]
    names: frozenset[str]
    # numpy leaves `array + this` to the methods of this class
    __array_ufunc__ = None

    def _decides(self, *_: Any) -> NoReturn:
        """Raise _DecidesError: this operation may differ between rows, and is done for one value after the other."""
        raise _DecidesError(self.names)

    __bool__ = __float__ = __int__ = __index__ = __round__ = __hash__ = __iter__ = __format__ = __len__ = _decides
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __pow__ = __rpow__ = __mod__ = _decides
    __floordiv__ = __rfloordiv__ = __ceil__ = __floor__ = __trunc__ = __str__ = __repr__ = __array__ = _decides


def _computed(operation: Callable[[Any, Any], Any], *numbers: Any) -> RowNumbers:
    """Return the result of arithmetic on numbers of rows, or single ones; to divide by zero is a decision."""
    names = frozenset[str]().union(*(number.names for number in numbers if isinstance(number, RowNumbers)))
    values = [number.values if isinstance(number, RowNumbers) else number for number in numbers]
    if operation is np.divide and not np.all(values[1]):
        raise _DecidesError(names)
    with np.errstate(all="ignore"):
        return RowNumbers(operation(*values), names)


for _name, _operation in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}.items():
    setattr(RowNumbers, f"__{_name}__", lambda a, b, _operation=_operation: _computed(_operation, a, b))
    setattr(RowNumbers, f"__r{_name}__", lambda a, b, _operation=_operation: _computed(_operation, b, a))


def _ranked(size: int, codes: NDArray[np.int64]) -> tuple[NDArray[np.intp], int, NDArray[np.int64]]:
    """Return the first row (m,) of each code that occurs, ascending, m, and for each row (n,) the index of its code.

    codes : whole numbers (n,) from 0 to `size` − 1, of which many may not occur.
    """
    count = len(codes)
    if size > 4 * count:
        _, codes = np.unique(codes, return_inverse=True)
        size = int(codes.max(initial=-1)) + 1
    place = np.full(size, count)
    # of several assignments to a place the last one stays: backwards, that of the first row
    place[codes[::-1]] = np.arange(count)[::-1]
    first = np.sort(place[place < count])
    rank = np.empty(size, np.int64)
    rank[codes[first]] = np.arange(len(first))
    return first, len(first), rank[codes]


def _groups(codes: NDArray[np.int32], count: int) -> Iterator[NDArray[np.intp]]:
    """Yield, for each number below `count`, the ascending indices at which `codes` (n,) is that number."""
    if count == 1:
        yield np.arange(len(codes))
    elif count:
        # stable: the indices of a group ascend
        yield from np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=count))[:-1])


def _values(items: Iterable[Any]) -> Sequence[Any] | NDArray[np.float64]:
    """Return values of a column, as an array if all are floats: it takes a quarter of the memory."""
    items = list(items)
    return np.array(items) if set(map(type, items)) == {float} else items


@lru_cache(maxsize=64)
def _zeros(count: int) -> NDArray[np.int32]:
    """Return the codes of a column with one value; they take no memory."""
    return np.broadcast_to(np.int32(0), count)
