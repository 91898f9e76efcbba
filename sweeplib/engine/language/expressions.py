"""Expressions of a config, such as "gamma0 * d**-delta": arithmetic that cannot run code."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeplib.engine.language.arithmetic import Function, NoNumberError, Number, function, value
from sweeplib.engine.language.columns import Columns, OneByOneError
from sweeplib.engine.language.reader import Reader
from sweeplib.errors import InputError


@dataclass(frozen=True)
class Expression:
    """A formula over named numbers.

    The text is parsed as Python and evaluated by an interpreter of what `Reader` allows: no attributes, indices,
    strings or other calls. Parts without names are evaluated at once, so that `9**9**9` or `1/0` is refused here and
    not at some point of a sweep. InputError for anything else.

    names : that stand for numbers. operations : the number of parts, by which the work of an evaluation is limited.
    """

    text: str
    names: frozenset[str] = field(init=False, compare=False)
    operations: int = field(init=False, compare=False)
    _tree: ast.expr = field(init=False, compare=False, repr=False)
    _function: Function = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read the text, and keep its tree, its function and its names."""
        tree = Reader(self.text).folded()
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_function", function(tree))
        object.__setattr__(self, "names", _names_read(tree))
        object.__setattr__(self, "operations", sum(isinstance(node, ast.expr) for node in ast.walk(tree)))

    def evaluate(self, names: Mapping[str, Any]) -> Number:
        """Return the value where `names` have some values; InputError unless it is a finite real number."""
        return self._value({name: self._operand(name, names) for name in self.names})

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[Number]:
        """Return the values at `count` points, from the values there of the expression's names, in `columns`."""
        try:
            numbers: list[Number] = Columns({name: columns[name] for name in self.names}).floats(self._tree).tolist()
        except (OneByOneError, KeyError):
            return self._one_by_one(columns, count)
        return numbers

    def _one_by_one(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[Number]:
        """Return the values at `count` points, computed once for equal values of all names."""
        names = sorted(self.names)
        rows = list(zip(*(columns[name] for name in names), strict=True)) if names else [()] * count
        # each value of a name is checked once, not once a point
        for name in names:
            for number in dict.fromkeys(columns[name]):
                self._operand(name, {name: number})
        values_of_rows = {row: self._value(dict(zip(names, row, strict=True))) for row in dict.fromkeys(rows)}
        return [values_of_rows[row] for row in rows]

    def _value(self, names: Mapping[str, Number]) -> Number:
        """Return the value at named numbers; InputError, with these numbers, if there is none."""
        try:
            return value(self._function, names)
        except NoNumberError as reason:
            where = ", ".join(f"{name}={names[name]}" for name in sorted(names))
            problem = f"the expression has no value at {where} ({reason})"
        raise InputError(problem, value=self.text, expected="a finite real number")

    def _operand(self, name: str, names: Mapping[str, Any]) -> Number:
        """Return the value of a name; InputError if it has none, or none that is a number."""
        if name not in names:
            raise InputError(f"unknown name in {self.text!r}", value=name, choices=names)
        number = names[name]
        if not isinstance(number, int | float):
            raise InputError(f"{name} is not a number in {self.text!r}", value=number, expected="a number")
        return number

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the expression as its text."""
        return Expression, (self.text,)


def _names_read(tree: ast.expr) -> frozenset[str]:
    """Return the names in a tree that stand for numbers: all but those of functions that it calls."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)
