"""Axis: the values along one dimension of a grid, and the values of other names that vary with them.

A place is the index of a value. Numbers are found if they agree to 12 digits, since a config may have rounded them.
"""

import hashlib
import itertools
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, NoReturn

from sweeplib.engine.design.fields import field_values, tells_whole
from sweeplib.engine.parameters import Parameters
from sweeplib.engine.simulator import Simulator, networks
from sweeplib.errors import InputError

MAX_SHOWN = 8  # values of an axis in a message
POINT = "point"
"""The dimension of the rows of a table of points."""
_SCALARS = int | float | str
"""The types of values of an axis; true and false are ints of Python, and other values than 1 and 0."""


@dataclass(frozen=True)
class Axis:
    """The `values` of the dimension `name`, and, index by index, those of the names `linked` to it.

    The names are parameters of a simulator, or symbols. Values are checked, must differ, and numbers are sorted, so
    that a grid does not depend on the order in the file. InputError, with the key `NAME[i]`, for a value that `name`
    cannot have or that is repeated.
    """

    name: str
    values: tuple[Any, ...]
    linked: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    simulator: Simulator = field(default_factory=networks, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values of all names, and sort them by those of the axis if these are numbers."""
        columns = {self.name: self.values, **self.linked}
        columns = {name: _scalars(self.simulator.parameters, name, values) for name, values in columns.items()}
        column = columns[self.name]
        _refuse_repeats(self.name, column)
        for name, values in columns.items():
            if len(values) != len(column):
                expected = f"{len(column)} values, as many as {self.name} has"
                raise InputError("linked axes differ in length", key=name, value=list(values), expected=expected)
        order = sorted(range(len(column)), key=column.__getitem__) if are_numbers(column) else range(len(column))
        columns = {name: tuple(values[place] for place in order) for name, values in columns.items()}
        object.__setattr__(self, "values", columns.pop(self.name))
        object.__setattr__(self, "linked", columns)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the dimension's name, then the names linked to it."""
        return (self.name, *self.linked)

    def column(self, name: str) -> tuple[Any, ...]:
        """Return the values of the axis or of a name linked to it."""
        return self.values if name == self.name else self.linked[name]

    @cached_property
    def place_of(self) -> dict[Any, int]:
        """Return the index of each value."""
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def places_of_texts(self) -> list[int]:
        """The places where a linked name has a text for the first time: other code may run for it."""
        # a column has texts and None alone, or none
        columns = [column for column in self.linked.values() if isinstance(column[0], str | None)]
        firsts = [{text: place for place, text in reversed(list(enumerate(column)))} for column in columns]
        return sorted({place for places in firsts for place in places.values()})

    def places(self, name: str, wanted: Iterable[Any]) -> set[int]:
        """Return the indices of the `wanted` values of `name`, numbers to 12 digits; InputError if one is missing."""
        return set().union(*places_in(self.column(name), name, wanted))


class TableAxis(Axis):
    """The rows of a table of points, numbered from 0, with the values of all its names."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], simulator: Simulator | None = None) -> None:
        """Make an axis of row numbers, to which the columns of the table, of one length, are linked."""
        rows = range(len(next(iter(columns.values()), ())))
        linked = {name: tuple(column) for name, column in columns.items()}
        super().__init__(POINT, tuple(rows), linked, simulator or networks())

    @cached_property
    def digest(self) -> str:
        """A digest of all values: a config names the file of a table alone."""
        return hashlib.blake2b(repr(self).encode(), digest_size=16).hexdigest()


def places_in(column: Sequence[Any], name: str, wanted: Iterable[Any]) -> list[list[int]]:
    """Return the places in the `column` of an axis of each wanted value; InputError for one that is not there.

    name : of the column, for the message.
    """
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(column):
        # True equals 1, and is another value
        places.setdefault((isinstance(value, bool), value), []).append(place)
    numbers = [key for key in places if are_numbers(key[1:])]
    numbers.sort(key=itemgetter(1))
    return [
        (places.get((isinstance(value, bool), value)) if isinstance(value, _SCALARS) else None)
        or [place for near in _near(numbers, value) for place in places[near]]
        or _refuse_absent(column, name, value)
        for value in wanted
    ]


def _near(numbers: list[tuple[bool, Any]], value: Any) -> list[tuple[bool, Any]]:
    """Return those of the keys (False, number), sorted by the number, that equal a value to 12 digits.

    A value that is no number equals none.
    """
    if not are_numbers([value]):
        return []
    # begun below all that can be close; then numbers that are still too small are skipped
    first = bisect_left(numbers, value - 2e-12 * abs(value), key=itemgetter(1))
    above = (numbers[place] for place in range(first, len(numbers)))
    near = itertools.dropwhile(lambda other: other[1] < value and not _close(value, other[1]), above)
    return list(itertools.takewhile(lambda other: _close(value, other[1]), near))


def _refuse_absent(column: Sequence[Any], name: str, value: Any) -> NoReturn:
    """Raise InputError for a value that a column lacks; it suggests the nearest number or the most similar text."""
    if not (are_numbers(column) and are_numbers([value])):
        raise InputError(f"not a value of the axis {name}", key=name, value=value, choices=map(str, column))
    nearest = min(column, key=lambda other: abs(other - value))
    are_few = len(column) <= MAX_SHOWN
    expected = "one of " + (", ".join(map(str, column)) if are_few else f"its {len(column)} values")
    choices = (f"{nearest}",)
    raise NearestError(f"not a value of the axis {name}", key=name, value=value, expected=expected, choices=choices)


class NearestError(InputError):
    """An InputError that suggests the nearest number instead of the most similar text."""

    @property
    def suggestion(self) -> str | None:
        """Return the nearest value."""
        return self.choices[0]


def _scalars(parameters: Parameters, name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values of an axis, checked for its name; all are floats if one is, but for a name with ints."""
    values = tuple(values)
    if not values:
        raise InputError("an axis needs at least one value", key=name, value=[])
    for place, value in enumerate(values):
        if not isinstance(value, _SCALARS):
            expected = "a number, a name or true/false"
            raise InputError("not a value for an axis", key=f"{name}[{place}]", value=value, expected=expected)
    checked = field_values(parameters, name, values)
    if {str, int} <= {str if isinstance(value, str) else int for value in checked if value is not None}:
        expected = "numbers alone, or names alone; other values in a second sweep"
        raise InputError("an axis of numbers and names", key=name, value=list(checked), expected=expected)
    # identities tell 1 from 1.0: a value of a parameter does not depend on the others, with which an axis grows
    if tells_whole(parameters, name) or not any(isinstance(value, float) for value in checked):
        return checked
    try:
        return tuple(map(float, checked))
    except OverflowError:
        raise InputError("beyond the range of numbers", key=name, value=list(checked)) from None


def _refuse_repeats(name: str, values: tuple[Any, ...]) -> None:
    """Raise InputError, with the key `name[i]`, for a value that an axis has twice."""
    earlier: set[Any] = set()
    for place, value in enumerate(values):
        # the one object that a set knows again: NaN equals nothing
        key = math.nan if isinstance(value, float) and math.isnan(value) else value
        if key in earlier:
            raise InputError("value given twice", key=f"{name}[{place}]", value=value, expected="different values")
        earlier.add(key)


def _close(first: float, second: float) -> bool:
    """Return whether two numbers agree to 12 digits."""
    return math.isclose(first, second, rel_tol=1e-12)


def are_numbers(values: Iterable[Any]) -> bool:
    """Return whether all values are numbers; true and false are none."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def values_in_words(values: Iterable[Any]) -> str:
    """Return values in words: all of a few, or the first two, the last one and their number."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]} ({len(texts)} values)"
