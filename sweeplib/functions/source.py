"""The source of a function, with what it reaches in the file, script or notebook where it stands.

Other processes cannot import a function that a script or a notebook defines: what it needs is written into a file
beside the results. It is made of the statements at the top level that give the names that the function uses, and those
that these use: imports, functions, classes, values. Other statements, such as plots, are left out. A place is the index
of a statement at the top level.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

from sweeplib.engine.code.numerical_code import numerical_code
from sweeplib.engine.code.sources import imported_names, modules_digest, source_text, user_files
from sweeplib.engine.code.user_code import package_of, user_file
from sweeplib.errors import InputError
from sweeplib.functions.function import Function

OF_MODULES = ("__file__", "__name__", "__doc__")
"""Names that every module has."""


def source_of(function: Function) -> str:
    """Return a module's text with the function and all that it reaches; InputError for a name that nothing defines."""
    return "\n\n\n".join(map(ast.unparse, _statements(function))) + "\n"


def code_of(function: Function) -> str:
    """Return a digest of the code that makes the numbers of a function: its own, and the user's modules it imports."""
    statements = _statements(function)
    for statement in statements:
        if isinstance(statement, ast.FunctionDef) and statement.name == function.name:
            statement.decorator_list = [entry for entry in statement.decorator_list if not _declares(entry)]
    text, imports = numerical_code("\n".join(map(ast.unparse, statements)))
    modules = filter(user_file, imported_names(imports, package_of(function.module)))
    return hashlib.blake2b(f"{text}\0{modules_digest(modules)}".encode(), digest_size=12).hexdigest()


def _declares(decorator: ast.expr) -> bool:
    """Return whether a decorator is `@simulator(...)`, whose units and labels change no number."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return "simulator" in (getattr(called, "id", None), getattr(called, "attr", None))


def _statements(function: Function) -> list[ast.stmt]:
    """Return the statements of a function's file that it needs, itself among them, in their order.

    InputError for a name that none of them defines.
    """
    body = list(_flat(ast.parse(_text_around(function)).body))
    bound = [_names_bound(statement) for statement in body]  # the names that each statement defines
    needed = {place for place, statement in enumerate(body) if _is_future(statement)}
    waiting, done = [function.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            places = [place for place, names in enumerate(bound) if name in names]
            if not places and not hasattr(builtins, name) and name not in OF_MODULES:
                problem = f"{function.name} uses a name that its file or notebook does not define at the top level"
                raise InputError(problem, value=name, expected="an argument, or a definition before it")
            places = _last_binding(body, places)
            needed.update(places)
            waiting += [used for place in places for used in _names_used(body[place])]
    return [body[place] for place in sorted(needed)]


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, with those below `if __name__ == "__main__"` in place of the `if`."""
    for statement in body:
        match statement:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                yield from statement.body
            case _:
                yield statement


def _is_future(statement: ast.stmt) -> bool:
    """Return whether a statement is an import from `__future__`, which each module made of it needs."""
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _last_binding(body: list[ast.stmt], places: list[int]) -> list[int]:
    """Return the place of the last statement that defines a name, and of those after it that change it by `+=`.

    places : of all statements in a body that give the name, ascending.
    """
    whole = [place for place in places if not isinstance(body[place], ast.AugAssign)]
    return [place for place in places if place >= whole[-1]] if whole else places


def is_importable(function: Function) -> bool:
    """Return whether other processes can import the module of a function."""
    return function.module != "__main__" and user_file(function.module) is not None


def code_files_of(function: Function) -> list[Path]:
    """Return the file of a function and the user's own that it imports; of a script or a notebook none but its own."""
    if is_importable(function):
        return user_files([function.module])
    return [function.file] if function.file is not None else []


def _text_around(function: Function) -> str:
    """Return the text of the file, or of the cells of the notebook, where a function stands; else its own text.

    InputError if it has no source.
    """
    module = sys.modules.get(function.module)
    path = getattr(module, "__file__", None)
    if path is not None and Path(path).is_file():
        return source_text(Path(path))
    cells = getattr(module, "In", None)  # of IPython: the cells as they ran
    if isinstance(cells, list):
        return "\n".join(cell for cell in map(str, cells) if _parses(cell))
    # elsewhere, as in some consoles, the function alone has a source: it can use no names around it
    try:
        return inspect.getsource(function.function)
    except (OSError, TypeError):
        expected = "a function of a file, a script or a notebook"
        raise InputError(f"no source of {function.name}", value=function.name, expected=expected) from None


def _parses(text: str) -> bool:
    """Return whether a cell of a notebook is Python; one with a magic is not."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _names_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top level defines."""
    symbols = _scope(statement).get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _names_used(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top level reads from there, in the functions that it defines too."""
    top = _scope(statement)
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inner = list(top.get_children())
    while inner:
        scope = inner.pop()
        names |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_referenced() and symbol.is_global()}
        inner += scope.get_children()
    return names


def _scope(statement: ast.stmt) -> symtable.SymbolTable:
    """Return Python's table of the names of a statement, as if it were a module."""
    return symtable.symtable(ast.unparse(statement), "<statement>", "exec")
