"""Digests of source code: what decides whether a stored result is still the result of the code at hand."""

import ast
import gc
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sweeplib.numerical_code import numerical_code

PACKAGE = __name__.partition(".")[0]
_ROOT = Path(__file__).parent
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code(path: Path) -> str:
    """What of a source file can change what it does: no comments, docstrings or layout where it is Python."""
    text = path.read_text(encoding="utf-8")
    return _effective(text) if path.suffix == ".py" else text


def _effective(text: str) -> str:
    """The syntax tree of a source without docstrings, written in prefix notation."""
    parts: list[str] = []
    collecting = gc.isenabled()
    gc.disable()  # a tree is all live objects: collecting among them takes as long as parsing
    try:
        _flatten(ast.parse(text), parts)
    finally:
        if collecting:
            gc.enable()
    return " ".join(parts)


def _flatten(node: Any, parts: list[str]) -> None:
    if isinstance(node, ast.AST):
        parts.append(type(node).__name__)
        if isinstance(node, _WITH_DOCSTRING):
            node.body = [part for part in node.body if not _is_docstring(part)]
        for name in node._fields:
            _flatten(getattr(node, name, None), parts)
    elif isinstance(node, list):
        parts.append(f"[{len(node)}")
        for part in node:
            _flatten(part, parts)
    else:
        parts.append(repr(node))


def modules_digest(modules: Iterable[str]) -> str:
    """A hash of what can change a number in some modules and in all of this package that they import, however far."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(imported(modules)):
        digest.update(f"{name}\0{_parsed(name)[0]}\0".encode())
    return digest.hexdigest()


def imported(modules: Iterable[str]) -> set[str]:
    """The modules and, of this package, all that they import by a statement and that counts, however far."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_parsed(name)[1])
    return found


@cache
def _parsed(name: str) -> tuple[str, frozenset[str]]:
    """The digest of a module's numerical code, and the modules of this package that it imports: all from one parse."""
    text, imports = numerical_code(_file(name).read_text(encoding="utf-8"))
    names = {module for node in imports for module in _named(node) if module.startswith(PACKAGE + ".")}
    digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return digest, frozenset(filter(_is_module, names))


def _named(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _is_module(name: str) -> bool:
    """Whether a name below the package is that of a module, by its file: importing it would take far longer."""
    path = _ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _file(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source of module {name!r}")
    return Path(spec.origin)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
