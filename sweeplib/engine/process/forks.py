"""A process that has imported the library, and forks: the stages of one `sweeplib sweep` need not import it again.

`fork_server` starts it and puts its address into the environment, where the jobs of the workflow find it
(`process.job`), and what needs a process for cases (`fork_apart`). It imports modules of the library and nothing of
the user's, so that each fork reads the config and the plugins as they are. It has one thread, and answers only
processes of the sweep that started it. It may leave some imports to a fork, which answers the tasks that need them.
Where it is missing or has died, processes import for themselves.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import psutil

from sweeplib.engine.process.children import descendants, end, with_descendants
from sweeplib.engine.process.job import ADDRESS, MOST_BYTES

SHORTEST = "/tmp"
"""The folder for sockets where the path of one in that of temporary files would have more than about 100 letters."""
SECONDS_TO_ASK = 1.0
"""Seconds within which a process that has connected must send its request."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""The environment variables that limit a process to one thread; libraries read them as they are imported."""

WAIT = ""
"""An item in a list of imports: those before it are done before a request is answered, those after it once one came."""
APART, MEANWHILE = "-", "+"
"""Items: a fork imports what is between "-NAME" and MEANWHILE, while this process goes on with what follows. The fork
answers requests for the tasks that have this name (`process.job.PROCESSES`), which wait until it has done that:
otherwise each of them would import the same in its own fork."""

Task = Callable[[], Any]
"""What a fork has to do."""
_askers: dict[int, socket.socket] = {}
"""In a fork, the connection to the process that asked for it; by process number, because a plugin may fork again."""
_exit = os._exit  # stages replace the other, to notice a plugin that calls it


@contextmanager
def fork_server(imports: Sequence[str]) -> Iterator[None]:
    """A context with a process that imports modules and forks for requests; it ends with the context.

    imports : in their order, names of modules, functions to call, "module:function", WAIT, and "-NAME" … MEANWHILE
        around what a fork imports apart. There is no process where a socket or a process cannot be made.
    """
    with ExitStack() as stack:
        for place in filter(None, (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), SHORTEST)):
            # AttributeError: a system without such sockets
            with suppress(OSError, AttributeError), ExitStack() as here:
                here.enter_context(_started(Path(place), imports))
                stack.enter_context(here.pop_all())
                break
        yield


@contextmanager
def _started(place: Path, imports: Sequence[str]) -> Iterator[None]:
    """A context with the process of `fork_server`, whose sockets are in a folder at a place; OSError if it cannot be.

    So it is where their paths would be too long.
    """
    with tempfile.TemporaryDirectory(prefix="sweeplib-", dir=place) as folder, ExitStack() as stack:
        address = str(Path(folder, "forks"))
        with ExitStack() as sockets:
            paths = [address, *(address + name for name in _names_apart(imports))]
            listening = [sockets.enter_context(_listening(path)) for path in paths]
            stack.callback(_end, _start_server(listening, imports))
        os.environ[ADDRESS] = address
        stack.callback(os.environ.pop, ADDRESS, None)
        yield


def _names_apart(imports: Sequence[str]) -> list[str]:
    """Return the items "-NAME" of a list of imports, which begin what a fork imports apart."""
    return [item for item in imports if item.startswith(APART)]


