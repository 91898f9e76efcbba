"""Commands as forks of this process, which has imported all that they need, so that they work from the start."""

import ctypes
import importlib
import itertools
import os
import pkgutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.engine.execution import work
from sweeplib.engine.storage.records import locks
from tests.in_process import Here, computed

OTHERS = (
    *("dask.array", "fsspec.implementations.local", "latex2mathml.converter", "numba.typed"),
    *("rich.live", "rich.table", "scipy.optimize", "scipy.stats", "click.testing"),
)
for name in (*(module.name for module in pkgutil.walk_packages(sweeplib.__path__, "sweeplib.")), *OTHERS):
    if not name.endswith("__main__") and ".templates" not in name:
        importlib.import_module(name)

COMMANDS = {
    "prune": ["prune", "--delete"],
    "verify": ["verify", "--repair", "--sample", "0"],
    "retry": ["retry", "all"],
    "publish": ["finalise", "--set", "publish=ADDRESS"],
    "finalise": ["finalise"],
    "analyse": ["analyse"],
    "report": ["report"],
    "run": ["run", "--no-progress", "--set", "seeds=7"],
}
"""The commands of the table; `run` is a driver with an override, which computes more cases than the config has."""
ON_FILES = {
    *("open", "fcntl.flock"),
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
    *("os.truncate", "os.chmod", "os.utime", "os.listdir", "os.scandir"),
}
"""The events of Python's audits at which a command can be stopped."""
TRIES = 60
"""How often in a row a command tries to take a lock until it counts as waiting: three times its patience."""
NEW_UTS = 0x04000000
KEEP_CAPABILITIES = 8
GROUP = 4321
"""The group of all users."""


class RegisteredHere(Here):
    """No workers: the driver computes the blocks."""

    kind: str = "here"


@dataclass(frozen=True)
class Folder:
    """A folder with a sweep."""

    path: Path

    @property
    def results(self) -> Path:
        return self.path / "results" / "verified"

    def forked(
        self, name: str, *, host: str | None = None, user: int | None = None, before: Callable[[], object] = int
    ) -> int:
        """Return the process that runs a command, on another host or as another user; its output is in a file.

        It calls `before` first.
        """
        pid = os.fork()
        if not pid:
            _run(self.path, COMMANDS.get(name, name.split()), host, user, before)
        return pid

    def told(self, name: str, *, user: int | None = None) -> tuple[int, str]:
        """Return the exit status of a command after its end, and its output."""
        pid = self.forked(name, user=user)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status, self.said(pid)

    def said(self, pid: int) -> str:
        """Return the output of a process."""
        return (self.path / f"{pid}.txt").read_text()

    def operations(self, call: Callable[[int], object]) -> None:
        """Call a function before each operation of this process on a file of the folder, with its number."""
        numbers, inside = itertools.count(), str(self.path)

        def hook(event: str, values: tuple[Any, ...]) -> None:
            if event in ON_FILES:
                name = os.fsdecode(values[0]) if isinstance(values[0], str | bytes | os.PathLike) else ""
                if name.startswith(inside) or not name.startswith("/"):
                    call(next(numbers))

        sys.addaudithook(hook)


def stop_when_waiting() -> None:
    """Have this process stop itself once it waits for a lock, of which its patience becomes short."""
    locks.PATIENCE, locks.BETWEEN_TRIES = 0.1, 0.005
    tries = itertools.count(1)

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal tries
        if event == "fcntl.flock":
            if next(tries) == TRIES:
                stop()
        elif event in ON_FILES and not str(values[0]).endswith(".lock"):
            tries = itertools.count(1)

    sys.addaudithook(hook)


def stop() -> None:
    """Stop this process until somebody lets it go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _become(user: int) -> None:
    """Become a member of the group who may read everything, because Python may lie in root's home, and nothing else."""
    libc, may_read = ctypes.CDLL(None), 1 << 2
    os.umask(0o002)
    os.setgroups([])
    os.setgid(GROUP)
    libc.prctl(KEEP_CAPABILITIES, 1)
    os.setuid(user)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(may_read, may_read, 0, 0, 0, 0)
    if libc.capset(header, sets):
        raise OSError("the capabilities cannot be set")


def _run(folder: Path, words: list[str], host: str | None, user: int | None, before: Callable[[], object]) -> None:
    """Run a command in this process and end it."""
    code = 70
    try:
        output = os.open(folder / f"{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))
        if host is not None:
            libc = ctypes.CDLL(None)
            if libc.unshare(NEW_UTS) or libc.sethostname(host.encode(), len(host)):
                raise OSError("no namespace for a name of the host")
        if user is not None:
            _become(user)
        work.dispatched = computed
        address = (folder / "published" / "x.zarr").as_uri()
        words = [word.replace("ADDRESS", address) for word in words]
        before()
        app([words[0], str(folder / "verified.yaml"), *words[1:], "--results", str(folder / "results")])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
