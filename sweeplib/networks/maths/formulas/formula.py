"""Formulas of the fields lam1, lam2, ...: numbers, + - * /, powers, and registered activations of formulas.

A formula is parsed as Python, and every part that is not one of these is refused with its position. No code of the text
is run. A formula is a tree of `Formula` objects: sums of products of powers, simplified as they are made (`added`,
`multiplied`, `raised`), so that equal formulas have one spelling. `node` is a node of Python's syntax tree, `latex`
whether the text is for LaTeX.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from sweeplib.engine.language.arithmetic import FUNCTIONS
from sweeplib.engine.language.reader import MOST_LEVELS, Reader
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation, activation

MOST_FIELDS = 16
"""The highest number of a field."""
MAX_POWER = 12
"""The highest power of a formula with fields."""
ALLOWED = "numbers, the fields lam1, lam2, ..., + - * / **, and activations of these, as in `lam1*lam2 + he3(lam3)`"
"""What messages say that a formula is made of."""


class Formula:
    """A function of the fields λ_1, ..., λ_k; `str` is its one spelling."""

    binding = 3
    """How tightly it binds in text: 0 sum, 1 product, 2 power, 3 anything else."""

    @property
    def parts(self) -> tuple["Formula", ...]:
        """The formulas that it is made of."""
        return ()

    def written(self, *, latex: bool) -> str:
        """The formula as LaTeX without dollars, or as its text; subclasses define it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.written(latex=False)

    def source(self, functions: dict[str, str]) -> str:
        """The formula as Python, for `eval`.

        `functions` collects, by name, the Python names of the activations in it.
        """
        raise NotImplementedError

    @cached_property
    def width(self) -> int:
        """The number of the highest field, counted from one; 0 without fields."""
        return max((node.width for node in self.parts), default=0)

    @cached_property
    def levels(self) -> int:
        """The depth of its tree."""
        return 1 + max((node.levels for node in self.parts), default=0)

    def within(self, binding: int, *, latex: bool) -> str:
        """The text of the formula as an operand: in parentheses if its own `binding` is less than this."""
        text = self.written(latex=latex)
        return text if self.binding >= binding else f"({text})"

    def walk(self) -> Iterator["Formula"]:
        """Yield the formula and all formulas that it is made of."""
        yield self
        for node in self.parts:
            yield from node.walk()


@dataclass(frozen=True)
class Number(Formula):
    """A constant."""

    value: float

    @property
    def binding(self) -> int:  # type: ignore[override]
        """How tightly it binds: a negative number like a product."""
        return 3 if self.value >= 0.0 else 1

    def written(self, *, latex: bool) -> str:
        """Return its shortest text, in LaTeX too."""
        return repr(self.value).removesuffix(".0")

    def source(self, functions: dict[str, str]) -> str:
        """The number in parentheses, which a negative one needs."""
        return f"({self.value!r})"


@dataclass(frozen=True)
class Field(Formula):
    """The field of this index, counted from zero: `Field(0)` is lam1."""

    index: int

    @cached_property
    def width(self) -> int:
        """The number of the field, counted from one."""
        return self.index + 1

    def written(self, *, latex: bool) -> str:
        """The field λ* with its number from one, or its name in text."""
        return rf"\lambda^*_{{{self.width}}}" if latex else f"lam{self.width}"

    def source(self, functions: dict[str, str]) -> str:
        """The variable of the field, whose name is its text."""
        return str(self)


