"""Small files that are either whole or absent, and lines that many processes append."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweeplib.errors import SweeplibError

MADE_AGAIN = "delete it, and the same command makes it again"
"""What to do about a damaged file that holds no results."""


def write_text(path: Path, text: str) -> Path:
    """The path of a file with this text, written in one rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return path


def write_json(path: Path, value: Any) -> Path:
    """The path of `value` written as JSON, in one rename."""
    return write_text(path, json.dumps(value, indent=1, sort_keys=True, default=str) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, None where there is no file; SweeplibError where it is damaged."""
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise SweeplibError(f"{path}: damaged ({error}): {MADE_AGAIN}") from None
    if not isinstance(value, dict):
        raise SweeplibError(f"{path}: damaged (no object in it): {MADE_AGAIN}")
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
    """The records of a file of JSON lines, [] where there is no file; a line cut short by a crash is left out."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for record in map(_parsed, lines) if record is not None]


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


@contextmanager
def swapped_in(path: Path) -> Iterator[Path]:
    """A directory beside `path` to write in, which takes its place on success and leaves it untouched on failure."""
    partial, old = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.old")
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    yield partial
    if path.exists():
        path.rename(old)
    partial.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def files_digest(path: Path) -> str:
    """A hash of all files below a directory, and of their names."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0".encode())
        digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest()
