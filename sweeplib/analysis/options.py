"""Options of analyses and figures; their names, defaults and types are in the signature of the function."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pydantic
from pydantic import Field

from sweeplib.errors import InputError
from sweeplib.validation import Location, refusal

Confidence = Annotated[float, Field(gt=0, lt=1)]
Part = Annotated[float, Field(ge=0, le=1)]
LostPart = Annotated[float, Field(ge=0, lt=1)]
Resamples = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0)]
Margin = Annotated[float, Field(ge=1, le=1e6)]
Tolerance = Annotated[float, Field(ge=0, le=10)]
RandomSeed = Annotated[int, Field(ge=0, lt=2**63)]
"""Types of options that several analyses have.

They are, in order: the confidence of an interval, a fraction, the fraction of runs that may be lost, the number of
bootstrap resamples, a positive number (may be infinite), a factor of one or more, a departure from a power law or of
its exponent, the seed of random numbers.
"""


def checked_options(
    function: Callable[..., Any], kind: str, options: Mapping[str, Any], *, arguments: int
) -> dict[str, Any]:
    """Return the options with the defaults of those not given.

    The options are the parameters of `function` after its first `arguments`, with the types of its annotations. An
    option without an annotation, or with one that cannot be evaluated, takes any value. InputError, with the option as
    key, for an unknown name or a value of another type.
    """
    known = list(inspect.signature(function).parameters.values())[arguments:]
    named = {parameter.name: parameter for parameter in known}
    for key, value in options.items():
        if key not in named:
            raise InputError(f"unknown {kind}", key=key, value=key, choices=named)
        _check(key, value, function, kind)
    defaults = {name: p.default for name, p in named.items() if p.default is not inspect.Parameter.empty}
    return defaults | dict(options)


def _check(key: str, value: Any, function: Callable[..., Any], kind: str) -> None:
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        option_type(function, key).validate_python(plain, strict=True)
    except pydantic.ValidationError as error:
        raise refusal(error, wrong=f"not a valid {kind}", named=lambda place: key + _places(place)) from None


def _places(location: Location) -> str:
    """Return the position of a value in a list: "[2]" for ("list", 2); other parts are pydantic's names of types."""
    return "".join(f"[{part}]" for part in location if isinstance(part, int))


@cache
def option_type(function: Callable[..., Any], name: str) -> Any:
    """Return the pydantic adapter of an option's type; annotations of the other parameters are not evaluated."""
    function = inspect.unwrap(function)
    annotation = inspect.signature(function).parameters[name].annotation
    if annotation is inspect.Parameter.empty:
        return pydantic.TypeAdapter(Any)
    alone = SimpleNamespace(__annotations__={name: annotation})
    try:
        hint = typing.get_type_hints(alone, getattr(function, "__globals__", {}), include_extras=True)[name]
    except NameError:
        return pydantic.TypeAdapter(Any)
    return pydantic.TypeAdapter(hint)
