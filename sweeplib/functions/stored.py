"""Values of a script or a notebook as other processes have them: written out, or in a file beside the function's.

What a statement computed here, of the command line, a file or a measurement, is computed nowhere else.
"""

from __future__ import annotations

import ast
import io
import pickle
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import digest
from sweeplib.errors import InputError
from sweeplib.functions.values import Content, content_of, is_of_module, root_of

DIGITS = 32
"""The length of a digest, which stands before the content of a file."""
LONGEST = 2000
"""The letters of the longest value that is written out."""
LOADER = "from sweeplib.functions.stored import load_stored as _load_stored"
"""The statement that values in files need."""


class Stored(NamedTuple):
    """A value for other processes: the expression that gives it, definitions that it needs, and its file, if any.

    file : the name and the content.
    """

    expression: str
    definitions: frozenset[str] = frozenset()
    file: tuple[str, bytes] | None = None


def stored(name: str, value: Any, module: str) -> Stored | None:
    """Return a value of a module for other processes; None if it has code in it or is of this process, as a lock is.

    name : what it is called there: two values with one content are two.
    """
    with suppress(ValueError):  # of infinity and NaN, of which there are no numerals
        if is_plain(value) and len(text := repr(value)) <= LONGEST:
            ast.literal_eval(text)
            return Stored(text)
    content = content_of(value, module)
    if content is None:
        return None
    file = io.BytesIO()
    pickler = _Pickler(file, module, content)
    try:
        pickler.dump(value)
    except Exception:  # of any method of a value that is looked into
        return None
    sealed = digest(file.getvalue()).encode() + file.getvalue()
    arguments = "globals()", repr(name), repr(content.digest), *sorted(pickler.definitions)
    file_name = f"{content.digest}.pickle"
    return Stored(f"_load_stored({', '.join(arguments)})", frozenset(pickler.definitions), (file_name, sealed))


def load_stored(names: dict[str, Any], name: str, content: str, *definitions: Any) -> Any:
    """Return a value from the file beside the one that calls. InputError for a file that is not there, or damaged.

    names : those of the file that calls. name : that of the value, which is loaded once. content : its digest.
    definitions : those of the file that the value needs, which stand there so that they are made before.
    Files in folders of results call it: its name and its place stay.
    """
    values = names.setdefault("_stored_values", {})
    if name not in values:
        path = Path(names["__file__"]).with_name(f"{content}.pickle")
        if (sealed := sealed_content(path)) is None:
            expected = "the file that was written when the sweep began: run the script or the notebook again"
            raise InputError("a value of a function is not there, or damaged", file=path, expected=expected)
        values[name] = _Unpickler(io.BytesIO(sealed), names).load()
    return values[name]


def sealed_content(path: Path) -> bytes | None:
    """Return what the file of a value has behind its digest; None for a file that is not there, or damaged."""
    try:
        sealed = file_bytes(path)
    except OSError:
        return None
    content = sealed[DIGITS:]
    return content if digest(content).encode() == sealed[:DIGITS] else None


def is_plain(value: Any, depth: int = 20) -> bool:
    """Return whether a value is made of numbers, texts, None, lists, tuples and dicts alone, to some depth."""
    if type(value) is dict:
        return depth > 0 and all(is_plain(entry, depth - 1) for entry in [*value, *value.values()])
    if type(value) in (list, tuple):
        return depth > 0 and len(value) <= LONGEST and all(is_plain(entry, depth - 1) for entry in value)
    return value is None or type(value) in (bool, int, float, complex, str)


class _Pickler(pickle.Pickler):
    """Pickles a value with the definitions of a module by their names: another process has them in another module."""

    def __init__(self, file: io.BytesIO, module: str, content: Content) -> None:
        super().__init__(file)
        self.definitions, self._module, self._views = set[str](), module, content.views

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a class or a function of the module; None for anything else."""
        if not is_of_module(value) or value.__module__ != self._module:
            return None
        if _at(value.__qualname__, vars(sys.modules[self._module])) is not value:
            raise pickle.PicklingError(f"{value.__qualname__} is another one now")
        self.definitions.add(value.__qualname__.partition(".")[0])
        return str(value.__qualname__)

    def reducer_override(self, value: Any) -> Any:
        """Return how an array is made that has numbers of another one: as a view, as it is here."""
        if id(value) not in self._views or value is (root := root_of(value)) or value.dtype.hasobject:
            return NotImplemented
        offset = value.ctypes.data - root.ctypes.data
        return _view, (root, value.shape, value.dtype, offset, value.strides)


def _view(root: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, offset: int, strides: tuple[int, ...]) -> Any:
    """Return an array in the memory of another one."""
    return np.ndarray(shape, dtype, root if root.flags.c_contiguous else root.T, offset, strides)


class _Unpickler(pickle.Unpickler):
    """Loads a value with the definitions of the file that calls."""

    def __init__(self, file: io.BytesIO, names: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._names = names

    def persistent_load(self, name: str) -> Any:
        """Return the definition of a name."""
        return _at(name, self._names)


def _at(name: str, names: Mapping[str, Any]) -> Any:
    """Return what a dotted name means among some names; None if nothing has it."""
    root, *others = name.split(".")
    return reduce(lambda value, entry: getattr(value, entry, None), others, names.get(root))
