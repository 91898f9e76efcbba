"""Values of a script or a notebook as other processes have them: written out, or in a file beside the function's.

What a statement computed here, of the command line, a file or a measurement, is computed nowhere else.
"""

from __future__ import annotations

import ast
import io
import pickle
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import digest
from sweeplib.errors import InputError
from sweeplib.functions.values import content_digest

DIGITS = 32
"""The length of a digest, which stands before the content of a file."""
LONGEST = 2000
"""The letters of the longest value that is written out."""
LOADER = "from sweeplib.functions.stored import load_stored as _load_stored"
"""The statement that values in files need."""


class Stored(NamedTuple):
    """A value for other processes: the expression that gives it, the classes that it needs, and its file, if any.

    file : the name and the content.
    """

    expression: str
    classes: frozenset[str] = frozenset()
    file: tuple[str, bytes] | None = None


def stored(value: Any, module: str) -> Stored | None:
    """Return a value of a module for other processes; None if it has code or is of this process alone, as a lock is."""
    if _is_plain(value) and len(text := repr(value)) <= LONGEST:
        try:
            ast.literal_eval(text)  # refuses infinity and NaN, of which there are no numerals
        except ValueError:
            pass
        else:
            return Stored(text)
    content = content_digest(value, module)
    if content is None:
        return None
    file = io.BytesIO()
    pickler = _Pickler(file, module)
    try:
        pickler.dump(value)
    except Exception:  # of any method of a value that is looked into
        return None
    sealed = digest(file.getvalue()).encode() + file.getvalue()
    return Stored(f"_load_stored(globals(), {content!r})", frozenset(pickler.classes), (f"{content}.pickle", sealed))


def load_stored(names: Mapping[str, Any], content: str) -> Any:
    """Return a value from the file beside the one that calls. InputError for a file that is not there, or damaged.

    names : those of the file that calls, whose classes the value may need. content : its digest.
    Files in folders of results call it: its name and its place stay.
    """
    path = Path(names["__file__"]).with_name(f"{content}.pickle")
    expected = "the file that was written when the sweep began: run the script or the notebook again"
    try:
        sealed = file_bytes(path)
    except OSError:
        raise InputError("a value of a function is not there", file=path, expected=expected) from None
    if digest(sealed[DIGITS:]).encode() != sealed[:DIGITS]:
        raise InputError("a value of a function is damaged", file=path, expected=expected)
    return _Unpickler(io.BytesIO(sealed[DIGITS:]), names).load()


def _is_plain(value: Any) -> bool:
    """Return whether a value is made of numbers, texts, None, lists, tuples and dicts alone."""
    if type(value) is dict:
        return all(map(_is_plain, [*value, *value.values()]))
    if type(value) in (list, tuple):
        return len(value) <= LONGEST and all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str)


class _Pickler(pickle.Pickler):
    """Pickles a value with the classes of a module by their names: another process has them in another module."""

    def __init__(self, file: io.BytesIO, module: str) -> None:
        super().__init__(file)
        self.classes, self._module = set[str](), module

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a class of the module; None for anything else."""
        if not isinstance(value, type) or value.__module__ != self._module:
            return None
        self.classes.add(value.__qualname__.partition(".")[0])
        return value.__qualname__


class _Unpickler(pickle.Unpickler):
    """Loads a value with the classes of the file that calls."""

    def __init__(self, file: io.BytesIO, names: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._names = names

    def persistent_load(self, name: str) -> Any:
        """Return the class of a name."""
        root, _, rest = name.partition(".")
        return attrgetter(rest)(self._names[root]) if rest else self._names[root]
