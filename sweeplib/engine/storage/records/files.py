"""Small files that appear complete or not at all, and files of lines that many processes append to.

A file is on the disk before it gets its name: after a power cut there is the old or the new one. JSON files and the
lines of journals have a checksum of their content, so that a flipped bit is never read as other content. Nothing is
written, and nothing deleted, through a link that sweeplib did not make.
"""

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from glob import escape
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import google_crc32c

from sweeplib.engine.files.regular_files import IrregularFileError, descriptor, file_bytes, open_bytes
from sweeplib.errors import InputError, SweeplibError

PLACES = (
    *("analysis", "datasets", "figures", "inventory", "jobs", "journal", "locks", "outcomes", "report", "stages"),
    *("checkpoints", "runs", "config.yaml", "command.yaml", "origin.json", "plan.json"),
)
"""What commands write in the folder of a sweep; `dataset.zarr` is exchanged, and has a rule of its own."""

CHECKSUM = "checksum"
"""The key of an object's checksum in its JSON file."""
SYNCS_AT_ONCE = 8
"""Each takes a thread and an open file, of which a process may have few."""
LONG_SYNC = 0.001
"""Seconds; threads take about as long to start."""
_NO_SUCH_OPERATION = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_LINE_CHECKSUM = f', "{CHECKSUM}": "'.encode()
"""What stands in a JSON line between the record, without its last brace, and its checksum."""
_PARTIAL = re.compile(r"\.(.+)\.([0-9a-f]{16})([0-9a-f]{16})\.partial")
"""The name of a temporary file: the file's name, a random token, and a digest of both (`_partial_digest`)."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Constants of Linux for `renameat2`: paths are from the working folder, and the names are exchanged."""

DAMAGED = "damaged, it holds something else than was written"
LOST = "lost, the file is no longer there"
REPAIR = "repair all with `sweeplib verify CONFIG --repair`"
"""What messages say of a damaged file, of a lost one, and as their remedy."""


class DamageError(SweeplibError):
    """A stored file is lost, or its content is not what was written; the message names the file and a remedy."""


def damaged(path: Path, remedy: str) -> DamageError:
    """Return the error for a file whose content is not what was written; `remedy` is what to do, in words."""
    return DamageError(f"{path}: {DAMAGED}; {remedy}")


def lost(path: Path, remedy: str) -> DamageError:
    """Return the error for a file that is lost, alone or with its folder; `remedy` is what to do, in words."""
    if not path.parent.exists():
        return DamageError(f"{path}: lost, its folder was moved or deleted; bring it back, or {remedy}")
    return DamageError(f"{path}: {LOST}; {remedy}")


def write_text(path: Path, text: str, *, durable: bool = True) -> Path:
    """Write a file with this text in one rename, so that readers see the old or the new file; return the path.

    If `durable`, the file survives a power cut after the return.
    """
    return write_bytes(path, text.encode("utf-8"), durable=durable)


def write_bytes(path: Path, content: Any, *, durable: bool = True) -> Path:
    """Write a file with this content (any buffer) in one rename; return the path. `durable` : see `write_text`."""
    write_files({path: content}, durable=durable)
    return path


def write_files(contents: Mapping[Path, Any], *, durable: bool = True) -> None:
    """Write files with these contents (any buffers), each in one rename, in order; all wait for the disk at once.

    None is renamed unless all are written. InputError if a path is a link.
    """
    for path in contents:
        if path.is_symlink():
            raise linked(path)
    folders = {folder for path in contents for folder in path.parents if not folder.exists()}
    beside = {path: partial(path) for path in contents}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside[path].write_bytes(content)
        if durable:
            sync(*beside.values())
        for path in contents:
            beside[path].replace(path)
        if durable:
            sync(*{path.parent for path in (*contents, *folders)})
    except BaseException:
        for path in beside.values():
            path.unlink(missing_ok=True)
        raise


def sync(*paths: Path) -> None:
    """Wait until the contents of files, and the names in folders, are on the disk.

    After one that took long, threads wait for the others at once: a disk does in one turn what it is asked meanwhile.
    """
    waiting, seconds = deque(paths), 0.0
    while waiting and seconds <= LONG_SYNC:
        started = time.perf_counter()
        _sync(waiting.popleft())
        seconds = time.perf_counter() - started
    if not waiting:
        return
    try:
        with ThreadPoolExecutor(SYNCS_AT_ONCE) as pool:
            deque(pool.map(_sync, waiting), maxlen=0)
    except RuntimeError:  # a limit of the container or the user allows no further thread
        deque(map(_sync, waiting), maxlen=0)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the file system has such an operation."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_OPERATION:
            raise
    finally:
        os.close(descriptor)


