"""The log of a stage, `journal/STAGE[.NAME].log` in the folder of its sweep: a copy of what the stage prints."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO, cast

_STYLES = re.compile("\x1b\\[[0-9;]*m")
"""The commands by which a terminal changes colours and styles."""


def log_path(directory: Path, stage: str) -> Path:
    """Return the path of the log of a stage."""
    return directory / "journal" / f"{stage}.log"


@contextmanager
def output_copy(log: Path) -> Iterator[None]:
    """A context in which what this process prints is written into a new file, `log`, too, as plain text.

    Processes that are started within print to the streams alone.
    """
    with ExitStack() as stack:
        # nothing depends on the log, and a stage that cannot write here cannot write results either, and says so
        with suppress(OSError):
            log.unlink(missing_ok=True)
            file = stack.enter_context(log.open("x", buffering=1, encoding="utf-8", errors="backslashreplace"))
            stack.enter_context(redirect_stdout(cast("TextIO", _Copy(sys.stdout, file))))
            stack.enter_context(redirect_stderr(cast("TextIO", _Copy(sys.stderr, file))))
        yield


class _Copy:
    """A stream of text that is written into a file too."""

    def __init__(self, stream: TextIO, file: TextIO) -> None:
        self._stream, self._file = stream, file

    def write(self, text: str) -> int:
        """Write a text; return the number of its characters."""
        with suppress(OSError, ValueError):  # the disk is full; a handler of logging writes after the stage
            self._file.write(_STYLES.sub("", text))
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
