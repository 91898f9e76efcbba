"""The YAML file of a sweep, read into a `Sweep`; everything wrong with it is an InputError before anything runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.budget import FILE_BYTES
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

__all__ = ["content", "from_mapping", "load"]


def content(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file as they are written; InputError for a file that is no mapping."""
    from sweeplib.strict_yaml import parsed

    return _mapping(parsed(_text(path), path), path)


def load(path: str | Path, overrides: Iterable[str] = ()) -> "Sweep":
    """Return the sweep that the file describes, with the `overrides`, such as `grid.d=[300]`.

    Paths in the file and in overrides are relative to the file's folder, in a pipe (/dev/stdin) to the working folder.
    A pipe must say the `name` of its sweep. The plugins of the file are imported.
    InputError for anything wrong: one line that names the file and line, the key, its value and what was expected.
    """
    from sweeplib.config.explained import located
    from sweeplib.config.overrides import Override, overridden
    from sweeplib.storage.origin import is_lasting
    from sweeplib.strict_yaml import document

    read = document(_text(Path(path)), path)
    changes = [Override(text) for text in overrides]
    lasting = is_lasting(Path(path))
    data = ({"name": Path(path).stem} if lasting else {}) | _mapping(read.data, path)
    for change in changes:
        data = overridden(data, change)
    try:
        return from_mapping(data, Path(path).parent if lasting else ".")
    except InputError as error:
        raise located(error, read, path, changes) from None


def from_mapping(given: Mapping[str, Any], folder: str | Path = ".") -> "Sweep":
    """Return the sweep that the keys and values of a YAML file describe; paths in it are relative to `folder`.

    InputError for anything wrong: one line that names the key, its value and what was expected.
    """
    import pydantic

    from sweeplib.config.explained import explained
    from sweeplib.config.models import SweepConfig

    try:
        config = SweepConfig.model_validate(dict(given))
        from sweeplib.config.build import sweep_of  # imported here because it loads the simulators

        return sweep_of(config, Path(folder))
    except pydantic.ValidationError as error:
        raise explained(error) from None


def _text(path: Path) -> str:
    read = _content(path)
    if len(read) > FILE_BYTES:
        raise InputError("file too large", file=path, expected=f"a sweep's YAML file, of at most {FILE_BYTES} bytes")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = read.count(b"\n", 0, error.start) + 1
        problem, expected = "cannot be read: not text in UTF-8", "a sweep's YAML file"
        raise InputError(problem, file=f"{path}:{line}", expected=expected) from None


def _content(path: Path) -> bytes:
    """Return the bytes of a file, at most `FILE_BYTES` + 1."""
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        files = [str(other) for other in sorted(path.parent.glob("*.yaml")) if other.exists()]
        problem = f"a link to {path.readlink()}, which does not exist" if path.is_symlink() else "no such file"
        raise InputError(problem, value=str(path), expected="a sweep's YAML file", choices=files) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot be read: {reason}", file=path, expected="a sweep's YAML file") from None


def _mapping(data: Any, path: str | Path) -> dict[str, Any]:
    if data is None:
        raise InputError("the file is empty", file=path, expected="a sweep, with `dynamics`, `grid`, `times`, ...")
    if not isinstance(data, dict):
        raise InputError("not a sweep", file=path, value=data, expected="`name: value` lines")
    return data
