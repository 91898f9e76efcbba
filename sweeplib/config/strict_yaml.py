"""YAML read strictly: no key twice, numbers as YAML 1.2 writes them (1e-8 is a number, `on` is a word)."""

import re
from collections.abc import Hashable
from pathlib import Path as FilePath
from typing import Any, ClassVar

import yaml

from sweeplib.errors import InputError

Path = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2, that refuses a key given twice."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError("a key must be a word", file=f":{line}", expected="`name: value`")
            if key in seen:
                raise InputError(f"key given twice, first on line {seen[key]}", file=f":{line}", value=key)
            seen[key] = line
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes the words that YAML 1.1 or 1.2 would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_FLOAT = (
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def parsed(text: str, file: str | FilePath | None = None) -> Any:
    """Return what the YAML `text` says; InputError naming `file` and line where it is not YAML or repeats a key."""
    try:
        return yaml.load(text, _Loader)
    except InputError as error:
        raise error.within(file=f"{file or 'YAML'}{error.file}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file or 'YAML'}:{mark.line + 1}" if mark else file
        raise InputError(f"not YAML: {error.problem or error.context}", file=where) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"not YAML: {reason}", file=file) from None


def written(value: Any) -> str:
    """Return `value` as YAML, in its own order, that `parsed` gives back."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100)


def line_of(text: str, path: Path) -> int | None:
    """Return the line, from 1, of the deepest part of `path` found in the YAML `text`; None where there is none."""
    node, line = yaml.compose(text, _Loader), None
    for step in path:
        mark, node = _child(node, step)
        if mark is None:
            break
        line = mark.line + 1
    return line


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Mark | None, yaml.Node | None]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            if step in (index, value.value):
                return value.start_mark, value
    return None, None
