"""Who may write: one driver a dynamics, one worker a block. The system drops a lock when its holder dies."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sweeplib.errors import InputError
from sweeplib.storage.files import read_json, write_json


@contextmanager
def driver_lock(directory: Path, dynamics: str) -> Iterator[None]:
    """Nothing, held by the one driver of a dynamics in `directory`; InputError naming the holder while there is one."""
    path, holder = _lock(directory, dynamics), directory / "locks" / f"{dynamics}.holder.json"
    try:
        with FileLock(path, timeout=0.5):
            write_json(holder, {"pid": os.getpid(), "host": socket.gethostname()})
            try:
                yield
            finally:
                holder.unlink(missing_ok=True)
    except Timeout:
        raise InputError(f"{dynamics} is being run by {_holder(holder)}", file=directory) from None


def _holder(path: Path) -> str:
    who = read_json(path)
    return f"process {who['pid']} on {who['host']}" if who else "another process"


@contextmanager
def block_lock(directory: Path, name: str) -> Iterator[None]:
    """Nothing, once this process is the only one that writes block `name`.

    Waits for a writer left by an earlier driver: two writers in one chunk lose data without a word.
    """
    with FileLock(_lock(directory, name)):
        yield


def _lock(directory: Path, name: str) -> Path:
    path = directory / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
