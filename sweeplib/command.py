"""A command of a user, or a job of the workflow: whatever ends it early is said in one line, and leaves no process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sweeplib.errors import InputError
from sweeplib.interrupts import interruptible
from sweeplib.processes import import_nothing_from_here
from sweeplib.troubles import TRACEBACK, trouble

INTERRUPTED = "interrupted; the same command goes on where it stopped"


_directories: list[Path | None] = []
"""Where the commands under way write."""


@contextmanager
def command(
    directory: Path | None = None,
    *,
    interrupted: str | None = INTERRUPTED,
    passing: tuple[type[BaseException], ...] = (BrokenPipeError,),
) -> Iterator[None]:
    """Nothing; an exception that leaves the context is told on standard error in one line, then SystemExit is raised.

    The status is 2 for input that is refused, else 1. Interrupted, the process ends with `interrupted` as its last
    line, silently where that is None. Exceptions of the types `passing` pass, and all, with their tracebacks, where the
    environment has SWEEPLIB_TRACEBACK.
    """
    import_nothing_from_here()
    _directories.append(directory)
    try:
        with interruptible(lambda: _say(interrupted)):
            yield
    except passing:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _say(trouble(error, _directories[-1]))
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None
    finally:
        _directories.pop()


def writes_into(directory: Path) -> None:
    """Let the command under way know the sweep's directory, of which errors tell."""
    if _directories:
        _directories[-1] = directory


def _say(line: str | None) -> None:
    if line is not None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
