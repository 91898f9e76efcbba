"""What digests take from the modules of the library, kept in a file beside their bytecode: parsing takes a while.

It is found by the content of the module and of this subpackage, so that nothing outdated is found. Where the file
cannot be read or written, modules are parsed.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from sweeplib.code.numerical_code import numerical_code
from sweeplib.code.syntax import effective_code

MOST = 2000
"""How many modules the file has at most, those of earlier versions included."""


Import = tuple[int, str | None, list[str]]
"""An import statement: its level (0: absolute), the module from which it imports, and the names."""


class Parsed(NamedTuple):
    """The digest of a module's numerical code, its import statements, and the digest of all that it does."""

    digest: str
    imports: list[Import]
    code: str


def parsed(source: str) -> Parsed:
    """Return what counts of a source file."""
    text, nodes = numerical_code(source)
    digests = (hashlib.blake2b(each.encode(), digest_size=12) for each in (text, effective_code(source)))
    numbers, code = (digest.hexdigest() for digest in digests)
    return Parsed(numbers, imports_of(nodes), code)


def parsed_once(source: str) -> Parsed:
    """Return what counts of a source file of the library, from the file if it has it; `keep` writes what is new."""
    key = hashlib.blake2b(source.encode(), key=_own_code(), digest_size=16).hexdigest()
    known = _known()
    if key not in known:
        known[key] = _new[key] = parsed(source)
    return Parsed(*known[key])


def keep() -> None:
    """Write what was parsed since the last time."""
    if _new:
        known = _known() if len(_known()) <= MOST else dict(_new)
        _new.clear()
        beside = _file().with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            beside.parent.mkdir(exist_ok=True)
            beside.write_text(json.dumps(known))
            beside.replace(_file())


_new: dict[str, Parsed] = {}


@cache
def _known() -> dict[str, Parsed]:
    with suppress(OSError, ValueError, AttributeError, TypeError):
        return {key: Parsed(*value) for key, value in json.loads(_file().read_text()).items()}
    return {}


@cache
def _own_code() -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def _file() -> Path:
    return Path(cache_from_source(__file__)).with_name("parsed.json")


def imports_of(nodes: Iterable[ast.AST]) -> list[Import]:
    """Return the import statements among the nodes of a syntax tree."""
    return [
        (getattr(node, "level", 0), getattr(node, "module", None), [alias.name for alias in node.names])
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
