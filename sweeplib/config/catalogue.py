"""The names that a config may use, of each kind, each with its meaning and options: what `list` and `explain` show.

The thing of a name is what is registered under it: an analysis, an activation, a class of clusters. An address is a key
of a config (`answers.NAME.to`), KIND.NAME (`figures.line`) or KIND.NAME.OPTION. `rows` are those of all keys, by key.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from sweeplib.analysis.kit.options import option_type
from sweeplib.config.kinds import EVERY_KIND, KEYS, KINDS, PLUGINS
from sweeplib.config.reference import KeyRow, function_options, key_rows, setting_rows
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.code.user_code import installed_plugins
from sweeplib.engine.files.strict_yaml import written
from sweeplib.errors import InputError
from sweeplib.networks.problem import synonyms

PARTS = {
    "observables": "observables",
    "targets": "target",
    "starts": "start",
    "data": "data",
    "losses": "loss",
    "updates": "update",
    "tasks": "tasks",
}
"""The kinds whose things have parameters of a problem, with the key of a config, or of `problem`, that names them."""

LISTED = {
    **{kind: kind for kind in ("dynamics", "analyses", "figures", "observables")},
    **{f"problem.{key}": kind for kind, key in PARTS.items()},
    **dict.fromkeys(("problem.activation", "problem.teacher_activation"), "activations"),
    "cluster": "clusters",
}
"""The keys of a config whose values are names of a kind, with the kind."""

FUNCTIONS = {"analyses": 1, "figures": 2}
"""The kinds of functions, with the number of their arguments in front of the options."""


class Option(NamedTuple):
    """An option of a named thing: its name, default and meaning, as text."""

    name: str
    default: str
    meaning: str


class Entry(NamedTuple):
    """A name, one sentence about it, and its options."""

    name: str
    meaning: str
    options: tuple[Option, ...]


_SPELLED = {
    "activations": (
        Entry(
            "hermite(c0, c1, ...)",
            "any Hermite series, σ = Σ c_n He_n/√n!, to degree 8; `he2` is `hermite(0, 0, 1)`",
            (),
        ),
        Entry("piecewise(x1, y1, x2, y2, ...)", "the line through these points, constant before and after them", ()),
    ),
    "targets": (Entry("a formula", "of the teacher's fields, such as `lam1 + lam1*lam2 + he3(lam3)`", ()),),
}
"""What a config may also write in place of a name, by kind."""


def catalogue(kind: str, names: Iterable[str] = ()) -> list[Entry]:
    """Return the entries of a kind: all, or those named; InputError for an unknown kind or name."""
    if kind == PLUGINS:
        return _installed_plugin_entries(list(names))
    if kind == KEYS:
        rows = key_rows()
        return [_key_entry(row) for name in names or rows for row in [_row_of(rows, name, "unknown key")]]
    registry = registry_of(kind)
    chosen = list(names) or list(registry)
    entries = [Entry(name, _meaning(registry, name), tuple(_options(kind, registry[name]))) for name in chosen]
    return entries if names else [*entries, *_SPELLED.get(kind, ())]


def explanation(address: str) -> tuple[Entry, str]:
    """Return the entry of a key of a config, of KIND.NAME or KIND.NAME.OPTION, with an example; InputError for another.

    A name alone is that of the only address with this end; `grid` and `derive` have the names of `problem`.
    """
    rows = key_rows()
    kind, _, name = address.partition(".")
    if kind in ("grid", "derive") and f"problem.{name}" in rows:
        address = f"problem.{name}"
    elif not name and address not in rows:
        address = _address_of(rows, address)
        kind, _, name = address.partition(".")
    if address in rows or kind not in KINDS or not name:
        row = _row_of(rows, address, "neither a key nor KIND.NAME")
        return _key_entry(row), written(row.content)
    name, _, option = name.partition(".")
    [entry] = catalogue(kind, [name])
    if option:
        options = {row.name: row for row in entry.options}
        if option not in options:
            raise InputError("no such option", key=f"{kind}.{name}", value=option, choices=options)
        entry = entry._replace(options=(options[option],))
    return entry, written(example(kind, name))


def example(kind: str, name: str) -> dict[str, Any]:
    """Return the part of a config that uses a name of a kind: with example values of its options, or their defaults."""
    thing = registry_of(kind)[name]
    if kind == "clusters":
        return {"cluster": {"kind": name, **_sample(thing)}}
    if kind in PARTS:
        named = {PARTS[kind]: [name] if kind == "observables" else name}
        sample = _sample(thing.parameters)
        return named | ({"problem": sample} if sample else {}) if kind == "observables" else {"problem": named | sample}
    if kind == "dynamics":
        return {kind: {name: _sample(thing.Options)}}
    if kind == "proposers":
        return {"answers": {name: dict(thing.example)}}
    return {kind: {name: _sample(thing.function)}} if kind in FUNCTIONS else {"problem": {kind.removesuffix("s"): name}}


def _sample(options: Any) -> dict[str, Any]:
    """Return the example values of the options of a model or a function; without any example, all defaults but null."""
    if isinstance(options, type) and issubclass(options, BaseModel):
        fields = {name: field for name, field in options.model_fields.items() if name != "kind"}
        examples = {name: field.examples for name, field in fields.items()}
        defaults = {name: field.default for name, field in fields.items() if not field.is_required()}
    else:
        parameters = {name: parameter.default for name, parameter in inspect.signature(options).parameters.items()}
        defaults = {name: default for name, default in parameters.items() if default is not inspect.Parameter.empty}
        examples = {name: option_type(options, name).json_schema().get("examples") for name in defaults}
    values_by_name = {name: values[0] for name, values in examples.items() if values} or defaults
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values_by_name.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _key_entry(row: KeyRow) -> Entry:
    """Return the entry of a key; its options are the keys below it."""
    default = row.default if row.default == "needed" else f"default {row.default}"
    below = [other for key, other in key_rows().items() if key.startswith(f"{row.key}.")]
    options = [
        Option(other.key.removeprefix(f"{row.key}."), other.default.strip("`"), other.meaning) for other in below
    ]
    meaning = row.meaning if options else row.meaning.replace(" (below)", "")
    if row.key in LISTED:
        meaning += f" Names: `sweeplib list {LISTED[row.key]}`."
    return Entry(row.key, f"{meaning} ({row.type}; {default})", tuple(options))


def _row_of(rows: Mapping[str, KeyRow], name: str, problem: str) -> KeyRow:
    """Return the row of a key; an InputError with this problem if there is none."""
    if name not in rows:
        raise InputError(problem, value=name, choices=_addresses(rows))
    return rows[name]


def _addresses(rows: Mapping[str, KeyRow]) -> list[str]:
    """Return the keys of a config, and KIND.NAME of all that is registered."""
    return [*rows, *(f"{kind}.{entry}" for kind in KINDS for entry in registry_of(kind))]


def _address_of(rows: Mapping[str, KeyRow], name: str) -> str:
    """Return the only address that ends with `.NAME`, or `problem.NAME` if that is one of several.

    InputError if there are several others, and for the name of an option, whose owners it lists.
    """
    addresses = _addresses(rows)
    of_name = [address for address in addresses if address.endswith(f".{name}")]
    of_name = [address for address in of_name if address == f"problem.{name}"] or of_name
    if len(of_name) == 1:
        return of_name[0]
    if of_name:
        raise InputError("several have this name", value=name, expected=f"one of {', '.join(of_name)}")
    entries = ((kind, entry) for kind in KINDS for entry in catalogue(kind))
    owners = [f"{kind}.{entry.name}" for kind, entry in entries if name in {option.name for option in entry.options}]
    if owners:
        raise InputError("an option", value=name, expected=f"one of those that have it: {', '.join(owners)}")
    ends = {address.rpartition(".")[2] for address in addresses}
    raise InputError("neither a key nor KIND.NAME", value=name, choices=ends | rows.keys(), synonyms=synonyms())


def _installed_plugin_entries(names: list[str]) -> list[Entry]:
    """Return the installed plugins, with their modules and distributions; nothing of them is imported."""
    plugins = installed_plugins()
    for name in names:
        if name not in plugins:
            raise InputError("no such installed plugin", value=name, choices=plugins)
    modules_by_name = {
        name: [f"{p.module} of {p.dist.name} {p.dist.version}" if p.dist else p.module for p in plugins[name]]
        for name in names or plugins
    }
    return [Entry(name, " and ".join(modules), ()) for name, modules in modules_by_name.items()]


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind of names; InputError for an unknown kind."""
    if kind not in KINDS:
        raise InputError("not a kind of names", value=kind, choices=EVERY_KIND)
    return getattr(importlib.import_module(KINDS[kind].module), KINDS[kind].registry)


