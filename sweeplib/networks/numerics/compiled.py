"""Compilation of kernels: one template, specialised to the functions that a problem names, cached on disk.

A kernel is written once, as plain Python that calls, say, `take_step`. `specialised` returns a copy in which that name
is bound to a given function, so that the compiler inlines it. `pointer` returns a function with an address, which a
kernel takes as an argument: the kernel is compiled once for all such functions. The name of a compiled function
contains a digest of the source files of all functions that it calls; cached machine code is used only while these are
unchanged. A dispatcher is numba's object for a compiled function; bindings are pairs (global name, value).
"""

import functools
import gc
import hashlib
import inspect
import math
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

from sweeplib.networks.numerics import inner_functions
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.cache import cached
from sweeplib.networks.numerics.elementary import vectorised
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS, OPTIMISED_APART

_MODULES_DEEP = 3
"""How many modules within modules are searched for constants of a function, as in `np.random.default_rng`."""
TOLD_AFTER = 1.0
"""Seconds of compilation after which a line is printed."""

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}
"""Options of numba for all kernels: zero division as in numpy, fused products and sums, no global interpreter lock."""


def specialised(template: Callable[..., Any], **bindings: Any) -> Any:
    """The compiled `template`, with its global names bound to `bindings`; plain functions among these are compiled too.

    The code runs in one thread and releases the global interpreter lock. Equal arguments return the same object.
    """
    return _specialised(template, tuple(sorted(bindings.items())))


class _Compilations(event.Listener):
    """A listener to numba's compilations that prints a line, once, when they have taken a second since the first."""

    def __init__(self, subject: str) -> None:
        self._subject, self._since, self._is_said = subject, math.inf, False

    def on_start(self, compilation: Any) -> None:
        """Note the time of the first compilation; print the line at a later one that begins a second after it."""
        self._since = min(self._since, time.monotonic())
        if not self._is_said and time.monotonic() - self._since > TOLD_AFTER and sys.stderr is not None:
            self._is_said = True
            sys.stderr.write(f"sweeplib: compiling {self._subject}; this takes some seconds, once on this machine\n")

    def on_end(self, compilation: Any) -> None:
        """Do nothing: the end of a compilation is not printed."""


def compilation_message(subject: str) -> AbstractContextManager[None]:
    """A context that prints one line on stderr, which names the subject, if compilation takes longer than a second."""
    listener: AbstractContextManager[None] = event.install_listener("numba:compile", _Compilations(subject))
    return listener


