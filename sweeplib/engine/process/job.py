"""A call in a fork (`process.forks`), or else here: `python -m sweeplib.engine.process.job MODULE:FUNCTION ARGUMENTS`.

Each job of a workflow starts it, so it imports nothing of the library, and little else.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Sequence

ADDRESS = "SWEEPLIB_FORKS"
"""The environment variable with the path of the socket."""
PROCESSES = {
    "sweeplib.commands.snakemake:start": "-snakemake",
    "sweeplib.commands.stages:figure": "-figures",
}
"""The tasks that have a process of their own, where there is one: the ending of the path of its socket."""
MOST_BYTES = 2**20
"""Of a request: the arguments and the environment of a process."""


def command(task: str) -> list[str]:
    """Return the words of a command that calls `task`, "module:function", with the arguments that follow them."""
    return [sys.executable, "-P", "-m", "sweeplib.engine.process.job", task]


def ran(task: str, *arguments: str, output: int = 1, errors: int = 2) -> int | None:
    """Call `task`, "module:function", in a fork with the streams of this process; return the fork's exit status.

    None if there is no process to ask. The fork ends with this process. output, errors : the descriptors of its
    standard output and standard error.
    """
    connection = request_connection(task, arguments, (0, output, errors))
    if connection is None:
        return None
    with connection:
        return number(connection, 1)


def request_connection(task: str, arguments: Sequence[str] | None, descriptors: Sequence[int]) -> socket.socket | None:
    """Return the connection on which a request for a fork was accepted (`forks._Request`), None if it was not."""
    if ADDRESS not in os.environ:
        return None
    request = json.dumps((task, arguments, os.getcwd(), dict(os.environ))).encode()  # noqa: PTH109 - pathlib is slow
    address_of_task = os.environ[ADDRESS] + PROCESSES.get(task, "")
    address = address_of_task if os.path.exists(address_of_task) else os.environ[ADDRESS]  # noqa: PTH110 - pathlib is slow
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        # a packet is sent whole or not at all: the buffer must have room for an environment
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
        connection.connect(address)
        socket.send_fds(connection, [request], list(descriptors))
        if connection.recv(1) == b"+":
            return connection
    except OSError:
        pass
    connection.close()
    return None


def number(connection: socket.socket, otherwise: int | None = None) -> int | None:
    """Return the number that the other end sends, `otherwise` if it has ended."""
    answer = connection.recv(4)
    return int(struct.unpack("i", answer)[0]) if len(answer) == 4 else otherwise


if __name__ == "__main__":  # Dask's workers import this file too
    status = ran(*sys.argv[1:])
    if status is not None:
        os._exit(status)
    from sweeplib.engine.process.forks import function

    function(sys.argv[1])(*sys.argv[2:])
