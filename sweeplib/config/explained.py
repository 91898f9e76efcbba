"""A config's errors, in terms of its file: line, key path, value, what was expected."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic

from sweeplib.config.models import DynamicsSection, SweepConfig, Times
from sweeplib.config.overrides import Override
from sweeplib.config.strict_yaml import Document
from sweeplib.design.expected import choices, expected
from sweeplib.errors import InputError

_MODELS: dict[tuple[str, ...], type[pydantic.BaseModel]] = {(): SweepConfig, ("times",): Times}
_FIRST = ("extra_forbidden", "missing")


def key_path(location: Sequence[str | int]) -> str:
    """Return ("grid", "d", 2) as grid.d[2]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]")
    return text.removeprefix(".")


def location_of(key: str) -> tuple[str | int, ...]:
    """Return grid.d[2] as ("grid", "d", 2)."""
    return tuple(int(number) if number else word for word, number in re.findall(r"([^.\[\]]+)(?<!\d\])|\[(\d+)\]", key))


def explained(error: pydantic.ValidationError) -> InputError:
    """Return the first thing that pydantic found wrong, a key misspelt before one that misses."""
    found = sorted(
        error.errors(), key=lambda each: _FIRST.index(each["type"]) if each["type"] in _FIRST else len(_FIRST)
    )
    details = found[0]
    location = details["loc"]
    key = key_path(location)
    inner = details.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        inner.key = key + (f"{'' if inner.key.startswith('[') else '.'}{inner.key}" if inner.key else "")
        return inner
    if details["type"] == "extra_forbidden":
        model = _MODELS.get(tuple(map(str, location[:-1])), DynamicsSection)
        return InputError("unknown key", key=key, value=location[-1], choices=model.model_fields)
    if details["type"] == "missing":
        return InputError("this key is needed", key=key, expected=_needed(location))
    words = choices(details)
    return InputError(
        "not a valid value",
        key=key,
        value=details["input"],
        expected=None if words else _expected(details),
        choices=words,
    )


def located(error: InputError, read: Document, file: str | Path, overrides: Sequence[Override]) -> InputError:
    """Return the error, told the file and line of its key, or the override that gave it."""
    if error.file is not None:
        return error
    location = location_of(error.key or "")
    for override in reversed(overrides):
        if location[: len(override.location)] == override.location:
            return error.within(file=f"--set {override.text}")
    line = read.line_of(location)
    return error.within(file=f"{file}:{line}" if line else file)


def _needed(location: Sequence[str | int]) -> str | None:
    field: Any = SweepConfig.model_fields.get(str(location[0])) if len(location) == 1 else None
    return f"such as `{location[0]}: {_flow(field.examples[0])}`" if field is not None else None


def _flow(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, default_flow_style=True, width=1000).strip().removesuffix("...").strip()


def _expected(details: Any) -> str:
    if details["type"] == "string_pattern_mismatch":
        return "letters, digits, `-`, `_` and `.`, first a letter or digit"
    if details["type"] == "too_short":
        return "at least one"
    if details["type"] == "string_too_long":
        return f"at most {details['ctx']['max_length']} characters"
    return expected(details)
