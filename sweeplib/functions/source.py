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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from sweeplib.engine.code.numerical_code import numerical_code
from sweeplib.engine.code.sources import imported_names, modules_digest, source_text, user_files
from sweeplib.engine.code.user_code import PACKAGE, edited_since_import, package_of, user_file
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.errors import InputError
from sweeplib.functions.function import MAIN, Function, Source
from sweeplib.functions.reach import (
    OF_MODULES,
    changed_in_functions,
    fixed_names,
    needed_statements,
    reached_names,
    values_of,
)
from sweeplib.functions.statements import (
    Statement,
    called_in,
    imports_in,
    last_name,
    statements_of,
)
from sweeplib.functions.stored import is_plain
from sweeplib.functions.values import are_same
from sweeplib.functions.values_now import with_values

SWEEPS = ("Sweep", "answer", "from_yaml", "run", "sweep")
"""Functions of this package that run sweeps."""


def source_of(function: Function) -> Source:
    """Return a module with the function and all that it reaches, of what a script or notebook has run so far.

    Values that the function reads are as they are now. InputError for a name that nothing defines, and for a statement
    that runs a sweep, if it is needed for what no file can have.
    """
    statements, running = _statements(function)
    statements, values = with_values(function, _without_mere_calls(function, statements, running), running)
    needed = needed_statements(function, statements, _for_effect(statements, function.module))
    sweeps = _sweeps(statements)
    swept = [entry for entry in needed if entry.node is running or entry in sweeps]
    if swept:
        # of a loop around a sweep that one says more than the sweeps that it needs
        names = ", ".join(sorted(swept[-1].bound | swept[-1].changed))
        problem = f"{function.name} depends on a statement that runs a sweep"
        expected = f"a parameter of {function.name}, or a value that is written out"
        raise InputError(problem, value=names, expected=expected)
    fixed = fixed_names(function, statements, needed)
    elsewhere = _Elsewhere(sys.modules[function.module])
    nodes = sorted((elsewhere.visit(entry.node) for entry in needed), key=lambda node: not _is_future(node))
    bound = {name for entry in needed for name in entry.bound}
    files = dict(value.file for name, value in values.items() if value.file is not None and name in bound)
    return Source("\n\n\n".join(map(ast.unparse, nodes)) + "\n", files, frozenset(fixed & bound - values.keys()))


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


def code_of(function: Function) -> str:
    """Return a digest of the code that makes the numbers of a function: its own, and the user's modules it imports."""
    text, modules = _numerical_code(function)
    return hashlib.blake2b(f"{text}\0{modules_digest(modules)}".encode(), digest_size=12).hexdigest()


def refuse_other_values(function: Function, imported: Function, names: Collection[str]) -> None:
    """Raise InputError if a function of a script or notebook reads a value that its file has otherwise.

    A call may have changed it in place, which `source_of` cannot see. What cannot be compared counts as equal.

    imported : the function of the file that was written. names : those that are compared.
    """
    values, others = values_of(function), values_of(imported)
    modules = function.module, imported.module
    for name in sorted({*names}.difference(OF_MODULES)):
        if name in values and not are_same(values[name], others.get(name), modules):
            problem = f"{name} has another value here than the statements give it that {function.name} needs"
            expected = (
                f"a parameter of {function.name}, or a value that it makes itself: some call has changed this one"
            )
            raise InputError(problem, value=values[name], expected=expected)


def refuse_edits(function: Function) -> None:
    """Raise InputError if the file of a function, or one of the user's that it imports, was edited since the import."""
    here = [] if function.file is None or not function.file.is_file() else [function.file]
    edited = [path for path in here if file_bytes(path) != function.content]
    for path in [*edited, *edited_since_import(code_files_of(function))]:
        problem, expected = "changed since it was imported", "a new Python: restart it, or the notebook"
        raise InputError(problem, file=path, expected=expected)


def refuse_other_module(function: Function) -> None:
    """Raise InputError if other processes that import the module of a function have other values in it.

    That is so if a definition or a value that is written at its top level has been replaced or changed.
    """
    statements, _ = _statements(function)
    values, reached = values_of(function), reached_names(function, statements)
    for name, value in _definitions(statements, values).items():
        here = _undecorated(values.get(name))
        if name in reached and name in values and not are_same(here, value, [function.module]):
            problem = f"{name} has another value here than the file of {function.name} gives it"
            expected = f"a parameter of {function.name}, or an edit of the file"
            raise InputError(problem, value=values[name], file=function.file, expected=expected)


