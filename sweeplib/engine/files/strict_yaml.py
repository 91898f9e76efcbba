"""Strict YAML: no repeated keys, scalars of YAML 1.2 (1e-8 is a number, `on` is a text), limits on the size.

Only the types of JSON are allowed. The content of an alias counts each time it is used, so that a few lines cannot
expand to gigabytes.
"""

import re
from collections.abc import Callable, Hashable
from pathlib import Path as FilePath
from typing import Any, ClassVar, NamedTuple

import yaml
from yaml.constructor import BaseConstructor, ConstructorError

from sweeplib.engine.base.budget import DEPTH, FILE_BYTES, INTEGER_DIGITS, NODES, refuse_more
from sweeplib.errors import InputError

Path = tuple[str | int, ...]
"""Steps from the top of a document to a value: keys and indices."""
TAG = "tag:yaml.org,2002:"
"""What the names of types begin with in YAML."""
REMEDIES = {
    "'\\t'": "a space in place of the tab",
    "mapping values are not allowed here": "the indentation of the line above, or quotes around a text with a colon",
    "<block end>": "the indentation of the other names of this block",
    "<document start>": "the indentation of the first line",
}
"""What to write instead, by a part of what the parser says; `'\\t'` is how it shows a tab."""
SHORTER = "spacings such as {range: [0, 1000]} are shorter than lists"


class _Loader(yaml.SafeLoader):
    """SafeLoader with the types of JSON and the scalars of YAML 1.2; it refuses repeated keys and too much content.

    PyYAML calls its methods. It counts nodes and characters with the content of aliases written out: `_sizes` has both
    numbers for each node that is whole.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # of the node that is read now, the depth; of all so far, the numbers
        self._depth = self._nodes = self._characters = 0
        self._sizes: dict[yaml.Node, tuple[int, int]] = {}

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        """Return the next node; InputError if there are too many, or if a node contains an alias of itself."""
        event = self.peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):  # the node exists, and counts again
            node = super().compose_node(parent, index)
            if node not in self._sizes:
                raise InputError("an alias that contains itself", file=f":{line}", value=f"*{event.anchor}")
            self._count(*self._sizes[node], line)
            return node
        before = self._nodes, self._characters
        self._depth += 1
        if self._depth > DEPTH:
            raise InputError("lists or mappings too deep", file=f":{line}", expected=f"at most {DEPTH} levels")
        self._count(1, len(event.value) if isinstance(event, yaml.ScalarEvent) else 0, line)
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._sizes[node] = self._nodes - before[0], self._characters - before[1]
        # a text without quotes before a comma, within { } or [ ]
        cut = isinstance(node, yaml.ScalarNode) and node.style is None and self.check_token(yaml.FlowEntryToken)
        if cut and parent is not None and parent.flow_style:
            _refuse_cut(node.value, line)
        return node

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping; InputError for a key that is not a text, is repeated, or has its value in it (`p:1`)."""
        lines: dict[Any, int] = {}
        for key_node, value_node in node.value if isinstance(node, yaml.MappingNode) else ():
            key, line = key_node.value, key_node.start_mark.line + 1
            if key_node.tag != f"{TAG}str":
                got = key if isinstance(key, str) else key_node.id
                raise InputError("a key must be a word", file=f":{line}", value=got, expected="`name: value`")
            if key_node.style is None and value_node.start_mark.index == key_node.end_mark.index:
                _refuse_no_space(key, f":{line}")
            if key in lines:
                raise InputError(f"key given twice, first on line {lines[key]}", file=f":{line}", value=key)
            lines[key] = line
        return BaseConstructor.construct_mapping(self, node, deep)

    def _count(self, nodes: int, characters: int, line: int) -> None:
        """Count nodes and characters; InputError, with the line, if there are too many by now."""
        self._nodes += nodes
        self._characters += characters
        try:
            refuse_more("keys and values", self._nodes, NODES, instead=SHORTER)
            refuse_more("characters", self._characters, FILE_BYTES, instead="shorter texts, or fewer aliases of them")
        except InputError as error:
            raise error.within(file=f":{line}") from None


def _has_open_call(text: str) -> bool:
    """Return whether a text has a call that is not closed, such as `hermite(0`."""
    return text.count("(") > text.count(")") and re.search(r"\w\(", text) is not None


def _refuse_no_space(line: str, where: str) -> None:
    """Raise InputError for a line that is a name and its value without a space after the colon, which YAML joins."""
    joined = re.fullmatch(r"[\s-]*(\w+:)([^\s/].*)", line)
    if joined:
        text, expected = "".join(joined.groups()), f"`{' '.join(joined.groups())}`"
        raise InputError("no space after the colon", file=where, value=text, expected=expected)


def _refuse_cut(text: str, line: int) -> None:
    """InputError for a text such as `hermite(0` of `{activation: hermite(0, 1)}`."""
    if _has_open_call(text):
        expected = "quotes around a text that has commas, such as 'hermite(0, 1)'"
        raise InputError("inside { } and [ ] a comma ends the text", file=f":{line}", value=text, expected=expected)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes texts that YAML 1.1 or 1.2 would read as another type, or that seem to be cut."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return true: what occurs twice is written twice."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Return the node of a text, with quotes where a comma in it might seem to end it."""
        style = "'" if _has_open_call(data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


def _float(text: str) -> float:
    """Return the number of a text of YAML's floats, such as 1_000.5 or .inf."""
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


