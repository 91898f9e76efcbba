"""What values of a script or a notebook contain: whether two of them are the same, and a digest of one.

They are looked into all through, as a copy of them would be made.
"""

from __future__ import annotations

import copyreg
import hashlib
import random
import weakref
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice)
"""Types whose values `repr` tells apart."""
_LEFT_OUT = (
    *(ModuleType, CodeType),
    *(weakref.ref, weakref.WeakKeyDictionary, weakref.WeakSet),
    *(np.random.Generator, np.random.RandomState, random.Random),
)
"""Types into which nothing looks: what all share, caches, and generators, which each call changes."""
_FIXED = (*_PLAIN, PurePath, np.dtype, np.generic, tuple, frozenset, type, ModuleType, CodeType, FunctionType)
"""Types whose values nothing changes in place."""


def are_same(first: Any, other: Any, modules: Sequence[str]) -> bool:
    """Return whether two values are the same; what cannot be looked into counts as the same.

    modules : those in which the classes and functions of the one and of the other are defined; others have the rest.
    """
    try:
        digests = [_Content(modules, with_code=True).digest(value) for value in (first, other)]
    except Exception:  # of any method of a value that is looked into
        return True
    return digests[0] == digests[1]


class Content(NamedTuple):
    """What a value has in it: a digest, the same in each process, and which arrays have numbers in common."""

    digest: str
    views: frozenset[int]


def content_of(value: Any, module: str) -> Content | None:
    """Return what a value has in it; None for one that has code or cannot be looked into.

    module : the one whose classes count by their names: their code is that of the module.
    """
    content = _Content([module], with_code=False)
    try:
        digest = content.digest(value)
    except Exception:  # of any method of a value that is looked into
        return None
    return Content(digest.hex(), frozenset(content.views)) if content.is_whole else None


def grouped(values: Mapping[str, Any], module: str) -> list[list[str]]:
    """Return the names of values of a module in groups: those whose values have a part in common that may change.

    A function may change it by one name and read it by the other: copies of the two would not do.
    """
    groups: list[tuple[list[str], set[int]]] = []
    contents = {name: _Content([module], with_code=False) for name in values}
    for name, content in contents.items():
        with suppress(Exception):  # of any method of a value that is looked into
            content.digest(values[name])
        names, parts = [name], content.parts()
        apart = [group for group in groups if not group[1] & parts]
        for others, theirs in (group for group in groups if group[1] & parts):
            names, parts = names + others, parts | theirs
        groups = [*apart, (names, parts)]
    return [sorted(names) for names, _ in groups]