def is_intact(chunk: Any) -> bool:
    """Return whether the last four bytes of a chunk of zarr are the checksum, CRC32C, of the preceding ones."""
    return len(chunk) > 4 and google_crc32c.value(chunk[:-4]) == int.from_bytes(bytes(chunk[-4:]), "little")


def is_chunk(key: str) -> bool:
    """Return whether a key is that of a chunk (`<array>/c/0/1`), not of metadata (zarr.json, .zarray)."""
    *folders, name = key.split("/")
    return name != "zarr.json" and not name.startswith(".") and "c" in (*folders, name)


def partial(path: Path) -> Path:
    """Return a new temporary name next to `path`, for a file that will replace it; `is_partial` knows it again."""
    token = uuid4().hex[:16]
    return path.with_name(f".{path.name}.{token}{_partial_digest(path.name, token)}.partial")


def is_partial(path: Path) -> bool:
    """Return whether a name was made by `partial`: it ends with a digest of its other parts."""
    match = _PARTIAL.fullmatch(path.name)
    return match is not None and match[3] == _partial_digest(match[1], match[2])


def _partial_digest(name: str, token: str) -> str:
    """Return the digits that only `partial` puts behind a name and a token: no other file is removed for its name."""
    return digest(f"{name}\0{token}".encode())[:16]


def remove_partials(path: Path) -> None:
    """Remove temporary files of killed writers of `path`. Only for a writer that holds the lock of `path`."""
    for leftover in path.parent.glob(f".{escape(path.name)}.*.partial"):
        if is_partial(leftover):
            remove(leftover)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its contents; all of it must be sweeplib's own."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, links among them, and nothing that is reached through a link."""
    for here, folders, names in os.walk(folder):
        links = (name for name in folders if Path(here, name).is_symlink())
        yield from (Path(here, name) for name in sorted((*names, *links)))


