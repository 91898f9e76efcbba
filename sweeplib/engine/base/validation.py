"""Translation of pydantic's validation errors to InputErrors, in terms that a user understands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError, together

if TYPE_CHECKING:
    import pydantic

Location = Sequence[str | int]
"""The steps from the top of a config to a value, keys and indices, as pydantic returns them."""

REFUSED = "sweeplib_refused"
"""The error type of sweeplib's own validators, whose message says what was expected."""

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument")
_FIRST = {kind: place for place, kind in enumerate((*_UNKNOWN, *_MISSING))}
"""The types of pydantic's errors that are told before others, with their places in this order."""
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

"""What was expected, by the type of pydantic's error; braces hold what the error says."""

_SHAPES = ("dict_type", "list_type", "model_type", "sequence_str", "tuple_type")
"""The types of errors of a value that is no list or no mapping: an example helps."""


def key_path(location: Location) -> str:
    """Return ("grid", "d", 2) as grid.d[2]; pydantic's mark "[key]" of a key that is wrong itself is left out."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location if step != "[key]")
    return text.removeprefix(".")


def refusal(
    error: pydantic.ValidationError,
    *,
    wrong: str = "not a valid value",
    unknown: str = "unknown key",
    missing: str = "this key is needed",
    choices: Callable[[Location], Iterable[str]] = lambda _: (),
    example: Callable[[Location], str | None] = lambda _: None,
    named: Callable[[Location], str] = key_path,
) -> InputError:
    """Return the first error that pydantic found as an InputError; misspelt names come before missing ones.

    An InputError raised by a validator is returned itself, with its key below that of the location. Several unknown
    names are told together.

    wrong, unknown, missing : the messages for a value, an unknown name and a missing name.
    choices, example, named : return the valid names at a location, an example of a value there, and its key.
    """
    entries: list[Any] = sorted(error.errors(), key=lambda entry: _FIRST.get(entry["type"], len(_FIRST)))
    if len(names := {entry["loc"]: entry for entry in entries if entry["type"] in _UNKNOWN}) > 1:
        errors = (InputError(unknown, key=named(at), value=at[-1], choices=choices(at)) for at in names)
        return together(errors, len(names))
    details = entries[0]
    location = details["loc"]
    key = named(location)
    inner = details.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        inner.key = key + (f"{'' if inner.key.startswith('[') or not key else '.'}{inner.key}" if inner.key else "")
        return inner
    if details["type"] in _UNKNOWN:
        return InputError(unknown, key=key, value=location[-1], choices=choices(location))
    if details["type"] in _MISSING:
        return InputError(missing, key=key, expected=example(location))
    error_of_value = InputError(wrong, key=key or None, value=details["input"], **wanted(details))
    if details["type"] in _SHAPES and (shape := example(location)):
        error_of_value.expected = f"{error_of_value.expected}, {shape}"
    return error_of_value


def wanted(*details: Any) -> dict[str, Any]:
    """Return `expected` or `choices` of an InputError, from the entries of `ValidationError.errors()` for one value.

    There is one for each type that the value may have.
    """
    choices = [choice for entry in details if entry["type"] == "literal_error" for choice in _choices(entry)]
    words = dict.fromkeys(_expected(entry) for entry in details if entry["type"] != "literal_error")
    if not words:
        return {"choices": tuple(choices)}
    if words.keys() & {"a number", "a finite number"}:
        words.pop("a whole number", None)
    return {"expected": " or ".join([*choices, *words])}


def _choices(details: Any) -> list[str]:
    """Return the values of a Literal, of which pydantic gives the text: `'a', "it's" or 1`."""
    return [
        text[1:-1] if text[0] in "'\"" else text
        for text in re.findall(r"""'[^']*'|"[^"]*"|[^\s,]+""", details["ctx"]["expected"])
        if text != "or"
    ]


def _expected(details: Any) -> str:
    """Return in words what pydantic, or a validator of sweeplib, expected in place of a value."""
    if details["type"] == REFUSED:
        return str(details["msg"])
    if isinstance(details.get("input"), str) and _is_number(details["input"]):
        return "a number without quotes"
    template = _MESSAGES.get(details["type"])
    expected = (
        template.format(**details.get("ctx", {})) if template else str(details["msg"]).removeprefix("Input should be ")
    )
    return expected + _of_a_percentage(details.get("input"))


def _of_a_percentage(value: Any) -> str:
    """Return `: 10 % is 0.1` for a text in per cent, otherwise nothing."""
    number = value.rstrip("% ") if isinstance(value, str) and value.endswith("%") else ""
    return f": {number} % is {float(number) / 100:g}" if _is_number(number) else ""


def _is_number(text: str) -> bool:
    """Return whether a text can be read as a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