class _Content:
    """Reads a value all through.

    modules : whose classes and functions are looked into, if `with_code`; others count by their names.
    is_whole : whether nothing was met so far that cannot be looked into. views : arrays with numbers of others.
    """

    def __init__(self, modules: Sequence[str], *, with_code: bool) -> None:
        self._modules, self._with_code, self.is_whole, self.views = modules, with_code, True, set[int]()
        self._begun: dict[int, int] = {}  # how deep each value stands that is being read
        self._done: dict[int, tuple[Any, bytes]] = {}  # with the values, so that no other gets their place
        self._arrays: dict[int, list[np.ndarray]] = {}  # by the one in whose memory they are
        self._libraries = 0  # how many values that are read now are of libraries, which know how to copy theirs

    def parts(self) -> set[int]:
        """Return which objects were met so far that may change."""
        return {key for key, (value, _) in self._done.items() if not isinstance(value, _FIXED)} | self._arrays.keys()

    def digest(self, value: Any) -> bytes:
        """Return a digest of a value and of its parts."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._begun:  # a value that is in itself
            return f"{len(self._begun) - self._begun[id(value)]} above".encode()
        self._begun[id(value)] = len(self._begun)
        if type(value) is np.ndarray and not self._libraries:
            others = self._arrays.setdefault(id(root_of(value)), [])
            shared = [other for other in others if np.may_share_memory(value, other)]
            self.views |= {id(array) for array in (value, *shared) if shared}
            others.append(value)
        kind = type(value).__module__.partition(".")[0]
        is_library = kind not in (*self._modules, "builtins", "collections", "numpy")
        self._libraries += is_library
        summary = hashlib.blake2b(type(value).__qualname__.encode() + b"\0", digest_size=16)
        text = self._text(value)
        if text is not None:
            summary.update(text)
        else:
            for entry in self._parts(value):
                summary.update(self.digest(entry))
        del self._begun[id(value)]
        self._libraries -= is_library
        self._done[id(value)] = value, summary.digest()
        return summary.digest()

    def _text(self, value: Any) -> bytes | None:
        """Return what tells a value from others of its type; None for a value that has parts."""
        if isinstance(value, str) and value in self._modules:  # as some objects say where they are defined
            return b""
        if type(value) in _PLAIN or isinstance(value, PurePath | np.dtype):
            return repr(value).encode(errors="surrogatepass")
        if (type(value) is np.ndarray or isinstance(value, np.generic)) and not value.dtype.hasobject:
            numbers = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            return f"{value.dtype} {value.shape} {hashlib.blake2b(numbers.data, digest_size=16).hexdigest()}".encode()
        is_flat = type(value) in (list, tuple) and all(type(entry) in _PLAIN for entry in value)
        if is_flat and not any(name in value for name in self._modules):
            return repr([(type(entry), entry) for entry in value]).encode(errors="surrogatepass")
        if isinstance(value, Set):  # the order of a set is that of its history
            return b"".join(sorted(map(self.digest, value)))
        if is_of_module(value) and (not self._with_code or value.__module__ not in self._modules):
            return f"{value.__module__ in self._modules or value.__module__} {value.__qualname__}".encode()
        is_code = isinstance(value, FunctionType) or _is_wrapped(value)
        if isinstance(value, _LEFT_OUT) or (is_code and not self._with_code):
            self.is_whole = False
            return b""
        return None

    def _parts(self, value: Any) -> list[Any]:
        """Return the parts of a value; none of a class or a function of a module that all share."""
        if isinstance(value, type | FunctionType):
            if value.__module__ not in self._modules:
                return []
            return _parts_of_class(value) if isinstance(value, type) else _parts_of_function(value)
        if _is_wrapped(value):  # as a function that is cached or compiled, which counts and remembers
            return [value.__wrapped__]
        if type(value) in (list, tuple):
            return list(value)
        if isinstance(value, dict):
            return [*value.items(), vars(value)] if hasattr(value, "__dict__") else list(value.items())
        return value.tolist() if type(value) is np.ndarray else self._parts_of_copy(value)

    def _parts_of_copy(self, value: Any) -> list[Any]:
        """Return the parts of which a copy of a value would be made; none if it cannot be copied."""
        reduced = copyreg.dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
        try:
            reduction = reduced(value)
        except TypeError:
            self.is_whole = False
            return []
        if isinstance(reduction, str):  # the name of what all share, or of a TypeVar
            self.is_whole &= getattr(value, "__module__", None) not in self._modules
            return [reduction]
        _, arguments, *others = reduction
        if others:
            others[0] = _lasting(type(value), others[0])
        # entries come one by one
        return [*arguments, *(list(entry) if hasattr(entry, "__next__") else entry for entry in others)]


def root_of(array: np.ndarray) -> np.ndarray:
    """Return the array in whose memory another one is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _lasting(kind: type, state: Any) -> Any:
    """Return the state of a value of a type without what calls of the value's methods leave in it."""
    if isinstance(state, tuple):
        entries = [_lasting(kind, entry) for entry in state]
        return entries[:-1] if entries and entries[-1] is None else entries
    if not isinstance(state, dict):
        return state
    # a property that is computed once and stored under its name, as in Python, or in `_cache`, as in pandas
    cached = {"_cache", *(name for name in state if _is_cached(getattr(kind, str(name), None)))}
    if kind.__module__.startswith("xarray."):  # which makes these where they are asked for
        cached |= {name for name in ("_attrs", "_encoding") if not state.get(name)}
    # Python and Cython make an empty one where it is asked for
    return {name: entry for name, entry in state.items() if name not in cached} or None


def _is_cached(attribute: Any) -> bool:
    """Return whether an attribute of a class gives way to what an instance has under its name, as a method does not."""
    return hasattr(attribute, "__get__") and not hasattr(attribute, "__set__") and not callable(attribute)


def is_of_module(value: Any) -> bool:
    """Return whether a value is a function or a class that other processes find by its name in a module."""
    is_code = isinstance(value, type | FunctionType | BuiltinFunctionType) or _is_wrapped(value)
    if not is_code or getattr(value, "__module__", None) is None or "<" in getattr(value, "__qualname__", "<"):
        return False
    return isinstance(getattr(value, "__self__", None), ModuleType | None)


def _is_wrapped(value: Any) -> bool:
    """Return whether a value is made of a function alone, by a decorator."""
    return not isinstance(value, MethodType | type) and hasattr(value, "__wrapped__")


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return the name, the defaults and the attributes of a function, and the values around it."""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    # a wrapper may count its calls
    attributes = getattr(function, "__wrapped__", None) or vars(function)
    return [function.__qualname__, function.__defaults__, function.__kwdefaults__, attributes, *around]


def _parts_of_class(kind: type) -> list[Any]:
    """Return the name, the bases and the attributes of a class, and the names of its subclasses."""
    attributes = {name: value for name, value in vars(kind).items() if not name.startswith("__")}
    derived: list[type] = type.__subclasses__(kind)
    return [kind.__qualname__, kind.__bases__, attributes, [other.__qualname__ for other in derived]]
