"""Plugins: modules of the user, imported by the driver and by every worker, that register what they define.

A plugin is the path of a `.py` file, the name of an installed plugin (an entry point), or the name of a module. The
folder of a file is appended to Python's path, so that the file can import the files beside it. What a config itself
declares is a plugin too, `MODULE:TEXT`: the module of this package has a function `declared` that reads the text.
"""

import builtins
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sweeplib.engine.base.late_modules import IMPORTING
from sweeplib.engine.base.registry import REGISTRIES
from sweeplib.engine.code.sources import absolute_imports, all_imports, code, user_files
from sweeplib.engine.code.user_code import (
    GROUP,
    PACKAGE,
    files_in,
    installed_plugins,
    is_there,
    module_spec,
    user_file,
    words_of,
)
from sweeplib.engine.files.owners import others_in
from sweeplib.engine.files.regular_files import file_text
from sweeplib.errors import InputError, SweeplibError

STAGES = ("simulate", "analyse", "figure", "report")
"""The stages of a sweep that call code of plugins, in order."""

MODULE = "the path of a `.py` file, a module that Python finds, or an installed plugin"
"""What a plugin may be, for messages."""

_APART = f"{PACKAGE}_plugin_"
"""With what the name of a file begins that no module can have by its stem."""

_FIRST_USED = {"analysis": 1, "figure": 2, "cluster": len(STAGES)}
"""The index of the first stage that uses a kind of registered object; for kinds that are not listed it is 0."""


@dataclass(frozen=True)
class _Plugin:
    """An imported plugin: the name of its module, and the code of the user's files, by path, when it was imported."""

    module: str
    files: dict[Path, str]


_plugins: dict[str, _Plugin] = {}
"""The plugins that this process has imported, as the config names them."""


def load_plugins(plugins: Iterable[str]) -> None:
    """Import each plugin that is not imported yet.

    InputError if the import fails, if a file that it imports from its folder is hidden by another module of the same
    name, or if its code has changed since it was imported (then its registered objects have the old code).
    """
    for plugin in plugins:
        import_plugins([plugin])
        files = _plugins[plugin].files.items()
        changed = [path.name for path, before in files if not path.exists() or code(path) != before]
        if changed:
            problem = f"{', '.join(changed)} changed since it was imported"
            raise InputError(problem, key="plugins", value=plugin, expected="a new Python: restart it, or the notebook")


def import_plugins(plugins: Iterable[str]) -> None:
    """Import each plugin that is not imported yet, without the check of `load_plugins` for changed files.

    Workers call this: they continue with the code with which the sweep began.
    """
    for plugin in plugins:
        # a lock: of two threads that import numba at a time one fails
        with IMPORTING:
            _import_once(plugin)


def _import_once(plugin: str) -> None:
    """Import a plugin that is not imported yet; InputError if that fails."""
    if plugin not in _plugins:
        name = _name_of(Path(plugin)) if _is_file(plugin) else _module_of(plugin)
        try:
            with _builtins_kept(name):
                _import(plugin, name)
            _plugins[plugin] = _Plugin(name, {path: code(path) for path in user_files([name])})
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes SystemExit of a plugin
            problem = f"cannot be imported: {reason_in_user_code(error)}"
            raise InputError(problem, key="plugins", value=plugin, expected=_likely_plugin(plugin, name)) from error


def module_of(plugin: str) -> str:
    """Return the name of the module of a loaded plugin."""
    return _plugins[plugin].module


def plugin_files(plugins: Iterable[str]) -> list[Path]:
    """Return the user's own files of loaded plugins, with the files that they import."""
    return [path for plugin in plugins for path in _plugins[plugin].files]


def plugins_digest(plugins: Iterable[str], stage: str) -> str:
    """Return a hash of the user's code that one of the `STAGES` can call: the plugins and the modules they import.

    A plugin is left out if a later stage is the first to use the objects that it registers. Comments, layout and the
    folders of files do not change the hash.
    """
    modules = [_plugins[plugin].module for plugin in plugins if _first_used(plugin) <= STAGES.index(stage)]
    parts = sorted(f"{path.name}\0{code(path)}\0" for path in user_files(modules))
    return hashlib.blake2b("".join(parts).encode(), digest_size=12).hexdigest()


