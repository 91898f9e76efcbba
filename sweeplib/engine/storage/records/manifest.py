"""The files that a stage meant to write: the manifest in a folder of zarr, the record of a stage for others.

A folder of zarr (the dataset, an analysis) has `manifest.json` in it, so that a copy can be checked too:

    {"files": {"risk/c/0": [size, digest, checksum], ...}}

Sizes and digests are those of what was handed to the store, never of what a listing of the folder shows: a file that
was lost while it was written is noticed. The checksum, in the last bytes of a chunk, lets a reader know the chunk at a
tenth of the cost. A file that no manifest names is not sweeplib's: it is neither damage nor ever deleted. The digest of
all files names the version of the folder; the record of its stage has it too: what is made from it depends on its
content, not on what that was made from.

Everything that asks whether an artefact is whole, up to date, published or used compares these entries. When it was
made is the time of the file that has them, the last one that is written; a file with a later time is read before it is
believed.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import (
    DAMAGED,
    LOST,
    REPAIR,
    DamageError,
    damaged,
    digest,
    is_below,
    is_chunk,
    is_intact,
    is_partial,
    lost,
    read_json,
    write_json,
)

MANIFEST = "manifest.json"
EARLIER = "contents.json"
"""What a dataset of an earlier version of sweeplib has in place of a manifest; it is not compared with that."""
UNLISTED = "there is none, as beside all results of an earlier version of sweeplib"
"""The problem of a manifest that was never written."""
Entry = list[int | str]
"""The size and the digest of a file, and of a chunk also the checksum in its last bytes."""
_REPEAT = "it changed while it was written: repeat the command"
_OF_ZARR = re.compile(r"(.+/)?(zarr\.json|c(/\d+)*)")
"""The paths of zarr's files below its folder: metadata, and chunks `ARRAY/c/0/1`."""
_BEGUN_BY_ZARR = re.compile(r"(.+/)?(zarr|c(/\d+)*)\.[0-9a-f]{32}\.partial")
"""Zarr's names for files that it is writing; they remain if the writer is killed."""
_LINE = re.compile(rb'"([^"]+)": (\[\d+, "[0-9a-f]{32}"(?:, \d+)?\])')
"""A name with its entry in the text of a manifest."""


def entry_of(name: str, content: bytes) -> Entry:
    """Return the entry of a file: its size, the digest of its content, and of a chunk the checksum at its end."""
    entry: Entry = [len(content), digest(content)]
    return [*entry, int.from_bytes(content[-4:], "little")] if is_chunk(name) else entry


def digest_of(digests: Mapping[str, str]) -> str:
    """Return the digest of several files from the digest of each, by name."""
    return digest("".join(f"{name}\0{content}\0" for name, content in sorted(digests.items())).encode())


def is_like(entry: Entry, name: str, content: bytes) -> bool:
    """Return whether a file with this content is as its entry says: a chunk by its checksum, others by their digest."""
    if not is_chunk(name):
        return entry_of(name, content) == entry
    return [len(content), int.from_bytes(content[-4:], "little")] == [entry[0], entry[-1]] and is_intact(content)


