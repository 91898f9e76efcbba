"""Commands on a terminal of a given width: what they write, and for how long they write nothing."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
ROWS = 40


@dataclass(frozen=True)
class Shown:
    """What a command wrote to a terminal, its longest silence in seconds, and its exit status."""

    text: str
    silence: float
    status: int

    @property
    def lines(self) -> list[str]:
        """All lines that were drawn, without the codes of the terminal."""
        return [line.split("\r")[-1] for line in ESCAPE.sub("", self.text).replace("\r\n", "\n").split("\n")]


def on_a_terminal(command: list[str], folder: Path, columns: int, **variables: str) -> Shown:
    """Run a command in a folder on a terminal with so many columns, with more environment variables."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    given = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment = given | {"TERM": "xterm-256color"} | variables
    last, silence, parts = time.monotonic(), 0.0, []
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        while part := _read(ours):
            now = time.monotonic()
            last, silence = now, max(silence, now - last)
            parts.append(part)
    os.close(ours)
    return Shown(b"".join(parts).decode(), max(silence, time.monotonic() - last), process.returncode)


def _read(terminal: int) -> bytes:
    """Return what comes next, empty when all processes on the terminal have ended."""
    select.select([terminal], [], [])
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