class OneSignature:
    """A compiled function that checks the types of its arguments at its first call alone.

    All later calls must have arguments of the same types. numba checks the types of all fields of a NamedTuple at each
    call, which takes 0.2 ms if some fields are functions.
    """

    def __init__(self, template: Callable[..., Any], **bindings: Any) -> None:
        self.compiled = specialised(template, **bindings)
        self._entry: Any = None  # the machine code of the types of the first call, None before

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; the first call compiles it for the types of its arguments."""
        if self._entry is None:
            types = tuple(map(numba.typeof, arguments))
            self.compiled.compile(types)
            self._entry = self.compiled.overloads[types].entry_point
        return self._entry(*arguments)


@functools.cache
def _specialised(template: Callable[..., Any], bindings: tuple[tuple[str, Any], ...]) -> Any:
    """The compiled template with these bindings, whose calls are checked once for all constants."""
    decorator = functools.partial(numba.njit, no_cfunc_wrapper=True, **_OPTIONS)
    return _for_any_constants(cached(decorator, _bound_and_named(template, bindings)))


@contextmanager
def _collection_paused() -> Iterator[None]:
    """A context without garbage collection: the compiler makes many objects, and would take a seventh longer."""
    with global_compiler_lock:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def _for_any_constants(dispatcher: Any) -> Any:
    """The dispatcher, such that it is compiled once for all constants that callers give as arguments.

    numba compiles a function again for each constant. That brings nothing: functions are inlined into their callers,
    where the compiler knows the constants. A function that needs a constant when it is compiled, to index a tuple of
    several types, takes it from its globals. Compilation runs without garbage collection (`_collection_paused`).
    """
    compile_one = dispatcher.compile

    def compiled_once(signature: Any) -> Any:
        """Compile for the types of the arguments, not for their constants."""
        arguments, returned = sigutils.normalize_signature(signature)
        arguments = tuple(map(numba.types.unliteral, arguments))
        with _collection_paused():
            return compile_one(arguments if returned is None else returned(*arguments))

    dispatcher.compile = compiled_once
    return dispatcher


def prepare() -> None:
    """Fill the tables of numba's compiler, which takes .7 s, ahead of the first kernel of a process.

    It is called by name, from the lists of what a process imports that is started ahead of its work.
    """
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def pointer(template: Callable[..., Any], signature: Any, **bindings: Any) -> Any:
    """The template, with its global names bound to `bindings`, compiled to a function with this numba signature.

    A kernel takes it as an argument and calls it by its address, so the kernel is not compiled again for it.
    """
    return _pointer(template, signature, tuple(sorted(bindings.items())))


@functools.cache
def _pointer(template: Callable[..., Any], signature: Any, bindings: tuple[tuple[str, Any], ...]) -> Any:
    """The template with these bindings, compiled to a function with an address."""
    # Python's lock is released by the kernel that calls the function by its address
    options = {name: value for name, value in _OPTIONS.items() if name != "nogil"}
    with _collection_paused():
        return cached(functools.partial(numba.cfunc, signature, **options), _bound_and_named(template, bindings))


def call_by_address(function: Any, *arguments: Any) -> None:
    """Call a function with an address with these arguments, from compiled code: Python would run it uncompiled."""
    specialised(_call)(function, *arguments)


def _call(function, *arguments):  # type: ignore[no-untyped-def]
    """Call a function with these arguments, in compiled code."""
    function(*arguments)


def _bound_and_named(template: Callable[..., Any], bindings: tuple[tuple[str, Any], ...]) -> types.FunctionType:
    """The bound template, under a name that is unique to its sources and bindings."""
    values = {name: specialised(value) if isinstance(value, types.FunctionType) else value for name, value in bindings}
    return _unique_name(bound(template, **values))


def _unique_name(function: Any) -> types.FunctionType:
    """Return a copy of the function with a unique name, its own and a digest of its sources.

    It shares the globals, so it can call functions defined later. numba identifies machine code by the name of its
    function and by a number that starts again in each process. If two processes cached kernels with two functions of
    one name, a third process would load one function for both.
    """
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__module__, copy.__doc__ = function.__module__, function.__doc__
    copy.__name__ = copy.__qualname__ = f"{function.__name__}__{_digest(function)}"
    return copy


def compiled(thing: Any, **options: Any) -> Any:
    """A plain function, compiled for kernels and for Python to call; any other `thing` is returned as it is.

    `options` are numba's.
    """
    if not isinstance(thing, types.FunctionType):
        return thing
    return _for_any_constants(numba.njit(**(_OPTIONS | options))(_unique_name(thing)))


def inlined(thing: Any, **options: Any) -> Any:
    """A plain function, compiled for kernels alone to call, which takes less time than `compiled`."""
    return compiled(thing, **FOR_KERNELS, **options)


def without_references(function: Callable[..., Any], **options: Any) -> Any:
    """A function that neither allocates nor returns arrays, for kernels: references to arrays are not counted."""
    return inlined(function, _nrt=False, **options)


def in_any_order(function: Callable[..., Any]) -> Any:
    """A sum, compiled for kernels like `without_references`, whose terms may be taken in any order, several at once."""
    return without_references(function, fastmath={"contract", "reassoc", "nsz"})


def in_place(function: Callable[..., Any]) -> Any:
    """A function whose text stands in the place of its calls: what it allocates and returns is not counted again."""
    return compiled(function, inline="always")


def loops(function: Callable[..., Any]) -> Any:
    """A function with long loops, without allocations, which a kernel calls in several places and has once."""
    return compiled(function, _nrt=False, **OPTIMISED_APART)


@functools.cache
def in_loops(function: Callable[[float], float]) -> Any:
    """A compiled function of a number. The compiler vectorises loops that call it, if it has no branches."""
    return numba.njit(forceinline=True, **_OPTIONS, **FOR_KERNELS)(_unique_name(vectorised(function)))


@functools.cache
def over_arrays(function: Callable[[float], float]) -> Any:
    """A function with an address, (x, out), that fills out with a `function` of numbers at x, arrays (n,)."""
    array = numba.types.Array(numba.types.float64, 1, "C")
    return pointer(_fill, numba.types.void(array, array), function=in_loops(function))


def function_values(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """The values of a compiled `function` of numbers at each number of an array, in an array of its shape."""
    out = np.empty(x.shape)
    call_by_address(over_arrays(function), np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
    return out


def _unbound(x):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `over_arrays`")


function = _unbound


def _fill(x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the function at x (n,)."""
    for n in range(x.shape[0]):
        out[n] = function(x[n])