@dataclass(frozen=True)
class Sum(Formula):
    """A sum of formulas."""

    terms: tuple[Formula, ...]
    binding = 0

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The terms."""
        return self.terms

    def written(self, *, latex: bool) -> str:
        """The terms with their signs."""
        return " + ".join(term.within(1, latex=latex) for term in self.terms).replace("+ -", "- ")

    def source(self, functions: dict[str, str]) -> str:
        """The sum in parentheses."""
        return f"({' + '.join(term.source(functions) for term in self.terms)})"


@dataclass(frozen=True)
class Product(Formula):
    """A product; a numerical factor comes first."""

    factors: tuple[Formula, ...]
    binding = 1

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The factors."""
        return self.factors

    def written(self, *, latex: bool) -> str:
        """The factors, side by side in LaTeX; −1 is a sign."""
        first, *others = self.factors
        texts = [factor.within(2, latex=latex) for factor in others]
        times = r"\," if latex else "*"
        return "-" + times.join(texts) if first == Number(-1.0) else times.join([first.within(1, latex=latex), *texts])

    def source(self, functions: dict[str, str]) -> str:
        """The product in parentheses."""
        return f"({' * '.join(factor.source(functions) for factor in self.factors)})"


@dataclass(frozen=True)
class Power(Formula):
    """A formula to a whole power of at least two."""

    base: Formula
    exponent: int
    binding = 2

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The base."""
        return (self.base,)

    def written(self, *, latex: bool) -> str:
        """The base with its exponent, in parentheses in LaTeX."""
        if latex:
            return f"({self.base.written(latex=True)})^{{{self.exponent}}}"
        return f"{self.base.within(3, latex=False)}**{self.exponent}"

    def source(self, functions: dict[str, str]) -> str:
        """The power, by a constant exponent."""
        return f"({self.base.source(functions)} ** {self.exponent})"


@dataclass(frozen=True)
class Applied(Formula):
    """An activation of a formula."""

    name: str
    argument: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The argument."""
        return (self.argument,)

    @property
    def activation(self) -> Activation:
        """Return the activation that is applied."""
        return activation(self.name)

    def written(self, *, latex: bool) -> str:
        """The name, in LaTeX in upright letters; there a normalised Hermite polynomial is h with its order."""
        number = self.name.removeprefix("he")
        name = f"h_{{{number}}}" if number.isdigit() else rf"\mathrm{{{self.name}}}"
        return f"{name if latex else self.name}({self.argument.written(latex=latex)})"

    def source(self, functions: dict[str, str]) -> str:
        """A call of the function that stands for the activation."""
        name = functions.setdefault(self.name, f"function_{len(functions)}")
        return f"{name}({self.argument.source(functions)})"


def added(terms: list[Formula]) -> Formula:
    """The sum of terms, numbers taken together as the last term."""
    flat = [operand for term in terms for operand in (term.terms if isinstance(term, Sum) else (term,))]
    constant = math.fsum(operand.value for operand in flat if isinstance(operand, Number))
    others = [operand for operand in flat if not isinstance(operand, Number)]
    if constant != 0.0 or not others:
        others.append(Number(constant))
    return others[0] if len(others) == 1 else Sum(tuple(others))


def multiplied(factors: list[Formula]) -> Formula:
    """The product of factors, numbers taken together as the first factor."""
    flat = [operand for factor in factors for operand in (factor.factors if isinstance(factor, Product) else (factor,))]
    constant = math.prod(operand.value for operand in flat if isinstance(operand, Number))
    others = [operand for operand in flat if not isinstance(operand, Number)]
    if constant == 0.0 or not others:
        return Number(constant)
    if constant != 1.0:
        others.insert(0, Number(constant))
    return others[0] if len(others) == 1 else Product(tuple(others))


def raised(base: Formula, exponent: int) -> Formula:
    """The base to a whole power of at least zero."""
    if exponent == 0:
        return Number(1.0)
    if isinstance(base, Number):
        return Number(base.value**exponent)
    return base if exponent == 1 else Power(base, exponent)


@cache
def formula(text: str) -> Formula:
    """The formula of a text; InputError, with the position, for anything else."""
    reader = _Reader(text)
    try:
        result = reader.read(reader.tree)
    except RecursionError:
        raise InputError("not a formula: too deep", value=text, expected=ALLOWED) from None
    return result


