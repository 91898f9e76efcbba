"""Who holds a lock of a sweep's folder: records beside the lock, for those who find it held; where a process runs.

The kernel keeps the locks and releases those of processes that die. Where the file system keeps them on one host only,
the records of other hosts' processes count, as long as these give signs of life.
"""

import json
import os
import pwd
import re
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

import psutil

from sweeplib.engine.files.regular_files import file_bytes, file_text
from sweeplib.engine.process.terminal import harmless
from sweeplib.errors import BusyError

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""The identity of the kernel's last start."""
NUMBERS = Path("/proc/self/ns/pid")
"""A link that names the namespace of process numbers."""
COMMANDS = ("sweeplib", "snakemake")
"""The programs of which a message shows the command that was typed."""
MOST_LETTERS = 80
"""Letters of a command in a message."""
BEAT = 2.0
"""Seconds between two signs of life."""
SILENCE = 5 * BEAT
"""Seconds without a sign of life after which the process of another kernel counts as dead, if its lock is free."""
ENDING = ".holder.json"
"""The ending of the names of records."""
NEW = rf"[0-9a-f]{{32}}{re.escape(ENDING)}"
"""What matches the names that `new_record` returns."""


@cache
def kernel() -> str:
    """Return what all processes on this kernel have in common, in containers too, and no others: its last start."""
    try:
        return file_text(BOOT, "ascii").strip()
    except OSError:  # a system without such a file
        return socket.gethostname()


def numbers() -> str:
    """Return the namespace of process numbers, which processes that see each other share; "" if there is none."""
    try:
        return str(NUMBERS.readlink())
    except OSError:
        return ""


def sees(host: str, of: str) -> bool:
    """Return whether a process number, recorded on a `host` in the namespace `of` what `numbers` returned, is one here.

    Without a namespace, "", it is one of the host's.
    """
    return host == socket.gethostname() and of in ("", numbers())


def user() -> str:
    """Return the name of the user, or its number if the system knows no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def typed() -> str:
    """Return the command that was typed, shortened; "" in a process that another one started or a notebook."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    text = shlex.join([name, *sys.argv[1:]]) if name in COMMANDS else ""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock, as its record describes it.

    lock : the name of the lock. alone : whether nobody else may hold it at the same time.
    does : what the process does, in the third person, "writes dataset.zarr".
    kernel, numbers : which kernel keeps its locks, and which processes see its number (`numbers`).
    command : that was typed, "" if none was. since : the time of its beginning, as time.time.
    """

    lock: str
    does: str
    alone: bool
    pid: int
    parent: int
    host: str
    kernel: str
    numbers: str
    user: str
    command: str
    since: float

    @property
    def name(self) -> str:
        """Return who it is, in words."""
        return f"process {self.pid} of {self.user} on {self.host}"

    @property
    def is_dead(self) -> bool:
        """Return whether it is a process that this one would see, and does not."""
        return sees(self.host, self.numbers) and not psutil.pid_exists(self.pid)

    @property
    def is_orphan(self) -> bool:
        """Return whether it runs among the processes seen here, and has lost the parent that started it."""
        if not sees(self.host, self.numbers):
            return False
        try:
            return bool(psutil.Process(self.pid).ppid() != self.parent)
        except psutil.NoSuchProcess:
            return True

    @property
    def words(self) -> str:
        """Return in words whose command does what, since when, on which host."""
        day = "%H:%M" if time.localtime(self.since)[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M"
        since = time.strftime(day, time.localtime(self.since))
        return f"{self.name} {self.does} here since {since}" + (f" (`{self.command}`)" if self.command else "")


def refusal(directory: Path, holder: Holder | None) -> BusyError:
    """Return the error, one line, for a command that needs a lock of a sweep's `directory` which another one holds.

    holder : of the lock; None if it is not known.
    """
    problem = "another process is at work here" if holder is None else holder.words
    end = "" if holder is None else f" (`kill {holder.pid}` on {holder.host})"
    expected = f"one command at a time: wait for it (`sweeplib watch {directory}` shows a sweep), or end it{end}"
    return BusyError(f"{directory}: {problem}; expected {expected}")


@contextmanager
def recorded(path: Path, lock: str, does: str, *, alone: bool, beats: bool = False) -> Iterator[Path]:
    """A context in which a file at `path`, which it yields, says that this process holds a lock.

    lock, does, alone : as in `Holder`. beats : whether the file is touched regularly.
    It is written in one piece, not beside and renamed: a process that is killed meanwhile leaves no other file.
    """
    whose = kernel(), numbers(), user(), typed(), time.time()
    this = Holder(lock, does, alone, os.getpid(), os.getppid(), socket.gethostname(), *whose)
    path.write_bytes(json.dumps(asdict(this)).encode())
    with signs_of_life(path) if beats else nullcontext():
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def signs_of_life(path: Path) -> Iterator[None]:
    """A context in which a thread touches a file every `BEAT` seconds, if it is there."""
    _beating.add(path)
    _start_to_beat()
    try:
        yield
    finally:
        _beating.discard(path)


def new_record(folder: Path) -> Path:
    """Return a new name for the record of a lock that several processes may hold."""
    return folder / f"{uuid4().hex}{ENDING}"


def holder(path: Path) -> Holder | None:
    """Return the process that a record describes; None if there is no file, or it is no such record."""
    with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        record = json.loads(file_bytes(path)) if path.is_file() else {}
        who = Holder(**{name: _value(kind, record[name]) for name, kind in get_type_hints(Holder).items()})
        time.localtime(who.since)  # what others wrote may be no time
        return who
    return None


def _value(kind: type, value: object) -> Any:
    """Return a value of a record as its field's type; a text in one line, without what controls a terminal."""
    return " ".join(harmless(str(value)).split()) if kind is str else kind(value)


