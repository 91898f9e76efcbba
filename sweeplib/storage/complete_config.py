"""The complete config of a sweep, written beside its results."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.code.user_paths import seen_from
from sweeplib.storage.files import digest, write_text
from sweeplib.strict_yaml import parsed, written

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

_SEAL = "\n# checksum of the lines above: "


def write_complete_config(sweep: "Sweep", directory: Path, name: str = "config.yaml") -> Path:
    """Write a config that loads the same sweep into a sweep's directory; return its path.

    The paths of plugins and published values are relative to it, so that a project can be moved or copied with its
    results.
    """
    files: dict[tuple[str, ...], Any] = {
        place: seen_from(names, directory) for place, names in _named_files(sweep) if names
    }
    if sweep.table is not None:
        [files["points",]] = seen_from([sweep.table], directory)
    text = (_with_files(sweep.source, files) if files else sweep.source).rstrip("\n")
    return write_text(directory / name, text + _SEAL + digest(text.encode()) + "\n")


def is_as_written(path: Path) -> bool:
    """Return whether a complete config has the content that was written, by the checksum in its last line."""
    text, _, checksum = path.read_bytes().rpartition(_SEAL.encode())
    return checksum == f"{digest(text)}\n".encode()


def _named_files(sweep: "Sweep") -> Iterator[tuple[tuple[str, ...], Sequence[str]]]:
    """Yield the lists of files that a sweep names, with the keys of its config under which they are."""
    yield ("plugins",), sweep.plugins
    for name, options in sweep.figures.items():
        if isinstance(options.get("reference"), list):
            yield ("figures", name, "reference"), options["reference"]


def _with_files(source: str, files: dict[tuple[str, ...], Any]) -> str:
    """Return the YAML text with these files, or lists of files, and everything else unchanged."""
    content = parsed(source)
    for (*above, last), names in files.items():
        section = content
        for key in above:
            section = section[key]
        section[last] = names
    return written(content)
