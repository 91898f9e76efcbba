"""Locks for writers: one driver per dynamics, one worker per block. The system releases a lock when its holder dies."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from sweeplib.errors import InputError
from sweeplib.storage.files import read_json, write_json

PATIENCE = 0.5
"""Seconds after which a lock counts as held."""


@contextmanager
def driver_lock(directory: Path, dynamics: str) -> Iterator[None]:
    """A context that holds the driver lock of a dynamics in `directory`; InputError that names another holder.

    A holder whose parent (for example Snakemake) was killed is doing the same work: the call prints a line on standard
    error and waits for it.
    """
    lock, holder = FileLock(_lock(directory, dynamics)), directory / "locks" / f"{dynamics}.holder.json"
    with _acquired(lock, holder, dynamics, directory):
        who = {"pid": os.getpid(), "parent": os.getppid(), "host": socket.gethostname()}
        write_json(holder, who, durable=False)
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)


def _acquired(lock: FileLock, holder: Path, dynamics: str, directory: Path) -> AbstractContextManager[Any]:
    reported = False
    while True:
        try:
            return lock.acquire(timeout=PATIENCE)
        except Timeout:
            who = read_json(holder)
            name = f"process {who['pid']} on {who['host']}" if who else "another process"
            if not _orphaned(who):
                wait = "one command at a time: wait for it, or end it"
                raise InputError(f"{dynamics} is being run by {name}", file=directory, expected=wait) from None
            if not reported:
                sys.stderr.write(
                    f"{directory}: waiting for {name}, which still runs {dynamics} although its command has ended\n"
                )
                sys.stderr.flush()
                reported = True


def _orphaned(who: dict[str, Any] | None) -> bool:
    """Whether the holder runs on this machine and has lost the parent that started it."""
    if who is None or who["host"] != socket.gethostname():
        return False
    try:
        return psutil.Process(who["pid"]).ppid() != who["parent"]
    except psutil.NoSuchProcess:
        return True


class Begun:
    """Whether a process began a block `before` and died; a file next to the lock records this."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.before = path.exists()

    @contextmanager
    def now(self) -> Iterator[None]:
        """A context that marks the block as begun; the mark remains only if the process dies within."""
        self._path.touch()
        try:
            yield
        finally:
            self._path.unlink(missing_ok=True)


@contextmanager
def block_lock(directory: Path, name: str) -> Iterator[Begun]:
    """A context that holds the write lock of block `name`; yields a `Begun`.

    Waits for a writer of an earlier driver: two writers in one chunk lose data.
    """
    lock = _lock(directory, name)
    with FileLock(lock):
        yield Begun(lock.with_suffix(".begun"))


def _lock(directory: Path, name: str) -> Path:
    path = directory / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
