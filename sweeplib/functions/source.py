"""The source of a function, with what it reaches in the file, script or notebook where it stands.

Other processes cannot import a function that a script or a notebook defines: what it needs is written into a file
beside the results. It is made of the statements at the top level that give the names that the function uses, and those
that these use: imports, functions, classes, values, with the statements that change these values in place. Other
statements, such as plots, are left out, and those that did not run before the sweep.

A file that is imported runs whole: each of its statements that does more than to define names counts as its code.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import inspect
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from sweeplib.engine.code.numerical_code import numerical_code
from sweeplib.engine.code.sources import imported_names, modules_digest, source_text, user_files
from sweeplib.engine.code.user_code import PACKAGE, package_of, user_file
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.errors import InputError
from sweeplib.functions.function import MAIN, Function, Source
from sweeplib.functions.statements import (
    Statement,
    called_in,
    changed_in,
    last_name,
    needed_by,
    read_later,
    statements_of,
)
from sweeplib.functions.stored import LOADER, Stored, stored
from sweeplib.functions.values import are_same

OF_MODULES = ("__file__", "__name__", "__doc__")
"""Names that every module has."""
SWEEPS = ("Sweep", "answer", "from_yaml", "run", "sweep")
"""Functions of this package that run sweeps."""


def source_of(function: Function) -> Source:
    """Return a module with the function and all that it reaches, of what a script or notebook has run so far.

    Values that the function reads are as they are now. InputError for a name that nothing defines, and for a statement
    that runs a sweep, if it is needed for what no file can have.
    """
    statements, running = _statements(function)
    statements, values = _with_values(function, _without_mere_calls(statements), running)
    ours = _names_of_ours(statements)
    needed = _needed(function, statements, _for_effect(statements, function.module))
    swept = [
        entry
        for entry in needed
        if entry.node is running or any(root in ours and name in SWEEPS for root, name in called_in(entry.node))
    ]
    if swept:
        # of a loop around a sweep that one says more than the sweeps that it needs
        names = ", ".join(sorted(swept[-1].bound | swept[-1].changed))
        problem = f"{function.name} depends on a statement that runs a sweep"
        expected = f"a parameter of {function.name}, or a value that is written out"
        raise InputError(problem, value=names, expected=expected)
    elsewhere = _Elsewhere(sys.modules[function.module])
    nodes = sorted((elsewhere.visit(entry.node) for entry in needed), key=lambda node: not _is_future(node))
    bound = {name for entry in needed for name in entry.bound}
    files = dict(value.file for name, value in values.items() if value.file is not None and name in bound)
    return Source("\n\n\n".join(map(ast.unparse, nodes)) + "\n", files, frozenset(values))


class _Elsewhere(ast.NodeTransformer):
    """Writes out in statements what depends on the place of their file: its name, and that of its package."""

    def __init__(self, module: ModuleType) -> None:
        self._file, self._package = getattr(module, "__file__", None), getattr(module, "__package__", None)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the path of the file in place of `__file__`."""
        return ast.Constant(self._file) if node.id == "__file__" and self._file else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        """Return a relative import as an absolute one."""
        if not node.level or not self._package:
            return node
        module = importlib.util.resolve_name("." * node.level + (node.module or ""), self._package)
        return ast.ImportFrom(module, node.names, 0)


def _with_values(
    function: Function, statements: list[Statement], running: ast.stmt | None
) -> tuple[list[Statement], dict[str, Stored]]:
    """Return statements that give the values as they are now, and these values by name.

    Those that the function reads when it is called are given at the end. Others that are computed once are given where
    that is: definitions may read them. Functions, imports and what no file can have stay as they are written.

    running : the statement that runs the sweep, which stays.
    """
    names = inspect.unwrap(function.function).__globals__
    touched = Counter(name for entry in statements for name in entry.bound | entry.changed)
    makers = {name: entry for entry in statements for name in entry.bound}
    values: dict[str, Stored] = {}

    def store(wanted: set[str]) -> None:
        """Add what can be stored of some names to `values`, but for those that say themselves what they are."""
        for name in sorted((wanted - values.keys()) & names.keys() & makers.keys()):
            if not _says_itself(makers[name], name, names[name]):
                value = stored(names[name], function.module)
                values.update({} if value is None else {name: value})

    def given(wanted: Iterable[str]) -> list[Statement]:
        """Return the statements that give some values."""
        made = {
            name: statements_of(ast.parse(f"{name} = {values[name].expression}").body)[0] for name in sorted(wanted)
        }
        return [replace(entry, read=entry.read | values[name].classes) for name, entry in made.items()]

    store(_fixed_names(function, _needed(function, statements, set())))
    statements = [*statements_of(ast.parse(LOADER).body), *statements, *given(values)]
    for entry in _needed(function, statements, set()):
        is_made_once = isinstance(entry.node, ast.Assign | ast.AnnAssign) and entry.node is not running
        if is_made_once and all(touched[name] == 1 for name in entry.bound):
            store(set(entry.bound))
            # an instance of a class of the file would need that class before
            if entry.bound and all(name in values and not values[name].classes for name in entry.bound):
                place = statements.index(entry)
                statements[place : place + 1] = given(entry.bound)
    return statements, values


