"""Ctrl-C, SIGTERM and the end of a terminal: this process ends within two seconds, with all that it started."""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from types import FrameType
from typing import Any, NoReturn

from sweeplib.engine.process.children import descendants, end
from sweeplib.engine.process.forks import tell_status

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 0.8
"""Seconds that the main thread has to clean up before the process is ended, unless a second signal ends it at once."""


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by the first of `SIGNALS`."""


@contextmanager
def interruptible(say: Callable[[], None], patience: float = PATIENCE) -> Iterator[None]:
    """A context in which one of `SIGNALS` raises `Interrupted`; the process ends when that leaves the context.

    At the end `say` is called, which writes the last line, and all descendants are killed. If the main thread does not
    get there within `patience` seconds, because it runs machine code or waits for a thread that does, or if a second
    signal arrives, another thread ends the process. Outside the main thread the context does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []
    finish = ending(say)

    def interrupted(number: int, _frame: FrameType | None) -> None:
        """Raise Interrupted at the first signal: the handler."""
        if not signals:
            signals.append(number)
            silence()
            _leave_lost_terminal()
            raise Interrupted

    handlers = {sig: signal.signal(sig, interrupted) for sig in SIGNALS if signal.getsignal(sig) != signal.SIG_IGN}
    stop = watch(finish, patience)
    try:
        yield
    except BaseException:
        if signals:  # also if code within the context replaced Interrupted by another exception
            finish(signals[0])
        raise
    finally:
        stop()
        for sig, handler in handlers.items():
            signal.signal(sig, handler)


def ending(say: Callable[[], None]) -> Callable[[int], NoReturn]:
    """Return a function that ends this process by a signal's number, after `say` has written the last line.

    Several threads may call it: the first one ends the process.
    """
    once = threading.Lock()

    def finish(number: int) -> NoReturn:
        """Say the last line, and end the process."""
        # another thread ends the process already: this one must not go on meanwhile
        while not once.acquire(blocking=False):
            time.sleep(PATIENCE)
        say()
        end_by_signal(number)

    return finish


def watch(act: Callable[[int], Any], patience: float = 0.0) -> Callable[[], None]:
    """Start a thread that calls `act` with the number of a signal once one of `SIGNALS` has arrived.

    Return a function that stops the watch. `act` is called `patience` seconds after the first signal, or at the second
    one if that comes earlier, whatever the main thread does, which must call `watch`, and whatever handlers are set.
    """
    reading, writing = os.pipe()
    # Python writes the number of a signal there in C, at once, whatever the main thread does
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, act, patience), daemon=True, name="interrupts").start()

    def stop() -> None:
        """Close the pipe, at whose end the thread ends."""
        signal.set_wakeup_fd(before)
        os.close(writing)

    return stop


def _watch(reading: int, act: Callable[[int], Any], patience: float) -> None:
    """Wait for signals at the end `reading` of a pipe, then call `act`: the work of the thread of `watch`."""
    with os.fdopen(reading, "rb", buffering=0) as numbers:
        first = _next_of(numbers)
        if first:
            _next_of(numbers, patience)
            act(first)


def _next_of(numbers: FileIO, seconds: float | None = None) -> int:
    """Return the next of `SIGNALS` in a pipe; 0 if it is closed, or none arrives within `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        wait = None if end is None else max(0.0, end - time.monotonic())
        number = numbers.read(1) if select.select([numbers], [], [], wait)[0] else b""
        if not number or number[0] in SIGNALS:
            return number[0] if number else 0


def silence() -> None:
    """Suppress all further output, such as logs and tracebacks of threads that fail during the shutdown."""
    logging.disable()
    for module, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        setattr(module, hook, lambda *_: None)


def _leave_lost_terminal() -> None:
    """Send output to nowhere if its terminal was closed: a failure to write would leave the end unrecorded."""
    for output in (1, 2):
        try:
            # writes nothing, but fails where the terminal is gone
            os.write(output, b"")
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)


def end_by_signal(number: int) -> NoReturn:
    """End this process by a signal's number, and its children, without further cleaning up."""
    _end_children_and_flush()
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, signal.SIG_DFL)  # a loop in a shell stops only if its command was ended by a signal
        os.kill(os.getpid(), number)
    os._exit(128 + number)


def exit_status(end: SystemExit) -> int:
    """Return the exit status with which Python ends a process by SystemExit: 1 for a text, 0 for None."""
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def exit_now(status: int) -> NoReturn:
    """End this process with an exit status, and its children, without further cleaning up."""
    _end_children_and_flush()
    tell_status(status)
    os._exit(status)


def _end_children_and_flush() -> None:
    """End all descendants, and write what the standard streams still hold."""
    end(descendants())
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a pipe without a reader, or a closed stream
            stream.flush()
