"""A fork of the process with the imports (`process.forks`) that is no child of this one, and has no streams."""

import os
import select
import signal
from contextlib import suppress

from sweeplib.engine.process.job import number, request_connection


def fork_of(task: str, *descriptors: int) -> "Fork | None":
    """Call `task`, "module:function", in a fork with copies of open files, by their descriptors; return the fork.

    None if there is no process to ask. The fork has a session of its own, and no streams.
    """
    connection = request_connection(task, None, descriptors)
    if connection is not None:
        with connection, suppress(OSError):  # it has ended already
            pid = number(connection)
            return None if pid is None else Fork(pid)
    return None


class Fork:
    """A fork, which is no child of this process, with the methods of a process that `Child` needs."""

    def __init__(self, pid: int) -> None:
        # a descriptor stays that of this process, a pid may be given to another one
        self.pid, self._descriptor = pid, os.pidfd_open(pid)

    def kill(self) -> None:
        """End the fork, if it has not ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for the end of the fork; its exit status is not known here."""
        select.select([self._descriptor], [], [])

    def __del__(self) -> None:
        """Close the descriptor of the fork."""
        os.close(self._descriptor)