class _Reader(Reader):
    """Turns Python's syntax tree of a text into a formula; messages name the character of what they refuse."""

    kind = "formula"
    allowed = ALLOWED

    def read(self, node: ast.expr) -> Formula:
        """The formula of a tree.

        InputError for numbers that are not finite, for too many levels, and for what is no formula.
        """
        try:
            result = self._read(node)
        except ArithmeticError:
            result = Number(math.nan)
        if not all(math.isfinite(number.value) for number in (result, *result.parts) if isinstance(number, Number)):
            raise self.refused(node, "not a finite number")
        if result.levels > MOST_LEVELS:
            raise self.refused(node, "too deep", f"at most {MOST_LEVELS} levels")
        return result

    def _read(self, node: ast.expr) -> Formula:
        """The formula of a tree; InputError for what is no formula."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return Number(float(value))
            case ast.Name(id=name):
                return Field(self._field(node, name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return multiplied([Number(-1.0), self.read(operand)])
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.BinOp(left=left, op=operation, right=right):
                return self._binary(node, self.read(left), operation, right)
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS and name not in ACTIVATIONS:
                self.check(node)
                return Number(float(self.number(node)))
            case ast.Call(func=function, args=[argument], keywords=[]):
                return Applied(self._activation(function), self.read(argument))
        raise self.refused(node, "not allowed in a formula")

    def check_name(self, node: ast.Name) -> None:
        """Raise InputError: a function that is no activation, such as `sqrt`, takes numbers alone."""
        raise self.refused(node, "not a number", "numbers alone in a function that is not an activation")

    def _binary(self, node: ast.expr, left: Formula, operation: ast.operator, right: ast.expr) -> Formula:
        """The formula of two operands: a sum, a difference, a product, a quotient or a power.

        `left` is read, `right` is not yet.
        """
        match operation:
            case ast.Add():
                return added([left, self.read(right)])
            case ast.Sub():
                return added([left, multiplied([Number(-1.0), self.read(right)])])
            case ast.Mult():
                return multiplied([left, self.read(right)])
            case ast.Div():
                return multiplied([left, Number(1.0 / self._divisor(right))])
            case ast.Pow():
                return self._power(left, right)
        raise self.refused(node, "not allowed in a formula")

    def _field(self, node: ast.expr, name: str) -> int:
        """The number, from zero, of the field with this name; InputError for another name."""
        number = name.removeprefix("lam")
        if name.startswith("lam") and number.isascii() and number.isdigit() and 1 <= int(number) <= MOST_FIELDS:
            return int(number) - 1
        if name in ACTIVATIONS:
            raise self.refused(node, "an activation needs an argument", f"as in `{name}(lam1)`")
        expected = f"a field, lam1 to lam{MOST_FIELDS}, or an activation as in `erf(lam1)`"
        raise self.refused(node, "unknown name", expected)

    def _divisor(self, node: ast.expr) -> float:
        """The number of a divisor's tree; InputError for a formula with fields, and for zero."""
        divisor = self.read(node)
        if not isinstance(divisor, Number) or divisor.value == 0.0:
            raise self.refused(node, "not a divisor", "a number other than zero")
        return divisor.value

    def _power(self, base: Formula, node: ast.expr) -> Formula:
        """The base to the number of the tree `node`; InputError unless it is a whole one, or both are numbers."""
        exponent = self.read(node)
        if not isinstance(exponent, Number):
            raise self.refused(node, "not an exponent", "a number")
        if isinstance(base, Number):
            value = base.value**exponent.value
            if isinstance(value, complex):
                raise self.refused(node, "not a real number", "a real power of a number")
            return Number(value)
        if exponent.value != int(exponent.value) or not 0 <= exponent.value <= MAX_POWER:
            raise self.refused(node, "not an exponent", f"a whole number from 0 to {MAX_POWER}")
        return raised(base, int(exponent.value))

    def _activation(self, node: ast.expr) -> str:
        """The name of the activation of a tree; InputError, with the position, for another one."""
        name = ast.unparse(node)
        try:
            return activation(name).name
        except InputError as error:
            problem = f"{error.problem} at character {node.col_offset + 1}"
            raise InputError(problem, value=name, expected=error.expected, choices=error.choices) from None
