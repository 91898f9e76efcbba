"""Checkpoints: the last states of cases that are not finished, in a file each beside the run store."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import digest, refuse_links, remove_files, write_bytes

FOLDER = "checkpoints"
DIGITS = 32
"""The length of a digest, which stands before the content of a file."""
TRIES = 3
"""How often a file is written until its folder stays."""
NAME = re.compile("[0-9a-f]{32}")
"""The names of states: identities of cases."""


@dataclass(frozen=True)
class CheckpointFolder:
    """Where a sweep keeps the last states of its cases: under names that simulators make, one for each.

    directory : of the sweep's results.
    seconds : between two states of a case, at least.
    keep_ends : whether the last state of a case that has finished stays, from which a longer one goes on.
    """

    directory: str
    seconds: float = 0.0
    keep_ends: bool = False

    def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing, or if a bit of it has changed since."""
        try:
            content = file_bytes(self._path(name))
        except OSError:
            return None
        return content[DIGITS:] if digest(content[DIGITS:]).encode() == content[:DIGITS] else None

    def files(self) -> list[Path]:
        """Return the files with names of states, whatever is in them."""
        return [path for path in sorted(Path(self.directory, FOLDER).glob("*")) if NAME.fullmatch(path.name)]

    def write(self, name: str, content: bytes) -> None:
        """Keep some bytes under a name, in place of those before."""
        refuse_links(Path(self.directory), path := self._path(name))
        sealed = digest(content).encode() + content
        # another worker may remove the folder, empty, between the moment when this one makes it and that of the file
        for _ in range(TRIES - 1):
            with suppress(FileNotFoundError):
                write_bytes(path, sealed)
                return
        write_bytes(path, sealed)

    def forget(self, names: Iterable[str]) -> None:
        """Remove what is kept under some names."""
        remove_files(Path(self.directory), [self._path(name) for name in names])

    def _path(self, name: str) -> Path:
        return Path(self.directory) / FOLDER / name
