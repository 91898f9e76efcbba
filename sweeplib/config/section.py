"""Section, the base of the models of a config's sections, and the keys of a section that a call has."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from sweeplib.errors import InputError


class Section(BaseModel):
    """A section of a config: refuses undeclared keys and values of other types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def keys_of(section: Any, key: str) -> dict[str, Any]:
    """Return a section of the config of a call as keys; InputError for something else, under the `key` of it."""
    if not isinstance(section, Mapping | None):
        raise InputError("not a section", key=key, value=section, expected="keys with their values, a dict")
    return dict(section or {})
