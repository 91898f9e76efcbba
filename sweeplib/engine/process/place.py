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
NUMBERS = Path("/proc/self/ns/pid")
COMMANDS = ("sweeplib", "snakemake")
MOST_LETTERS = 80
"""Of a command in a message."""


@cache
def kernel() -> str:
    """Return what all processes on this kernel have in common, in containers too, and no others: its last start."""
    try:
        return file_text(BOOT, "ascii").strip()
    except OSError:  # a system without such a file
        return socket.gethostname()


def numbers() -> str:
    """Return what processes that see each other's numbers have in common: the namespace of these, if there is one."""
    try:
        return str(NUMBERS.readlink())
    except OSError:
        return ""


def sees(host: str, of: str) -> bool:
    """Return whether a process number that was recorded on a `host`, as one `of` some `numbers`, is one of those here.

    What does not say of which numbers it is, is of this host's.
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
