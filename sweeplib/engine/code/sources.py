"""Digests of source code: they decide whether a stored result is still the result of the current code.

There are four digests of code, and `package_digest` of all files, for shortcuts:

- `modules_digest`, for *numbers*: it covers the code that can change a number (`numerical_code`), in modules and in all
  their imports. It is part of the identity of a case, which is computed again when the digest changes.
- `library_digest` and `plugins_digest`, for *files of a stage*: they cover all code that the stage imports but
  docstrings, comments and layout, because labels and messages are visible in these files. They are in the manifests of
  artefacts, which are made again when they change.
- for *machine code*, in `networks/numerics/compiled.py`: it covers the bytes of the files of a kernel and of the
  functions that the kernel reaches, with the values of constants that the compiler inserts. It is part of the name of
  a compiled function. It follows functions, not imports. It covers complete files, as numba's own cache does, and is
  separate because the numerics do not import this subpackage.

The first three digest the text of one syntax tree (`prefix_notation`) and leave out different parts of it.
"""

import ast
import hashlib
import os
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sweeplib.engine.code.exports import INTERFACE, homes
from sweeplib.engine.code.module_content import Import, cached_content, imports_of, module_content, write_cache
from sweeplib.engine.code.numerical_code import BY_VALUE
from sweeplib.engine.code.syntax import effective_code, syntax_tree
from sweeplib.engine.code.user_code import PACKAGE, module_spec, package_of, user_file, with_parents
from sweeplib.engine.files.regular_files import file_bytes, file_text, open_bytes

PACKAGE_FILES = (".py", ".html", ".j2")
"""The endings of files of the package that can change a result or a page."""
_ROOT = Path(__file__).parents[2]
"""The folder of the package."""


def source_text(path: Path) -> str:
    """Return the text of a source file as Python reads it: without a byte order mark, in the encoding that it names."""
    with open_bytes(path) as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    return file_text(path, encoding)