def _definitions(statements: list[Statement], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the names that only definitions give, and nothing changes; functions without decorators."""
    plain = [entry for entry in statements if entry.only_defines and not entry.is_import]
    others = {name for entry in statements if entry not in plain for name in entry.bound}
    changed = {name for entry in statements for name in entry.changed | changed_in_functions(entry)}
    values = dict(names)
    for entry in plain:
        node = ast.parse(ast.unparse(entry.node)).body[0]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
        exec(compile(ast.Module([node], []), "<definition>", "exec"), values)
    return {name: values[name] for entry in plain for name in entry.bound - others - changed if name in values}


def _undecorated(value: Any) -> Any:
    """Return the function of a file that decorators have made a value of, the value itself without any."""
    return value if isinstance(value, type) else inspect.unwrap(value)


def _numerical_code(function: Function) -> tuple[str, set[str]]:
    """Return the code of a function that can change a number, and the user's modules that it imports."""
    statements, _ = _statements(function)
    always = _for_effect(statements, function.module)
    always |= {entry.node for entry in statements if not entry.only_defines}
    nodes = [entry.node for entry in needed_statements(function, statements, always)]
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


def _flat(body: list[ast.stmt], is_main: bool) -> Iterator[ast.stmt]:
    """Yield the statements of a module, with the block that runs in place of an `if __name__ == "__main__"`.

    Of a notebook, a line that is timed counts as the statement in it.
    """
    for statement in body:
        match statement:
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="run_line_magic"), args=[ast.Constant("time"), ast.Constant(str() as line)]
                )
            ) if _parses(line):
                yield from (ast.increment_lineno(node, statement.lineno - 1) for node in ast.parse(line).body)
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
    return {name for entry in statements for package, name in imports_in(entry.node) if package == PACKAGE}


def _without_mere_calls(function: Function, statements: list[Statement], running: ast.stmt | None) -> list[Statement]:
    """Return statements that change no module by a call of its functions, unless it sets something for all.

    `torch.set_default_dtype(torch.float64)` does, and so does `helper.setup(args.k)` with a number, but not
    `numpy.save("W.npy", W)` with an array, nor what is called with the results of a sweep.
    """
    modules = {name for entry in statements if entry.is_import for name in entry.bound}
    ours, sweeps, from_sweeps = _names_of_ours(statements), _sweeps(statements), set[str]()
    plain = {*modules, *dir(builtins)} | {
        name
        for entry in statements
        if entry.only_defines and isinstance(entry.node, ast.Assign)
        for name in entry.bound
    }
    plain |= {name for name, value in values_of(function).items() if _is_setting(value)}
    for entry in statements:
        if entry.node is running or entry in sweeps or entry.read & from_sweeps:
            from_sweeps |= entry.bound
    return [
        replace(entry, changed=entry.changed - (ours if entry.read <= plain - from_sweeps else modules))
        if isinstance(entry.node, ast.Expr)
        else entry
        for entry in statements
    ]


def _is_setting(value: Any) -> bool:
    """Return whether a value is a number or a text, or has such by names, as the arguments of a script do."""
    by_name = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return isinstance(value, bool | int | float | str | None) or (bool(by_name) and is_plain(by_name))


def _sweeps(statements: list[Statement]) -> list[Statement]:
    """Return the statements that run sweeps."""
    ours = _names_of_ours(statements)
    return [
        entry for entry in statements if any(root in ours and name in SWEEPS for root, name in called_in(entry.node))
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
        bodies = (_body_of_cell(str(cell)) for cell in cells)
        *before, last = [cell for cell in bodies if _parses(cell)] or [""]
        line = _line_of(module, None, is_timed=last != str(cells[-1]))
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


def _body_of_cell(text: str) -> str:
    """Return the statements of a cell as IPython ran it: of one that is timed, profiled or silent what is below."""
    match ast.parse(text).body if _parses(text) else []:
        case [
            ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="run_cell_magic"),
                    args=[ast.Constant("capture" | "prun" | "time"), _, ast.Constant(str() as body)],
                )
            )
        ]:
            return body
    return text


def _line_of(module: Any, path: Path | None, *, is_timed: bool = False) -> int | None:
    """Return the line of a script or a notebook that runs now, None in another module or another thread.

    path : the file of the script, None for a notebook. is_timed : whether the whole cell is timed, not a line of it.
    """
    frame = inspect.currentframe() if module.__name__ == MAIN else None
    while frame is not None:
        is_here, file = frame.f_globals is vars(module) and frame.f_locals is frame.f_globals, frame.f_code.co_filename
        is_line = path is None and file.startswith("<timed") and not is_timed
        if is_here and not is_line and (path is None or Path(file).resolve() == path.resolve()):
            return frame.f_lineno
        frame = frame.f_back
    return None
