"""Errors of a config, located in its file: line, key path, value, what was expected.

A location is a key path, `grid.d[2]`, in steps: ("grid", "d", 2).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pydantic

from sweeplib.config.function_models import FunctionConfig
from sweeplib.config.models import AnswerSection, DynamicsSection, SweepConfig
from sweeplib.config.overrides import Override
from sweeplib.config.time_models import Times
from sweeplib.config.values import SPACINGS
from sweeplib.engine.base.validation import Location, refusal
from sweeplib.engine.files.strict_yaml import Document, flow
from sweeplib.engine.parameters import Parameters
from sweeplib.errors import InputError

Config = type[SweepConfig] | type[FunctionConfig]
"""The models of a whole config."""
FEW = 12
"""The parameters that are all named beside an unknown key."""


def location_of(key: str) -> tuple[str | int, ...]:
    """Return grid.d[2] as ("grid", "d", 2)."""
    return tuple(int(number) if number else word for word, number in re.findall(r"([^.\[\]]+)(?<!\d\])|\[(\d+)\]", key))


def input_error(error: pydantic.ValidationError, model: Config, parameters: Callable[[], Parameters]) -> InputError:
    """Return the first error that pydantic found in a config; misspelt keys come before missing ones.

    model : of the config. parameters : returns those of its simulator, which are told where a name at the top may be
    one of them; it may raise InputError.
    """
    refused = refusal(error, choices=partial(_valid_keys, model), example=partial(_example, model))
    if refused.key == f"times.{refused.value}" and refused.value in SPACINGS:
        refused.choices, refused.expected = (), f"`values: {{{refused.value}: ...}}` beside `scale`"
    for unknown in (refused, *refused.others):
        if unknown.choices and unknown.key == unknown.value:
            with suppress(InputError):
                _tell_parameters(unknown, parameters())
    return refused


def _tell_parameters(unknown: InputError, parameters: Parameters) -> None:
    """Let the refusal of a key at the top say where parameters stand, if it is one, or no misspelt key."""
    names, below = parameters.names(), f"below `{parameters.section}`, `grid` or `derive`"
    if unknown.value in names:
        unknown.choices, unknown.expected = (), f"it {below}"
    elif (nearest := unknown.suggestion) is None:
        keys, unknown.choices = unknown.choices, (*unknown.choices, *names)
        nearest = unknown.suggestion
        if len(names) <= FEW:
            unknown.expected = f"one of {', '.join(sorted(keys))}; or {below} one of {', '.join(names)}"
        elif nearest is not None:
            unknown.expected = f"a key (`sweeplib list keys`), or {below} a {parameters.kind}"
        else:
            unknown.choices = keys


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


def _valid_keys(model: Config, location: Location) -> Iterable[str]:
    """Return the keys that are valid, in a config of this model, in place of the last step of a location."""
    above = tuple(map(str, location[:-1]))
    # those below `answers` and `dynamics` have names of the user
    others = AnswerSection if above[:1] == ("answers",) else DynamicsSection
    models: dict[tuple[str, ...], type[pydantic.BaseModel]] = {(): model, ("times",): Times}
    return [field.alias or name for name, field in models.get(above, others).model_fields.items()]


def _example(model: Config, location: Location) -> str | None:
    """Return an example for a key at the top of a config of this model, None for one below a section."""
    field: Any = model.model_fields.get(str(location[0])) if len(location) == 1 else None
    return f"such as `{location[0]}: {flow(field.examples[0])}`" if field is not None else None
