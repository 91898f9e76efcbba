"""Takes away from a process, whose PYTHONPATH has this folder, calls of Linux that macOS lacks."""

import os
import select
import signal
import socket
from typing import Any

LACKING = {
    os: ("copy_file_range", "memfd_create", "pidfd_open", "posix_fadvise", "sched_getaffinity", "sched_setaffinity"),
    select: ("epoll",),
    signal: ("pidfd_send_signal", "sigtimedwait"),
    socket: ("SO_PEERCRED",),
}
for module, names in LACKING.items():
    for name in names:
        delattr(module, name)

made = socket.socket.__init__


def refused(self: socket.socket, family: int = -1, type: int = -1, *rest: Any, **named: Any) -> None:  # noqa: A002
    if type == socket.SOCK_SEQPACKET:
        raise OSError("Protocol not supported")
    made(self, family, type, *rest, **named)


socket.socket.__init__ = refused  # type: ignore[method-assign]
