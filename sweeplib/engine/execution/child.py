"""A child process for computations that may kill it, hang, or take all memory.

The child imports sweeplib and the plugins once, and forks. The fork computes one task after the other. If a task ends
the fork, the next task gets a new fork, which costs milliseconds; if a task takes too long or too much memory, the fork
is killed.
"""

import faulthandler
import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any, NamedTuple

import psutil

from sweeplib.engine.code.plugins import import_plugins
from sweeplib.engine.execution.machine import UnfitError, unfit
from sweeplib.engine.execution.time_limit import ENDED, time_limit
from sweeplib.engine.process.fork_apart import Fork, fork_of
from sweeplib.engine.process.forks import ONE_THREAD
from sweeplib.engine.process.troubles import MOST_OF_A_TRACEBACK, Trouble, shortened
from sweeplib.errors import SweeplibError

# what a new Python process runs, which is no fork of another
STARTED = """\
import sys
from multiprocessing.connection import Connection
asker = Connection({descriptor})
sys.path[:] = asker.recv()  # sweeplib, plugins, and what they import, are found where the asker finds them
from {module} import main
main(asker)
"""
START_SECONDS = 600.0
"""Imports took over two minutes where fifty processes had two cores; those of a slow network file system do, too."""
COMPILE_SECONDS = 300.0
"""Seconds of compilation that a task may take beside its limit, before it is ended from outside."""
TICK = 0.02
"""Seconds between two looks at the memory of a task."""
SAID = "sweeplib: "
"""How the lines of the library begin that a process of cases may write."""