def _digest(function: types.FunctionType) -> str:
    """A hash of what the machine code of a function is made of and how.

    That is the function's source file, its constants (globals, also of modules, defaults, what a closure holds) and, in
    turn, the functions that it reaches; and the files that say how it is compiled.
    """
    parts = _description(function, {}), *map(_file_digest, (__file__, inner_functions.__file__))
    return hashlib.blake2b("".join(parts).encode(), digest_size=8).hexdigest()


def _description(function: types.FunctionType, descriptions: dict[tuple[types.CodeType, tuple[int, ...]], str]) -> str:
    """Return a digest of a function with all that is compiled into it.

    descriptions : digests of the functions already described, by code and constants; functions may call each other.
    """
    spaces = (function.__globals__, function.__defaults__, function.__kwdefaults__, *(function.__closure__ or ()))
    key = function.__code__, tuple(map(id, spaces))
    if key not in descriptions:
        # for functions that reach themselves
        descriptions[key] = "itself"
        parts = [f"{function.__qualname__} {_file_digest(inspect.getfile(function))}"]
        for name, thing in sorted(_compiled_constants(function).items()):
            reached = thing.py_func if isinstance(thing, Dispatcher) else thing
            if isinstance(reached, types.FunctionType):
                parts.append(f"{name} {_description(reached, descriptions)}")
            elif isinstance(reached, np.ndarray):
                parts.append(f"{name} {reached.dtype} {reached.shape} {reached.tobytes().hex()}")
            elif isinstance(reached, type) and issubclass(reached, tuple):
                parts.append(f"{name} {getattr(reached, '_fields', ())}")
            elif isinstance(reached, int | float | complex | str | bytes | tuple | np.generic):
                parts.append(f"{name} {reached!r}")
            # what says itself on what machine code depends (`packed_arguments`)
            elif isinstance(digest := getattr(reached, "digest", None), str):
                parts.append(f"{name} {digest}")
        descriptions[key] = hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    return descriptions[key]


def _compiled_constants(function: types.FunctionType) -> dict[str, Any]:
    """All that a function takes from elsewhere and the compiler takes for constant, by names that say where from."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    things: dict[str, Any] = {f"closure {name}": cell.cell_contents for name, cell in cells}
    things |= {f"default {place}": value for place, value in enumerate(function.__defaults__ or ())}
    things |= {f"default {name}": value for name, value in (function.__kwdefaults__ or {}).items()}
    return things | _named_in(function.__globals__, _names(function.__code__), "")


def _named_in(space: dict[str, Any], names: frozenset[str], place: str) -> dict[str, Any]:
    """The things of a name space, and of the modules in it, that have one of some names, by where they are.

    place : of the name space, "" or the module's name with a point.
    """
    things = {f"{place}{name}": space[name] for name in names if name in space}
    modules = {name: thing for name, thing in things.items() if isinstance(thing, types.ModuleType)}
    for name, module in modules.items():
        if place.count(".") < _MODULES_DEEP:
            things |= _named_in(vars(module), names, f"{name}.")
    return things


def _names(code: types.CodeType) -> frozenset[str]:
    """The names in a piece of code, and in the functions and comprehensions within it."""
    within = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*within)


@functools.cache
def _file_digest(path: str) -> str:
    """A digest of a source file."""
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
