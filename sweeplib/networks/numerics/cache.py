"""Machine code that is cached on disk, once on a machine; where that is not possible it is kept in memory.

Machine code is executed as it is read. It is read from folders that belong to this user and into which no other user
can write: beside the functions, or in the user's cache, or where the environment variable NUMBA_CACHE_DIR says.
"""

import inspect
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from sweeplib.engine.files.owners import is_private, private_folder

_messages: list[str] = []
"""The line that says why code is kept in memory, once it is written."""


def cached(decorator: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """The function, compiled by a numba `decorator` that takes the option `cache`: in files where that is safe."""
    folder = _folder_of_code(Path(inspect.getfile(function)).parent)
    if folder is None:
        return _said_when_compiled(decorator(cache=False)(function))
    try:
        with _caching_in(folder):
            compiled = decorator(cache=True)(function)
    except (RuntimeError, OSError) as error:
        # numba has no exception of its own for a folder that it cannot use, only this text
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        return _said_when_compiled(decorator(cache=False)(function))
    return _safely_cached(compiled) if isinstance(compiled, Dispatcher) else compiled


def _folder_of_code(beside: Path) -> str | None:
    """Return the folder in which numba is to cache the code of functions whose source files are in the folder `beside`.

    It is "" for the folder beside them, and None if there is no folder into which only this user can write.
    """
    if numba.config.CACHE_DIR:
        return _path(private_folder(Path(numba.config.CACHE_DIR)))
    bytecode = beside / "__pycache__"
    if is_private(bytecode if bytecode.exists() else beside) and os.access(bytecode.parent, os.W_OK):
        return ""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home, and a user that this system does not know
        return None
    folder = private_folder(cache)
    return _path(folder and private_folder(folder / "sweeplib"))


def _path(folder: Path | None) -> str | None:
    """The path of a folder as text; None for none."""
    return None if folder is None else str(folder)


@contextmanager
def _caching_in(folder: str) -> Iterator[None]:
    """Return a context in which numba caches in a folder; if that is "", where it does by itself."""
    with global_compiler_lock:
        # a setting of the whole process, which numba reads as it decorates: another thread would see this folder
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


def _said_when_compiled(compiled: Any) -> Any:
    """The compiled function; a line says, once it is compiled, that its machine code is kept in memory.

    It is not said before: many functions are never compiled in a process.
    """
    reason = "there is no folder for it into which you can write and no other user can"
    if not isinstance(compiled, Dispatcher) or compiled.signatures:
        _say_once(reason)
        return compiled
    compile_one = compiled.compile

    def compiled_and_said(signature: Any) -> Any:
        """Compile for a signature, after a line that says why it is compiled."""
        _say_once(reason)
        return compile_one(signature)

    vars(compiled)["compile"] = compiled_and_said
    return compiled


def _safely_cached(dispatcher: Any) -> Any:
    """The dispatcher, numba's compiled function, such that one process at a time compiles it for a signature.

    Others wait, and load its machine code.

    numba numbers the code of different signatures when it saves them. If two processes saved at the same time, one
    could later load the other's machine code. The compiler lock is taken first, as numba does, to exclude that two
    threads wait for each other, and because the time limit of a run does not count the time in which it is held.
    A kernel in the cache is loaded without the lock: many processes that share a cache do not take turns.
    If the file system fails, as when a quota is used up or it has no locks, the code is kept in memory.
    """
    cache, compile_one = dispatcher._cache, dispatcher.compile
    file = cache._cache_file

    def compiled_once(signature: Any) -> Any:
        """Compile for a signature, or load what another process has compiled; one process at a time compiles it."""
        # the order of both locks is explained above
        with global_compiler_lock:
            try:
                # the machine code is in the cache: to load it needs no lock
                if cache._index_key(signature, dispatcher.targetctx.codegen()) in file._load_index():
                    return compile_one(signature)
                with FileLock(f"{file._index_path}.lock"):  # not before: one made before a fork cannot be used in it
                    return compile_one(signature)
            except OSError as error:
                _say_once(f"{file._cache_path}: {error.strerror}")
                dispatcher._cache = NullCache()
                return compile_one(signature)

    dispatcher.compile = compiled_once
    return dispatcher


def _say_once(reason: str) -> None:
    """Write the line that says for what reason code is kept in memory, once, and not in each worker."""
    if not _messages:
        _messages.append(f"sweeplib: compiled code is kept in memory, for this process alone: {reason}")
        if multiprocessing.parent_process() is None and sys.stderr is not None:
            sys.stderr.write(f"{_messages[0]}; the environment variable NUMBA_CACHE_DIR names another folder\n")