def registered_names(plugin: str) -> list[tuple[str, str]]:
    """Return the kind and the name of each object that a loaded plugin, or a user's file that it imports, registers."""
    modules = {name for name in all_imports([_plugins[plugin].module]) if user_file(name)}
    return [(registry.kind, name) for registry in REGISTRIES for name in registry if registry.origin(name) in modules]


def _first_used(plugin: str) -> int:
    """Return the index of the first stage that uses an object registered by a plugin or its files; 0 if none."""
    return min((_FIRST_USED.get(kind, 0) for kind, _ in registered_names(plugin)), default=0)


def _is_file(plugin: str) -> bool:
    """Return whether a plugin is the path of a file."""
    return plugin.endswith(".py")


def _name_of(path: Path) -> str:
    """Return the name under which a file is imported: its stem, or a name of its own if another module has that.

    A file of a package has its name there. The folders of the file and of its package are appended to Python's path.
    InputError if there is no such file, or if a module that it imports from its folder is hidden by another one.
    """
    if not path.is_file():
        beside = [other.name for other in path.parent.glob("*.py") if other.is_file()]
        problem = "something else than a file is there" if path.exists() else "no such file"
        raise InputError(f"{problem}: {path}", key="plugins", value=path.name, choices=beside)
    root, name = path.parent, path.stem
    while root != root.parent and (root / "__init__.py").is_file():
        root, name = root.parent, f"{root.name}.{name}"
    # decisions: A plugin is imported as from its own folder, which is appended to Python's path
    sys.path += [folder for folder in dict.fromkeys((str(path.parent), str(root))) if folder not in sys.path]
    # the file may be newer than what Python remembers of its folder
    importlib.invalidate_caches()
    with suppress(SyntaxError, UnicodeDecodeError):  # the import raises these errors with their location
        _refuse_hidden(path)
    for full in (name, path.stem):
        if all(map(str.isidentifier, full.split("."))) and _file_of(full) == path:
            return full
    return f"{_APART}{hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()}"


def _module_of(plugin: str) -> str:
    """Return the module of an installed plugin; the name itself if no entry point has it.

    InputError if several distributions have the name, or if the entry point names no module.
    """
    points = installed_plugins().get(plugin, ())
    if len(points) > 1:
        dists = ", ".join(f"{point.dist.name if point.dist else 'an unnamed one'} ({point.value})" for point in points)
        expected = "a module, by its name, or only one of these distributions"
        raise InputError(f"several installed plugins: {dists}", key="plugins", value=plugin, expected=expected)
    for point in points:
        if point.attr:
            problem = f"the entry point {point.value!r} is no module"
            raise InputError(problem, key="plugins", value=plugin, expected=f"a module in the group `{GROUP}`")
    return points[0].module if points else plugin.partition(":")[0]


def _likely_plugin(plugin: str, module: str) -> str | None:
    """Return what could stand in place of a plugin that cannot be imported; None if the reason says it all."""
    if _is_file(plugin) or plugin in installed_plugins() or _is_found(module):
        return None
    installed = ", ".join(installed_plugins())
    return f"{MODULE}: {installed}" if installed else MODULE


def _is_found(module: str) -> bool:
    """Return whether Python finds a module of this name."""
    with suppress(ImportError, ValueError):  # of a name that is no module's
        return module_spec(module) is not None
    return False


def _file_of(name: str) -> Path | None:
    """Return the file of the module that Python finds under a name; None if it finds none."""
    spec = module_spec(name)
    return Path(spec.origin).resolve() if spec is not None and spec.has_location and spec.origin else None


def _import(plugin: str, name: str) -> None:
    """Import a plugin under a name: a file, or a module that Python finds, which reads what a config declares to it."""
    if not name.startswith(_APART):
        module, declaration = importlib.import_module(name), plugin.removeprefix(f"{name}:")
        if declaration != plugin:
            module.declared(declaration)
        return
    # a file whose stem is the name of another module
    spec = importlib.util.spec_from_file_location(name, plugin)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {plugin}")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
    except BaseException:
        del sys.modules[name]
        raise


