"""Faults of a machine, which are no outcome of a case: of its disk, its libraries, its cached code, its processes."""

import errno
import pickle
import socket
import traceback

from sweeplib.engine.process.troubles import causes, reason
from sweeplib.errors import SweeplibError

ERRNOS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE, errno.ENOLCK),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
}
"""The errors of the system that no case is to blame for: of disks, and of what processes may have."""
LIBRARY_FILES = ("/numba/core/caching.py", "/llvmlite/binding/", "<frozen importlib")
"""Parts of paths of code that loads libraries and machine code: no values of a case come there."""
LOADING_ERRORS = (OSError, MemoryError, EOFError, pickle.UnpicklingError)
"""The errors that are the machine's if they came up in `LIBRARY_FILES`; elsewhere they are a case's."""


class UnfitError(SweeplibError):
    """A machine cannot compute cases; none of them has a status by that."""


def unfit(error: BaseException, *, imports_of_case: bool = False) -> UnfitError | None:
    """Return the error to end with if the machine is to blame for an exception of cases; None if the cases may be.

    imports_of_case : whether imports that fail are the fault of the case, whose code decides what it imports.
    """
    if isinstance(error, UnfitError):  # a simulator has asked before
        return error
    blamed = (cause for cause in causes(error) if not (imports_of_case and isinstance(cause, ImportError)))
    if not any(map(_is_of_machine, blamed)):
        return None
    why = reason(error).rstrip(".")
    return UnfitError(f"{socket.gethostname()} cannot compute cases: {why}; no case counts as failed by that")


def _is_of_machine(error: BaseException) -> bool:
    """Return whether an error is the machine's: of an import, of the system by its errno, or of loading code.

    A MemoryError elsewhere is the case's.
    """
    if isinstance(error, ImportError):
        return True
    if isinstance(error, OSError) and error.errno in ERRNOS:
        return True
    # of the code that the exception went through
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    return isinstance(error, LOADING_ERRORS) and any(piece in file for file in files for piece in LIBRARY_FILES)
