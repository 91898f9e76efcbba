"""Whether a value of a script or a notebook is the one that the file written from it gives.

Both are looked into all through, as a copy of them would be made; what cannot be looked into counts as the same.
"""

from __future__ import annotations

import copyreg
import math
import random
import weakref
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sweeplib.errors import InputError
from sweeplib.functions.function import Function

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, PurePath, np.dtype)
"""Types whose values `repr` tells apart."""
_LEFT_OUT = (
    *(ModuleType, CodeType, MethodType, Function, weakref.ref, weakref.WeakKeyDictionary, weakref.WeakSet),
    *(np.random.Generator, np.random.RandomState, random.Random),
)
"""Types into which nothing looks: simulators, what all share, caches, and generators, which each call changes."""


def are_same(first: Any, other: Any, modules: Sequence[str]) -> bool:
    """Return whether two values are the same.

    modules : those in which the classes and functions of the one and of the other are defined; others have the rest.
    """
    try:
        return _are_same(first, other, modules, {})
    except Exception:  # of any method of a value that is looked into
        return True


def refuse_others(values: Mapping[str, Any], expected: Mapping[str, Any], digest: str) -> None:
    """Raise InputError if numbers or texts among the values of a module are others than where the sweep began.

    digest : of all computed values there, arrays among them. It is in the code that calls, and so in the identity of
        cases; the last bits of arrays may differ from machine to machine.

    Files in folders of results call it: its name and its place stay.
    """
    for name, value in expected.items():
        here = values[name]
        is_close = isinstance(value, float) and isinstance(here, float) and math.isclose(here, value)
        if type(here) is not type(value) or not (here == value or is_close):
            problem = f"{name} has another value in this process than where the sweep began"
            raise InputError(problem, value=here, expected=f"{value!r}; make it a parameter, or write it out")


def _are_same(first: Any, other: Any, modules: Sequence[str], pairs: dict[tuple[int, int], tuple[Any, Any]]) -> bool:
    """Return whether two values are the same; pairs : those that are being compared, which it keeps alive."""
    if first is other or (id(first), id(other)) in pairs:
        return True
    if type(first).__qualname__ != type(other).__qualname__:
        return False
    pairs[id(first), id(other)] = first, other
    text = _text(first)
    if text is not None:
        # some objects say where they are defined, as a cached property does from Python 3.13 on
        is_place = isinstance(first, str) and (first, other) == tuple(modules)
        return is_place or text == _text(other)
    parts, others = _parts(first, modules), _parts(other, modules)
    return len(parts) == len(others) and all(
        _are_same(*both, modules, pairs) for both in zip(parts, others, strict=True)
    )


def _text(value: Any) -> str | None:
    """Return a text that tells a value from others; None for a value that has parts."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        return f"{value.dtype} {value.shape} {value.tobytes()!r}"
    if isinstance(value, Set):
        # the order of a set is that of its history
        return repr(sorted(map(repr, value))) if all(isinstance(entry, _PLAIN) for entry in value) else str(len(value))
    return "" if isinstance(value, _LEFT_OUT) else None


def _parts(value: Any, modules: Sequence[str]) -> list[Any]:
    """Return the parts of a value; none of a class or a function of a module that all share."""
    if isinstance(value, type | FunctionType):
        if value.__module__ not in modules:
            return []
        return _parts_of_class(value) if isinstance(value, type) else _parts_of_function(value)
    if hasattr(value, "__wrapped__"):  # of a function that is cached or compiled, which counts and remembers
        return [value.__wrapped__]
    if type(value) in (list, tuple):
        return list(value)
    if isinstance(value, dict):
        return [*value.items(), vars(value)] if hasattr(value, "__dict__") else list(value.items())
    return value.tolist() if isinstance(value, np.ndarray) else _parts_of_copy(value)


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return the name, the defaults and the attributes of a function, and the values around it."""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__qualname__, function.__defaults__, function.__kwdefaults__, vars(function), *around]


def _parts_of_class(kind: type) -> list[Any]:
    """Return the name and the attributes of a class, and the names of its subclasses."""
    attributes = {name: value for name, value in vars(kind).items() if not name.startswith("__")}
    derived: list[type] = type.__subclasses__(kind)
    return [kind.__qualname__, attributes, [other.__qualname__ for other in derived]]


def _parts_of_copy(value: Any) -> list[Any]:
    """Return the parts of which a copy of a value would be made; none if it cannot be copied."""
    reduced = copyreg.dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
    try:
        reduction = reduced(value)
    except TypeError:
        return []
    if isinstance(reduction, str):  # the name of what all share
        return []
    _, arguments, *others = reduction
    if others and isinstance(others[0], dict):
        cached = {name for name in others[0] if isinstance(getattr(type(value), str(name), None), cached_property)}
        others[0] = {name: entry for name, entry in others[0].items() if name not in cached}
    # entries come one by one
    return [*arguments, *(list(entry) if hasattr(entry, "__next__") else entry for entry in others)]