@contextmanager
def _builtins_kept(module: str) -> Iterator[None]:
    """A context in which a module is imported. SweeplibError if it replaces a builtin of Python, which is put back."""
    before, now = dict(vars(builtins)), vars(builtins)
    try:
        yield
    finally:
        # `_` is where a shell of Python keeps its last value
        changed = [name for name, thing in before.items() if now.get(name) is not thing and name != "_"]
        now.update(before)
        if changed:
            problem = f"it replaces Python's {changed[0]!r}, which all code needs{_line_about(changed[0], module)}"
            raise SweeplibError(problem)


def _line_about(builtin: str, module: str) -> str:
    """Return where a module of the user, or one that it imports, changes a builtin; "" if that is not known."""
    for path in user_files([module]):
        for number, line in enumerate(file_text(path).splitlines(), 1):
            if "builtins" in line and re.search(rf"\b{builtin}\b", line):
                return f" ({path.name}, line {number})"
    return ""


def _refuse_hidden(path: Path) -> None:
    """Raise InputError if a file imports a module of its folder but Python finds another module of that name."""
    for file, name, beside in _imports_beside(path):
        if (hidden_by := _file_of(name)) != beside:
            problem = f"{file.name} imports {name!r}, which is {hidden_by or 'a part of Python'}, not {beside}"
            raise InputError(problem, key="plugins", value=path.name, expected="another name of that file")


def _imports_beside(path: Path) -> Iterator[tuple[Path, str, Path]]:
    """Yield the modules that a file imports from its folder, and those that these import from there, each once.

    A module is the file that imports it, its name, and its own file.
    """
    waiting, files = [path], {path}
    while waiting:
        file = waiting.pop()
        for name in sorted({full.partition(".")[0] for full in absolute_imports(file)} - {PACKAGE}):
            beside = _module_file_beside(path, name)
            if beside is not None and beside not in files:
                yield file, name, beside
                files.add(beside)
                waiting.append(beside)


def others_in_plugin(plugin: str) -> str | None:
    """Return why others than this user and root may have written what a plugin executes; None if nobody else can.

    That is its file, the files that it imports from its folder, and the folders in which Python looks for these; of a
    command the files that it names. Plugins that are installed in this Python are those of who installed them.
    """
    names = [plugin]
    if not is_there(plugin) and plugin not in installed_plugins():
        names = files_in(words_of(plugin))
        with suppress(ImportError, ValueError):  # of a name that is no module's
            names = [str(user_file(plugin) or ""), *names]
    files = {Path(name) for name in names if is_there(name)}
    # what the file of a function loads lies beside it
    files |= {beside for path in files if path.parent.name == "functions" for beside in path.parent.glob("*.pickle")}
    for path in sorted(path for path in files if _is_file(path.name)):
        with suppress(SyntaxError, UnicodeDecodeError):  # the import raises these errors with their location
            for _, _, beside in _imports_beside(path):
                files |= set(beside.parent.rglob("*.py")) if beside.name == "__init__.py" else {beside}
    folders = {path.parent for path in files}
    bytecode = {folder / "__pycache__" for folder in folders}
    for path in sorted((*files, *folders, *filter(Path.exists, bytecode))):
        if (why := others_in(path)) is not None:
            return f"{path}: {why}"
    return None


def _module_file_beside(path: Path, name: str) -> Path | None:
    """Return the file of the module `name` in the folder of `path`, None if there is none."""
    files = path.with_name(f"{name}.py"), path.parent / name / "__init__.py"
    return next((file.resolve() for file in files if file.is_file()), None)


def reason_in_user_code(error: BaseException) -> str:
    """Return an exception as text, with the last place in the user's code that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    ours = Path(__file__).parents[2], Path(importlib.__file__).parent
    where = [frame for frame in frames if not any(map(Path(frame.filename).is_relative_to, ours))][-1:]
    lines = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in where)
    return f"{type(error).__name__}: {error}" + (lines if not isinstance(error, SyntaxError) else "")
