"""Commands as forks of this process, which has imported all that they need, so that they work from the start."""

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import sweeplib.analysis
import sweeplib.figures
import sweeplib.report
import sweeplib.upkeep.verify  # noqa: F401
from sweeplib.cli import app
from sweeplib.execution import run
from tests.in_process import Here, computed

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

    def forked(self, name: str, *, host: str | None = None, user: int | None = None) -> int:
        """Return the process that runs a command, on another host or as another user; its output is in a file."""
        pid = os.fork()
        if not pid:
            _run(self.path, COMMANDS.get(name, name.split()), host, user)
        return pid

    def told(self, name: str, *, user: int | None = None) -> tuple[int, str]:
        """Return the exit status of a command after its end, and its output."""
        pid = self.forked(name, user=user)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status, (self.path / f"{pid}.txt").read_text()


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


def _run(folder: Path, words: list[str], host: str | None, user: int | None) -> None:
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
        run.dispatched = computed
        address = (folder / "published" / "x.zarr").as_uri()
        words = [word.replace("ADDRESS", address) for word in words]
        app([words[0], str(folder / "verified.yaml"), *words[1:], "--results", str(folder / "results")])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