@cache
def package_digest() -> str:
    """Return a hash of all PACKAGE_FILES of this package, complete and not parsed, as this process first saw them.

    It is for shortcuts that any change of the library ends: whether a sweep is up to date, and identities in a file.
    """
    digest, paths = hashlib.blake2b(digest_size=16), list[str]()
    for folder, folders, files in os.walk(_ROOT):  # pathlib takes three times as long, in every command
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths += [f"{folder}/{name}" for name in files if name.endswith(PACKAGE_FILES)]
    for path in sorted(paths):
        # each is read at once
        with open_bytes(path, buffering=0) as file:
            digest.update(path.removeprefix(str(_ROOT)).encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


@cache
def library_digest(*modules: str) -> str:
    """Return a hash of the code of some modules, of what they import from this package, and of templates beside these.

    The files count as this process first saw them, without comments, docstrings and layout.
    """
    names = sorted(name for name in all_imports(modules) if name.partition(".")[0] == PACKAGE)
    beside = {path for folder in {_file(name).parent for name in names} for path in folder.iterdir()}
    templates = sorted(path for path in beside if path.suffix in PACKAGE_FILES and path.suffix != ".py")
    digest = hashlib.blake2b(digest_size=12)
    for name in names:
        digest.update(f"{name}\0{_content_of(name).code}\0".encode())
    for path in templates:
        digest.update(f"{path.relative_to(_ROOT)}\0".encode() + file_bytes(path) + b"\0")
    write_cache()  # of what was parsed for this, for other processes
    return digest.hexdigest()


def prepare() -> None:
    """Read what digests take from the files of this package, so that the forks of this process need not.

    A process that forks the stages of a workflow calls it by its name (`process.forks`).
    """
    all_imports([f"{PACKAGE}.commands.stages"])
    write_cache()


def code(path: Path) -> str:
    """Return the text of a file that can change its behaviour: of Python without comments, docstrings and layout."""
    if path.suffix == ".py":
        return effective_code(source_text(path))
    return file_bytes(path).decode("latin-1")


def modules_digest(modules: Iterable[str]) -> str:
    """Return a hash of the code that can change a number, in some modules and all that they import (`all_imports`)."""
    digest = hashlib.blake2b(digest_size=12)
    for entry in sorted(f"{_label(name)}\0{_content_of(name).numbers}\0" for name in all_imports(modules)):
        digest.update(entry.encode())
    write_cache()  # of what was parsed for this, for other processes
    return digest.hexdigest()


def all_imports(modules: Iterable[str]) -> set[str]:
    """Return the modules and all their direct and indirect imports from this package and the user's own modules."""
    modules_found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in modules_found:
            modules_found.add(name)
            # importing a module of a user's package runs the package's `__init__`
            waiting.extend(filter(user_file, with_parents(name)[:-1]))
            waiting.extend(_content_of(name).imports)
    return modules_found


def user_files(modules: Iterable[str]) -> list[Path]:
    """Return the user's own files among some modules and all their direct and indirect imports, in a fixed order."""
    return sorted(path for name in all_imports(modules) if (path := user_file(name)) is not None)


def absolute_imports(path: Path) -> frozenset[str]:
    """Return the names that a Python file imports absolutely: modules, and attributes that may be modules."""
    return imported_names(ast.walk(syntax_tree(source_text(path))))


def imported_names(nodes: Iterable[ast.AST], package: str = "") -> frozenset[str]:
    """Return the names that import statements among nodes mean, of relative imports those in a package, if any."""
    statements = (statement for statement in imports_of(nodes) if package or not statement[0])
    return frozenset(name for statement in statements for name in _imported_names(statement, package))


# decisions: What says where machine code is kept does not change an identity
NO_NUMBERS = {"sweeplib.networks.numerics.cache": "82035503b0e7522a16601666"}
"""Modules that say only where machine code is, with the digests that identities of stored cases have of them."""


class _Content(NamedTuple):
    """What a module gives to digests.

    numbers, code : the digests of its numerical code, and of all its code. imports : the modules that it imports and
        that count: those of this package, and the user's own where a user's module imports them.
    """

    numbers: str
    imports: frozenset[str]
    code: str


@cache
def _content_of(name: str) -> _Content:
    """Return what a module gives to digests."""
    if name in NO_NUMBERS:
        return _Content(NO_NUMBERS[name], frozenset(), cached_content(source_text(_file(name))).code)
    if (path := _file(name)).suffix != ".py":
        digest = hashlib.blake2b(file_bytes(path), digest_size=12).hexdigest()
        return _Content(digest, frozenset(), digest)
    is_ours = name.partition(".")[0] == PACKAGE
    digest, imports, code = (cached_content if is_ours else module_content)(source_text(path))
    # this package imports absolutely
    names = {full for statement in imports for full in _imported_names(statement, "" if is_ours else package_of(name))}
    names = {module for full in names for module in _defining_modules(full)}
    modules = frozenset(module for module in names if _is_module(module) or (not is_ours and user_file(module)))
    return _Content(digest, modules, code)


def _imported_names(imported: Import, package: str) -> Iterator[str]:
    """Yield the full names that an import statement may mean: the module, and each name as a module in it.

    package : to which the levels of a relative import refer.
    """
    level, module, names = imported
    above = package.rsplit(".", level - 1)[0] if level else ""
    base = ".".join(filter(None, (above, module)))
    if base and (base != INTERFACE or "*" in names):
        yield base
    yield from (f"{base}.{name}" if base else name for name in names)


def _defining_modules(name: str) -> Iterable[str]:
    """Return the modules that an imported name stands for: itself, or where a name of plugins' interface is defined."""
    interface, _, attribute = name.rpartition(".")
    if name == INTERFACE:
        return set(homes().values()) - BY_VALUE
    return {homes()[attribute]} - BY_VALUE if interface == INTERFACE and attribute in homes() else {name}


@cache
def _is_module(name: str) -> bool:
    """Return whether a name is a module of this package, judged by its file because importing it would be slow."""
    if not name.startswith(PACKAGE + "."):
        return False
    path = _ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _label(name: str) -> str:
    """Return the name of a module in a digest: a user's module outside of packages is named by its file."""
    path = None if "." in name else user_file(name)
    return path.name if path is not None else name


def _file(name: str) -> Path:
    """Return the source file of a module; ModuleNotFoundError if it has none."""
    spec = module_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source of module {name!r}")
    return Path(spec.origin)
