"""Zarr stores of datasets: one that writes a new version, and one that reads a version, whatever its writer does.

Zarr calls their methods: a key is the path of a file in the folder, a value a buffer. The manifest of a version has an
entry for each of its files: size, digest, and checksum of a chunk.
"""

import json
import os
import unicodedata
from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from sweeplib.engine.files.regular_files import file_bytes, open_bytes, refuse_irregular
from sweeplib.engine.storage.dataset.versions import name_of, version_folders
from sweeplib.engine.storage.records.files import DamageError, damaged, is_chunk, lost, partial
from sweeplib.engine.storage.records.manifest import MANIFEST, Entry, entry_of, is_like, manifest_of


class RegularStore(LocalStore):
    """A folder of files; IrregularFileError for something else in the place of one that is read."""

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return await super().get(key, *args, **kwargs) if self._is_file(key) else None

    def get_sync(self, key: str, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return super().get_sync(key, **kwargs) if self._is_file(key) else None

    def _is_file(self, key: str) -> bool:
        """Return whether there is a file; IrregularFileError for a pipe, a device or a socket, which might block."""
        try:
            refuse_irregular(self.root / key)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False
        return True


class LinkingStore(LocalStore):
    """A folder in which a chunk with the bytes of one in the folder `before` becomes a hard link to it.

    Chunks are found by their length and checksum, wherever they are in the array, and compared byte by byte. Where the
    file system has no hard links, chunks are written.

    meant : the entry of each file, made from what zarr handed over to be written, for the manifest.
    """

    def __init__(self, root: Path, *, read_only: bool = False, before: Path | None = None) -> None:
        """Open a folder to write in; `before` is that of the version whose chunks may be linked, if there is one."""
        super().__init__(root, read_only=read_only)
        self.before = before
        self.meant: dict[str, Entry] = {}

    async def set(self, key: str, value: Any) -> None:
        """Write the bytes of a file, or link it to a chunk of the version before that has the same."""
        value = _in_order(key, value)
        if not self._is_linked(key, value):
            await super().set(key, value)

    def set_sync(self, key: str, value: Any) -> None:
        """Do what `set` does, for parts of zarr that are not asynchronous."""
        value = _in_order(key, value)
        if not self._is_linked(key, value):
            super().set_sync(key, value)

    async def set_if_not_exists(self, key: str, value: Any) -> None:
        """Write the bytes of a file that is not there: zarr needs a hard link for this, against a second writer."""
        if not (self.root / key).exists():
            await self.set(key, value)

    def _is_linked(self, key: str, value: Any) -> bool:
        """Note the entry of a file; return whether it is now a link to the same chunk of the version before."""
        content = value.to_bytes()
        self.meant[key] = entry_of(key, content)
        if not is_chunk(key):
            return False
        for chunk in self._chunks_by_checksum.get((len(content), content[-4:]), ()):
            if file_bytes(chunk) == content and _link(chunk, self.root / key):
                return True
        return False

    @cached_property
    def _chunks_by_checksum(self) -> dict[tuple[int, bytes], list[Path]]:
        """The chunks of the previous version by length and checksum."""
        chunks: dict[tuple[int, bytes], list[Path]] = defaultdict(list)
        if self.before is not None:
            for folder, _, names in os.walk(self.before):
                for path in (Path(folder, name) for name in names):
                    if is_chunk(path.relative_to(self.before).as_posix()):
                        with open_bytes(path) as file:
                            size = file.seek(0, os.SEEK_END)
                            file.seek(max(0, size - 4))
                            chunks[size, file.read()].append(path)
        return chunks


def _in_order(key: str, value: Any) -> Any:
    """Return metadata whose consolidated part has the arrays in the order of newer releases of zarr.

    Older ones list them as the answers of the file system come, so that two writers of one dataset wrote other bytes.

    key, value : the name of a file and its buffer, as zarr hands them over; other files are returned unchanged.
    """
    if not key.endswith("zarr.json"):
        return value
    content = json.loads(value.to_bytes())
    nodes = (content.get("consolidated_metadata") or {}).get("metadata", {})
    order = sorted(nodes, key=lambda name: (name.count("/"), unicodedata.normalize("NFKC", name).casefold()))
    if list(nodes) == order:
        return value
    content["consolidated_metadata"]["metadata"] = {name: nodes[name] for name in order}
    return default_buffer_prototype().buffer.from_bytes(json.dumps(content, indent=2).encode())


class VersionStore(RegularStore):
    """The version of a dataset that is present when the store is made.

    Every file that is read is compared with the entry of that version's manifest. If it is of another version by
    now, it is read from `datasets/`. DamageError for a version that is gone, and, with the advice `remedy`, for a file
    that is damaged or lost.

    entries : by key, those of the manifest. version : its digest.
    """

    def __init__(self, root: Path, remedy: str) -> None:
        """Read the manifest of the version at `root`, and compare the sizes of files; `remedy` is for messages."""
        super().__init__(root, read_only=True)
        self.remedy = remedy
        if (manifest := manifest_of(root)) is None:
            raise lost(root / MANIFEST, remedy)
        manifest.check_sizes(remedy)
        self.entries, self.version = manifest.files, manifest.digest

    def with_read_only(self, read_only: bool = False) -> "VersionStore":
        """Return the store; it can only be read."""
        return self

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._intact_chunk(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._intact_chunk(key, super().get_sync(key, **kwargs))

    def _intact_chunk(self, key: str, chunk: Any) -> Any:
        """Return the bytes of a file of this version: `chunk`, as read at its place, or what a kept version has.

        A file that the manifest does not name is returned as read.
        """
        if key not in self.entries:
            return chunk
        if chunk is not None and is_like(self.entries[key], key, chunk.to_bytes()):
            return chunk
        for folder in version_folders(self.root, self.version):
            with suppress(OSError):
                content = file_bytes(folder / key)
                if is_like(self.entries[key], key, content):
                    return default_buffer_prototype().buffer.from_bytes(content)
        if (present := name_of(self.root)) and present != self.version:
            problem = "was written again since it was opened, and that version is no longer kept"
            raise DamageError(f"{self.root}: {problem}; open it again; sweeps with other names do not replace it")
        if chunk is None or not present:
            raise lost(self.root / key, self.remedy)
        raise damaged(self.root / key, self.remedy)


def _link(chunk: Path, path: Path) -> bool:
    """Make a path a hard link to an equal chunk of another version, in place of what is there, which saves disk space.

    Return whether that was possible; a file system may have no such links. Then the caller writes the chunk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = partial(path)
    try:
        beside.hardlink_to(chunk)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        return False
    return True
