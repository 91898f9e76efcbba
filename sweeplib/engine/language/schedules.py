"""Schedules ξ(t) of the learning rate: expressions of the time t, as `1/(1 + t)` or `1 if t < 2 else 0.1`."""

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from sweeplib.engine.code.syntax import expression_tree
from sweeplib.engine.language.arithmetic import FUNCTIONS
from sweeplib.engine.language.reader import ARITHMETIC, Reader

LATER = "(t + 0.001)"
"""In place of t in the suggestion for a schedule that is not finite at t = 0."""
LOOKS = 2000
"""The number of times at which a schedule is checked, evenly spaced, and as many in equal ratios."""


@dataclass(frozen=True)
class Schedule:
    """A function ξ(t) of the ODE time; `text` is its one spelling."""

    text: str

    @property
    def at_later_times(self) -> str:
        """Return the spelling of ξ(t + 0.001), a suggestion where ξ is not finite at t = 0."""
        return schedule(re.sub(r"\bt\b", LATER, self.text)).text

    @cached_property
    def function(self) -> Callable[[float], float]:
        """Return ξ as a plain Python function of a number, for the compiler."""
        source = ast.unparse(ast.fix_missing_locations(_OfFloats().visit(expression_tree(self.text))))
        space = {"__name__": __name__, "text": self.text, "exp": math.exp, "log": math.log, "sqrt": math.sqrt}
        space |= {"ceil": math.ceil, "floor": math.floor}
        # the name `text` puts the formula into the digest of the machine code: numbers in a body are not in it
        exec(compile(f"def rate(t):\n    text\n    return {source}", __file__, "exec"), space)
        return space["rate"]  # type: ignore[return-value]

    def first_refused(self, first: float, last: float) -> float | None:
        """Return the first of many times from `first` to `last` at which ξ is negative or not finite; None for none.

        A time zero is followed by times from a millionth of the last on.
        """
        least = first if first > 0.0 else 1e-6 * last  # where geometric times begin
        ratios = np.geomspace(least, last, LOOKS) if last > 0.0 else np.empty(0)
        looks = np.concatenate([np.linspace(first, last, LOOKS), ratios])
        times = np.unique(np.clip(looks, first, last)).tolist()
        # not `< 0`, which is false for NaN
        return next((time for time in times if not _rate_or_nan(self.function, time) >= 0.0), None)


@cache
def schedule(text: str) -> Schedule:
    """Return the schedule of a text; InputError, with the position, for anything else."""
    return _schedule_of(ast.unparse(_Spelling().visit(_Reader(text).folded())))


@cache
def _schedule_of(text: str) -> Schedule:
    """Return the schedule of a canonical spelling: the same object for all texts of this spelling."""
    return Schedule(text)


def _rate_or_nan(rate: Callable[[float], float], time: float) -> float:
    """Return ξ at a time, NaN where it has no finite real value."""
    try:
        value = rate(time)
        return value if math.isfinite(value) else math.nan
    except (ArithmeticError, ValueError, TypeError):  # of a complex number the last one
        return math.nan


class _Reader(Reader):
    """Reads an expression of the time t."""

    kind = "schedule"
    allowed = f"numbers, the time t, {ARITHMETIC}, as in `1/(1 + t)` or `min(1, t/5)`"

    def check_name(self, node: ast.Name) -> None:
        """Raise InputError for any name but t."""
        if node.id != "t":
            raise self.refused(node, "unknown name", f"as in `{node.id}(t)`" if node.id in FUNCTIONS else None)


class _Spelling(ast.NodeTransformer):
    """Makes one spelling of equal texts: 2 for 2.0, a minus as an operation on a number, no plus before a part."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return the number."""
        value = float(node.value)  # type: ignore[arg-type]
        size = ast.Constant(int(abs(value)) if value == int(value) and abs(value) < 1e16 else abs(value))
        return ast.UnaryOp(ast.USub(), size) if value < 0.0 else size

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Return the operand of a plus, other operations as they are."""
        node.operand = self.visit(node.operand)
        return node.operand if isinstance(node.op, ast.UAdd) else node


class _OfFloats(ast.NodeTransformer):
    """Makes all numbers floats, truth values among them, for the compiler, which would not convert them."""

    def visit(self, node: ast.AST) -> Any:
        """Return a part in terms of what numba compiles for floats: numbers for comparisons, `log` of one argument."""
        node = self.generic_visit(node)
        match node:
            case ast.Constant(value=value):
                return ast.Constant(float(value))  # type: ignore[arg-type]
            case ast.Compare():
                return _choice(node, 1.0, 0.0)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _choice(operand, 0.0, 1.0)
            case ast.Call(func=ast.Name(id="log"), args=[argument, base]):
                return ast.BinOp(_call("log", argument), ast.Div(), _call("log", base))
            case ast.Call(func=ast.Name(id="round"), args=[argument, digits]):
                unit = ast.BinOp(ast.Constant(10.0), ast.Pow(), digits)
                whole = _call("float", _call("round", ast.BinOp(argument, ast.Mult(), unit)))
                return ast.BinOp(whole, ast.Div(), unit)
            case ast.Call(func=ast.Name(id="ceil" | "floor" | "round")):
                return _call("float", node)
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    """Return the syntax tree of a call of a function."""
    return ast.Call(ast.Name(name), list(arguments), [])


def _choice(test: ast.expr, then: float, otherwise: float) -> ast.IfExp:
    """Return the syntax tree of `then if test else otherwise`."""
    return ast.IfExp(test, ast.Constant(then), ast.Constant(otherwise))
