"""What a function reaches in its file, script or notebook: statements that it needs, and names that it reads."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable
from typing import Any

from sweeplib.errors import InputError
from sweeplib.functions.function import Function
from sweeplib.functions.statements import Statement, changed_in, needed_by, read_later

OF_MODULES = ("__file__", "__name__", "__doc__")
"""Names that every module has."""


def needed_statements(function: Function, statements: list[Statement], always: set[ast.stmt]) -> list[Statement]:
    """Return the statements that a function needs, itself among them, and those that are `always` needed.

    InputError for a name that none of them defines.
    """
    needed = needed_by(function.name, statements, always)
    defined = {*OF_MODULES, *dir(builtins), *(name for entry in statements for name in entry.bound)}
    missing = sorted(read_later({function.name}, needed) - defined)
    if missing and not any(entry.is_star for entry in statements):
        problem = f"{function.name} uses a name that its file or notebook does not define at the top level"
        raise InputError(problem, value=missing[0], expected="an argument, or a definition before it")
    return needed


def reached_names(function: Function, needed: list[Statement]) -> set[str]:
    """Return the names that a function reads when it is called."""
    return {function.name} | read_later({function.name}, needed)


def fixed_names(
    function: Function, statements: list[Statement], needed: list[Statement], definitions: Iterable[str] = ()
) -> set[str]:
    """Return the names that a function reads when it is called, but those that it alone changes then, such as a cache.

    needed : the statements that the function needs. definitions : those that values need that it reads.
    """
    reached = reached_names(function, needed).union(definitions)
    called = {name for entry in statements if not is_definition(entry) for name in entry.read}
    elsewhere = (called | read_later(called, statements)) - reached
    changed, set_up = set[str](), set[str]()
    definitions = {name: entry for entry in statements for name in entry.certain}  # the last one of each
    for name, definition in definitions.items():
        names = changed_in_functions(definition)
        changed |= names if name in reached else set()
        set_up |= names if name in elsewhere else set()
    return reached - (changed - set_up)


def changed_in_functions(entry: Statement) -> set[str]:
    """Return the names of the file whose values a function or class changes when it is called."""
    return changed_in(entry.node, inside=True) | (entry.bound - entry.certain) if is_definition(entry) else set()


def is_definition(entry: Statement) -> bool:
    """Return whether a statement defines a function or a class."""
    return isinstance(entry.node, ast.FunctionDef | ast.ClassDef)


def values_of(function: Function) -> dict[str, Any]:
    """Return the values of the names of the file of a function."""
    # the wrappers of other decorators may have those of another file
    return inspect.unwrap(function.function).__globals__
