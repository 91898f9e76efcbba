"""Valid values of the names of a grid: fields of a problem, options of runs, and symbols, which are any numbers."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, get_args

import pydantic

from sweeplib.dynamics import DYNAMICS
from sweeplib.errors import InputError
from sweeplib.problem import NAMED_FIELDS, PARAMETERS, checked_name
from sweeplib.validation import wanted

Symbol = int | Annotated[float, pydantic.Field(allow_inf_nan=False)]


def field_value(name: str, value: Any) -> Any:
    """Return `value` in the type of the field or symbol `name`; InputError, with the name as key, if it is invalid."""
    return _checked(name, (value,), key=name, indexed=False)[0]


def field_values(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return `values` in the type of the field or symbol `name`; InputError, with key `name[i]`, if one is invalid."""
    return _checked(name, values, key=name, indexed=True)


def options_of(run: str, names: Iterable[str]) -> list[str]:
    """Return the options of a run that are among the names of a grid, such as `step` for `sde.step`."""
    return [name.removeprefix(f"{run}.") for name in names if name.startswith(f"{run}.")]


def _type(name: str) -> Any:
    """Return the type of the values of `name`; InputError for an option that the dynamics does not have."""
    run, dot, option = name.rpartition(".")
    if not dot:
        return PARAMETERS[name].type if name in PARAMETERS else Symbol
    fields = DYNAMICS[run].Options.model_fields
    if option not in fields:
        expected = None if fields else f"none: {run} has no options"
        raise InputError(f"{run} has no such option", value=option, expected=expected, choices=fields)
    field = fields[option]
    return Annotated[field.annotation, field]


def is_whole(name: str) -> bool:
    """Return whether the values of `name` are counts, whole numbers."""
    kind = _type(name)
    return int in (kind, *get_args(kind)) and kind is not Symbol


def _checked(name: str, values: Sequence[Any], key: str, indexed: bool) -> tuple[Any, ...]:
    """Return values as a name can have them; InputError, with the key and the index, for the first that it cannot."""
    whole = is_whole(name)
    prepared = values if set(map(type, values)) == {float} and not whole else [_for_type(x, whole) for x in values]
    try:
        checked = _adapter(name, _type(name)).validate_python(list(prepared), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = int(first["loc"][0])
        where = f"{key}[{place}]" if indexed else key
        raise _refusal(name, values[place], first).within(prefix=where) from None
    if name not in NAMED_FIELDS:
        return tuple(checked)
    places = [f"{key}[{place}]" if indexed else key for place in range(len(checked))]
    return tuple(
        value if value is None else checked_name(name, value, place)
        for value, place in zip(checked, places, strict=True)
    )


def _refusal(name: str, value: Any, details: Any) -> InputError:
    """Return the error for a value of a field, by what pydantic says of it."""
    problem = f"not a value of {name}"
    if name in ("a", "a_star"):
        laws = "; `normal` or `signs`" if name == "a" else ""
        return InputError(problem, value=value, expected=f"a finite number, or a list of them, one per unit{laws}")
    if is_whole(name) and isinstance(value, float) and not value.is_integer():
        return InputError(problem, value=value, expected="a whole number")
    if _type(name) is Symbol:
        details = {**details, "type": "finite_number" if isinstance(value, float) else "float_type"}
    return InputError(problem, value=value, **wanted(details))


@cache
def _adapter(name: str, kind: Any) -> Any:
    """Return the pydantic adapter of lists of values of `name`, of the type `kind`."""
    values: Any = list[kind]
    return pydantic.TypeAdapter(values)


def _for_type(value: Any, whole: bool) -> Any:
    """Return 3 for 3.0 if a whole number is required, and a tuple for a list."""
    if whole and isinstance(value, float) and value.is_integer():
        return int(value)
    return tuple(value) if isinstance(value, list) else value
