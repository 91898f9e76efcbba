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

from sweeplib.engine.code.numerical_code import numerical_code
from sweeplib.engine.code.syntax import effective_code
from sweeplib.engine.files.regular_files import file_bytes, file_text

MOST = 2000
"""How many modules the file has at most, those of earlier versions included."""


Import = tuple[int, str | None, list[str]]
"""An import statement: its level (0: absolute), the module from which it imports, and the names."""


class ModuleContent(NamedTuple):
    """What digests take from a module.

    digest : of its numerical code. imports : its import statements. code : the digest of all code but docstrings.
    """

    digest: str
    imports: list[Import]
    code: str


def module_content(source: str, *, of_library: bool = False) -> ModuleContent:
    """Return what digests take from the text of a source file, of this package (`of_library`) or a user's."""
    text, nodes = numerical_code(source, of_library=of_library)
    numbers, code = (hashlib.blake2b(code.encode(), digest_size=12) for code in (text, effective_code(source)))
    return ModuleContent(numbers.hexdigest(), imports_of(nodes), code.hexdigest())


def cached_content(source: str) -> ModuleContent:
    """Return what digests take from the text of a file of the library, from the cache if that has it.

    What is new is kept by the next `write_cache`.
    """
    key = hashlib.blake2b(source.encode(), key=_code_digest(), digest_size=16).hexdigest()
    contents = _cache()
    if key not in contents:
        contents[key] = _new[key] = module_content(source, of_library=True)
    return ModuleContent(*contents[key])


def write_cache() -> None:
    """Write the cache with what was parsed since the last time, if anything; a large cache keeps only that."""
    if _new:
        contents = _cache() if len(_cache()) <= MOST else dict(_new)
        _new.clear()
        beside = _cache_file().with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            beside.parent.mkdir(exist_ok=True)
            beside.write_text(json.dumps(contents))
            # renamed when it is whole: another process reads the old file or the new, never a part
            beside.replace(_cache_file())


_new: dict[str, ModuleContent] = {}
"""What this process has parsed and not written yet, by the key of the cache."""


@cache
def _cache() -> dict[str, ModuleContent]:
    """Return the contents that the cache file has, by the digest of module and code; none if it cannot be read."""
    with suppress(OSError, ValueError, AttributeError, TypeError):
        return {key: ModuleContent(*value) for key, value in json.loads(file_text(_cache_file())).items()}
    return {}


@cache
def _code_digest() -> bytes:
    """Return a hash of the files of this subpackage: contents that other code has read are not found."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file_bytes(path))
    return digest.digest()


def _cache_file() -> Path:
    """Return the path of the cache, beside the bytecode of this module."""
    return Path(cache_from_source(__file__)).with_name("parsed.json")


def imports_of(nodes: Iterable[ast.AST]) -> list[Import]:
    """Return the import statements among the nodes of a syntax tree."""
    return [
        (getattr(node, "level", 0), getattr(node, "module", None), [alias.name for alias in node.names])
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
