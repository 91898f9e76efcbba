"""The YAML file of a sweep, read into a `Design`; everything wrong with it is an InputError before anything runs.

`models` declares all keys, `values` has the spacings of axes, `times` those of recording times, `points` tables.
`build` makes the design, `inherited` reads `from: FILE`, `overrides` what a command line changes. `error_places` finds
the line of an error, whose words are in `engine.base.validation` and `errors`; names of parameters are checked by
`engine.design.grid`.

A section is what is below a key of the top: `grid`, `times`. A dotted key, `grid.d[2]`, names a value below it; errors
have one. The folder of a config is that to which the paths in it are relative.
"""

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.budget import FILE_BYTES
from sweeplib.engine.files.regular_files import open_bytes
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design
    from sweeplib.engine.files.strict_yaml import Document

__all__ = ["content", "from_mapping", "load", "name_of"]

PATIENCE = 5.0
"""Seconds within which somebody must open a pipe in the place of a config, to write into it."""


def content(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file, with those that it starts from; InputError if it is no mapping."""
    return _config_and_bases(path, path.parent)[0]


def name_of(path: Path, overrides: Iterable[str] = ()) -> str:
    """Return the name of the sweep of a file with some overrides; nothing of the sweep is checked or executed."""
    from sweeplib.config.overrides import Override, with_overrides

    data = {"name": path.stem} | _config_and_bases(path, path.parent, may_be_pipe=True)[0]
    return str(with_overrides(data, map(Override, overrides))["name"])


def load(path: str | Path, overrides: Iterable[str] = ()) -> "Design":
    """Return the sweep that the file describes, with the `overrides`, such as `grid.d=[300]`.

    Paths in the file and in overrides are relative to the file's folder, in a pipe (/dev/stdin) to the working folder.
    A pipe must say the `name` of its sweep. The plugins of the file are imported.
    InputError for anything wrong: one line that names the file and line, the key, its value and what was expected.
    """
    from sweeplib.config.error_places import error_at
    from sweeplib.config.overrides import Override, with_overrides
    from sweeplib.engine.storage.records.config_files import is_lasting

    lasting = is_lasting(Path(path))
    folder = Path(path).parent if lasting else Path()
    data, documents = _config_and_bases(Path(path), folder, may_be_pipe=True)
    changes = [Override(text) for text in overrides]
    data = with_overrides(({"name": Path(path).stem} if lasting else {}) | data, changes)
    try:
        sweep = from_mapping(data, folder)
    except InputError as error:
        raise error_at(error, documents, changes) from None
    return replace(sweep, bases=tuple(map(Path, list(documents)[1:])))


def from_mapping(keys: Mapping[str, Any], folder: str | Path = ".") -> "Design":
    """Return the sweep that the keys and values of a YAML file describe; paths in it are relative to `folder`.

    InputError for anything wrong: one line that names the key, its value and what was expected.
    """
    import pydantic

    from sweeplib.config.error_places import input_error
    from sweeplib.config.function_models import FunctionConfig
    from sweeplib.config.inherited import FROM
    from sweeplib.config.models import SweepConfig

    if FROM in keys:
        raise InputError("only a file starts from another one", key=FROM, value=keys[FROM], expected="a sweep's keys")
    try:
        model = FunctionConfig if "simulator" in keys else SweepConfig
        config = model.model_validate(dict(keys))
        from sweeplib.config.build import sweep_of  # imported here because it loads the simulators

        return sweep_of(config, Path(folder))
    except pydantic.ValidationError as error:
        from sweeplib.config.build import parameters_of

        raise input_error(error, model, lambda: parameters_of(keys, Path(folder))) from None


def _config_and_bases(
    path: Path, folder: Path, *, may_be_pipe: bool = False
) -> "tuple[dict[str, Any], dict[str | Path, Document]]":
    """Return the keys and values of a file, merged with those that it starts from, and the documents of all by file.

    folder : where the path is from which the file says that it starts (`from`).
    may_be_pipe : whether `path` may be a pipe, as one that a command is given.
    """
    from sweeplib.config.inherited import FROM, base_configs, merged_config

    main, data = _document(path, may_be_pipe=may_be_pipe)
    documents: dict[str | Path, Document] = {path: main}
    if FROM in data:
        others = base_configs(path, folder, data, _document)
        merged: dict[str, Any] = {}
        for _, _, base in reversed(others):
            merged = merged_config(merged, base)
        data = merged_config(merged, data)
        documents |= {file: document for file, document, _ in others}
    return data, documents


def _document(path: Path, *, may_be_pipe: bool = False) -> "tuple[Document, dict[str, Any]]":
    """Return the parsed YAML of a config file, and its keys and values; InputError if it is empty or no mapping."""
    from sweeplib.engine.files.strict_yaml import document

    read = document(_text(path, may_be_pipe=may_be_pipe), path)
    if read.data is None:
        raise InputError("the file is empty", file=path, expected="a sweep, with `dynamics`, `grid`, `times`, ...")
    if not isinstance(read.data, dict):
        raise InputError("not a sweep", file=path, value=read.data, expected="`name: value` lines")
    return read, read.data


def _text(path: Path, *, may_be_pipe: bool) -> str:
    """Return the text of a config file; InputError if it is too large or, with the line, if it is not UTF-8."""
    content_read = _content(path, may_be_pipe=may_be_pipe)
    if len(content_read) > FILE_BYTES:
        raise InputError("file too large", file=path, expected=f"a sweep's YAML file, of at most {FILE_BYTES} bytes")
    try:
        return content_read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content_read.count(b"\n", 0, error.start) + 1
        problem, expected = "cannot be read: not text in UTF-8", "a sweep's YAML file"
        raise InputError(problem, file=f"{path}:{line}", expected=expected) from None


def _descriptor_of_pipe(path: str, flags: int) -> int:
    """Return the descriptor of a pipe that somebody opens to write within `PATIENCE`; OSError if nobody does."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        opening = beside.submit(os.open, path, flags)
        try:
            return opening.result(PATIENCE)
        except BaseException as error:
            if not opening.done():
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # the thread goes on
                os.close(opening.result())
            if isinstance(error, TimeoutError):
                raise OSError(errno.EPIPE, "nobody writes into this pipe") from None
            raise


def _content(path: Path, *, may_be_pipe: bool) -> bytes:
    """Return the bytes of a file, at most `FILE_BYTES` + 1; of a pipe if that is what the command was given."""
    from sweeplib.engine.storage.records.config_files import is_lasting

    try:
        is_pipe = may_be_pipe and not is_lasting(path)
        with open(path, "rb", opener=_descriptor_of_pipe) if is_pipe else open_bytes(path) as file:
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        files = [str(other) for other in sorted(path.parent.glob("*.yaml")) if other.exists()]
        problem = f"a link to {path.readlink()}, which does not exist" if path.is_symlink() else "no such file"
        expected = "a sweep's YAML file (`sweeplib new NAME.yaml` writes one)"
        raise InputError(problem, value=str(path), expected=expected, choices=files) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot be read: {reason}", file=path, expected="a sweep's YAML file") from None
