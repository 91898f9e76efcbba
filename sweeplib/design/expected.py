"""What a value should have been, in a user's words, from what pydantic says."""

import re
from typing import Any

REFUSED = "sweeplib_refused"
"""The type of an error of a validator of our own, of which the message says what was expected."""

_WORDS = {
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
    "string_type": "a text",
    "too_short": "one at least",
    "tuple_type": "a list",
}


def expected(details: Any) -> str:
    """Return what was expected, of one entry of `ValidationError.errors()`."""
    if details["type"] == REFUSED:
        return str(details["msg"])
    if isinstance(details.get("input"), str) and _is_number(details["input"]) and details["type"] != "literal_error":
        return "a number without quotes"
    words = _WORDS.get(details["type"])
    return words.format(**details.get("ctx", {})) if words else details["msg"].removeprefix("Input should be ")


def choices(details: Any) -> tuple[str, ...]:
    """Return the valid values, where they are a few words."""
    return tuple(re.findall(r"'([^']*)'", details["ctx"]["expected"])) if details["type"] == "literal_error" else ()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
