"""Locks: who deletes excludes every writer. The system releases a lock when its holder dies, on any machine.

A command that runs all stages has the lock of the sweep, before it writes anything; one that does a part by itself
shares it. A process that writes into a sweep's folder is `at_work` there, with others. One that deletes what others may
need, or reads what must not change meanwhile, is `alone`: it makes its list and deletes under the one lock. Below that,
each dynamics has one driver, each block and each other part of the results one writer.

`directory` is the folder of a sweep's results. `does` says what this process does, in the third person, for the
messages of others: "writes dataset.zarr". Whoever meets a held lock gets a BusyError that names its holder.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from sweeplib.engine.process.children import environment
from sweeplib.engine.process.terminal import echo
from sweeplib.engine.process.troubles import LACKING
from sweeplib.engine.storage.records.file_system import LOCKS, lack_of
from sweeplib.engine.storage.records.files import PLACES, refuse_links, remove_empty
from sweeplib.engine.storage.records.holders import (
    holder,
    living_elsewhere,
    new_record,
    other_holder,
    recorded,
    refusal,
    remove_dead,
)

PATIENCE = 0.5
"""Seconds after which a lock counts as held."""
BETWEEN_TRIES = 0.05  # seconds
FOLDER, SWEEP = "folder", "sweep"
"""The names of the lock that deleting and writing share, and of that of a run of all stages."""
LOCKED = "SWEEPLIB_LOCKED"
"""The environment variable with the folder whose sweep a command runs, for what that command starts."""


@contextmanager
def sweep_lock(directory: Path, does: str = "runs all stages") -> Iterator[None]:
    """A context in which this process, with those that it starts, is the only one that runs the sweep in `directory`.

    BusyError if another process runs it, or a part of it by itself, on any host.
    """
    with _named_lock(directory, SWEEP, does, alone=True) as record:
        with _file_lock(_lock_path(directory, FOLDER), fcntl.LOCK_EX, 0.0) as nobody_works:
            # this process has the lock of the sweep alone, so that any other record of it is of a dead process
            remove_dead(record, lambda lock: nobody_works or lock == SWEEP)
        with environment(LOCKED, str(directory.resolve())):
            yield


@contextmanager
def part_lock(directory: Path, does: str, *, writes: bool = True) -> Iterator[None]:
    """A context in which no process runs all stages of the sweep in `directory`; BusyError if one does.

    A process that such a command has started holds no lock: the command has it. writes : as in `alone`.
    """
    if is_locked_above(directory):
        yield
    else:
        with _named_lock(directory, SWEEP, does, alone=False, writes=writes):
            yield


def is_locked_above(directory: Path) -> bool:
    """Return whether this process was started by a command that runs the sweep in `directory`."""
    return os.environ.get(LOCKED) == str(directory.resolve())


@contextmanager
def at_work(directory: Path, does: str, *further: str) -> Iterator[None]:
    """A context in which no process deletes anything in `directory`; BusyError if one does so now.

    further : paths in there that may not be links either, as those that all commands write.
    """
    with _named_lock(directory, FOLDER, does, further, alone=False):
        yield


@contextmanager
def alone(directory: Path, does: str, *, writes: bool = True) -> Iterator[None]:
    """A context in which no other process is `at_work` in `directory`; BusyError if one is.

    writes : whether this process writes there; then InputError for a link in the place of a folder.
    """
    of_sweep = part_lock(directory, does, writes=writes)
    with of_sweep, _named_lock(directory, FOLDER, does, alone=True, writes=writes) as record:
        # nobody else is at work, so that all other records but those of sweeps are of dead processes
        remove_dead(record, lambda lock: lock != SWEEP)
        yield


@contextmanager
def _named_lock(
    directory: Path, name: str, does: str, further: Sequence[str] = (), *, alone: bool, writes: bool = True
) -> Iterator[Path]:
    """A context with the lock of a name, FOLDER or SWEEP, held alone or with others; yields the record of that."""
    if writes:
        refuse_links(directory, *(directory / place for place in (*PLACES, *further)))
    refuse_links(directory, directory / "locks")
    lock = _lock_path(directory, name)
    with ExitStack() as held:
        try:
            is_held = held.enter_context(_file_lock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, PATIENCE))
        except OSError as error:
            raise (lack_of(directory, LOCKS, error) if error.errno in LACKING else error) from None
        if not is_held:
            raise refusal(directory, other_holder(lock.parent, name))
        with recorded(new_record(lock.parent), name, does, alone=alone, beats=True) as record:
            # where the system's locks are of one host alone, those of others are known by their signs of life
            if other := living_elsewhere(record, name, alone=alone):
                raise refusal(directory, other)
            yield record


@contextmanager
def writer_lock(directory: Path, name: str) -> Iterator[None]:
    """A context in which this process alone writes the part `name` of the results, "dataset.zarr"; waits for others."""
    with at_work(directory, f"writes {name}"), _file_lock(_lock_path(directory, name), fcntl.LOCK_EX):
        yield


@contextmanager
def driver_locks(directory: Path, dynamics: Iterable[str]) -> Iterator[None]:
    """A context with `driver_lock` of some dynamics, in one order, so that two runs cannot wait for each other."""
    with ExitStack() as locks:
        for name in sorted(dynamics):
            locks.enter_context(driver_lock(directory, name))
        yield


@contextmanager
def driver_lock(directory: Path, dynamics: str) -> Iterator[None]:
    """A context in which this process alone runs a dynamics in `directory`; BusyError if another process does.

    It waits, with a line on standard error, for a holder whose parent, such as Snakemake, was killed: that is doing the
    same work. It waits, too, in a process started by a command that has the lock of the sweep: any holder is of that.
    InputError for a link in the place of the segments of the dynamics.
    """
    record, does = directory / "locks" / f"{dynamics}.holder.json", f"runs {dynamics}"
    reported = False
    with at_work(directory, does, f"runs/{dynamics}"):
        while True:
            with _file_lock(_lock_path(directory, dynamics), fcntl.LOCK_EX, PATIENCE) as is_held:
                if is_held:
                    with recorded(record, dynamics, does, alone=True):
                        yield
                    return
            who = holder(record)
            if not is_locked_above(directory) and (who is None or not who.is_orphan):
                raise refusal(directory, who)
            if not reported and who is not None:
                waits = f"waiting for {who.name}, which still {who.does} although its command has ended"
                echo(f"{directory}: {waits}", errors=True)
                reported = True


def free_writer(directory: Path, name: str) -> AbstractContextManager[bool]:
    """A context that tries the lock of a part of the results or of a dynamics; yields whether it was free."""
    return _file_lock(_lock_path(directory, name), fcntl.LOCK_EX, 0.0)


class BlockMark:
    """Whether a process began a block `before` and died; a file next to the lock records this.

    again : whether the block was handed out before, so that its cases may be done.
    """

    def __init__(self, path: Path, *, again: bool) -> None:
        self._path, self.again = path, again
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
    """A context in which this process alone computes the block `name`; yields whether it was begun before.

    Waits for a worker of an earlier driver that computes the same cases, and for a process that deletes.
    """
    lock = _lock_path(directory, name)
    with _file_lock(_lock_path(directory, FOLDER), fcntl.LOCK_SH), _file_lock(lock, fcntl.LOCK_EX):
        # text in the file of the lock says that the block was handed out
        again = lock.stat().st_size > 0
        if not again:
            lock.write_text("handed out\n")
        yield BlockMark(lock.with_suffix(".begun"), again=again)


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
    """Return the path of the lock of a name, and make its folder."""
    path = directory / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _file_lock(path: Path, kind: int, patience: float | None = None) -> Iterator[bool]:
    """A context with a lock of a file; yields False, without it, if another process holds it for all the `patience`.

    kind : LOCK_EX, alone, or LOCK_SH, with others. patience : in seconds; None waits for ever.
    """
    descriptor = _lock_descriptor(path, kind, None if patience is None else time.monotonic() + patience)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _lock_descriptor(path: Path, kind: int, until: float | None) -> int | None:
    """Return the descriptor of a file locked as `kind`; None if it is not free until a time of `time.monotonic`."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            # the one who held the lock may have removed the file: then this is the lock of a file without a name
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
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
