"""The text of arithmetic in a config as a tree of Python syntax. No code of the text is run.

A part is a node of the tree: a number, a name, an operation or a call, with its operands.
"""

import ast
import keyword
import unicodedata
import warnings
from typing import Any

from sweeplib.engine.code.syntax import expression_tree
from sweeplib.engine.language.arithmetic import BINARY, COMPARE, FUNCTIONS, UNARY, NoNumberError, Number, value_of
from sweeplib.errors import InputError

MOST_CHARACTERS = 4000  # enough for a schedule through many knots
MOST_LEVELS = 50  # of brackets and operations: far below the depth that Python's recursion allows
ARITHMETIC = "+ - * / // % **, comparisons, `a if c else b`, and " + ", ".join(FUNCTIONS)
_ARGUMENTS = {"log": (1, 2), "max": (2, 20), "min": (2, 20), "round": (1, 2)}  # fewest, most; 1 for all others
_WORDS = {1: "one", 2: "two"}
"""Numbers of arguments in messages."""


def is_symbol(name: str) -> bool:
    """Return whether an expression can use `name` as the name of a number."""
    reserved = keyword.iskeyword(name) or name in FUNCTIONS or name.startswith("_")
    return name.isidentifier() and not reserved and unicodedata.is_normalized("NFKC", name)


def operands_of(node: ast.expr) -> list[ast.expr] | None:
    """Return the operands of a part of an expression, none for a number or a name; None for what is no such part."""
    match node:
        # not isinstance: True and False are ints
        case ast.Constant(value=value) if type(value) in (int, float):
            return []
        case ast.Name():
            return []
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in BINARY:
            return [left, right]
        case ast.UnaryOp(op=operation, operand=operand) if type(operation) in UNARY:
            return [operand]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(kind) in COMPARE for kind in ops):
            return [left, *others]
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
        case ast.Call(func=ast.Name(), args=arguments, keywords=[]):
            return arguments
    return None


class Reader:
    """Reads one kind of text, an "expression": with numbers, names, operations and functions; subclasses read others.

    kind, allowed : what such a text is called in messages, and what it may have.
    InputError, with the position, for a text that is too long or no expression of Python; methods raise it for parts
    that are not allowed.
    """

    kind = "expression"
    allowed = f"numbers, names, {ARITHMETIC}"

    def __init__(self, text: str) -> None:
        """Parse a text; InputError if it is too long, or no expression of Python."""
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"{self.kind} too long", value=text, expected=f"at most {MOST_CHARACTERS} characters")
        self.text = text.strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python, such as for `1if d else 2`
                self.tree = expression_tree(self.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            raise InputError(f"not {self._article} {self.kind}{where}", value=text, expected=self.allowed) from None

    def folded(self) -> ast.expr:
        """Return the tree, with numbers in place of the parts that have no names."""
        self.check(self.tree)
        return _Folding(self).visit(self.tree)

    def refused(self, node: ast.expr, problem: str, expected: str | None = None) -> InputError:
        """Return the error for a part of the text, with its position; `expected` is by default what is `allowed`."""
        source = ast.get_source_segment(self.text, node) or ast.unparse(node)
        where = f"`{source}` at character {node.col_offset + 1}"
        return InputError(f"{problem}: {where}", value=self.text, expected=expected or self.allowed)

    def number(self, node: ast.expr) -> Number:
        """Return the value of a part without names."""
        try:
            return value_of(node)
        except NoNumberError:
            raise self.refused(node, "not a finite number") from None

    def check_name(self, node: ast.Name) -> None:
        """Raise InputError for a name that the text cannot have."""
        if not is_symbol(node.id):
            raise self._not_allowed(node)

    @property
    def _article(self) -> str:
        """Return the article before the kind of text in a message."""
        return "an" if self.kind[0] in "aeiou" else "a"

    def _not_allowed(self, node: ast.expr) -> InputError:
        """Return the error for a part that a text of this kind cannot have."""
        return self.refused(node, f"not allowed in {self._article} {self.kind}")

    def check(self, node: ast.expr, level: int = 1) -> None:
        """Raise InputError if a part, or one below it, is not allowed, or is more than `MOST_LEVELS` deep."""
        if level > MOST_LEVELS:
            raise self.refused(node, f"{self.kind} too deep", f"at most {MOST_LEVELS} levels")
        operands = operands_of(node)
        if operands is None:
            raise self._not_allowed(node)
        if isinstance(node, ast.Name):
            self.check_name(node)
        if isinstance(node, ast.Call):
            self._check_call(node, node.func.id, len(operands))  # type: ignore[attr-defined]
        for operand in operands:
            self.check(operand, level + 1)

    def _check_call(self, node: ast.Call, name: str, count: int) -> None:
        """Raise InputError for a call of an unknown function, or with a `count` of arguments that it cannot have."""
        if name not in FUNCTIONS:
            problem = f"unknown function at character {node.col_offset + 1} of {self.text!r}"
            raise InputError(problem, value=name, choices=FUNCTIONS)
        least, most = _ARGUMENTS.get(name, (1, 1))
        if not least <= count <= most:
            expected = _WORDS[least] if least == most else f"{_WORDS[least]} to {_WORDS.get(most, most)}"
            raise self.refused(node, "wrong number of arguments", f"{expected}, not {count}")


class _Folding(ast.NodeTransformer):
    """Puts numbers in the place of parts without names, in a tree whose parts are allowed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def visit(self, node: ast.AST) -> Any:
        """Return a part with the parts below it folded, and itself a number if all its operands are."""
        node = self.generic_visit(node)
        if not isinstance(node, ast.expr) or isinstance(node, ast.Name):
            return node
        if all(isinstance(operand, ast.Constant) for operand in operands_of(node) or ()):
            return ast.copy_location(ast.Constant(self._reader.number(node)), node)
        return node
