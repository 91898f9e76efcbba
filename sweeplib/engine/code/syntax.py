"""Source code as the text of its syntax tree, which has no comments and no layout."""

import ast
import gc
import threading
from collections.abc import Callable, Iterable
from typing import Any

Fields = Iterable[tuple[str, Any]]
"""Fields of a node of a syntax tree: names and values, which are nodes, lists of nodes or constants."""

_PARSING = threading.Lock()
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""The nodes whose body may begin with a docstring."""


def syntax_tree(text: str) -> ast.Module:
    """Return the syntax tree of a source, made by one thread at a time.

    Before 3.11.8, CPython counts the depth of a tree for all threads together. If a garbage collection with a callback,
    as Dask has one, lets another thread parse in between, it raises SystemError.
    """
    with _PARSING:
        return ast.parse(text)


def expression_tree(text: str) -> ast.Expression:
    """Return the syntax tree of an expression, made by one thread at a time as in `syntax_tree`."""
    with _PARSING:
        return ast.parse(text, mode="eval")


def prefix_notation(text: str, fields: Callable[[ast.AST], Fields]) -> str:
    """Return the syntax tree of a source as a text in prefix notation, with some fields of each node, none empty.

    fields : returns those of a node. Annotated and plain assignments have one name, and differ only in their fields.
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


def effective_code(text: str) -> str:
    """Return the part of a source that can change its behaviour: without comments, docstrings and layout."""
    return prefix_notation(text, _effective)


def _effective(node: ast.AST) -> Fields:
    """Return all fields of a node; those of a body without its docstring."""
    fields = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, _WITH_DOCSTRING):
        fields["body"] = [statement for statement in node.body if not is_docstring(statement)]
    return fields.items()


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement consists of a string only."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _write(node: Any, parts: list[str], fields: Callable[[ast.AST], Fields]) -> None:
    """Append a node of a syntax tree, or a part of one, to the parts of its text; `fields` are those that count."""
    if isinstance(node, ast.AST):
        parts.append("Assign" if isinstance(node, ast.AnnAssign) else type(node).__name__)
        for name, field in fields(node):
            if field is not None and field != []:
                parts.append(name)
                _write(field, parts, fields)
    elif isinstance(node, list):
        parts.append(f"[{len(node)}")
        for item in node:
            _write(item, parts, fields)
    else:
        parts.append(repr(node))
