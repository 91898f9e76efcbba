"""Formulas of a problem, such as `he2(lam1) + c*he3(lam1)`, in which names of a grid stand for numbers."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeplib.engine.code.syntax import expression_tree
from sweeplib.errors import InputError

VARIABLES = re.compile(r"t|lam\d+")
"""The variables of formulas, which no name of a grid replaces."""


@dataclass(frozen=True)
class FormulaWithNames:
    """The text of a target, a schedule or an activation, and the `names` in it whose values a grid gives.

    It has the methods of an `Expression`, and stands beside these among derived values; it counts as one operation.
    """

    text: str
    names: frozenset[str]
    operations: int = field(default=1, init=False, compare=False)

    @classmethod
    def of(cls, text: Any, candidates: Iterable[str]) -> "FormulaWithNames | None":
        """Return the formula of a text that has some of the `candidates`, names of a grid; None for any other value."""
        tree = _tree(text)
        names_read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()
        names = frozenset(name for name in names_read.intersection(candidates) if not VARIABLES.fullmatch(name))
        return cls(text, names) if names else None

    def evaluate(self, names: Mapping[str, Any]) -> str:
        """Return the text with numbers, those of `names`, in place of its names; InputError for one that is none."""
        values = {name: names[name] for name in sorted(self.names)}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} is not a number in {self.text!r}", value=value, expected="a number")
        return ast.unparse(_Numbers(values).visit(expression_tree(self.text.strip())))

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[str]:
        """Return the text at each of `count` points, with the values there of its names, in `columns`."""
        names = sorted(self.names)
        rows = list(zip(*(columns[name] for name in names), strict=True))
        texts = {row: self.evaluate(dict(zip(names, row, strict=True))) for row in dict.fromkeys(rows)}
        return [texts[row] for row in rows]


class _Numbers(ast.NodeTransformer):
    """Puts numbers in the place of names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the number of the name, if it has one."""
        if node.id not in self._names:
            return node
        value = self._names[node.id]
        # a constant −1 for c would turn `c**2` into the text `-1 ** 2`, which is −1
        return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _tree(text: Any) -> ast.Expression | None:
    """Return the syntax tree of a text; None if it is no expression, which is refused where its field is read."""
    try:
        return expression_tree(text.strip()) if isinstance(text, str) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
