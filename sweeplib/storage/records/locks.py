"""Locks: who deletes excludes every writer. The system releases a lock when its holder dies, on any machine.

A command that writes into a sweep's folder is `at_work` there, with others. One that deletes what others may need, or
reads what must not change meanwhile, is `alone`: it makes its list and deletes under the one lock. Below that, each
dynamics has one driver, each block and each other part of the results one writer.
"""

import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from sweeplib.errors import InputError
from sweeplib.storage.records.files import DamageError, read_json, remove_empty, write_json
from sweeplib.storage.records.links import refuse_linked_folders, refuse_links

PATIENCE = 0.5
"""Seconds after which a lock counts as held."""
BETWEEN_TRIES = 0.05  # seconds
FOLDER = "folder"
ALONE = "one command at a time: wait for it, or end it"


@contextmanager
def at_work(directory: Path, does: str) -> Iterator[None]:
    """A context in which no process deletes anything in a sweep's `directory`; InputError that names one that does."""
    with _folder_lock(directory, fcntl.LOCK_SH, does):
        yield


@contextmanager
def alone(directory: Path, does: str, *, writes: bool = True) -> Iterator[None]:
    """A context in which no other process is at work in a sweep's `directory`; InputError that names one that is.

    Also for a link in the place of a folder into which it `writes`.
    """
    with _folder_lock(directory, fcntl.LOCK_EX, does, writes=writes) as holder:
        for other in (directory / "locks").glob("*.holder.json"):
            if other != holder:
                other.unlink(missing_ok=True)  # of a process that died
        yield


@contextmanager
def _folder_lock(directory: Path, kind: int, does: str, *, writes: bool = True) -> Iterator[Path]:
    """Hold the lock of a folder, shared or exclusive; InputError that names a process that holds it otherwise."""
    if writes:
        refuse_linked_folders(directory)
    refuse_links(directory, directory / "locks")
    lock = _lock_path(directory, FOLDER)
    with _file_lock(lock, kind, PATIENCE) as is_held:
        if not is_held:
            who = _other_holder(directory)
            does = "is at work" if who is None else who["does"]
            raise InputError(f"{_holder_in_words(who)} {does} here", file=directory, expected=ALONE)
        with _holder_record(lock.with_name(f"{uuid4().hex}.holder.json"), does) as holder:
            yield holder


@contextmanager
def writer_lock(directory: Path, name: str) -> Iterator[None]:
    """A context in which this process alone writes a part of the results, such as `dataset.zarr`; waits for others."""
    with at_work(directory, f"writes {name}"), _file_lock(_lock_path(directory, name), fcntl.LOCK_EX):
        yield


@contextmanager
def driver_lock(directory: Path, dynamics: str) -> Iterator[None]:
    """A context that holds the driver lock of a dynamics in `directory`; InputError that names another holder.

    A holder whose parent (for example Snakemake) was killed is doing the same work: the call prints a line on standard
    error and waits for it.
    """
    holder, does = directory / "locks" / f"{dynamics}.holder.json", f"runs {dynamics}"
    reported = False
    refuse_links(directory, directory / "runs.zarr" / dynamics)
    with at_work(directory, does):
        while True:
            with _file_lock(_lock_path(directory, dynamics), fcntl.LOCK_EX, PATIENCE) as is_held:
                if is_held:
                    with _holder_record(holder, does):
                        yield
                    return
            who = _holder(holder)
            name = _holder_in_words(who)
            if not _is_orphan(who):
                raise InputError(f"{dynamics} is being run by {name}", file=directory, expected=ALONE)
            if not reported:
                sys.stderr.write(
                    f"{directory}: waiting for {name}, which still runs {dynamics} although its command has ended\n"
                )
                sys.stderr.flush()
                reported = True


def free_writer(directory: Path, name: str) -> AbstractContextManager[bool]:
    """Return a context with the lock of a part of the results or of a dynamics, and whether no other process has it."""
    return _file_lock(_lock_path(directory, name), fcntl.LOCK_EX, 0.0)


class BlockMark:
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
def block_lock(directory: Path, name: str) -> Iterator[BlockMark]:
    """A context that holds the write lock of block `name`; yields a `BlockMark`.

    Waits for a writer of an earlier driver: two writers in one chunk lose data. Waits for one that deletes, too.
    """
    lock = _lock_path(directory, name)
    with _file_lock(_lock_path(directory, FOLDER), fcntl.LOCK_SH), _file_lock(lock, fcntl.LOCK_EX):
        yield BlockMark(lock.with_suffix(".begun"))


def remove_block_locks(directory: Path, dynamics: str) -> None:
    """Remove the locks and the marks of the blocks of a dynamics, but for those that a worker holds."""
    folder = directory / "locks" / dynamics
    for lock in list(folder.glob("*/*.lock")):
        with _file_lock(lock, fcntl.LOCK_EX, 0.0) as is_held:
            if is_held:
                lock.with_suffix(".begun").unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
    remove_empty(folder)


def _lock_path(directory: Path, name: str) -> Path:
    path = directory / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _file_lock(path: Path, kind: int, patience: float | None = None) -> Iterator[bool]:
    """Hold a lock, and yield True; yield False if another process holds it for longer than the `patience`."""
    descriptor = _lock_descriptor(path, kind, None if patience is None else time.monotonic() + patience)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _lock_descriptor(path: Path, kind: int, until: float | None) -> int | None:
    """Return the descriptor of a locked file, None if it is not free `until` some time; the file may be replaced."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BlockingIOError:
            if until is not None and time.monotonic() >= until:
                os.close(descriptor)
                return None
            time.sleep(BETWEEN_TRIES)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def _holder_record(path: Path, does: str) -> Iterator[Path]:
    """Describe this process in a file, for those who find the lock held."""
    who = {"pid": os.getpid(), "parent": os.getppid(), "host": socket.gethostname(), "does": does}
    write_json(path, who, durable=False)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _other_holder(directory: Path) -> dict[str, Any] | None:
    """Return one of the processes that are at work in a folder, as far as they are known."""
    records = map(_holder, sorted((directory / "locks").glob("*.holder.json")))
    holders = [who for who in records if who and "does" in who]
    return next((who for who in holders if who["host"] != socket.gethostname() or psutil.pid_exists(who["pid"])), None)


def _holder(holder: Path) -> dict[str, Any] | None:
    with suppress(DamageError, OSError):
        return read_json(holder)
    return None


def _holder_in_words(who: dict[str, Any] | None) -> str:
    return f"process {who['pid']} on {who['host']}" if who else "another process"


def _is_orphan(who: dict[str, Any] | None) -> bool:
    """Whether the holder runs on this machine and has lost the parent that started it."""
    if who is None or who["host"] != socket.gethostname():
        return False
    try:
        return bool(psutil.Process(who["pid"]).ppid() != who["parent"])
    except psutil.NoSuchProcess:
        return True
