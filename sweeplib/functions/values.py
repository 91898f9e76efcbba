"""What values of a script or a notebook contain: whether two of them are the same, and a digest of one.

They are looked into all through, as a copy of them would be made.
"""

from __future__ import annotations

import copyreg
import hashlib
import random
import weakref
from collections.abc import Sequence, Set
from functools import cached_property
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sweeplib.functions.function import Function

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, PurePath, np.dtype)
"""Types whose values `repr` tells apart."""
_LEFT_OUT = (
    *(ModuleType, CodeType, MethodType, BuiltinFunctionType, Function),
    *(weakref.ref, weakref.WeakKeyDictionary, weakref.WeakSet),
    *(np.random.Generator, np.random.RandomState, random.Random),
)
"""Types into which nothing looks: simulators, what all share, caches, and generators, which each call changes."""


def are_same(first: Any, other: Any, modules: Sequence[str]) -> bool:
    """Return whether two values are the same; what cannot be looked into counts as the same.

    modules : those in which the classes and functions of the one and of the other are defined; others have the rest.
    """
    try:
        digests = [_Content(modules, with_code=True).digest(value) for value in (first, other)]
    except Exception:  # of any method of a value that is looked into
        return True
    return digests[0] == digests[1]


def content_digest(value: Any, module: str) -> str | None:
    """Return a digest of a value, the same in each process; None for one that has code or cannot be looked into.

    module : the one whose classes count by their names: their code is that of the module.
    """
    content = _Content([module], with_code=False)
    try:
        digest = content.digest(value)
    except Exception:  # of any method of a value that is looked into
        return None
    return digest.hex() if content.is_whole else None


class _Content:
    """Reads a value all through.

    modules : whose classes and functions are looked into, if `with_code`; others count by their names.
    is_whole : whether nothing was met so far that cannot be looked into.
    """

    def __init__(self, modules: Sequence[str], *, with_code: bool) -> None:
        self._modules, self._with_code, self.is_whole = modules, with_code, True
        self._begun: dict[int, int] = {}  # how deep each value stands that is being read
        self._done: dict[int, tuple[Any, bytes]] = {}  # with the values, so that no other gets their place

    def digest(self, value: Any) -> bytes:
        """Return a digest of a value and of its parts."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._begun:  # a value that is in itself
            return f"{len(self._begun) - self._begun[id(value)]} above".encode()
        self._begun[id(value)] = len(self._begun)
        summary = hashlib.blake2b(type(value).__qualname__.encode() + b"\0", digest_size=16)
        text = self._text(value)
        if text is not None:
            summary.update(text)
        else:
            for part in self._parts(value):
                summary.update(self.digest(part))
        del self._begun[id(value)]
        self._done[id(value)] = value, summary.digest()
        return summary.digest()

    def _text(self, value: Any) -> bytes | None:
        """Return what tells a value from others of its type; None for a value that has parts."""
        if isinstance(value, str) and value in self._modules:  # as some objects say where they are defined
            return b""
        if isinstance(value, _PLAIN):
            return repr(value).encode(errors="surrogatepass")
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
            return f"{value.dtype} {value.shape} ".encode() + value.tobytes()
        if type(value) in (list, tuple) and all(type(entry) in _PLAIN for entry in value):
            return repr([(type(entry), entry) for entry in value]).encode(errors="surrogatepass")
        if isinstance(value, Set):  # the order of a set is that of its history
            return b"".join(sorted(map(self.digest, value)))
        is_code = isinstance(value, FunctionType) or hasattr(value, "__wrapped__")
        if isinstance(value, _LEFT_OUT) or (is_code and not self._with_code):
            self.is_whole = False
            return b""
        if isinstance(value, type) and not self._with_code:
            return f"{value.__module__ in self._modules or value.__module__} {value.__qualname__}".encode()
        return None

    def _parts(self, value: Any) -> list[Any]:
        """Return the parts of a value; none of a class or a function of a module that all share."""
        if isinstance(value, type | FunctionType):
            if value.__module__ not in self._modules:
                return []
            return _parts_of_class(value) if isinstance(value, type) else _parts_of_function(value)
        if hasattr(value, "__wrapped__"):  # of a function that is cached or compiled, which counts and remembers
            return [value.__wrapped__]
        if type(value) in (list, tuple):
            return list(value)
        if isinstance(value, dict):
            return [*value.items(), vars(value)] if hasattr(value, "__dict__") else list(value.items())
        return value.tolist() if isinstance(value, np.ndarray) else self._parts_of_copy(value)

    def _parts_of_copy(self, value: Any) -> list[Any]:
        """Return the parts of which a copy of a value would be made; none if it cannot be copied."""
        reduced = copyreg.dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
        try:
            reduction = reduced(value)
        except TypeError:
            self.is_whole = False
            return []
        if isinstance(reduction, str):  # the name of what all share
            return [reduction]
        _, arguments, *others = reduction
        if others and isinstance(others[0], dict):
            cached = {name for name in others[0] if isinstance(getattr(type(value), str(name), None), cached_property)}
            others[0] = {name: entry for name, entry in others[0].items() if name not in cached}
        # entries come one by one
        return [*arguments, *(list(entry) if hasattr(entry, "__next__") else entry for entry in others)]


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return the name, the defaults and the attributes of a function, and the values around it."""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__qualname__, function.__defaults__, function.__kwdefaults__, vars(function), *around]


def _parts_of_class(kind: type) -> list[Any]:
    """Return the name and the attributes of a class, and the names of its subclasses."""
    attributes = {name: value for name, value in vars(kind).items() if not name.startswith("__")}
    derived: list[type] = type.__subclasses__(kind)
    return [kind.__qualname__, attributes, [other.__qualname__ for other in derived]]
