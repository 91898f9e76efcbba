"""Valid values of the names of a grid: parameters, options of runs, and symbols, which are any numbers."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import pydantic
import pydantic_core

from sweeplib.engine.base.validation import wanted
from sweeplib.engine.parameters import Parameters
from sweeplib.errors import InputError

Symbol = int | Annotated[float, pydantic.Field(allow_inf_nan=False)]
"""The type of the values of a name that is no parameter."""


def field_value(parameters: Parameters, name: str, value: Any) -> Any:
    """Return `value` in the type of a parameter or a symbol; InputError, with the name as key, if it is invalid."""
    return _checked(parameters, name, (value,), indexed=False)[0]


def field_values(parameters: Parameters, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return `values` in the type of a parameter or a symbol; InputError, with key `name[i]`, if one is invalid."""
    return _checked(parameters, name, values, indexed=True)


def options_of(run: str, names: Iterable[str]) -> list[str]:
    """Return the options of a run that are among the names of a grid, such as `step` for `sde.step`."""
    return [name.removeprefix(f"{run}.") for name in names if name.startswith(f"{run}.")]


def _type(parameters: Parameters, name: str) -> Any:
    """Return the type of the values of `name`; InputError for an option that a run does not have."""
    kind = parameters.type_of(name)
    return Symbol if kind is None else kind


def tells_whole(parameters: Parameters, name: str) -> bool:
    """Return whether whole numbers among the values of `name` are ints, whatever the other values are."""
    return _is_whole(_type(parameters, name))


def _is_whole(kind: Any) -> bool:
    """Return whether whole numbers of a type are ints."""
    return int in _types_in(kind) and kind is not Symbol


def _types_in(kind: Any) -> tuple[Any, ...]:
    """Return a type and those that it is a union of, without what `Annotated` says of them."""
    of_values = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return (of_values, *get_args(of_values))


def _checked(parameters: Parameters, name: str, values: Sequence[Any], *, indexed: bool) -> tuple[Any, ...]:
    """Return values in the type of a name; InputError, with the name as key, for the first that it cannot have.

    indexed : whether the index of the value follows in the key.
    """
    kind = _type(parameters, name)
    whole = _is_whole(kind)
    # floats of a parameter of floats, the frequent case, need no preparation
    is_prepared = set(map(type, values)) == {float} and not whole
    prepared = values if is_prepared else [_for_type(value, whole) for value in values]
    places = [f"{name}[{place}]" if indexed else name for place in range(len(values))]
    try:
        checked = _strictly(_adapter(name, kind), list(prepared))
    except pydantic.ValidationError as error:
        place = int(error.errors()[0]["loc"][0])
        of_place = [entry for entry in error.errors() if entry["loc"][0] == place]
        raise _refusal(parameters, name, values[place], of_place).within(prefix=places[place]) from None
    return tuple(parameters.canonical(name, value, place) for value, place in zip(checked, places, strict=True))


def _refusal(parameters: Parameters, name: str, value: Any, details: list[Any]) -> InputError:
    """Return the error for a value of a parameter; `details` are pydantic's entries of `ValidationError.errors()`."""
    problem, kind = f"not a value of {name}", _type(parameters, name)
    if (expected := parameters.expected(name)) is not None:
        return InputError(problem, value=value, expected=expected)
    may_be_float = any(float in _types_in(entry) for entry in _types_in(kind))
    if _is_whole(kind) and not may_be_float and isinstance(value, float) and not value.is_integer():
        return InputError(problem, value=value, expected="a whole number")
    if kind is Symbol:
        details = [{**details[0], "type": "finite_number" if isinstance(value, float) else "float_type"}]
    return InputError(problem, value=value, **wanted(*details))


@cache
def _adapter(name: str, kind: Any) -> Any:
    """Return the pydantic adapter of lists of values of `name`, of the type `kind`."""
    values: Any = list[kind]
    return pydantic.TypeAdapter(values)


def _strictly(adapter: Any, values: list[Any]) -> Any:
    """Return values as an adapter has them; a list may be a tuple in it, at any depth, as in JSON."""
    if not any(isinstance(value, list) for value in values):
        return adapter.validate_python(values, strict=True)
    text = pydantic_core.to_json(values, inf_nan_mode="constants", fallback=str)
    return adapter.validate_json(text, strict=True)


def _for_type(value: Any, whole: bool) -> Any:
    """Return a value as its type needs it: 3 for 3.0 if `whole` numbers are required."""
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value