def _says_itself(maker: Statement, name: str, value: Any) -> bool:
    """Return whether the statement that gives a name says its value: an import, a definition, or the value written."""
    if maker.is_import or isinstance(value, type):
        return True
    literals = _literals([maker])
    return name in literals and are_same(literals[name], value, ())


def _fixed_names(function: Function, needed: list[Statement]) -> set[str]:
    """Return the names that a function reads when it is called, but those that functions change then, such as a cache.

    needed : the statements that the function needs.
    """
    reached = {function.name} | read_later({function.name}, needed)
    # the last definition of each
    definitions = {name: entry for entry in needed for name in entry.certain & reached}
    return reached - {name for entry in definitions.values() for name in _changed_in_functions(entry)}


def code_of(function: Function) -> str:
    """Return a digest of the code that makes the numbers of a function: its own, and the user's modules it imports."""
    text, modules = _numerical_code(function)
    return hashlib.blake2b(f"{text}\0{modules_digest(modules)}".encode(), digest_size=12).hexdigest()


def refuse_other_values(function: Function, imported: Function, given: Collection[str]) -> None:
    """Raise InputError if a function of a script or notebook reads a value that its file has otherwise.

    A call may have changed it in place, which `source_of` cannot see. What cannot be compared counts as equal, and so
    does what functions that it reaches change themselves, such as a cache.

    imported : the function of the file that was written. given : the names whose values stand in it.
    """
    needed = _needed(imported, _statements(imported)[0], set())
    # the wrappers of other decorators may have the names of another file
    values, others = (inspect.unwrap(entry.function).__globals__ for entry in (function, imported))
    modules = function.module, imported.module
    for name in sorted(_fixed_names(imported, needed).difference(OF_MODULES, given)):
        if name in values and not are_same(values[name], others.get(name), modules):
            problem = f"{name} has another value here than the statements give it that {function.name} needs"
            expected = (
                f"a parameter of {function.name}, or a value that it makes itself: some call has changed this one"
            )
            raise InputError(problem, value=values[name], expected=expected)


def refuse_other_module(function: Function) -> None:
    """Raise InputError if other processes that import the module of a function have another one.

    That is so if its file was edited since the import, or if a value that is written at its top level has been changed.
    """
    assert function.file is not None
    if file_bytes(function.file) != function.content:
        problem, expected = "changed since it was imported", "a new Python: restart it, or the notebook"
        raise InputError(problem, file=function.file, expected=expected)
    statements, _ = _statements(function)
    values = inspect.unwrap(function.function).__globals__
    for name, value in _literals(statements).items():
        is_read = name in read_later({function.name}, statements)
        if is_read and name in values and not are_same(values[name], value, ()):
            problem = f"{name} has another value here than the file of {function.name} gives it"
            expected = f"a parameter of {function.name}, or an edit of the file"
            raise InputError(problem, value=values[name], file=function.file, expected=expected)


def _literals(statements: list[Statement]) -> dict[str, Any]:
    """Return the values of the names that one statement alone gives, as it is written, and nothing changes."""
    literals: dict[str, Any] = {}
    for entry in statements:
        if isinstance(entry.node, ast.Assign):
            with suppress(ValueError):
                literals |= dict.fromkeys(entry.certain, ast.literal_eval(entry.node.value))
    bound = Counter(name for entry in statements for name in entry.bound)
    changed = {name for entry in statements for name in entry.changed | _changed_in_functions(entry)}
    return {name: value for name, value in literals.items() if bound[name] == 1 and name not in changed}


def _changed_in_functions(entry: Statement) -> set[str]:
    """Return the names of the file whose values a function or class changes when it is called."""
    is_definition = isinstance(entry.node, ast.FunctionDef | ast.ClassDef)
    return changed_in(entry.node, inside=True) | (entry.bound - entry.certain) if is_definition else set()


def _numerical_code(function: Function) -> tuple[str, set[str]]:
    """Return the code of a function that can change a number, and the user's modules that it imports."""
    statements, _ = _statements(function)
    always = _for_effect(statements, function.module)
    always |= {entry.node for entry in statements if not entry.only_defines}
    nodes = [entry.node for entry in _needed(function, statements, always)]
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == function.name:
            # units and labels change no number
            node.decorator_list = [entry for entry in node.decorator_list if last_name(entry) != "simulator"]
    text, imports = numerical_code("\n".join(map(ast.unparse, nodes)), of_library=False)
    return text, set(filter(user_file, imported_names(imports, package_of(function.module))))