def remove_own(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Remove the files below a folder that `is_own` knows by their paths from there, and then empty folders.

    No link is removed, and nothing behind one; if the folder itself is a link, nothing is.
    """
    for path in [] if folder.is_symlink() else list(files_below(folder)):
        if not path.is_symlink() and is_own(path.relative_to(folder).as_posix()):
            path.unlink(missing_ok=True)
    remove_empty(folder)


def remove_files(directory: Path, files: Sequence[Path]) -> None:
    """Remove files below a directory, and the folders there that are then empty; InputError for one behind a link."""
    refuse_links(directory, *(path.parent for path in files))
    for path in files:
        path.unlink(missing_ok=True)
    folders = {folder for path in files for folder in path.parents if directory in folder.parents}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        with suppress(OSError):
            folder.rmdir()


def remove_empty(folder: Path) -> None:
    """Remove a folder and those below it as far as they have no files."""
    for here, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(here).rmdir()


def is_below(name: object) -> bool:
    """Return whether a name from a record, which may be any value, is a path below a folder: relative, without `..`."""
    path = PurePosixPath(name) if isinstance(name, str) else None
    return path is not None and bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def exchange(path: Path, other: Path) -> None:
    """Give two files or folders of one folder each other's name, in one step where the system can.

    Elsewhere `other` is absent for a moment, between two renames.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(path), os.fsencode(other)
    if hasattr(libc, "renameat2") and not libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        return
    between = partial(other)
    other.rename(between)
    path.rename(other)
    between.rename(path)


def write_json(path: Path, value: Mapping[str, Any], *, durable: bool = True, indent: int | None = 1) -> Path:
    """Write an object as JSON with its checksum in one rename; return the path. Other values are written as text."""
    return write_text(path, _with_checksum(json.loads(json.dumps(value, default=str)), indent), durable=durable)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file of `write_json`, None if there is no file; DamageError if any bit has changed."""
    if not path.exists():
        return None
    try:
        text = content(path).decode("utf-8")
        value = json.loads(text)
        checksum = value.pop(CHECKSUM, None)
        # written again, it must give the same text: every byte is checked, layout and checksum among them
        intact = checksum is not None and _with_checksum(value, 1 if text.startswith("{\n") else None) == text
    except FileNotFoundError:  # removed, or renamed, meanwhile
        return None
    except (ValueError, TypeError, AttributeError, RecursionError):
        checksum, intact = "", False
    if not intact:
        older = " (if it is of an earlier version of sweeplib: it has no checksum)" if checksum is None else ""
        raise damaged(path, f"delete {path}, or {REPAIR}{older}")
    return dict(value)


def intact_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of `write_json`; {} if there is no file, or any bit of it has changed."""
    with suppress(DamageError):
        return read_json(path) or {}
    return {}


def content(path: Path) -> bytes:
    """Return the bytes of a file; DamageError if a folder, a pipe or a device is in its place."""
    try:
        return file_bytes(path)
    except (IsADirectoryError, IrregularFileError):
        raise damaged(path, "something else than a file is in its place: move it away") from None


def digest(content: bytes) -> str:
    """Return the checksum of some bytes, 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _with_checksum(value: dict[str, Any], indent: int | None) -> str:
    """Return an object as JSON text with its checksum as one more key."""
    checksum = digest(json.dumps(value, sort_keys=True).encode())
    return json.dumps(value | {CHECKSUM: checksum}, indent=indent, sort_keys=True) + "\n"


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append a record as one JSON line, which ends with its checksum.

    It is one write of a short line, which local file systems do not interleave. A power cut or a full disk may take the
    last lines, or tear one: the next record begins a line of its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(record, sort_keys=True).encode().removesuffix(b"}")
    line = content + _LINE_CHECKSUM + digest(content).encode() + b'"}\n'
    if path.is_symlink():
        raise linked(path)
    number = descriptor(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(number).st_size
        is_torn = size > 0 and os.pread(number, 1, size - 1) != b"\n"
        line = b"\n" + line if is_torn else line
        if os.write(number, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(number)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines, [] if there is no file; damaged or truncated lines are left out."""
    return [json.loads(content + b"}") for content in map(_intact, _lines(path)) if content is not None]


def appended_lines(path: Path, start: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the records of the lines from the byte `start` on, of `most` bytes, and the byte after the last line.

    A line that is not whole yet is left for the next call; damaged lines, and one longer than `most`, are left out.
    """
    if not path.exists():
        return [], start
    with open_bytes(path) as file:
        file.seek(start)
        read = file.read(most)
    whole, end, _ = read.rpartition(b"\n")
    # without an end of line: a part of a longer line is skipped, one that is being written is read later
    after = start + (len(whole) + len(end) if end else len(read) if len(read) == most else 0)
    return [json.loads(content + b"}") for content in map(_intact, whole.split(b"\n")) if content is not None], after


def damaged_lines(path: Path) -> int:
    """Return the number of damaged or truncated lines of a file of JSON lines."""
    return sum(_intact(line) is None for line in _lines(path))


def drop_damaged_lines(path: Path) -> None:
    """Write a file of JSON lines again without its damaged lines. Only while nobody appends."""
    write_bytes(path, b"".join(line + b"\n" for line in _lines(path) if _intact(line) is not None))


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a file, without an empty one at its end."""
    text = content(path) if path.exists() else b""
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _intact(line: bytes) -> bytes | None:
    """Return a line's record as JSON text without its last brace; None if the line is not what was written."""
    content, _, checksum = line.rpartition(_LINE_CHECKSUM)
    return content if checksum == digest(content).encode() + b'"}' else None


def links_on_the_way(folder: Path, path: Path) -> Iterator[Path]:
    """Yield the links among the steps from a folder to a path below it, the path itself included."""
    step = folder
    for name in path.relative_to(folder).parts:
        step = step / name
        if step.is_symlink():
            yield step


def refuse_links(folder: Path, *paths: Path) -> None:
    """Raise InputError if a path below a folder is a link, or behind one."""
    for path in paths:
        for link in links_on_the_way(folder, path):
            raise linked(link)


def foreign(link: Path) -> str:
    """Return in words what a link is that sweeplib did not make: where it leads."""
    return f"a link to {str(link.readlink())!a}, which sweeplib did not make"


def linked(link: Path) -> InputError:
    """Return the error for a link in the place of something that sweeplib writes."""
    problem = f"{foreign(link)}: nothing is written through it"
    expected = "what it leads to in its place; a link in place of the whole folder of the sweep is followed"
    return InputError(problem, file=link, expected=expected)
