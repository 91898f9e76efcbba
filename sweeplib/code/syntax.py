"""Source code as the text of its syntax tree, which has no comments and no layout."""

import ast
import gc
import threading
from collections.abc import Callable, Iterable
from typing import Any

Fields = Iterable[tuple[str, Any]]

_PARSING = threading.Lock()


def syntax_tree(text: str) -> ast.Module:
    """Return the syntax tree of a source, made by one thread at a time.

    Before 3.11.8, CPython counts the depth of a tree for all threads together. If a garbage collection with a callback,
    as Dask has one, lets another thread parse in between, it raises SystemError.
    """
    with _PARSING:
        return ast.parse(text)


def expression_tree(text: str) -> ast.Expression:
    """Return the syntax tree of an expression, as `syntax_tree` does."""
    with _PARSING:
        return ast.parse(text, mode="eval")


def prefix_notation(text: str, fields: Callable[[ast.AST], Fields]) -> str:
    """Return the syntax tree of a source in prefix notation, with the `fields` of each node; empty ones are left out.

    Annotated and plain assignments differ only in their fields.
    """
    parts: list[str] = []
    collecting = gc.isenabled()
    gc.disable()  # all objects of the tree are alive: a collection would take as long as the parsing
    try:
        _write(syntax_tree(text), parts, fields)
    finally:
        if collecting:
            gc.enable()
    return " ".join(parts)


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement consists of a string only."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _write(node: Any, parts: list[str], fields: Callable[[ast.AST], Fields]) -> None:
    if isinstance(node, ast.AST):
        parts.append("Assign" if isinstance(node, ast.AnnAssign) else type(node).__name__)
        for name, field in fields(node):
            if field is not None and field != []:
                parts.append(name)
                _write(field, parts, fields)
    elif isinstance(node, list):
        parts.append(f"[{len(node)}")
        for part in node:
            _write(part, parts, fields)
    else:
        parts.append(repr(node))