def _statements(function: Function) -> tuple[list[Statement], ast.stmt | None]:
    """Return the statements of a function's file or notebook that have begun, and the one of a script that runs now.

    That one is None for a module that is imported, of which all have run.
    """
    text, line = _text_around(function)
    body = list(_flat(ast.parse(text).body, function.module == MAIN))
    if line is None:
        return statements_of(body), None
    begun = [node for node in body if node.lineno <= line]
    return statements_of(begun), begun[-1]


def _needed(function: Function, statements: list[Statement], always: set[ast.stmt]) -> list[Statement]:
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


def _flat(body: list[ast.stmt], is_main: bool) -> Iterator[ast.stmt]:
    """Yield the statements of a module, with the block that runs in place of an `if __name__ == "__main__"`."""
    for statement in body:
        match statement:
            case ast.If(
                test=ast.Compare(
                    left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
                )
            ):
                yield from _flat(statement.body if is_main else statement.orelse, is_main)
            case _:
                yield statement


def _is_future(node: ast.stmt) -> bool:
    """Return whether a statement is an import from `__future__`, which stands first in each module made of it."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _for_effect(statements: list[Statement], module: str) -> set[ast.stmt]:
    """Return the imports that do not tell what they define, and those of the user's modules whose names nobody reads.

    module : the one that has the statements.
    """
    read = {name for entry in statements for name in entry.read | entry.read_later}
    return {
        entry.node
        for entry in statements
        if entry.is_star
        or _is_future(entry.node)
        or (
            entry.is_import
            and not entry.bound & read
            and any(map(user_file, imported_names([entry.node], package_of(module))))
        )
    }


def _names_of_ours(statements: list[Statement]) -> set[str]:
    """Return the names that statements import from this package."""
    ours = (entry for entry in statements if any(_is_ours(name) for name in imported_names([entry.node])))
    return {name for entry in ours for name in entry.bound}


def _is_ours(module: str) -> bool:
    """Return whether a module is one of this package."""
    return module.partition(".")[0] == PACKAGE


def _without_mere_calls(statements: list[Statement]) -> list[Statement]:
    """Return statements that change no module by a call of its functions, unless it sets something for all.

    `torch.set_default_dtype(torch.float64)` does, `numpy.save("W.npy", W)` with a computed W does not.
    """
    modules = {name for entry in statements if entry.is_import for name in entry.bound}
    plain = {*modules, *dir(builtins)} | {
        name
        for entry in statements
        if entry.only_defines and isinstance(entry.node, ast.Assign)
        for name in entry.bound
    }
    ours = _names_of_ours(statements)
    return [
        replace(entry, changed=entry.changed - (ours if entry.read <= plain else modules))
        if isinstance(entry.node, ast.Expr)
        else entry
        for entry in statements
    ]


def is_importable(function: Function) -> bool:
    """Return whether other processes can import the module of a function."""
    return function.module != MAIN and user_file(function.module) is not None


def code_files_of(function: Function) -> list[Path]:
    """Return the file of a function and the user's own that it imports; an error about an edit names the newest."""
    if is_importable(function):
        return user_files([function.module])
    files = [function.file] if function.file is not None else []
    return files + user_files(_numerical_code(function)[1])


def _text_around(function: Function) -> tuple[str, int | None]:
    """Return the text of the file, or of the cells of the notebook, where a function stands; else its own text.

    Of a script or a notebook the line that runs now comes with it, else None. InputError if there is no source.
    """
    module = sys.modules.get(function.module)
    path = getattr(module, "__file__", None)
    if path is not None and Path(path).is_file():
        return source_text(Path(path)), _line_of(module, Path(path))
    cells = getattr(module, "In", None)  # of IPython: the cells as they ran, the one that runs last
    if isinstance(cells, list):
        *before, last = [cell for cell in map(str, cells) if _parses(cell)] or [""]
        line = _line_of(module, None)
        return "\n".join([*before, last]), line and line + sum(cell.count("\n") + 1 for cell in before)
    # elsewhere, as in some consoles, the function alone has a source: it can use no names around it
    try:
        return inspect.getsource(function.function), None
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


def _line_of(module: Any, path: Path | None) -> int | None:
    """Return the line of a script or a notebook that runs now, None in another module or another thread.

    path : the file of the script, None for a notebook.
    """
    frame = inspect.currentframe() if module.__name__ == MAIN else None
    while frame is not None:
        is_here = frame.f_globals is vars(module) and frame.f_locals is frame.f_globals
        if is_here and (path is None or Path(frame.f_code.co_filename).resolve() == path.resolve()):
            return frame.f_lineno
        frame = frame.f_back
    return None
