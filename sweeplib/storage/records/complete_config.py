"""The complete config of a sweep, written beside its results."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.code.user_paths import seen_from
from sweeplib.storage.records.files import digest, write_text
from sweeplib.strict_yaml import parsed, written

if TYPE_CHECKING:
    from sweeplib.design.design import Design

_SEAL = "\n# checksum of the lines above: "


def write_complete_config(sweep: "Design", directory: Path, name: str = "config.yaml") -> Path:
    """Write a config that loads the same sweep into a sweep's directory; return its path.

    The paths of plugins and published values are relative to it, so that a project can be moved or copied with its
    results.
    """
    text = sweep.source
    if sweep.user_names():
        text = written(parsed(text) | sweep.with_files(partial(seen_from, folder=directory)))
    text = text.rstrip("\n")
    return write_text(directory / name, text + _SEAL + digest(text.encode()) + "\n")


def is_as_written(path: Path) -> bool:
    """Return whether a complete config has the content that was written, by the checksum in its last line."""
    text, _, checksum = path.read_bytes().rpartition(_SEAL.encode())
    return checksum == f"{digest(text)}\n".encode()
