"""Machine code that is cached on disk, once on a machine; where that is not possible it is kept in memory."""

import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

from filelock import FileLock
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_messages: list[str] = []
"""The line that says why code is kept in memory."""


def cached(decorator: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """The function, compiled by a `decorator` of numba that takes the option `cache`."""
    try:
        compiled = decorator(cache=True)(function)
    except (RuntimeError, OSError) as error:
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        return _said_when_compiled(decorator(cache=False)(function))
    return _safely_cached(compiled) if isinstance(compiled, Dispatcher) else compiled


def _said_when_compiled(compiled: Any) -> Any:
    """The compiled function; a line says, once it is compiled, that its machine code is kept in memory."""
    reason = "neither sweeplib's folder nor the cache of your home can be written"
    if not isinstance(compiled, Dispatcher) or compiled.signatures:
        _say_once(reason)
        return compiled
    compile_one = compiled.compile

    def compiled_and_said(signature: Any) -> Any:
        _say_once(reason)
        return compile_one(signature)

    vars(compiled)["compile"] = compiled_and_said
    return compiled


def _safely_cached(dispatcher: Any) -> Any:
    """The dispatcher, with a lock such that one process at a time compiles it; those that waited load its machine code.

    numba numbers the code of different signatures when it saves them. If two processes saved at the same time, one
    could later load the other's machine code. The compiler lock is taken first, as numba does, to exclude that two
    threads wait for each other, and because the time limit of a run does not count the time in which it is held.
    A kernel in the cache is loaded without the lock: many processes that share a cache do not take turns.
    If the file system fails, as when a quota is used up or it has no locks, the code is kept in memory.
    """
    cache, compile_one = dispatcher._cache, dispatcher.compile
    file = cache._cache_file

    def compiled_once(signature: Any) -> Any:
        with global_compiler_lock:
            try:
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
    """Write a line, once, and not in each worker."""
    if not _messages:
        _messages.append(f"sweeplib: compiled code is kept in memory, for this process alone: {reason}")
        if multiprocessing.parent_process() is None and sys.stderr is not None:
            sys.stderr.write(f"{_messages[0]}; the environment variable NUMBA_CACHE_DIR names another folder\n")