def _listening(path: str) -> socket.socket:
    """Return a socket that listens at a path."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen(64)
    return server


def _start_server(listening: Sequence[socket.socket], imports: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start the process that imports and forks; it ends when its standard input is closed.

    listening : its sockets: the first its own, then one for each fork that imports apart. imports : see `fork_server`.
    """
    descriptors = [server.fileno() for server in listening]
    return subprocess.Popen(
        # -P: the working folder is not searched for modules
        [sys.executable, "-P", "-m", __name__, ",".join(map(str, descriptors)), *imports],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        env=os.environ | dict.fromkeys(ONE_THREAD, "1"),
        process_group=0,  # Ctrl-C on a terminal does not reach it
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its forks, also while it imports."""
    with process:
        end(with_descendants(process.pid))


class _Request(NamedTuple):
    """What to call in a fork, "module:function", in which folder and environment.

    arguments : of the call, which is a job with the streams of the asker; None for `fork_of`, in a session of its own.
    """

    task: str
    arguments: Sequence[str] | None
    folder: str
    environment: dict[str, str]


class _Forks:
    """The requests that arrive on sockets, and the forks that answer them."""

    def __init__(self, listening: Sequence[socket.socket], imports: Sequence[str]) -> None:
        """Prepare the process that `_start_server` starts, which has its sockets and its list of imports."""
        # the sockets whose requests this process answers, what it has still to import, the process that may ask
        self._listening, self._imports, self._sweep = [listening[0]], list(imports), os.getppid()
        # by "-NAME", the sockets of forks that are not there yet
        self._apart = dict(zip(_names_apart(imports), listening[1:], strict=True))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # a handler that does nothing: only signals with one write to the wakeup descriptor
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._without_forks()

    def _without_forks(self) -> None:
        """Begin without forks, whose ends wake this process: called as it begins, and in a fork that forks itself."""
        self._connections: dict[int, socket.socket] = {}  # by the number of a fork: to the process that awaits its end
        self._ended, self._wake = socket.socketpair()  # the first is readable when a fork has ended
        # Python writes there within a signal, which must not wait
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def task(self) -> Task | None:
        """Import, and fork for each request; return in each fork what it has to do, and None once the sweep ends."""
        while True:
            waits = self._imports[:1] == [WAIT]
            # between imports it only looks; else it sleeps until something comes
            wait = 0.0 if self._imports and not waits else None
            # before WAIT is reached, requests are left where they are
            listening = self._listening if waits or WAIT not in self._imports else []
            # a request for a fork that is not there yet ends the wait too
            awaited = [*self._apart.values()] if waits else []
            sources: list[int | socket.socket] = [0, self._ended, *listening, *awaited]
            ready, _, _ = select.select(sources, [], [], wait)
            # standard input ends with the sweep, whatever has ended that
            if 0 in ready and not os.read(0, 1):
                end(descendants())
                return None
            if self._ended in ready:
                self._ended.recv(MOST_BYTES)
                self._report()
            requests = [source for source in listening if source in ready]
            if waits and (requests or any(source in ready for source in awaited)):
                self._imports.pop(0)
            if requests:
                if (task := self._answer(requests[0])) is not None:
                    return task
            elif wait == 0.0:
                self._go_on(self._imports.pop(0))

    def _go_on(self, item: str) -> None:
        """Import an item or, if it says so, leave the rest and the requests that need it to a fork."""
        if (server := self._apart.pop(item, None)) is not None:
            try:
                self._leave_some(server)
            except OSError:  # no room for a process: this one goes on
                self._listening.append(server)
        else:
            self._import(item)

    def _leave_some(self, server: socket.socket) -> None:
        """Fork; the fork imports the items up to MEANWHILE, then answers what arrives at the socket `server`.

        This process goes on with what follows MEANWHILE.
        """
        gc.freeze()
        end = self._imports.index(MEANWHILE)
        if os.fork():
            del self._imports[: end + 1]
            server.close()
            return
        del self._imports[end:]
        self._close()
        self._listening, self._apart = [], {}
        self._without_forks()
        while self._imports and not select.select([0], [], [], 0.0)[0]:
            self._import(self._imports.pop(0))
        self._listening = [server]

    def _close(self) -> None:
        """Close, in a fork, what the process that forks listens to."""
        sockets = (self._ended, self._wake, *self._listening, *self._apart.values(), *self._connections.values())
        for server in sockets:
            server.close()

    def _import(self, item: str) -> None:
        """Import a module, or call a function, by its name."""
        with suppress(Exception):  # the stage that needs the module reports the error
            function(item)() if ":" in item else importlib.import_module(item)

    def _report(self) -> None:
        """Send the exit statuses of the forks that have ended to those who wait for them."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if connection := self._connections.pop(ended[0], None):
                    code = os.waitstatus_to_exitcode(ended[1])
                    with connection, suppress(OSError):
                        # as a shell does for a process that a signal ended
                        connection.send(struct.pack("i", code if code >= 0 else 128 - code))

    def _answer(self, listening: socket.socket) -> Task | None:
        """Fork for the next request of a socket; return the task in the fork, None in this process.

        On an error, the request has no answer.
        """
        connection, _ = listening.accept()
        connection.settimeout(SECONDS_TO_ASK)
        descriptors: list[int] = []
        pid = -1
        with suppress(OSError, ValueError):
            content, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
            request = _Request(*json.loads(content))
            if _asks_for_sweep(connection, self._sweep):
                pid = os.fork()
        if not pid:
            return self._fork_task(request, descriptors, connection)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0 and request.arguments is not None:
            self._connections[pid] = connection
        else:
            connection.close()
        return None

    def _fork_task(self, request: "_Request", descriptors: Sequence[int], connection: socket.socket) -> Task:
        """Return the task of a request, in the fork: in the folder and environment of the process that asked.

        The request is answered by "+". The fork ends on an error.
        """
        try:
            gc.freeze()  # what was imported is not searched for garbage, now or at the end
            gc.enable()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._close()
            os.chdir(request.folder)
            os.environ.clear()
            os.environ.update(request.environment)
            connection.send(b"+")
            if request.arguments is None:
                return _apart(request.task, descriptors, connection)
            return _job(request.task, request.arguments, descriptors, connection)
        except BaseException:
            _exit(1)


def _asks_for_sweep(connection: socket.socket, sweep: int) -> bool:
    """Return whether the process at the other end is the sweep, whose number is given, or one that it started.

    A job that a batch system runs elsewhere is not.
    """
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    with suppress(psutil.Error):
        return sweep in {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
    return False


def _job(task: str, arguments: Sequence[str], descriptors: Sequence[int], connection: socket.socket) -> Task:
    """Return the call of a job in this fork, which gets the streams of the process that asked, and ends with that.

    descriptors : of the streams, standard input first. connection : to the process that asked.
    """
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    connection.settimeout(None)
    _askers[os.getpid()] = connection

    def wait() -> None:
        """End this fork once the process that asked has ended: a thread's work."""
        connection.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)

    # the end of the process that asked closes the connection
    threading.Thread(target=wait, daemon=True, name="asker").start()
    return lambda: function(task)(*arguments)


def _apart(task: str, descriptors: Sequence[int], connection: socket.socket) -> Task:
    """Return the call of a task with open files, by their descriptors, in a session of its own without streams.

    The number of this fork is sent first, by which the process that asked can end it.
    """
    connection.send(struct.pack("i", os.getpid()))
    connection.close()
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    return lambda: function(task)(*descriptors)


def function(task: str) -> Callable[..., Any]:
    """Return the function that `task`, "module:function", names."""
    module, _, name = task.partition(":")
    return getattr(importlib.import_module(module), name)


def tell_status(status: int) -> None:
    """Send the exit status with which this process is about to end to the process that asked for it, if it is a fork.

    The process that forked it sends it too, unless it has died.
    """
    if connection := _askers.get(os.getpid()):
        with suppress(OSError):
            connection.send(struct.pack("i", status))


def _ended_by(task: Task) -> NoReturn:
    """Run a task as a program, and end this process without freeing what the forks share, which would copy it first."""
    status = 0
    try:
        task()
    except SystemExit as end:
        from sweeplib.engine.process.interrupts import exit_status

        status = exit_status(end)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as multiprocessing does in its forks
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    tell_status(status)
    _exit(status)


def serve(descriptors: str, *imports: str) -> NoReturn:
    """Run the process that `fork_server` starts for its `imports`, and each fork; `descriptors` are its sockets."""
    gc.disable()  # imports leave no garbage, and a fifth of their time went into looking for it
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.socket(fileno=int(text))) for text in descriptors.split(",")]
        # it returns in each fork, with what that has to do, and here without one, once the sweep has ended
        task = _Forks(listening, imports).task()
    _ended_by(task or (lambda: None))


if __name__ == "__main__":
    importlib.import_module("sweeplib.engine.process.forks").serve(*sys.argv[1:])  # others import it under this name
