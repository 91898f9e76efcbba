"""The certificate of a dataset on disk, `contents.json`: what its writer meant to write, file by file.

It has the size and the checksum of each chunk, and a digest of each zarr.json, taken from what was handed to the store,
never from a listing of the folder. So a file that was lost while it was written is noticed, and a file that it does not
name is not sweeplib's: such a file is neither damage nor ever deleted.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sweeplib.storage.damage import DamageError, damaged, lost
from sweeplib.storage.files import digest, file_digests, is_below, is_chunk, is_intact, is_partial
from sweeplib.storage.sealed import read_sealed, write_sealed

NAME = "contents.json"
_OF_ZARR = re.compile(r"(.+/)?(zarr\.json|c(/\d+)*)")
Entry = int | str | list[int]
"""Of a zarr.json the digest, of a chunk the size and the checksum in its last bytes; once it was only the size."""


def entry_of(name: str, content: bytes) -> Entry:
    """Return what `contents.json` says of a file with this content."""
    is_metadata = name.rpartition("/")[2] == "zarr.json"
    return digest(content) if is_metadata else [len(content), int.from_bytes(content[-4:], "little")]


def is_entry_of(entry: Entry, name: str, content: bytes) -> bool:
    """Return whether a file with this content is the one that an entry was written for."""
    return entry == (len(content) if isinstance(entry, int) else entry_of(name, content))


def has_contents(dataset: Path) -> bool:
    """Return whether a dataset has a `contents.json`; datasets of other writers have none."""
    return (dataset / NAME).exists()


def certified(dataset: Path, meant: Mapping[str, tuple[str, Entry]]) -> dict[str, str]:
    """Write the `contents.json` of a dataset; return the digests of all its files.

    `meant` are the digest and the entry of each file as it was handed to the store. DamageError if one is not there.
    """
    write_sealed(dataset / NAME, {"files": {name: entry for name, (_, entry) in sorted(meant.items())}}, "files")
    found, remedy = file_digests(dataset), "it changed while it was written: repeat the command"
    for name, (content, _) in meant.items():
        if found.get(name) != content:
            raise (damaged if name in found else lost)(dataset / name, remedy)
    return {name: found[name] for name in sorted((*meant, NAME))}


def check_contents(dataset: Path, remedy: str) -> dict[str, Entry]:
    """Return the entries of a dataset's files.

    DamageError, naming the file, for a file that is lost, has another size, or is metadata that changed.
    """
    entries: dict[str, Entry] = read_sealed(dataset / NAME, remedy, "files")["files"]
    for name, entry in entries.items():
        file = dataset / name
        if not file.exists():
            raise lost(file, remedy)
        size = entry[0] if isinstance(entry, list) else entry
        if (digest(file.read_bytes()) if isinstance(size, str) else file.stat().st_size) != size:
            raise damaged(file, remedy)
    return entries


def recorded_entries(dataset: Path) -> dict[str, Entry]:
    """Return the entries of a dataset's files as they were written; {} if they are not known."""
    try:
        entries = read_sealed(dataset / NAME, "", "files")["files"]
    except DamageError:
        return {}
    return {name: entry for name, entry in entries.items() if is_below(name)}


def is_whole(dataset: Path) -> bool:
    """Return whether every file of a dataset is there, with the content that its certificate says."""
    entries = recorded_entries(dataset)
    if not entries or not all((dataset / name).is_file() for name in entries):
        return False
    contents = ((name, (dataset / name).read_bytes()) for name in entries)
    return all(is_entry_of(entries[name], name, found) and is_whole_file(name, found) for name, found in contents)


def is_whole_file(name: str, content: bytes) -> bool:
    """Return whether a file's own checksum, if it is a chunk, is that of its content."""
    return not is_chunk(name) or is_intact(content)


def is_own(dataset: Path) -> Callable[[str], bool]:
    """Return whether a path below a dataset's folder is a file of the dataset: those in its certificate.

    Without one, of a writer that was killed or of another one, those that have the names of zarr.
    """
    entries = recorded_entries(dataset)
    return {*entries, NAME}.__contains__ if entries else is_name_of_zarr


def is_name_of_zarr(name: str) -> bool:
    """Return whether a file of a dataset may have this path below its folder."""
    return name == NAME or is_partial(Path(name)) or _OF_ZARR.fullmatch(name) is not None


def own_digests(dataset: Path) -> dict[str, str]:
    """Return the digests of a dataset's own files."""
    own = is_own(dataset)
    return {name: content for name, content in file_digests(dataset).items() if own(name)}
