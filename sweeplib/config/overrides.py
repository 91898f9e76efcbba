"""Values of a config given on the command line: `grid.d=[300]`."""

import copy
from dataclasses import dataclass
from typing import Any

from sweeplib.config.strict_yaml import parsed
from sweeplib.errors import InputError


@dataclass(frozen=True)
class Override:
    """A dotted key and its YAML value, from `KEY=VALUE`; InputError for anything else."""

    text: str

    def __post_init__(self) -> None:
        key, equals, _ = self.text.partition("=")
        if not equals or not all(part.strip() for part in key.split(".")):
            raise InputError("not an override", key="--set", value=self.text, expected="KEY=VALUE, as `grid.d=[300]`")

    @property
    def location(self) -> tuple[str, ...]:
        """Return the keys from the top of the config to the value."""
        return tuple(part.strip() for part in self.text.partition("=")[0].split("."))

    @property
    def value(self) -> Any:
        """Return the value, read as YAML."""
        return parsed(self.text.partition("=")[2], file=f"--set {self.text}")


def overridden(data: dict[str, Any], override: Override) -> dict[str, Any]:
    """Return the config's `data` with one value replaced or added; a list of names is treated as a mapping."""
    data = copy.deepcopy(data)
    section = data
    *above, last = override.location
    for part in above:
        inner = section.get(part)
        if isinstance(inner, list) and all(isinstance(name, str) for name in inner):
            inner = {name: {} for name in inner}
        section[part] = {} if inner is None else inner
        section = section[part]
        if not isinstance(section, dict):
            raise InputError(f"{part} has no keys below it", file=f"--set {override.text}", value=section)
    section[last] = override.value
    return data
