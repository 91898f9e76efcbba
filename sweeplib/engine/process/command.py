"""Commands and jobs of the workflow: an early end is reported in one line and leaves no process behind."""

import _io
import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from sweeplib.engine.process.children import environment, nothing_imported_from_here
from sweeplib.engine.process.environment import refuse_environment
from sweeplib.engine.process.interrupts import PATIENCE, exit_now, exit_status, interruptible
from sweeplib.engine.process.terminal import harmless
from sweeplib.engine.process.troubles import TRACEBACK, in_one_line
from sweeplib.errors import InputError

GOES_ON = "the same command goes on where it stopped"
INTERRUPTED = f"interrupted; {GOES_ON}"
SHOW_CURSOR = "\x1b[?25h"
"""What shows the cursor of a terminal, which a live screen hides."""


_directories: list[Path | None] = []
"""The folders of results of the running commands, the innermost last; None where a command has none."""


@contextmanager
def command(
    directory: Path | None = None,
    *,
    interrupted: str | None = INTERRUPTED,
    passing: tuple[type[BaseException], ...] = (BrokenPipeError,),
    patience: float = PATIENCE,
) -> Iterator[None]:
    """A context of a command, which reports an exception in one line on standard error and raises SystemExit.

    The status is 2 for refused input, otherwise 1. If the environment has SWEEPLIB_TRACEBACK, no exception is caught.

    directory : the folder of results, for messages. interrupted : the last line on an interrupt, None for none.
    passing : the types of exceptions that are not caught. patience : seconds to clean up after an interrupt.
    """
    _directories.append(directory)
    try:
        refuse_environment()
        with (
            nothing_imported_from_here(),
            environment("MPLBACKEND", "agg"),  # figures are files; matplotlib cannot be imported with an unknown one
            interruptible(lambda: _say(interrupted, end=True), patience),
        ):
            yield
    except passing:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _say(in_one_line(error, _directories[-1]))
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None
    finally:
        _directories.pop()


@contextmanager
def whole_process() -> Iterator[None]:
    """A context that ends this process and its children at once if it is left with a non-zero exit status.

    Otherwise abandoned objects, such as the client of a scheduler that does not answer, could wait for ever.
    """
    open_standard_streams()
    end_without_collection()
    _no_silent_end()
    try:
        yield
    except SystemExit as error:
        if not error.code:
            raise
        exit_now(exit_status(error))


def _no_silent_end() -> None:
    """Let `os._exit(0)` of a plugin end this process with a line and status 1: nothing that follows would be done."""
    end, pid = os._exit, os.getpid()

    def say_and_end(status: int) -> NoReturn:
        """End the process with a status; 0, unless in a child of multiprocessing, which ends in this way, is told."""
        if status == 0 and os.getpid() == pid:
            _say("a plugin ended this process with os._exit(0); nothing that comes after it was done")
            status = 1
        end(status)

    # `posix`, of which `os` has it
    os._exit = vars(sys.modules[os.name])["_exit"] = say_and_end


def open_standard_streams() -> None:
    """Open the null device for each standard stream that this process was started without, as by `2>&-`.

    Its number would otherwise be that of the next file that is opened, into which messages would then be written. A
    letter that the encoding of a stream cannot show, as γ in Latin-1, is written as its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open("w" if number else "r", encoding="utf-8")  # noqa: SIM115 - stays open
            if stream.fileno() == number:
                os.set_inheritable(number, True)
            setattr(sys, name, stream)
    if isinstance(sys.stdout, _io.TextIOWrapper) and sys.stdout.errors == "strict":  # as standard error does
        sys.stdout.reconfigure(errors="backslashreplace")


def end_without_collection() -> None:
    """Let this process end without a search for garbage, which takes 0.2 s where numba and Dask are imported.

    Functions that were registered to run at the end still run. Files that are still open are flushed, because without
    the search those that only a reference cycle holds, such as a global file of a plugin, are not closed.
    """
    atexit.register(_flush_and_freeze)


def _flush_and_freeze() -> None:
    """Flush all open files, and leave all objects to the system."""
    for thing in gc.get_objects():
        # not isinstance, which reads `__class__` and so may run code of lazy objects
        if issubclass(type(thing), _io._IOBase):
            with suppress(Exception):  # closed, or its reader is gone
                thing.flush()
    gc.freeze()


def writes_into(directory: Path) -> None:
    """Set the folder of results of the running command, for error messages, once the command knows it."""
    if _directories:
        _directories[-1] = directory


def _say(line: str | None, *, end: bool = False) -> None:
    """Write a line on standard error; at the `end` of a process, a terminal's cursor is shown again."""
    if line is not None:
        with suppress(OSError):  # the reader of standard error is gone
            cursor = SHOW_CURSOR if end and sys.stderr.isatty() else ""
            sys.stderr.write(f"{cursor}{harmless(line)}\n")
            sys.stderr.flush()
