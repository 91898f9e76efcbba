"""Expressions evaluated for many points at once, with the bits that they have when evaluated one by one.

A column (n,) has the value of a name at each of n points.

Sums, products and quotients of doubles are rounded the same by numpy and by Python. Powers and functions are not; they
are evaluated by Python for each number.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from sweeplib.engine.language.arithmetic import BINARY, FUNCTIONS

EXACT = 2**53
"""Whole numbers up to this are doubles."""

_ROUNDED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
"""The operations that numpy rounds as Python does."""


class OneByOneError(Exception):
    """An expression cannot be evaluated for columns: its values have to be computed one by one."""


class Columns:
    """The `columns` (n,) of the names in an expression, at which it is evaluated."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}

    def floats(self, tree: ast.expr) -> np.ndarray:
        """Return the values (n,) of an expression; OneByOneError unless they are floats, and finite."""
        try:
            with np.errstate(all="ignore"):
                values = self._value(tree)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise OneByOneError from error
        if not isinstance(values, np.ndarray) or values.dtype != float or not np.isfinite(values).all():
            raise OneByOneError
        return values

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a part of an expression: a number, or a column (n,) of int64 or float64.

        OneByOneError where numpy's result may differ from that of Python, or for a part that is none of these.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._columns[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_refuse_inexact(self._value(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ROUNDED:
                first, second = self._value(left), self._value(right)
                if not any(isinstance(side, np.ndarray) for side in (first, second)):
                    return BINARY[type(op)](first, second)
                # Python's whole numbers have no limit, those of numpy wrap around
                if not (_is_float(first) or _is_float(second)):
                    raise OneByOneError
                first, second = _floats(first), _floats(second)
                # Python raises an error where numpy returns infinity
                if isinstance(op, ast.Div) and np.any(second == 0.0):
                    raise OneByOneError
                return _ROUNDED[type(op)](first, second)
            case ast.BinOp(left=left, op=op, right=right):
                return _one_by_one(BINARY[type(op)], self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return _one_by_one(FUNCTIONS[name], *map(self._value, arguments))
        raise OneByOneError


def _column(values: Sequence[Any]) -> np.ndarray:
    """Return values as a column (n,) of int64 or float64; OneByOneError unless all are ints, or all floats."""
    kinds = set(map(type, values))
    if kinds not in ({float}, {int}):
        raise OneByOneError
    try:
        return np.array(values, float if kinds == {float} else np.int64)
    except OverflowError:
        raise OneByOneError from None


def _is_float(value: Any) -> bool:
    """Return whether a number or a column is one of floats."""
    return value.dtype.kind == "f" if isinstance(value, np.ndarray) else isinstance(value, float)


def _floats(value: Any) -> Any:
    """Return a number or a column as doubles; OneByOneError for whole numbers that are not doubles."""
    value = _refuse_inexact(value)
    return value.astype(float, copy=False) if isinstance(value, np.ndarray) else float(value)


def _refuse_inexact(value: Any) -> Any:
    """Return a number or a column unchanged; OneByOneError for whole numbers that are not doubles."""
    if not _is_float(value) and np.max(np.abs(value), initial=0) > EXACT:
        raise OneByOneError
    return value


def _one_by_one(function: Callable[..., Any], *operands: Any) -> Any:
    """Return the values of a function of numbers, each computed by Python."""
    if not any(isinstance(value, np.ndarray) for value in operands):
        return function(*operands)
    columns = [value.tolist() if isinstance(value, np.ndarray) else repeat(value) for value in operands]
    return _column(list(map(function, *columns)))