def _integer(text: str) -> int:
    """Return the number of a text of digits; ValueError if it is beyond the range of doubles."""
    if len(text) > INTEGER_DIGITS:
        raise ValueError(f"a whole number of more than {INTEGER_DIGITS} digits")
    return int(text)


def _word(text: str) -> str:
    """Return a text; ValueError if files or terminals cannot have it."""
    if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        raise ValueError("a text with a NUL, or with half of a surrogate pair")
    return text


_INTEGER = r"[-+]?[0-9][0-9_]*"
_FLOAT = (
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)


class _Kind(NamedTuple):
    """A type of scalars.

    tag, called : its names in YAML and in messages. pattern, first : of its texts, and of their first characters.
    value : converts a text; ValueError for one that has no value.
    """

    tag: str
    pattern: str
    first: list[str]
    value: Callable[[str], Any]
    called: str

    def constructed(self, loader: _Loader, node: yaml.Node) -> Any:
        """Return the value of a node; ConstructorError if it is not of this type."""
        text = BaseConstructor.construct_scalar(loader, node)
        try:
            if re.fullmatch(self.pattern, text, re.DOTALL):
                return self.value(text)
            reason = f"not {self.called}"
        except ValueError as error:
            # `invalid literal for int()` says less than `called`
            reason = str(error) if "literal" not in str(error) else f"not {self.called}"
        raise ConstructorError(None, None, f"{reason}: {text[:60]!a}", node.start_mark)


for _kind in (
    _Kind(
        "bool", "true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true", "true or false"
    ),
    _Kind("int", _INTEGER, list("-+0123456789"), _integer, "a whole number"),
    _Kind("float", _FLOAT, list("-+0123456789."), _float, "a number"),
    _Kind("null", "~|null|Null|NULL|", ["~", "n", "N", ""], lambda _: None, "null"),
):
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(TAG + _kind.tag, re.compile(f"^(?:{_kind.pattern})$"), _kind.first)
    _Loader.add_constructor(TAG + _kind.tag, _kind.constructed)
_Loader.add_constructor(TAG + "str", _Kind("str", ".*", [], _word, "a text").constructed)
_Loader.add_constructor(TAG + "seq", yaml.SafeLoader.construct_yaml_seq)
_Loader.add_constructor(TAG + "map", yaml.SafeLoader.construct_yaml_map)
_Loader.add_constructor(None, yaml.SafeLoader.construct_undefined)


class Document(NamedTuple):
    """The data of a YAML text, and its nodes, which have line numbers."""

    data: Any
    root: yaml.Node | None

    def lines_of(self, path: Path) -> list[int]:
        """Return the lines, from 1, of the existing steps of `path`."""
        node, lines = self.root, []
        for step in path:
            mark, node = _child(node, step)
            if mark is None:
                break
            lines.append(mark.line + 1)
        return lines


def document(text: str, file: str | FilePath | None = None) -> Document:
    """Return the YAML `text` as a Document; InputError, naming `file` and line, if it is invalid or too large."""
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reason = f"not YAML: character number {error.character} is not allowed"
        raise InputError(reason, file=f"{file or 'YAML'}:{line}") from None
    try:
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    except InputError as error:
        raise error.within(file=f"{file or 'YAML'}{error.file}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        lines = text.splitlines()
        # the space after a colon may be missing in the line before the error, or where its block begins
        for at in {mark.line - 1, error.context_mark.line if error.context_mark else 0} if mark else ():
            _refuse_no_space("".join(lines[at : at + 1]), f"{file or 'YAML'}:{at + 1}")
        where = f"{file or 'YAML'}:{mark.line + 1}" if mark else file
        column = f" in column {mark.column + 1}" if mark else ""
        remedy = next((remedy for word, remedy in REMEDIES.items() if word in (error.problem or "")), None)
        raise InputError(f"not YAML: {error.problem or error.context}{column}", file=where, expected=remedy) from None
    except (ValueError, OverflowError) as error:  # escapes and versions with invalid numbers
        raise InputError(f"not YAML: {error}", file=f"{file or 'YAML'}:{loader.line + 1}") from None


def parsed(text: str, file: str | FilePath | None = None) -> Any:
    """Return the data of the YAML `text`; InputError as from `document`."""
    return document(text, file).data


def written(value: Any) -> str:
    """Return `value` as YAML in its own order; `parsed` of the result is `value`."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100)


def size(value: Any) -> int:
    """Return the number of keys and values in `value`, which `NODES` limits."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(map(size, inner))


def flow(value: Any) -> str:
    """Return `value` as YAML in one line."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Mark | None, yaml.Node | None]:
    """Return where a key or an item of a node begins, and the node of its value; None if the node has none.

    step : a key, the index of an item, or the text of an item.
    """
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            if step in (index, value.value):
                return value.start_mark, value
    return None, None
