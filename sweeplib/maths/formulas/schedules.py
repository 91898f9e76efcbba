"""Schedules ξ(t) of the learning rate: formulas of the time t, such as `1/(1 + t)`, `min(1, t/5)` or `t**-0.25`.

A schedule is parsed as Python. Its tree is built again from the parts that are allowed, and every other part is refused
with its position. No code of the text is run.
"""

import ast
import functools
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.code.syntax import expression_tree
from sweeplib.errors import InputError
from sweeplib.maths.formulas.reader import Reader

Array = NDArray[np.float64]

FUNCTIONS = ("exp", "log", "sqrt")
EXTREMES = ("max", "min")
ALLOWED = "numbers, the time t, + - * / **, exp, log, sqrt, min, max, as in `1/(1 + t)` or `min(1, t/5)`"
LATER = "(t + 0.001)"
"""In place of t in the suggestion for a schedule that is not finite at t = 0."""
LOOKS = 2000
"""Number of times at which a schedule is checked, evenly spaced, and as many in equal ratios."""

_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Schedule:
    """A function ξ(t) of the ODE time; `text` is its one spelling."""

    text: str

    @property
    def at_later_times(self) -> str:
        """The spelling of ξ(t + 0.001)."""
        return schedule(re.sub(r"\bt\b", LATER, self.text)).text

    @cached_property
    def function(self) -> Callable[[float], float]:
        """ξ as a plain Python function of a number, for the compiler."""
        tree = expression_tree(self.text)
        for part in ast.walk(tree):
            if isinstance(part, ast.Constant):
                part.value = float(part.value)  # type: ignore[arg-type]
        space = {"text": self.text, "exp": math.exp, "log": math.log, "sqrt": math.sqrt}
        return _defined(["def rate(t):", "    text", f"    return {ast.unparse(tree)}"], space)

    def values(self, times: Array) -> Array:
        """ξ at some times (n,); inf or NaN where it is not defined."""
        space = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "max": _largest, "min": _smallest}
        with np.errstate(all="ignore"):
            found = _defined(["def rate(t):", f"    return {self.text}"], space)(np.asarray(times, dtype=np.float64))
        return np.broadcast_to(np.asarray(found, dtype=np.float64), np.shape(times))

    def first_refused(self, first: float, last: float) -> float | None:
        """The first of many times from `first` to `last` at which ξ is negative or not finite; None if there is none.

        A time zero is followed by times from a millionth of the last on.
        """
        least = first if first > 0.0 else 1e-6 * last
        times = np.concatenate(
            [np.linspace(first, last, LOOKS), np.geomspace(least, last, LOOKS) if last > 0.0 else []]
        )
        times = np.unique(np.clip(times, first, last))
        found = self.values(times)
        refused = ~(np.isfinite(found) & (found >= 0.0))
        return float(times[refused.argmax()]) if refused.any() else None


@cache
def schedule(text: str) -> Schedule:
    """The schedule of a text; InputError, with the position, for anything else."""
    reader = _Reader(text)
    try:
        return _of_text(ast.unparse(reader.read(reader.tree)))
    except RecursionError:
        raise InputError("not a schedule: too large", value=text, expected=ALLOWED) from None


@cache
def _of_text(text: str) -> Schedule:
    return Schedule(text)


def canonical_schedule(text: str) -> str:
    """The one spelling of a schedule."""
    return schedule(text).text


def _defined(lines: list[str], space: dict[str, Any]) -> Any:
    """The function `rate` of some lines, which contain no text but the spelling of a schedule."""
    space = {"__name__": __name__, **space}
    exec(compile("\n".join(lines), __file__, "exec"), space)
    return space["rate"]


def _largest(*numbers: Any) -> Any:
    return functools.reduce(np.maximum, numbers)


def _smallest(*numbers: Any) -> Any:
    return functools.reduce(np.minimum, numbers)


class _Reader(Reader):
    """Builds the tree of a schedule again, from what is allowed; numbers are put together."""

    kind = "schedule"
    allowed = ALLOWED

    def read(self, part: ast.expr) -> ast.expr:
        """The tree of a part."""
        match part:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(part, lambda: float(value))
            case ast.Name(id="t"):
                return ast.Name("t")
            case ast.Name(id=name):
                expected = f"as in `{name}(t)`" if name in FUNCTIONS + EXTREMES else ALLOWED
                raise self.refused(part, "unknown name", expected)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negative(part, self.read(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
                return self._binary(part, self.read(left), operation, self.read(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS + EXTREMES:
                return self._call(part, name, arguments)
        raise self.refused(part, "not allowed in a schedule")

    def _number(self, part: ast.expr, value_of: Callable[[], float]) -> ast.expr:
        try:
            value = value_of()
        except ArithmeticError:
            value = math.nan
        if isinstance(value, complex) or not math.isfinite(value):
            raise self.refused(part, "not a finite number")
        size = ast.Constant(int(abs(value)) if value == int(value) and abs(value) < 1e16 else abs(value))
        return ast.UnaryOp(ast.USub(), size) if value < 0.0 else size

    def _negative(self, part: ast.expr, operand: ast.expr) -> ast.expr:
        value = _value(operand)
        return ast.UnaryOp(ast.USub(), operand) if value is None else self._number(part, lambda: -value)

    def _binary(self, part: ast.expr, left: ast.expr, operation: ast.operator, right: ast.expr) -> ast.expr:
        one, other = _value(left), _value(right)
        if one is None or other is None:
            return ast.BinOp(left, operation, right)
        return self._number(part, lambda: _OPERATIONS[type(operation)](one, other))

    def _call(self, part: ast.expr, name: str, arguments: list[ast.expr]) -> ast.expr:
        if name in FUNCTIONS and len(arguments) != 1:
            raise self.refused(part, "wrong number of arguments", f"one, as in `{name}(t)`")
        if name in EXTREMES and len(arguments) < 2:
            raise self.refused(part, "wrong number of arguments", f"two or more, as in `{name}(1, t)`")
        return ast.Call(ast.Name(name), [self.read(argument) for argument in arguments], [])


def _value(part: ast.expr) -> float | None:
    """The value of a number, None for anything else."""
    match part:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -float(value)
    return None
