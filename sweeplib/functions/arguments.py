"""The parameters of functions and programs: their types, defaults and units, as configs can have them."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
import pydantic
from pydantic.fields import FieldInfo

from sweeplib.errors import InputError

Real = Annotated[float, pydantic.Field(allow_inf_nan=False)]
"""The type of values of a parameter of floats: finite ones, where its annotation is `float` alone or there is none."""
Number = int | Real
_OF_CONFIGS = (bool, int, float, str, type(None), list, tuple, dict)
"""Types of values that configs can have."""
_UNIONS = (Union, UnionType)


@dataclass(frozen=True)
class Argument:
    """A parameter of a function: the type of its values, its default, its units and what it is, in words.

    is_needed : whether there is no default.
    """

    name: str
    type: Any
    default: Any
    is_needed: bool
    units: str = "1"
    label: str = ""


def refuse_without_name(of: str, argument: inspect.Parameter) -> None:
    """Raise InputError for `*args` of the function `of`, and for what is positional alone: calls name all arguments."""
    if argument.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        problem = f"{of}: calls of a sweep cannot name this parameter"
        raise InputError(problem, value=str(argument), expected="parameters with names, without / and *")


def argument_of(of: str, argument: inspect.Parameter, names: dict[str, Any]) -> Argument:
    """Return a parameter of the function `of`; InputError for a default that is no value of it.

    names : those of its file, of which its annotation is made: a type, or Annotated with units (a text) and a
        description (a Field).
    """
    hint = _annotation(of, argument, names)
    is_needed = argument.default is inspect.Parameter.empty
    default = None if is_needed else argument.default
    default = default.item() if isinstance(default, np.generic) else default
    # a default of None says nothing of the values but that there may be none
    kind = hint if hint is not None else type_of_default(default)
    if hint is None and default is None and not is_needed:
        kind = Number | None
    units, label = "1", ""
    for entry in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        units = entry if isinstance(entry, str) else units
        label = (entry.description or "") if isinstance(entry, FieldInfo) else label
    kind = Real if kind is float else kind
    return checked_argument(of, Argument(argument.name, kind, default, is_needed, units, label))


def _annotation(of: str, argument: inspect.Parameter, names: dict[str, Any]) -> Any:
    """Return the annotation of a parameter, None without one; InputError for one that cannot be read."""
    if argument.annotation is inspect.Parameter.empty:
        return None

    def holder() -> None:
        """Have this annotation alone: those of other parameters may not be read."""

    holder.__annotations__ = {argument.name: argument.annotation}
    try:
        return typing.get_type_hints(holder, names, include_extras=True)[argument.name]
    except Exception as error:  # whatever a text raises as an expression, mostly NameError
        problem = f"{of}: the annotation of {argument.name} cannot be read: {error}"
        expected = "a type that the file defines or imports, not below TYPE_CHECKING alone"
        raise InputError(problem, value=argument.annotation, expected=expected) from None


def checked_argument(of: str, argument: Argument) -> Argument:
    """Return a parameter of the function `of`, its default as a config would give it.

    InputError unless configs can have its values and its default: numbers, texts, true and false, None, lists of them.
    """
    values_of = _values_of(of, argument)
    if argument.is_needed:
        return argument
    problem = f"{of}: the default of {argument.name} is no value of it"
    try:
        default = values_of.validate_python(argument.default)
        stored = value_of_json(argument.type, json.loads(json.dumps(default)))
    except pydantic.ValidationError as error:
        expected = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise InputError(problem, value=argument.default, expected=expected) from None
    except TypeError:
        problem = f"{of}: no config can have the default of {argument.name}"
        expected = "a number, a text, True, False or None, from which the function makes the rest"
        raise InputError(problem, value=argument.default, expected=expected) from None
    if stored != default:  # of other tuples, or other keys than texts
        problem = f"{of}: the default of {argument.name} is not what a config, and the store, would give for it"
        raise InputError(problem, value=default, expected=f"such as {stored!r}, or an annotation")
    return replace(argument, default=default)


def _values_of(of: str, argument: Argument) -> pydantic.TypeAdapter[Any]:
    """Return what checks values of a parameter of the function `of`; InputError if no config can have any."""
    for kind in _kinds_in(argument.type):
        if isinstance(kind, type) and issubclass(kind, Enum):
            values = ", ".join(repr(member.value) for member in kind)
            problem, expected = f"{of}: values of {argument.name} are members of an Enum", f"Literal[{values}]"
            raise InputError(problem, value=kind.__name__, expected=expected)
    problem, expected = f"{of}: no config can have values of {argument.name}", "a type such as float, int, str, bool"
    try:
        adapter = pydantic.TypeAdapter(argument.type)
    except pydantic.errors.PydanticUserError:
        raise InputError(problem, value=str(argument.type), expected=expected) from None
    for kind in _kinds_in(argument.type):
        # before Python 3.12 Any is a class
        if kind not in (Any, Mapping, Sequence) and isinstance(kind, type) and not issubclass(kind, _OF_CONFIGS):
            raise InputError(problem, value=kind.__name__, expected=expected)
    return adapter


def _kinds_in(kind: Any) -> Iterator[Any]:
    """Yield the types of which a type is made, and those of the values of a Literal."""
    origin, entries = get_origin(kind), get_args(kind)
    if origin is Literal:
        yield from map(type, entries)
    elif origin is None:
        yield kind
    else:
        if origin not in (Annotated, *_UNIONS):
            yield origin
        for entry in entries[:1] if origin is Annotated else entries:
            yield from _kinds_in(entry)


def value_of_json(kind: Any, value: Any) -> Any:
    """Return a value of a type that was read as JSON, whose list may be a tuple."""
    if not isinstance(value, list | dict):
        return value
    entries = tuple(value) if isinstance(value, list) else value
    try:
        return pydantic.TypeAdapter(kind).validate_python(entries)
    except pydantic.ValidationError:  # of another type of then
        return entries


def type_of_default(default: Any) -> Any:
    """Return the type of the values of a parameter without an annotation: that of its default; numbers for an int."""
    if isinstance(default, bool | str | list | tuple | dict):
        return type(default)
    if isinstance(default, float):
        return Real
    return Number if default is None or isinstance(default, int) else Any


def is_length(value: Any) -> bool:
    """Return whether a value can be a length: a whole number from 0 on."""
    return isinstance(value, int | float) and value >= 0 and value == value // 1


def is_text(kind: Any) -> bool:
    """Return whether the values of a type are texts."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind is str or (get_origin(kind) is Literal and all(isinstance(value, str) for value in get_args(kind)))