class TaskError(Exception):
    """A task has no result; `trouble` describes why, and where it was."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.exception)
        self.trouble = trouble


class RaisedError(TaskError):
    """A task raised an exception."""


class EndedError(TaskError):
    """A task ended its process, or exceeded a limit."""


class DiedError(EndedError):
    """The process died."""


class TimeUpError(EndedError):
    """The task exceeded its time limit."""


class MemoryUpError(EndedError):
    """The process exceeded its memory limit."""


class Limits(NamedTuple):
    """Limits of a task: seconds, without the time in which numba compiles, and bytes of memory; None is no limit."""

    seconds: float | None = None
    memory: int | None = None


class Child:
    """The process and its forks; it starts at once, so that its imports are done before the first task.

    plugins, module : what it imports: the paths of plugins, and the module of the simulator of its tasks, if any.
    """

    def __init__(self, plugins: Sequence[str] = (), module: str | None = None) -> None:
        self._plugins, self._module = tuple(plugins), module
        self._start()

    def call(self, function: Callable[..., Any], *args: Any, limits: Limits = Limits()) -> Any:  # noqa: B008
        """Return the result of `function(*args)` in the child; function, arguments and result are pickled.

        RaisedError if the function raises; DiedError, TimeUpError or MemoryUpError if the process ended; SweeplibError
        if the process cannot be started, UnfitError for another fault of the machine.
        """
        if not self._ready:
            self._await()
        try:
            self._connection.send(limits)
            self._connection.send_bytes(pickle.dumps((function, args)))
            outcome, value = self._connection.recv()
        except (EOFError, OSError):
            if not self._closed:  # closed by another thread: it is to end
                self.close()
                self._start()
            raise DiedError(Trouble("the process that runs it died")) from None
        self._pass_on()
        if outcome is not None:
            raise outcome(value)
        return value

    def close(self) -> None:
        """End the process and its fork."""
        self._closed = True
        self._connection.close()
        self.process.kill()
        self.process.wait()
        self._errors.close()

    process: "subprocess.Popen[bytes] | Fork"
    _read_up_to: int

    def _start(self) -> None:
        """Start the process, as a fork of one that has the imports if there is such, and send what it needs first."""
        self._ready = self._closed = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._read_up_to = 0
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            files = theirs.fileno(), self._errors.fileno()
            self.process = fork_of(f"{__name__}:main_in_fork", *files) or _started(*files)
        with suppress(OSError):  # the error is raised when the first task is sent
            self._connection.send(sys.path)
            self._connection.send((self._plugins, self._module))

    def _await(self) -> None:
        """Wait until the process has done its imports. SweeplibError if they fail or take too long."""
        try:
            if not self._connection.poll(START_SECONDS):
                problem = f"a process for the cases is not ready: imports take over {START_SECONDS:g} s"
                raise SweeplibError(f"{problem}; run again when the machine or its disk is less busy")
            self._ready = self._connection.recv()
        except (EOFError, OSError):
            status = _exit_description(self.process.wait())
            self._errors.seek(0)
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
            raise SweeplibError(f"a process for the cases does not start ({status}): {lines[-1]}") from None

    def _pass_on(self) -> None:
        """Write what the library has said in the process on standard error; what plugins print there is not shown."""
        end = os.fstat(self._errors.fileno()).st_size
        if end > self._read_up_to:
            text = os.pread(self._errors.fileno(), end - self._read_up_to, self._read_up_to).decode("utf-8", "replace")
            self._read_up_to = end
            sys.stderr.write("".join(line for line in text.splitlines(keepends=True) if line.startswith(SAID)))


@contextmanager
def lent(plugins: Sequence[str], module: str | None) -> Iterator[Child]:
    """A context with a child that nobody else uses; it is kept for the next context with the same surroundings.

    The child imports the plugins and `module`, that of the simulator of its tasks, once for all its forks; one that was
    kept has loaded kernels too. After an exception it is ended: its answer to a task may be still to come.
    """
    surroundings = Path.cwd(), tuple(sys.path), tuple(plugins), module, tuple(sorted(os.environ.items()))
    waiting = _waiting.setdefault(surroundings, [])
    try:
        child = waiting.pop()
    except IndexError:
        child = Child(plugins, module)
    try:
        yield child
    except BaseException:
        child.close()
        raise
    waiting.append(child)


def prepare_child(module: str) -> None:
    """Start a child without plugins for the next `lent`, so that its imports overlap with other work."""
    with lent((), module):
        pass


_waiting: dict[tuple[Any, ...], list[Child]] = {}
"""The children that nobody uses, by what they were started with; they end with this process."""
os.register_at_fork(after_in_child=_waiting.clear)


def _started(connection: int, errors: int) -> "subprocess.Popen[bytes]":
    """Return a new Python process that runs `main`; `connection` and `errors` are descriptors of files."""
    return subprocess.Popen(
        # -P: the working folder is not searched for modules
        [sys.executable, "-P", "-c", STARTED.format(module=__name__, descriptor=connection)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=[connection],
        env=os.environ | dict.fromkeys(ONE_THREAD, "1"),
        start_new_session=True,  # Ctrl-C reaches only the asker, which decides
    )


def main_in_fork(connection: int, errors: int) -> None:
    """Run the tasks that arrive, in a fork of a process that has imported the library.

    connection, errors : descriptors of files: of the pipe to the asker, and of what becomes standard error.
    """
    os.dup2(errors, 2)
    asker = Connection(connection)
    sys.path[:] = asker.recv()  # as in `STARTED`
    main(asker)


def main(asker: Connection) -> None:
    """Run the tasks that arrive from `asker`, a `Child` in another process, until it is gone.

    A task is two messages, its limits and its pickled function with arguments; the answer is (None, result), or the
    class of an error and what it is made of.
    """
    plugins, module = asker.recv()
    import_plugins(plugins)
    if module is not None:
        importlib.import_module(module)
    asker.send(True)
    fork: _Fork | None = None
    with suppress(EOFError):
        while True:
            limits, task = asker.recv(), asker.recv_bytes()
            try:
                fork = fork or _Fork(asker)
            except OSError as error:  # no room for a process
                asker.send((UnfitError, str(unfit(error) or error)))
                continue
            answer = fork.answer(task, limits)
            if isinstance(answer, bytes):
                asker.send_bytes(answer)
            else:
                fork.end()
                fork = None
                asker.send(answer)
    if fork is not None:
        fork.end()


class _Fork:
    """A forked process, which computes one task after the other; `report` is where a crash writes its location.

    connection : this process's end of the pipe to it.
    """

    def __init__(self, asker: Connection) -> None:
        context = multiprocessing.get_context("fork")
        self.asker = asker
        self.report = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed at the end of the process
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_compute, args=(theirs, self.report, (asker, self.connection)))
        self.process.start()
        theirs.close()

    def answer(self, task: bytes, limits: Limits) -> bytes | tuple[type[EndedError], Trouble]:
        """Return the fork's pickled answer, or the error and its trouble if it ended. EOFError if the asker is gone.

        The fork keeps the time without compilation by itself; from here it is ended after `COMPILE_SECONDS` more.
        """
        end = None if limits.seconds is None else time.monotonic() + limits.seconds + COMPILE_SECONDS
        try:
            memory = psutil.Process(self.process.pid)
            self.connection.send(limits)
            self.connection.send_bytes(task)
            while True:
                ready = wait([self.connection, self.asker], TICK)
                if self.asker in ready:
                    raise EOFError
                if self.connection in ready:
                    return self.connection.recv_bytes()
                if end is not None and time.monotonic() > end:
                    text = f"not finished after {limits.seconds:g} s plus {COMPILE_SECONDS:g} s for compilation"
                    return TimeUpError, Trouble(text)
                if limits.memory is not None and _bytes_of(memory) > limits.memory:
                    return MemoryUpError, Trouble(f"it took more than {limits.memory / 2**20:.0f} MiB of memory")
        except (EOFError, OSError, psutil.Error):
            if self.asker.poll():
                raise EOFError from None
            return self._death(limits)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.report.close()

    def _death(self, limits: Limits) -> tuple[type[EndedError], Trouble]:
        """Return why the process has ended, as an error and its text: its time was up, or it died.

        Its `report` has the location of a crash, or begins with `ENDED` if the process stopped itself in time.
        """
        self.process.join()
        self.report.seek(0)
        where = shortened(self.report.read().decode("utf-8", "replace"), MOST_OF_A_TRACEBACK)
        if where.startswith(ENDED):
            return TimeUpError, Trouble(f"not finished after {limits.seconds:.3g} s", where)
        return DiedError, Trouble(f"its process died ({_exit_description(self.process.exitcode)})", where)


def _compute(connection: Connection, report: IO[bytes], others: Sequence[Connection]) -> None:
    """Compute tasks until there are no more, in the fork. A crash writes its location to `report`.

    others : the connections of the process that forked, which its fork has to close: an end of file is seen only then.
    """
    for other in others:
        other.close()
    faulthandler.enable(report)
    with suppress(EOFError):
        while True:
            limits, task = connection.recv(), connection.recv_bytes()
            report.seek(0)
            report.truncate()
            try:
                function, args = pickle.loads(task)
                with time_limit(limits.seconds, report):
                    answer = None, function(*args)
                sent = pickle.dumps(answer)
            except BaseException as error:
                fault = unfit(error)
                sent = pickle.dumps((UnfitError, str(fault)) if fault else (RaisedError, Trouble.from_exception(error)))
            connection.send_bytes(sent)


def _bytes_of(process: psutil.Process) -> int:
    """Return the memory of a process; 0 if it has ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _exit_description(exitcode: int | None) -> str:
    """Return the name of the signal that ended a process, or its exit status."""
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):
            return signal.Signals(-exitcode).name
    return f"exit status {exitcode}"