def records(folder: Path, lock: str) -> dict[Path, Holder]:
    """Return the processes that hold a lock, or held it when they died, by their records in a folder."""
    holders = {path: holder(path) for path in sorted(folder.glob(f"*{ENDING}"))}
    return {path: who for path, who in holders.items() if who is not None and who.lock == lock}


def other_holder(folder: Path, lock: str) -> Holder | None:
    """Return a process that holds a lock, by the records in a folder, None if none is known to live."""
    return next((who for who in records(folder, lock).values() if not who.is_dead), None)


def living_elsewhere(record: Path, lock: str, *, alone: bool) -> Holder | None:
    """Return a living process of another kernel that has a lock which this process has too; None if there is none.

    record : of this process, whose time is that of the file system's clock. alone : whether this process may share the
    lock with nobody; else only those are looked at who may not.
    There is one only where locks hold on one host alone. It waits for signs of life of those whose last one is recent;
    a process that has ended since, or was killed, gives none.
    """
    now = last_sign(record) or 0.0
    others = {path: who for path, who in records(record.parent, lock).items() if who.kernel != kernel()}
    signs = {path: last_sign(path) for path, who in others.items() if alone or who.alone}
    waiting = {path: sign for path, sign in signs.items() if sign is not None and now - sign < SILENCE}
    end = time.monotonic() + SILENCE
    while waiting and time.monotonic() < end:
        time.sleep(BEAT / 4)
        for path, before in list(waiting.items()):
            sign = last_sign(path)
            if sign is None:
                del waiting[path]
            elif sign != before:
                return others[path]
    return None


def remove_dead(record: Path, is_free: Callable[[str], bool]) -> None:
    """Remove records of other processes whose locks are free now, and those that were not written to their end.

    record : of this process, which stays. is_free : whether the lock of a name is; "" for a record without one.
    Those of other kernels stay while their last sign of life is recent: a lock may be free on this host alone.
    """
    now = last_sign(record) or 0.0
    for path in record.parent.glob(f"*{ENDING}"):
        who = holder(path)
        is_ours = who is not None or re.fullmatch(NEW, path.name)
        may_live = who is not None and who.kernel != kernel() and now - (last_sign(path) or 0.0) < SILENCE
        if path != record and is_ours and not may_live and path.is_file() and is_free(who.lock if who else ""):
            path.unlink(missing_ok=True)


def last_sign(path: Path) -> float | None:
    """Return when a file was touched last, None if it is gone.

    It is opened, since a network file system then asks the server instead of its own memory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)


_beating: set[Path] = set()
"""The records that this process touches regularly."""
_starting = threading.Lock()
_threads: list[threading.Thread] = []
"""The thread that touches them, once it has been started."""


def _forget_beats() -> None:
    """Forget, in a fork, the records of the process that forked it."""
    _beating.clear()
    _threads.clear()


os.register_at_fork(after_in_child=_forget_beats)


def _start_to_beat() -> None:
    """Start the thread of the signs of life, unless it runs; without a further thread there are none."""
    with _starting, suppress(RuntimeError):  # no further thread may run
        if not _threads:
            _threads.append(threading.Thread(target=_beat, daemon=True, name="signs of life"))
            _threads[0].start()


def _beat() -> None:
    """Touch the records for ever: the work of the thread."""
    while True:
        time.sleep(BEAT)
        for path in list(_beating):
            with suppress(OSError):
                os.utime(path)
