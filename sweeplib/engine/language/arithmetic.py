"""The operations and functions of expressions, and the value of a tree of Python syntax that has no others."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

Number = int | float
Function = Callable[[Mapping[str, Number]], Number]
"""An expression as a function: returns its value for the numbers that its names stand for."""
MAX_BITS = 1024  # the range of a double: larger integers cannot be converted
MAX_DIGITS = 400  # more than the digits of a double before or after the point


class NoNumberError(Exception):
    """An expression has no value; the message is the reason."""


def power(base: Number, exponent: Number) -> Number:
    """Return base**exponent as a real number, without computing integers beyond the range of doubles."""
    # a power of so many bits would be computed first and refused after: as a float it overflows at once
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > 2 * MAX_BITS:
        base = float(base)
    value: Any = base**exponent
    if isinstance(value, complex):
        raise ValueError("it is a complex number")
    return value


def rounded(value: Number, digits: Number | None = None) -> Number:
    """Return the value rounded to `digits` digits after the point, or before it if `digits` is negative."""
    if digits is None:
        return round(value)
    if abs(digits) > MAX_DIGITS:
        raise ValueError(f"rounded to {digits} digits")
    return round(value, digits)  # type: ignore[arg-type]


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "max": max,
    "min": min,
    "round": rounded,
    "sqrt": math.sqrt,
}
BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
"""The four tables have what an expression may contain: functions by name, operations by Python's node of syntax."""


def value_of(tree: ast.expr) -> Number:
    """Return the value of a tree without names; NoNumberError if it has none."""
    return value(function(tree), {})


def value(function: Function, names: Mapping[str, Number]) -> Number:
    """Return the value of an expression's function at named numbers; NoNumberError unless it is finite and real."""
    try:
        number = function(names)
        if math.isfinite(number):
            return number
    except OverflowError:
        raise NoNumberError("too large") from None
    except (ArithmeticError, ValueError, TypeError) as error:
        raise NoNumberError(str(error)) from None
    raise NoNumberError(f"it gives {number}")


def function(node: ast.expr) -> Function:
    """Return the function of a syntax tree; TypeError for a part that no expression has (`Reader` refuses those)."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda _: number
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.BinOp(left=left, op=op, right=right):
            return _application(BINARY[type(op)], left, right)
        case ast.UnaryOp(op=op, operand=operand):
            return _application(UNARY[type(op)], operand)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _comparison([COMPARE[type(op)] for op in ops], [left, *others])
        case ast.BoolOp(op=op, values=parts):
            return _logical_operation(list(map(function, parts)), by=isinstance(op, ast.Or))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, then, otherwise = map(function, (test, body, orelse))
            return lambda names: then(names) if condition(names) else otherwise(names)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _application(FUNCTIONS[name], *arguments)
    raise TypeError(f"no part of an expression: {type(node).__name__}")


def _application(operation: Callable[..., Number], *operands: ast.expr) -> Function:
    """Return the function that applies an operation to the values of its operands; OverflowError for large integers."""
    functions = list(map(function, operands))
    if len(functions) == 2:  # the common case, faster without a list of the operands' values
        first, second = functions
        return lambda names: _refuse_large(operation(first(names), second(names)))
    return lambda names: _refuse_large(operation(*[evaluate(names) for evaluate in functions]))


def _comparison(comparisons: list[Callable[[Number, Number], bool]], operands: list[ast.expr]) -> Function:
    """Return the function of a chain of comparisons, such as a < b <= c: whether all of them hold."""
    functions = list(map(function, operands))

    def compared(names: Mapping[str, Number]) -> bool:
        """Return whether all comparisons hold for these numbers."""
        values = [evaluate(names) for evaluate in functions]
        pairs = zip(comparisons, values, values[1:], strict=False)
        return all(compare(first, second) for compare, first, second in pairs)

    return compared


def _logical_operation(functions: list[Function], by: bool) -> Function:
    """Return a function for `or` (`by` true) or `and` (false): the first value with this truth value, or the last."""

    def decided(names: Mapping[str, Number]) -> Number:
        """Return the value at which the operation is decided, as Python's `and` and `or` do."""
        number: Number = not by
        for evaluate in functions:
            number = evaluate(names)
            if bool(number) is by:
                break
        return number

    return decided


def _refuse_large(number: Number) -> Number:
    """Return a number; OverflowError for an integer beyond the range of doubles."""
    if isinstance(number, int) and number.bit_length() > MAX_BITS:
        raise OverflowError("too large")
    return number