@dataclass(frozen=True)
class Manifest:
    """The entries of files, by their names in a `folder`; `path` is the file that lists them, written after them."""

    folder: Path
    files: Mapping[str, Entry]
    path: Path

    @cached_property
    def digest(self) -> str:
        """The digest of all files, which names the version of the artefact."""
        return digest_of({name: str(entry[1]) for name, entry in self.files.items()})

    def check(self, remedy: str) -> None:
        """Raise DamageError for the first file that is not as it was meant to be; `remedy` says what to do."""
        for name, problem in self.problems():
            raise (lost if problem == LOST else damaged)(self.folder / name, remedy)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the names of the files that are lost or damaged, with the problem; every file is read."""
        for name, entry in self.files.items():
            if (content := bytes_if_any(self.folder / name)) is None:
                yield name, LOST
            elif entry_of(name, content) != entry:
                yield name, DAMAGED

    def is_whole(self) -> bool:
        """Return whether every file has the content that was meant to be written."""
        return next(self.problems(), None) is None

    def check_sizes(self, remedy: str) -> None:
        """Raise DamageError, naming the file, if one is lost, has another size, or is metadata that changed."""
        for name, (size, content, *_) in self.files.items():
            file = self.folder / name
            if not file.exists():
                raise lost(file, remedy)
            if file.stat().st_size != size or not (is_chunk(name) or digest(file_bytes(file)) == content):
                raise damaged(file, remedy)

    def is_unchanged(self, *, remember: bool) -> bool:
        """Return whether all files are as they were written; only those are read that are not older than the list.

        remember : whether the list gets the present time if they are, so that the files of a copy are read once.
        """
        since, later = self.path.stat().st_mtime_ns, {}
        for name, entry in self.files.items():
            try:
                stat = (self.folder / name).stat()
            except OSError:
                return False
            if stat.st_size != entry[0]:
                return False
            if stat.st_mtime_ns >= since:
                later[name] = entry
        same = replace(self, files=later).is_whole()
        if later and same and remember:
            with suppress(OSError):  # a read-only directory
                os.utime(self.path)
        return same


def manifest_of(folder: Path) -> Manifest | None:
    """Return the manifest of a folder of zarr, None if it has none; DamageError if it is changed, or another record."""
    content = read_json(path := folder / MANIFEST)
    if content is None:
        return None
    if "files" not in content:
        raise damaged(path, REPAIR)
    return Manifest(folder, own_entries(content["files"]), path)


def has_manifest(folder: Path) -> bool:
    """Return whether a folder of zarr has a manifest, or what an earlier version of sweeplib wrote in its place."""
    return any((folder / name).exists() for name in (MANIFEST, EARLIER))


def manifest_at(folder: Path) -> Manifest:
    """Return the manifest of a folder of zarr; without files if it has none or a damaged one."""
    with suppress(DamageError):
        if (manifest := manifest_of(folder)) is not None:
            return manifest
    return Manifest(folder, {}, folder / MANIFEST)


def entries_of(contents: Mapping[Path, bytes], folder: Path) -> dict[str, Entry]:
    """Return the entries of files that were written with these contents, by their paths in a folder.

    DamageError if a file there has another content by now.
    """
    named = {path.relative_to(folder).as_posix(): content for path, content in contents.items()}
    entries = {name: entry_of(name, content) for name, content in named.items()}
    Manifest(folder, entries, folder).check(_REPEAT)
    return entries


def written_manifest(folder: Path, files: Mapping[str, Entry]) -> Manifest:
    """Write the manifest of a folder of zarr, after its files; return it.

    DamageError if a file is not as it was meant to be.
    """
    path = write_json(folder / MANIFEST, {"files": dict(files)}, indent=None)
    manifest = Manifest(folder, files, path)
    manifest.check(_REPEAT)
    return manifest


def examination(folder: Path) -> tuple[int, dict[str, str]]:
    """Return the number of chunks that were read in a folder of zarr, and the problems of damaged files, by name.

    The manifest may be damaged itself. Entries of it that can still be read serve for their files; of any other file,
    only a chunk has a checksum of its own.
    """
    problems: dict[str, str] = {}
    try:
        manifest = manifest_of(folder)
        problems |= {MANIFEST: UNLISTED if (folder / EARLIER).exists() else LOST} if manifest is None else {}
    except DamageError:
        manifest, problems[MANIFEST] = None, DAMAGED
    if manifest is None:
        path = folder / MANIFEST
        manifest = Manifest(folder, _readable(path), path)
        for name in _names_of_zarr(folder):
            if name in manifest.files:
                continue
            # metadata that no entry can vouch for counts as damaged, unless there are no entries at all
            if not is_intact(file_bytes(folder / name)) if is_chunk(name) else manifest.files:
                problems[name] = DAMAGED
    problems |= dict(manifest.problems())
    return sum(map(is_chunk, manifest.files)), problems


def _readable(path: Path) -> dict[str, Entry]:
    """Return the entries, of files that exist, that can be read in a damaged manifest at `path`."""
    lines = _LINE.findall(bytes_if_any(path) or b"")
    entries: dict[str, Entry] = {name.decode("latin-1"): json.loads(entry) for name, entry in lines}
    return {name: entry for name, entry in own_entries(entries).items() if (path.parent / name).is_file()}


def _names_of_zarr(folder: Path) -> Iterator[str]:
    """Yield the names of the files in a folder of zarr, without its manifest."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and _OF_ZARR.fullmatch(name):
            yield name


def own_entries(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries of a record but for those whose name leads out of their folder, as a changed one may."""
    return {name: entry for name, entry in entries.items() if is_below(name)}


def is_own(dataset: Path) -> Callable[[str], bool]:
    """Return a function that says whether a path below a dataset's folder is in its manifest, and so a file of it.

    Without a manifest, as a killed writer leaves it, files with names of zarr are the dataset's.
    """
    files = manifest_at(dataset).files
    return {*files, MANIFEST}.__contains__ if files else is_name_of_zarr


def is_name_of_zarr(name: str) -> bool:
    """Return whether a file of a dataset may have this path below its folder."""
    names = (_OF_ZARR, _BEGUN_BY_ZARR)
    return name in (MANIFEST, EARLIER) or is_partial(Path(name)) or any(pattern.fullmatch(name) for pattern in names)


def bytes_if_any(path: Path) -> bytes | None:
    """Return the content of a file, None if there is none."""
    return file_bytes(path) if path.is_file() else None
