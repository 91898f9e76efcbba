"""Digests of source code: what decides whether a stored result is still the result of the code at hand."""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = __name__.partition(".")[0]


def code(path: Path) -> str:
    """What of a source file can change what it does: no comments, docstrings or layout where it is Python."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_docstring(part)]
    return ast.dump(tree)


def modules_digest(modules: Iterable[str]) -> str:
    """A hash of the code of some modules and of all modules of this package that they import, however far."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(imported(modules)):
        digest.update(f"{name}\0{_module_digest(name)}\0".encode())
    return digest.hexdigest()


def imported(modules: Iterable[str]) -> set[str]:
    """The modules and, of this package, all that they import by a statement, however far."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_imports(name))
    return found


@cache
def _module_digest(name: str) -> str:
    return hashlib.blake2b(code(_file(name)).encode(), digest_size=12).hexdigest()


@cache
def _imports(name: str) -> frozenset[str]:
    tree = ast.parse(_file(name).read_text(encoding="utf-8"))
    return frozenset(module for node in ast.walk(tree) for module in _named(node) if module.startswith(PACKAGE + "."))


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (name for alias in node.names if _is_module(name := f"{node.module}.{alias.name}"))


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _file(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source of module {name!r}")
    return Path(spec.origin)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
