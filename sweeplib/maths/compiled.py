"""Compilation of kernels: one template, specialised to the functions that a problem names, cached on disk.

A kernel is written once, as plain Python that calls, say, `activation_value`. `specialised` gives a copy of it in which
that name is bound to the activation at hand, so that the compiler inlines it. The copy's name holds a digest of the
source files of all it calls: a cached machine code is used only while these are what they were.
"""

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from numba.core.dispatcher import Dispatcher

from sweeplib.maths.binding import bound
from sweeplib.maths.elementary import vectorised

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}


def specialised(template: Callable[..., Any], **bindings: Any) -> Any:
    """The compiled `template` with its global names bound as told; plain functions are compiled alike, once for all.

    Compiled without the global interpreter lock, one thread; the same arguments give the same object again.
    """
    return _specialised(template, tuple(sorted(bindings.items())))


@functools.cache
def _specialised(template: Callable[..., Any], bindings: tuple[tuple[str, Any], ...]) -> Any:
    return _safely_cached(numba.njit(cache=True, **_OPTIONS)(_named(template, bindings)))


def _safely_cached(dispatcher: Any) -> Any:
    """The dispatcher, whose code on disk one process writes at a time.

    numba numbers the code of different signatures when it saves them: of two processes that save at once, one would
    later be given the other's machine code.
    """
    file = getattr(dispatcher._cache, "_cache_file", None)
    if file is not None:
        save = file.save

        def saved(key: Any, code: Any) -> None:
            with FileLock(f"{file._index_path}.lock"):
                save(key, code)

        file.save = saved
    return dispatcher


def pointer(template: Callable[..., Any], signature: Any, **bindings: Any) -> Any:
    """The template with its global names bound as told, compiled to a function of this numba signature.

    Passed as an argument to a kernel it is called through its address: the kernel is not compiled anew for it.
    """
    return _pointer(template, signature, tuple(sorted(bindings.items())))


@functools.cache
def _pointer(template: Callable[..., Any], signature: Any, bindings: tuple[tuple[str, Any], ...]) -> Any:
    options = {name: value for name, value in _OPTIONS.items() if name != "nogil"}
    return numba.cfunc(signature, cache=True, **options)(_named(template, bindings))


def _named(template: Callable[..., Any], bindings: tuple[tuple[str, Any], ...]) -> types.FunctionType:
    """The template bound, under a name that tells it from all else that the template was or will be."""
    given = {name: specialised(thing) if isinstance(thing, types.FunctionType) else thing for name, thing in bindings}
    return _told_apart(bound(template, **given))


def _told_apart(function: Callable[..., Any]) -> types.FunctionType:
    """The function under a name that no other has.

    Machine code goes by name, and by a number that each process counts anew: of two functions of one name in kernels
    that were cached by two processes, a third would take either for both.
    """
    copy = bound(function)
    copy.__name__ = copy.__qualname__ = f"{function.__name__}__{_digest(copy)}"
    return copy


def inlined(thing: Any) -> Any:
    """A plain function as a compiled one that kernels can call; anything else as it is."""
    return numba.njit(**_OPTIONS)(_told_apart(thing)) if isinstance(thing, types.FunctionType) else thing


@functools.cache
def over_arrays(function: Callable[[float], float]) -> Any:
    """A compiled (x, out) that fills out with `function` of x, arrays (n,), for kernels to call.

    With a function free of branches the loop is one of vector instructions.
    """
    once = numba.njit(forceinline=True, **_OPTIONS)(_told_apart(vectorised(function)))
    return numba.njit(**_OPTIONS)(_told_apart(bound(_fill, function=once)))


def _unbound(x):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `over_arrays`")


function = _unbound


def _fill(x, out):  # type: ignore[no-untyped-def]
    for n in range(x.shape[0]):
        out[n] = function(x[n])


def _digest(function: types.FunctionType) -> str:
    """A hash of what the machine code is made of and how.

    That is the function's source file, its constants and, in turn, the functions that it reaches; and this file.
    """
    return hashlib.blake2b((_described(function, {}) + _file_digest(__file__)).encode(), digest_size=8).hexdigest()


def _described(function: types.FunctionType, known: dict[tuple[types.CodeType, int], str]) -> str:
    key = function.__code__, id(function.__globals__)
    if key not in known:
        known[key] = "itself"
        parts = [f"{function.__qualname__} {_file_digest(inspect.getfile(function))}"]
        names = sorted(set(function.__code__.co_names))
        things = {name: function.__globals__.get(name) for name in names}
        for module in [thing for thing in things.values() if isinstance(thing, types.ModuleType)]:
            things |= {
                name: thing for name, thing in vars(module).items() if name in names and isinstance(thing, Dispatcher)
            }
        for name, thing in things.items():
            reached = thing.py_func if isinstance(thing, Dispatcher) else thing
            if isinstance(reached, types.FunctionType):
                parts.append(f"{name} {_described(reached, known)}")
            elif isinstance(reached, int | float | str | tuple):
                parts.append(f"{name} {reached!r}")
        known[key] = hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    return known[key]


@functools.cache
def _file_digest(path: str) -> str:
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
