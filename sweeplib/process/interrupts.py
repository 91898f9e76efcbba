"""Ctrl-C and SIGTERM: this process ends within two seconds, with all processes that it started."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from sweeplib.process.children import descendants, end

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 0.8
"""Seconds that the main thread has to clean up before the process is ended."""


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by the first of `SIGNALS`."""


@contextmanager
def interruptible(say: Callable[[], None]) -> Iterator[None]:
    """A context within which one of `SIGNALS` raises `Interrupted`; once that leaves the context, the process ends.

    Last of all `say` is called, and all descendants are killed. If the main thread does not come so far in time, as it
    is in machine code, or waits for a thread that is, another thread does the same. Does nothing outside the main
    thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    once = threading.Lock()

    def interrupted(number: int, _frame: FrameType | None) -> None:
        if not seen:
            seen.append(number)
            silence()
            raise Interrupted

    def finish(number: int) -> NoReturn:
        while not once.acquire(blocking=False):
            time.sleep(PATIENCE)
        say()
        ended(number)

    def overdue(number: int) -> NoReturn:
        time.sleep(PATIENCE)
        finish(number)

    handlers = {each: signal.signal(each, interrupted) for each in SIGNALS if signal.getsignal(each) != signal.SIG_IGN}
    stop = watch(overdue)
    try:
        yield
    except BaseException:
        if seen:  # whatever it has become on its way
            finish(seen[0])
        raise
    finally:
        stop()
        for each, handler in handlers.items():
            signal.signal(each, handler)


def watch(act: Callable[[int], Any]) -> Callable[[], None]:
    """What ends the watch: `act` is called with the first of `SIGNALS` that comes, at once, in a thread of its own.

    That holds whatever the main thread, from which this is called, does, and whoever handles the signal.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, act), daemon=True, name="interrupts").start()

    def stop() -> None:
        signal.set_wakeup_fd(before)
        os.close(writing)

    return stop


def _watch(reading: int, act: Callable[[int], Any]) -> None:
    with os.fdopen(reading, "rb", buffering=0) as numbers:
        while number := numbers.read(1):
            if number[0] in SIGNALS:
                act(number[0])
                return


def silence() -> None:
    """Let nothing be written any more by what falls apart now: no logs, no tracebacks."""
    logging.disable()
    for module, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        setattr(module, hook, lambda *_: None)


def ended(number: int) -> NoReturn:
    """End this process by a signal's number, and all that it started; nothing more is cleaned up."""
    _put_in_order()
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, signal.SIG_DFL)  # a shell's loop goes on to its next turn unless a signal ended this one
        os.kill(os.getpid(), number)
    os._exit(128 + number)


def exit_now(status: int) -> NoReturn:
    """End this process with an exit status, and all that it started; nothing more is cleaned up."""
    _put_in_order()
    os._exit(status)


def _put_in_order() -> None:
    end(descendants())
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a pipe that nobody reads any more, a stream that is closed
            stream.flush()
