"""Faults of a machine, which are no outcome of a case: of its disk, its libraries, its cached code, its processes."""

import errno
import pickle
import socket
import traceback
from collections.abc import Iterator

from sweeplib.engine.process.troubles import causes, reason
from sweeplib.errors import SweeplibError

NUMBERS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE, errno.ENOLCK),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
}
"""The errors of the system that no case is to blame for: of disks, and of what processes may have."""
LIBRARIES = ("/numba/core/caching.py", "/llvmlite/binding/", "<frozen importlib")
"""The places in which an error of these kinds is one of the machine: no values of a case come there."""
OF_LIBRARIES = (OSError, MemoryError, EOFError, pickle.UnpicklingError)


class UnfitError(SweeplibError):
    """A machine cannot compute cases; none of them has a status by that."""


def unfit(error: BaseException) -> UnfitError | None:
    """Return the error to end with if the machine is to blame for an exception of cases; None if the cases may be."""
    if not any(map(_is_of_machine, causes(error))):
        return None
    why = reason(error).rstrip(".")
    return UnfitError(f"{socket.gethostname()} cannot compute cases: {why}; no case counts as failed by that")


def _is_of_machine(error: BaseException) -> bool:
    """Return whether an error is the machine's: a library that is missing or fails, or a full disk or memory."""
    if isinstance(error, ImportError):
        return True
    if isinstance(error, OSError) and error.errno in NUMBERS:
        return True
    return isinstance(error, OF_LIBRARIES) and any(place in file for file in _files(error) for place in LIBRARIES)


def _files(error: BaseException) -> Iterator[str]:
    """Yield the files of the code that an exception went through."""
    return (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
