"""What pydantic says of wrong input, as an InputError in a user's words: the one place that translates it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError

if TYPE_CHECKING:
    import pydantic

Location = Sequence[str | int]

REFUSED = "sweeplib_refused"
"""The type of an error of a validator of our own, of which the message says what was expected."""

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument")
_FIRST = (*_UNKNOWN, *_MISSING)
_MESSAGES = {
    "bool_type": "true or false",
    "dict_type": "`name: value` lines",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number greater than {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number less than {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "list_type": "a list",
    "model_type": "`name: value` lines",
    "sequence_str": "a list",
    "string_too_long": "at most {max_length} characters",
    "string_type": "a text",
    "too_short": "at least one",
    "tuple_type": "a list",
}


def key_path(location: Location) -> str:
    """Return ("grid", "d", 2) as grid.d[2]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]")
    return text.removeprefix(".")


def refusal(
    error: pydantic.ValidationError,
    *,
    wrong: str = "not a valid value",
    unknown: str = "unknown key",
    missing: str = "this key is needed",
    known: Callable[[Location], Iterable[str]] = lambda _: (),
    example: Callable[[Location], str | None] = lambda _: None,
    named: Callable[[Location], str] = key_path,
) -> InputError:
    """Return the first thing that pydantic found wrong, a name misspelt before one that misses, as an InputError.

    `wrong`, `unknown` and `missing` are what is said of a value, of a name that there is not, and of one that misses;
    `known` gives the names that there are beside the one at a location, `example` what is expected where one misses,
    and `named` the key of a location. An InputError of a validator is returned itself, its key below the location's.
    """
    details: Any = min(error.errors(), key=_order)
    location = details["loc"]
    key = named(location)
    inner = details.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        inner.key = key + (f"{'' if inner.key.startswith('[') else '.'}{inner.key}" if inner.key else "")
        return inner
    if details["type"] in _UNKNOWN:
        return InputError(unknown, key=key, value=location[-1], choices=known(location))
    if details["type"] in _MISSING:
        return InputError(missing, key=key, expected=example(location))
    return InputError(wrong, key=key or None, value=details["input"], **wanted(details))


def wanted(details: Any) -> dict[str, Any]:
    """Return, of one entry of `ValidationError.errors()`, what was expected or, of a few words, the `choices`."""
    if details["type"] == "literal_error":
        return {"choices": tuple(re.findall(r"'([^']*)'", details["ctx"]["expected"]))}
    return {"expected": _expected(details)}


def _expected(details: Any) -> str:
    if details["type"] == REFUSED:
        return str(details["msg"])
    if isinstance(details.get("input"), str) and _is_number(details["input"]):
        return "a number without quotes"
    words = _MESSAGES.get(details["type"])
    return words.format(**details.get("ctx", {})) if words else str(details["msg"]).removeprefix("Input should be ")


def _order(details: Any) -> int:
    return _FIRST.index(details["type"]) if details["type"] in _FIRST else len(_FIRST)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