def _meaning(registry: Registry[Any], name: str) -> str:
    """Return one sentence about the thing of a name: its `doc`, `caption` or `long_name`, or else that of a docstring.

    It is the docstring of the module, but for a class that shares its module with others of the registry.
    """
    thing, module = registry[name], registry.origin(name)
    sentence = next((text for field in ("doc", "caption", "long_name") if (text := getattr(thing, field, None))), None)
    alone = sum(registry.origin(other) == module for other in registry) == 1
    documented = thing if inspect.isclass(thing) and not alone else sys.modules[module]
    text = inspect.cleandoc(sentence or documented.__doc__ or "").partition("\n\n")[0]
    return re.split(r"\. (?=[A-Z])", " ".join(text.split()))[0].rstrip(".")


def _options(kind: str, thing: Any) -> list[Option]:
    """Return the options of a thing: the fields of its model or the parameters of its function; none of other kinds."""
    if kind in FUNCTIONS:
        rows = function_options(thing.function, FUNCTIONS[kind])
    elif kind == "clusters":
        rows = setting_rows(thing, "")
    elif kind == "dynamics":
        rows = setting_rows(thing.Options, "")
    elif kind in PARTS:
        rows = setting_rows(thing.parameters, "")
    else:
        return []
    return [Option(row.key, row.default.strip("`"), row.meaning) for row in rows]
