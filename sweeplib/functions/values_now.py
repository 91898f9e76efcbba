"""Statements of a script or a notebook that give the values that its names have now, as other processes get them."""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sweeplib.functions.function import Function
from sweeplib.functions.reach import fixed_names, is_definition, needed_statements, reached_names, values_of
from sweeplib.functions.statements import Statement, statements_of
from sweeplib.functions.stored import LOADER, Stored, stored
from sweeplib.functions.values import are_same, grouped, is_of_module


def with_values(
    function: Function, statements: list[Statement], running: ast.stmt | None
) -> tuple[list[Statement], dict[str, Stored]]:
    """Return statements that give the values as they are now, and these values by name.

    Those of one statement alone are given where it stands, as others that the function reads when it is called are at
    the end. Functions, imports and what no file can have stay as they are written.

    running : the statement that runs the sweep, which stays.
    """
    names = values_of(function)
    touched = Counter(name for entry in statements for name in entry.bound | entry.changed)
    makers = {
        name: entry
        for entry in statements
        for name in (
            entry.certain if is_definition(entry) else entry.bound
        )  # functions set others when they are called
    }
    values: dict[str, Stored] = {}

    def given(wanted: Iterable[str]) -> list[Statement]:
        """Return the statements that give some values."""
        made = statements_of(ast.parse(f"{name} = {values[name].expression}").body[0] for name in sorted(wanted))
        # they have definitions in hand, and call none
        return [replace(entry, only_defines=True) for entry in made]

    needed = needed_statements(function, statements, set())
    reached, fixed = reached_names(function, needed), fixed_names(function, statements, needed)
    candidates = reached & names.keys() & makers.keys()
    apart, together = candidates, dict[str, list[str]]()
    for group in grouped({name: names[name] for name in sorted(candidates)}, function.module):
        if len(group) > 1:
            values |= _stored_together({name: names[name] for name in group}, makers, function.module)
            apart, together = apart.difference(group), together | dict.fromkeys(group, group)
        elif group[0] in fixed or not _is_fresh(makers[group[0]], names[group[0]]):
            values |= _stored({group[0]: names[group[0]]}, makers, function.module)
    statements = [*statements_of(ast.parse(LOADER).body), *statements, *given(values)]
    for entry in needed_statements(function, statements, set()):
        is_value = isinstance(entry.node, ast.Assign | ast.AnnAssign) and entry.node is not running
        if is_value and not entry.changed and entry.bound and all(touched[name] == 1 for name in entry.bound):
            others = {name: names[name] for name in entry.bound & names.keys() - apart - values.keys()}
            # what has parts of another value is made of it again
            if entry.read.isdisjoint(other for name in others for other in together.get(name, ())):
                values |= _stored(others, makers, function.module)
            place = statements.index(entry)
            before = {name for earlier in statements[:place] for name in earlier.bound}
            if all(name in values and values[name].definitions <= before for name in entry.bound):
                statements[place : place + 1] = given(entry.bound)
    return statements, values


def _stored(values: Mapping[str, Any], makers: Mapping[str, Statement], module: str) -> dict[str, Stored]:
    """Return those values for other processes that can be, but for those whose statements say them."""
    others = {name: value for name, value in sorted(values.items()) if not _says_itself(makers[name], value)}
    return {name: entry for name, value in others.items() if (entry := stored(name, value, module)) is not None}


def _stored_together(values: Mapping[str, Any], makers: Mapping[str, Statement], module: str) -> dict[str, Stored]:
    """Return values with parts in common for other processes; none if one of them cannot be stored, or is imported."""
    whole = (
        None
        if any(makers[name].is_import for name in values)
        else stored(" ".join(values), tuple(values.values()), module)
    )
    if whole is None or whole.file is None:
        return {}
    return {name: whole._replace(expression=f"{whole.expression}[{at}]") for at, name in enumerate(values)}


def _is_fresh(maker: Statement, value: Any) -> bool:
    """Return whether the statement that gives a value gives the same in any process, such as `defaultdict(list)`."""
    call = getattr(maker.node, "value", None)
    if isinstance(call, ast.Call) and isinstance(value, dict | list | set | deque):
        return not call.keywords and all(isinstance(entry, ast.Name | ast.Constant) for entry in call.args)
    return _literal(maker) is not ...


def _says_itself(maker: Statement, value: Any) -> bool:
    """Return whether the statement that gives a name says its value: an import, a definition, or the value written."""
    if maker.is_import or is_of_module(value):
        return True
    literal = _literal(maker)
    return literal is not ... and are_same(literal, value, ())


def _literal(maker: Statement) -> Any:
    """Return the value that the statement that gives a name has written, `...` if it has none."""
    if isinstance(maker.node, ast.Assign | ast.AnnAssign) and maker.node.value is not None:
        with suppress(ValueError):
            return ast.literal_eval(maker.node.value)
    return ...
