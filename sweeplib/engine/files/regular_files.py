"""Files opened for reading, and for lines to append: a pipe, a device or a socket in place of one is refused at once.

Whoever opens a pipe waits until somebody writes into it, and a device may have no end. All functions raise OSError if
there is no file, IsADirectoryError for a folder, and IrregularFileError for a pipe, a device or a socket.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO, TextIO

from sweeplib.errors import SweeplibError

KINDS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
"""What may be in the place of a file, by its type."""
# a pipe that nobody writes to is opened at once, and no terminal becomes that of this process
_AT_ONCE = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class IrregularFileError(SweeplibError, OSError):
    """Something else than a file is in the place of one; the message names the place and what is there."""

    def __init__(self, path: object, kind: str) -> None:
        self.kind = kind
        OSError.__init__(self, errno.EINVAL, f"{kind} is in the place of a file", str(path))

    def __str__(self) -> str:
        """Return the message."""
        return f"{self.filename}: {self.kind} is in the place of a file: move it away"

    def __reduce__(self) -> tuple[type["IrregularFileError"], tuple[str, str]]:
        """Pickle the error, to send it between processes."""
        return type(self), (self.filename, self.kind)


def open_bytes(path: str | Path, *, buffering: int = -1) -> IO[bytes]:
    """Return a file that is open to be read; `buffering` is that of Python's `open`."""
    return open(path, "rb", buffering, opener=descriptor)


def open_text(path: str | Path, encoding: str = "utf-8", newline: str | None = None) -> TextIO:
    """Return a file of text that is open to be read."""
    return open(path, encoding=encoding, newline=newline, opener=descriptor)


def open_to_append(path: str | Path) -> TextIO:
    """Return a file of text in UTF-8 that is open to append to, a new one if there is none."""
    return open(path, "a", encoding="utf-8", opener=descriptor)


def file_bytes(path: str | Path) -> bytes:
    """Return the content of a file."""
    with open_bytes(path) as file:
        return file.read()


def file_text(path: str | Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a file; `encoding` and `errors` are those of Python's `open`."""
    with open(path, encoding=encoding, errors=errors, opener=descriptor) as file:
        return file.read()


def descriptor(path: str | Path, flags: int) -> int:
    """Return the descriptor of a file opened with some flags, without waiting: the `opener` of all `open` here."""
    try:
        number = os.open(path, flags | _AT_ONCE, 0o666)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # of a socket, a pipe that nobody reads, a device without driver
            refuse_irregular(path)
        raise
    try:
        # of what was opened: another thing may be at the path by now
        _refuse(path, os.fstat(number).st_mode)
    except BaseException:
        os.close(number)
        raise
    return number


def refuse_irregular(path: str | Path) -> None:
    """Raise the errors of this module unless a file is at a path that another library is to open."""
    _refuse(path, os.stat(path).st_mode)  # noqa: PTH116 - pathlib is slow


def _refuse(path: str | Path, mode: int) -> None:
    """Raise the error for what is no file, by the `mode` of `os.stat`."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise IrregularFileError(path, KINDS.get(stat.S_IFMT(mode), "something else"))
