"""Descriptions of exceptions: text of bounded length for files, one line for the terminal."""

import errno
import json
import os
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sweeplib.engine.files.regular_files import open_to_append
from sweeplib.errors import InputError, SweeplibError

GOES_ON = "the same command goes on from there"
TRACEBACK = "SWEEPLIB_TRACEBACK"
"""The environment variable that shows tracebacks."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of the system for want of room."""
LACKING = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""The errors of the system for an operation that a file system does not have."""
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_UNNAMED = re.compile(r"\.([^/]+)\.[0-9a-f]{32}\.partial$")
"""The end of the path of a file that gets its name when it is whole (`partial` of the records)."""

MOST_OF_A_MESSAGE = 4_000
MOST_OF_A_TRACEBACK = 40_000
"""Characters that are kept of an exception's message, and of its traceback."""


@dataclass(frozen=True)
class Trouble:
    """The text of an exception and its traceback; both may be shortened in the middle."""

    exception: str
    traceback: str = ""

    @classmethod
    def from_exception(cls, error: BaseException) -> "Trouble":
        """Return the message of an exception and its traceback, both shortened."""
        message = "".join(traceback.format_exception_only(error)).strip()
        return cls(
            shortened(message, MOST_OF_A_MESSAGE),
            shortened("".join(traceback.format_exception(error)), MOST_OF_A_TRACEBACK),
        )


def shortened(text: str, most: int) -> str:
    """Return a text that UTF-8 can encode; if longer than `most` characters, its middle is replaced by a note."""
    if len(text) > most:
        left_out = len(text) - most
        text = f"{text[: most // 2]}\n... {left_out} characters left out ...\n{text[len(text) - most // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()


def in_one_line(error: BaseException, directory: Path | None = None) -> str:
    """Return one line about an error that ended a command; of an InputError with others, one line for each.

    directory : of the results. The tracebacks of unexpected errors are appended to its `journal/errors.log`.
    """
    message = _foreseen_message(error, directory) or _bug_message(error, directory)
    lines = message.splitlines() if isinstance(error, InputError) and error.others else [message]
    return "\n".join(" ".join(line.split()) for line in lines)


def reason(error: BaseException, directory: Path | None = None) -> str:
    """Return in one line what a foreseen error says, or else the exception; unlike `in_one_line` it writes nothing."""
    return " ".join((_foreseen_message(error, directory) or _exception(error)).split())


def _foreseen_message(error: BaseException, directory: Path | None) -> str | None:
    """Return the message of the first foreseen error among the error and its causes."""
    return next(filter(None, (_message_of(cause, directory) for cause in causes(error))), None)


def _exception(error: BaseException) -> str:
    """Return an exception, and the first of its causes, which often says more."""
    *_, first = causes(error)
    errors = [error] if first is error else [error, first]
    texts = ["".join(traceback.format_exception_only(link)).strip() for link in errors]
    return ", because of ".join([*(text.rstrip(".") for text in texts[:-1]), texts[-1]])


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its cause, then of each cause its own, or else the exception that it was raised in handling."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        yield cause
        cause = cause.__cause__ or (None if cause is error or cause.__suppress_context__ else cause.__context__)


def _message_of(error: BaseException, directory: Path | None) -> str | None:
    """Return an error that is no bug in one line; None for a bug."""
    where = f"{directory}: " if directory is not None else ""
    if isinstance(error, SweeplibError):
        return str(error)
    if isinstance(error, OSError):
        return _system_message(error, directory)
    if isinstance(error, MemoryError):
        return f"{where}not enough memory: {str(error) or 'none left'}; {GOES_ON}, best with fewer workers"
    if isinstance(error, ValueError) and _raised_in(error) == "dask.config":
        return str(error)  # it names the user's file of settings, which Dask reads whenever it is imported
    if isinstance(error, json.JSONDecodeError) or type(error).__module__.partition(".")[0] == "zarr":
        return f"{where}a damaged file: {error}; restore it from a copy, or delete it and run again"
    return None


def _raised_in(error: BaseException) -> str | None:
    """Return the module that raised an error; None if it is not known."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_globals.get("__name__") if frames else None


def _system_message(error: OSError, directory: Path | None) -> str:
    """Return the message of an operating-system error, with a remedy; it names the file, or else the `directory`.

    Errors of writing have no file name.
    """
    path: object = directory
    if isinstance(error.filename, str | bytes):
        path = _UNNAMED.sub(r"\1", os.fsdecode(error.filename))
    if path is directory and error.errno in _FULL:
        path = "where the output goes" if path is None else f"{path}, or where the output goes"
    where = f"{path}: " if path is not None else ""
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in _FULL:
        return f"{where}no room to write ({reason}): free some space, and {GOES_ON}"
    if error.errno in LACKING:
        return f"{where}its file system lacks an operation ({reason}): choose another folder with --results"
    if error.errno in _FORBIDDEN:
        return (
            f"{where}cannot be written or read ({reason}): make it accessible, or choose another folder with --results"
        )
    if error.errno == errno.EAGAIN:
        return f"{where}no more processes may run ({reason}): end others, or raise `ulimit -u`; {GOES_ON}"
    return f"{where}{reason}; once this is fixed, {GOES_ON}"


def _bug_message(error: BaseException, directory: Path | None) -> str:
    """Return the message of an unexpected error, and where its traceback is."""
    message = _exception(error)
    log = _log_traceback(error, directory)
    more = f"the traceback is in {log}" if log else f"{TRACEBACK}=1 shows the traceback"
    return f"an error in sweeplib or a plugin: {message}; {more}"


def _log_traceback(error: BaseException, directory: Path | None) -> Path | None:
    """Append the traceback to the log of errors and return its path; None if that is not possible."""
    if directory is None or not directory.is_dir():
        return None
    log = directory / "journal" / "errors.log"
    try:
        log.parent.mkdir(exist_ok=True)
        with open_to_append(log) as file:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')}\n")
            file.writelines(traceback.format_exception(error))
    except OSError:
        return None
    return log
