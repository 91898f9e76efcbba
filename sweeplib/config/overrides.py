"""Values of a config given on the command line: `grid.d=300,1000`, `seeds=64`, `dynamics.ode.rtol=1e-8`.

`data` are the keys and values of the config, as its YAML has them.
"""

import copy
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from sweeplib.engine.base.budget import FILE_BYTES, NODES, refuse_more
from sweeplib.engine.files.strict_yaml import SHORTER, parsed
from sweeplib.errors import LONGEST_VALUE, InputError

LISTS = ("analyses", "dynamics", "figures", "observables", "pair_by", "plugins", "thresholds", "times")
"""The sections whose value is a list."""
PLACES = ("problem", "parameters", "grid", "derive")
"""The sections that give parameters: each is in one of them."""


@dataclass(frozen=True)
class Override:
    """A dotted key and its YAML value, from `KEY=VALUE`; InputError for anything else."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputError("not an override", value=self.text, expected="texts, as 'seeds=8', 'grid.d=300,1000'")
        key, equals, _ = self.text.partition("=")
        refuse_more("characters in an override", len(self.text), FILE_BYTES, key=key[:100], instead=SHORTER)
        if not equals or not all(name.strip() for name in key.split(".")):
            raise InputError("not an override", value=self.text, expected="KEY=VALUE, as `grid.d=300,1000`")

    @property
    def location(self) -> tuple[str, ...]:
        """Return the keys from the top of the config to the value."""
        return tuple(name.strip() for name in self.text.partition("=")[0].split("."))

    @property
    def title(self) -> str:
        """Return what a message calls it, a long one by its beginning."""
        return f"override {self.text if len(self.text) <= LONGEST_VALUE else f'{self.text[: LONGEST_VALUE - 3]}...'}"

    @property
    def value(self) -> Any:
        """Return the value, read as YAML; values separated by commas, or one value where a list belongs, are a list."""
        texts = _split_at_commas(self.text.partition("=")[2])
        refuse_more("values", len(texts), NODES, key=".".join(self.location), instead=SHORTER)
        values = [parsed(text, file=self.title) for text in texts]
        section, *below = self.location
        takes_list = (section in LISTS and not below) or (section == "grid" and len(below) == 1)
        one_in_list = takes_list and not isinstance(values[0], list | dict | None)
        return values if len(values) > 1 or one_in_list else values[0]


def _split_at_commas(text: str) -> list[str]:
    """Return the parts of a text between commas outside brackets and quotes: `he1, hermite(0, 1)` has two.

    Behind a letter or a digit a quote is an apostrophe: `it's, b` has two parts too.
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and not parts[-1][-1:].isalnum():
            quote = character
        depth += (character in "([{") - (character in ")]}") if not quote else 0
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _with_option(location: tuple[str, ...], runs: Container[str]) -> tuple[str, ...]:
    """Return the location with an option that is an axis as one part: `grid.sde.step` as ("grid", "sde.step").

    runs : the names of the runs in the config.
    """
    if location[0] in PLACES and len(location) > 2 and location[1] in runs:
        return (location[0], ".".join(location[1:3]), *location[3:])
    return location


def with_overrides(data: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """Return a copy of `data` with values replaced or added.

    A list of names on the way becomes a mapping from the names to options. A field that becomes an axis, or fixed, or
    derived, is taken out of the section that gave it before. InputError for a key that is given twice.
    """
    data = copy.deepcopy(data)
    before = dict[tuple[str, ...], str]()
    for override in overrides:
        if override.location in before:
            twice = [before[override.location], override.text]
            raise InputError("given twice", key=".".join(override.location), value=twice, expected="one value of a key")
        before[override.location] = override.text
        _apply(data, override)
    return data


def _parameters() -> Container[str]:
    """Return the names of the fields of problems."""
    from sweeplib.networks.problem import PARAMETERS  # takes a while, which sweeps of functions do not need

    return PARAMETERS


def _apply(data: dict[str, Any], override: Override) -> None:
    """Set the value of an override in `data`; a name of PLACES is taken out of the sections that gave it before.

    InputError for a field of a problem that stands in no section, and for a key below a value that has no keys.
    """
    section = data
    *above, last = _with_option(override.location, data.get("dynamics") or ())
    if not above and "simulator" not in data and last in _parameters():
        place = "grid" if "," in override.text or last in (data.get("grid") or ()) else "problem"
        raise InputError("a field of a problem has a section", value=override.text, expected=f"{place}.{override.text}")
    value = override.value
    linked = value if override.location == ("grid", "zip") and isinstance(value, list) else []
    fields = {last} if len(above) == 1 and above[0] in PLACES else set()
    take_out(data, fields.union(*(axes for axes in linked if isinstance(axes, dict))))
    for section_name in above:
        inner = section.get(section_name)
        if isinstance(inner, list) and all(isinstance(name, str) for name in inner):
            inner = {name: {} for name in inner}
        section[section_name] = {} if inner is None else inner
        section = section[section_name]
        if not isinstance(section, dict):
            raise InputError(f"{section_name} has no keys below it", file=override.title, value=section)
    section[last] = value


def take_out(data: dict[str, Any], names: Container[str]) -> None:
    """Take names out of the sections of PLACES of a config, in new mappings; an axis left alone is linked no more."""
    for place in PLACES:
        if isinstance(data.get(place), dict):
            data[place] = {name: value for name, value in data[place].items() if name not in names}
    match data:
        case {"grid": {"zip": list() as linked} as grid}:
            grid["zip"] = []
            for axes in linked:
                remaining = {name: axes[name] for name in axes if name not in names} if isinstance(axes, dict) else axes
                if remaining == axes or len(remaining) > 1:
                    grid["zip"].append(remaining)
                else:
                    grid.update(remaining)
