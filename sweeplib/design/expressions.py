"""Expressions of a config, such as "gamma0 * d**-delta": arithmetic that cannot run code."""

import ast
import keyword
import math
import operator
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeplib.code.syntax import expression_tree
from sweeplib.design.columns import Columns, OneByOneError
from sweeplib.errors import InputError

Number = int | float
Function = Callable[[Mapping[str, Number]], Number]
MAX_LENGTH = 500
MAX_DEPTH = 50
MAX_BITS = 1024  # the range of a double: larger integers cannot be converted
MAX_DIGITS = 400  # more than the digits of a double before or after the point

ALLOWED = "numbers, names, + - * / // % **, comparisons, `a if c else b`, and " + ", ".join(
    ("abs", "ceil", "exp", "floor", "log", "max", "min", "round", "sqrt")
)


def power(base: Number, exponent: Number) -> Number:
    """Return base**exponent as a real number, without computing integers beyond the range of doubles."""
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
    number: Number = round(value, digits)  # type: ignore[arg-type]
    return number


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
_ARGUMENTS = {"log": (1, 2), "max": (2, 20), "min": (2, 20), "round": (1, 2)}

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Expression:
    """A formula over named numbers.

    The text is parsed as Python and evaluated by an interpreter of `ALLOWED` only: no attributes, indices, strings or
    other calls. Parts without names are evaluated at once, so that `9**9**9` or `1/0` is refused here and not at some
    point of a sweep. InputError for anything else.
    """

    text: str
    names: frozenset[str] = field(init=False, compare=False)
    operations: int = field(init=False, compare=False)
    _tree: ast.expr = field(init=False, compare=False, repr=False)
    _function: Function = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        tree = _parsed(self.text)
        _refuse_unknown(tree, self.text)
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_function", _function(tree))
        object.__setattr__(self, "names", frozenset(_names(tree)))
        object.__setattr__(self, "operations", sum(isinstance(part, ast.expr) for part in ast.walk(tree)))
        constants: list[ast.expr] = []
        _add_constants(tree, constants)
        for part in constants:
            self._value(_function(part), {})

    def evaluate(self, names: Mapping[str, Any]) -> Number:
        """Return the value for these values of `names`; InputError unless it is a finite real number."""
        return self._value(self._function, {name: _operand(name, names, self.text) for name in self.names})

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[Number]:
        """Return the values at `count` points, with the values of the names in `columns`."""
        try:
            known = {name: columns[name] for name in self.names}
            found: list[Number] = Columns(known, _BINARY, FUNCTIONS).floats(self._tree).tolist()
        except (OneByOneError, KeyError):
            return self._one_by_one(columns, count)
        return found

    def _one_by_one(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[Number]:
        """Return the values at `count` points, computed once for equal values of all names."""
        names = sorted(self.names)
        rows = list(zip(*(columns[name] for name in names), strict=True)) if names else [()] * count
        for name in names:
            for value in dict.fromkeys(columns[name]):
                _operand(name, {name: value}, self.text)
        known = {row: self._value(self._function, dict(zip(names, row, strict=True))) for row in dict.fromkeys(rows)}
        return [known[row] for row in rows]

    def _value(self, function: Function, names: Mapping[str, Number]) -> Number:
        try:
            value = function(names)
            finite = math.isfinite(value)
        except OverflowError:
            reason = "too large"
        except (ArithmeticError, ValueError, TypeError) as error:
            reason = str(error)
        else:
            if finite:
                return value
            reason = f"it gives {value}"
        where = ", ".join(f"{name}={names[name]}" for name in sorted(names))
        at = f" at {where}" if where else ""
        raise InputError(
            f"the expression has no value{at} ({reason})", value=self.text, expected="a finite real number"
        )

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the expression as its text."""
        return Expression, (self.text,)


def is_symbol(name: str) -> bool:
    """Return whether an expression can use `name` as the name of a number."""
    reserved = keyword.iskeyword(name) or name in FUNCTIONS or name.startswith("_")
    return name.isidentifier() and not reserved and unicodedata.is_normalized("NFKC", name)


def _parsed(text: str) -> ast.expr:
    if not text.strip():
        raise InputError("not an expression", value=text, expected='a formula in quotes, such as "2 * d"')
    if len(text) > MAX_LENGTH:
        raise InputError("expression too long", value=text, expected=f"at most {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return expression_tree(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise InputError(f"not an expression ({reason})", value=text, expected=ALLOWED) from None


def _refuse_unknown(part: ast.expr, text: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise InputError("expression too deep", value=text, expected=f"at most {MAX_DEPTH} levels")
    for child in _children(part, text):
        _refuse_unknown(child, text, depth + 1)


def _children(part: ast.expr, text: str) -> list[ast.expr]:
    """Return the operands of `part`; InputError unless it is one of the allowed kinds of parts."""
    match part:
        case ast.Constant(value=value) if type(value) in (int, float):
            return []
        case ast.Name(id=name) if is_symbol(name):
            return []
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return [operand]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
            return [left, *others]
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            _refuse_arguments(name, arguments, text)
            return arguments
        case ast.Call(func=ast.Name(id=name)) if name not in FUNCTIONS:
            raise InputError(f"unknown function in {text!r}", value=name, choices=FUNCTIONS)
    raise InputError(f"not allowed in an expression: {_source(part)}", value=text, expected=ALLOWED)


def _refuse_arguments(name: str, arguments: list[ast.expr], text: str) -> None:
    least, most = _ARGUMENTS.get(name, (1, 1))
    if not least <= len(arguments) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        raise InputError(f"wrong number of arguments of {name}", value=text, expected=f"{count}, not {len(arguments)}")


def _source(part: ast.AST) -> str:
    return f"`{ast.unparse(part)}` ({type(part).__name__.lower()})"


def _names(part: ast.expr) -> set[str]:
    called = {id(node.func) for node in ast.walk(part) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name) and id(node) not in called}


def _add_constants(part: ast.expr, constants: list[ast.expr]) -> bool:
    """Add the parts without names to `constants`, the smallest first; return whether `part` is one of them."""
    operands = [_add_constants(operand, constants) for operand in _children(part, "")]
    if isinstance(part, ast.Name) or not all(operands):
        return False
    constants.append(part)
    return True


def _operand(name: str, names: Mapping[str, Any], text: str) -> Number:
    if name not in names:
        raise InputError(f"unknown name in {text!r}", value=name, choices=names)
    value = names[name]
    if not isinstance(value, int | float):
        raise InputError(f"{name} is not a number in {text!r}", value=value, expected="a number")
    return value


def _function(part: ast.expr) -> Function:
    """Return a function from named numbers to the value of a tree; all its parts have passed `_children`."""
    match part:
        case ast.Constant(value=int() | float() as value):
            return lambda _: value
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.BinOp(left=left, op=op, right=right):
            return _applied(_BINARY[type(op)], left, right)
        case ast.UnaryOp(op=op, operand=operand):
            return _applied(_UNARY[type(op)], operand)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared([_COMPARE[type(op)] for op in ops], [left, *others])
        case ast.BoolOp(op=op, values=parts):
            return _decided(list(map(_function, parts)), by=isinstance(op, ast.Or))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, then, otherwise = map(_function, (test, body, orelse))
            return lambda names: then(names) if condition(names) else otherwise(names)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _applied(FUNCTIONS[name], *arguments)
    raise TypeError(f"no part of an expression: {type(part).__name__}")


def _applied(operation: Callable[..., Number], *operands: ast.expr) -> Function:
    functions = list(map(_function, operands))
    if len(functions) == 2:  # the common case, faster without a list of the operands' values
        first, second = functions
        return lambda names: _bounded(operation(first(names), second(names)))
    return lambda names: _bounded(operation(*[function(names) for function in functions]))


def _compared(comparisons: list[Callable[[Number, Number], bool]], operands: list[ast.expr]) -> Function:
    functions = list(map(_function, operands))

    def compared(names: Mapping[str, Number]) -> bool:
        values = [function(names) for function in functions]
        pairs = zip(comparisons, values, values[1:], strict=False)
        return all(compare(one, other) for compare, one, other in pairs)

    return compared


def _decided(functions: list[Function], by: bool) -> Function:
    """Return a function for `or` (`by` true) or `and` (false): the first value with this truth value, or the last."""

    def decided(names: Mapping[str, Number]) -> Number:
        value: Number = not by
        for function in functions:
            value = function(names)
            if bool(value) is by:
                break
        return value

    return decided


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError("too large")
    return value
