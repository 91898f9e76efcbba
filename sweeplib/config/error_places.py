"""Errors of a config, located in its file: line, key path, value, what was expected.

A location is a key path, `grid.d[2]`, in steps: ("grid", "d", 2).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from sweeplib.config.models import AnswerSection, DynamicsSection, SweepConfig
from sweeplib.config.overrides import Override
from sweeplib.config.time_models import Times
from sweeplib.config.values import SPACINGS
from sweeplib.engine.base.validation import Location, refusal
from sweeplib.engine.files.strict_yaml import Document, flow
from sweeplib.errors import InputError

_MODELS: dict[tuple[str, ...], type[pydantic.BaseModel]] = {(): SweepConfig, ("times",): Times}
"""The models of the sections at fixed locations; those below `answers` and `dynamics` have names of the user."""


def location_of(key: str) -> tuple[str | int, ...]:
    """Return grid.d[2] as ("grid", "d", 2)."""
    return tuple(int(number) if number else word for word, number in re.findall(r"([^.\[\]]+)(?<!\d\])|\[(\d+)\]", key))


def input_error(error: pydantic.ValidationError) -> InputError:
    """Return the first error that pydantic found in a config; misspelt keys come before missing ones."""
    from sweeplib.networks.problem import PARAMETERS

    refused = refusal(error, choices=_valid_keys, example=_example)
    if refused.key == f"times.{refused.value}" and refused.value in SPACINGS:
        refused.choices, refused.expected = (), f"`values: {{{refused.value}: ...}}` beside `scale`"
    if refused.choices and refused.key in PARAMETERS:
        refused.choices, refused.expected = (), "it below `problem`, `grid` or `derive`"
    return refused


def error_at(error: InputError, documents: Mapping[str | Path, Document], overrides: Sequence[Override]) -> InputError:
    """Return the error with the file and line of its key, or with the override that set it.

    The errors found beside it get theirs too. Of the files from which a config is made, the line is of the one that has
    most steps of the key, the first of several.
    """
    for other in error.others:
        error_at(other, documents, overrides)
    if error.file is not None:
        return error
    location = location_of(error.key or "")
    lines = {file: read.lines_of(location) for file, read in documents.items()}
    is_in_file = any(len(steps) == len(location) for steps in lines.values())
    for override in reversed(overrides):
        path = location_of(".".join(override.location))
        shared = len(path) if is_in_file else min(len(path), len(location)) or 1
        if location[:shared] == path[:shared]:
            return error.within(file=override.title)
    file = max(lines, key=lambda file: len(lines[file]))
    return error.within(file=f"{file}:{lines[file][-1]}" if lines[file] else file)


def _valid_keys(location: Location) -> Iterable[str]:
    """Return the keys that are valid in place of the last step of a location."""
    above = tuple(map(str, location[:-1]))
    model = _MODELS.get(above, AnswerSection if above[:1] == ("answers",) else DynamicsSection)
    return [field.alias or name for name, field in model.model_fields.items()]


def _example(location: Location) -> str | None:
    """Return an example for a key at the top of the config, None for one below a section."""
    field: Any = SweepConfig.model_fields.get(str(location[0])) if len(location) == 1 else None
    return f"such as `{location[0]}: {flow(field.examples[0])}`" if field is not None else None
