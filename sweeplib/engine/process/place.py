"""Where this process runs: which kernel keeps its locks, whose process numbers it sees, which user it is."""

import os
import pwd
import shlex
import socket
import sys
from functools import cache
from pathlib import Path

from sweeplib.engine.files.regular_files import file_text

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""The identity of the kernel's last start."""
NUMBERS = Path("/proc/self/ns/pid")
"""A link that names the namespace of process numbers."""
COMMANDS = ("sweeplib", "snakemake")
"""The programs of which a message shows the command that was typed."""
MOST_LETTERS = 80
"""Letters of a command in a message."""


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
