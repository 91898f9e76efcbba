"""Small files that appear complete or not at all, and files of lines that many processes append to."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from sweeplib.storage.damage import damaged


def write_text(path: Path, text: str) -> Path:
    """Write a file with this text in one rename, so that readers see the old or the new file; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = partial(path)
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return path


def partial(path: Path) -> Path:
    """Return a new temporary name next to `path`, for a file that will replace it."""
    return path.with_name(f".{path.name}.{uuid4().hex}.partial")


def remove_partials(path: Path) -> None:
    """Remove temporary files of killed writers of `path`. Only for a writer that holds the lock."""
    for leftover in path.parent.glob(f".{path.name}.*.partial"):
        remove(leftover)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its contents."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> Path:
    """Write `value` as JSON in one rename; return the path."""
    return write_text(path, json.dumps(value, indent=1, sort_keys=True, default=str) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, None if there is no file; DamageError if the file is no JSON object."""
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        raise damaged(path, f"delete {path}") from None
    if not isinstance(value, dict):
        raise damaged(path, f"delete {path}")
    return value


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append a record as one JSON line: one write of a short line, which local file systems do not interleave."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, sort_keys=True) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines, [] if there is no file; damaged or truncated lines are left out."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [record for record in map(_parsed, lines) if record is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


@contextmanager
def swapped_in(path: Path) -> Iterator[Path]:
    """Yield a directory beside `path` to write in; it replaces `path` on success, and `path` is unchanged on failure.

    A second writer waits for the first.
    """
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        remove_partials(path)
        new, old = partial(path), partial(path)
        try:
            yield new
            if path.exists():
                path.rename(old)
            new.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise
        finally:
            remove(new)
            remove(old)


def files_digest(path: Path) -> str:
    """Return a hash of the names and contents of all files below a directory."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0".encode())
        digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest()
